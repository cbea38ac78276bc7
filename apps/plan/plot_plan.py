#!/usr/bin/env python3
"""Draws what prowl-plan found, from the document that it writes with --json; prowl-plan --plot calls it.

    plot_plan.py DATA.json PICTURE     (-: from standard input)

PICTURE: .png, .svg or .pdf. Ways to run at one number of ranks: a bar each, the time of a step by what is on its critical
path, and memory by kind. A sweep: a line each over the ranks. The same document gives the same picture, byte by byte.
"""
import collections
import json
import os
import sys

try:
    import matplotlib
except ImportError:
    sys.exit(f"plot_plan.py: {sys.executable} has no Matplotlib; prowl-plan --plot tries /usr/bin/python3 too. "
             "Debian: apt-get install python3-matplotlib")

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402

GIB = 2**30
UNDATED = {".png": None, ".svg": {"Date": None}, ".pdf": {"CreationDate": None}}

# Mostly of Okabe and Ito: told apart without seeing red or green, too.
LIMIT = "#b03a00"
METHODS = {"adamw": ("#333333", 3.6), "muon": ("#e69f00", 2.6), "periodic": ("#0072b2", 1.1)}  # widths: equal lines show
LINES = [("o", "-"), ("s", "--"), ("^", ":"), ("D", "-."), ("v", "-"), ("P", "--"), ("X", ":")]  # of a method's variants
STEP = {"model": "#c8c8c8", "NS5": "#d55e00", "other kernels": "#f0b840", "copies": "#56b4e9", "communication": "#00507d"}
MEMORY = {"weights": "#0072b2", "gradients": "#56b4e9", "momenta": "#e69f00", "AdamW moments": "#f0e442",
          "units": "#009e73", "buckets": "#cc79a7", "workspace": "#882255", "activations": "#d55e00",
          "batches": "#ddcc77", "transport": "#44aa99", "checkpoint": "#332288", "process": "#8c8c8c",
          "other": "#d4d4d4"}

# What names on a critical path belong to; the others are kernels of the optimizer.
PARTS = {"forward": "model", "backward": "model", "NS5": "NS5", "copy": "copies", "join shards": "copies",
         "pack bucket": "copies", "pack gradients": "copies", "keep gradients": "copies"}
COLLECTIVES = ("all_gather", "reduce_scatter", "all_reduce", "broadcast", "reduce")  # after their purpose


def step_parts(way):
    """Milliseconds of a step by kind; they add up to it."""
    parts = dict.fromkeys(STEP, 0.0)
    for entry in way["critical_path"]:
        collective = entry["name"].split()[-1] in COLLECTIVES
        parts["communication" if collective else PARTS.get(entry["name"], "other kernels")] += 1e3 * entry["seconds"]
    return parts


def memory_parts(ways):
    """GiB by kind of each way; "other": the kinds that are nowhere 3% of the largest total."""
    least = 0.03 * max(way["memory_bytes"]["total"] for way in ways)
    kinds = [kind for kind in MEMORY if max(way["memory_bytes"].get(kind, 0) for way in ways) >= least]
    result = []
    for way in ways:
        parts = {kind: way["memory_bytes"][kind] / GIB for kind in kinds}
        result.append(parts | {"other": way["memory_bytes"]["total"] / GIB - sum(parts.values())})
    return result


def setting(document):
    count = document["parameters"]["trainable"]
    size = f"{count / 1e9:.3g} billion" if count >= 1e9 else f"{count / 1e6:.3g} million"
    hardware = document["hardware"].replace("$", r"\$")  # Matplotlib's sign of a formula
    return f"{hardware}; {size} parameters, products in {document['type']}"


def labels_and_title(ways):
    """The ways' names without what they have in common, and that."""
    split = [way["name"].split(", ") for way in ways]
    common = [part for part in split[0] if len(ways) > 1 and all(part in parts for parts in split)]
    meshes = ["{} x {}".format(*way["mesh"]) for way in ways]
    mesh = collections.Counter(meshes).most_common(1)[0][0]
    labels = [", ".join([part for part in parts if part not in common] + [own] * (own != mesh))
              for parts, own in zip(split, meshes)]
    where = f"{ways[0]['ranks']} rank{'s' * (ways[0]['ranks'] > 1)}, {mesh}" + " unless named" * (len(set(meshes)) > 1)
    return labels, ", ".join([where] + common)


def draw_bars(axes, rows, colours, ends):
    """Stacked bars; `ends`: text and colour at each bar's end."""
    left = [0.0] * len(rows)
    for kind in rows[0]:
        widths = [row[kind] for row in rows]
        if max(widths) > 0:
            axes.barh(range(len(rows)), widths, 0.72, left, color=colours[kind], label=kind)
        left = [x + width for x, width in zip(left, widths)]
    for y, (x, (text, colour)) in enumerate(zip(left, ends)):
        axes.annotate(text, (x, y), (4, 0), textcoords="offset points", va="center", color=colour, fontsize=9)
    axes.tick_params(axis="y", length=0)
    axes.legend(loc="lower left", bbox_to_anchor=(0, 1), ncol=3, frameon=False, fontsize=9, handlelength=1,
                handletextpad=0.4, columnspacing=1, borderaxespad=0.2)


def draw_ways(document, ways):
    labels, title = labels_and_title(ways)
    figure, (time, memory) = plt.subplots(1, 2, sharey=True, figsize=(10, 1.9 + 0.27 * len(ways)),
                                          gridspec_kw={"width_ratios": [1.3, 1]}, layout="constrained")
    draw_bars(time, [step_parts(way) for way in ways], STEP,
              [(f"{number(1e3 * way['step_s'])} ({number(1e3 * way['optimizer_s'])})", "black") for way in ways])
    time.set_xlim(0, 1.3e3 * max(way["step_s"] for way in ways))
    time.set_yticks(range(len(ways)), labels)
    time.set_ylim(len(ways) - 0.4, -0.6)
    time.set_xlabel("time of a step (of the optimizer alone), ms")
    totals = [way["memory_bytes"]["total"] / GIB for way in ways]
    draw_bars(memory, memory_parts(ways), MEMORY,
              [(f"{total:.1f}", "black") if way["fits"] else (f"{total:.1f}, does not fit", LIMIT)
               for total, way in zip(totals, ways)])
    capacity = ways[0]["memory_bytes"]["capacity"] / GIB
    reach = (1.18 if all(way["fits"] for way in ways) else 1.45) * max(totals)
    if capacity < 2 * max(totals):  # else the bars would be short
        memory.axvline(capacity, color=LIMIT, linestyle="--", linewidth=1.2)
        reach = max(reach, 1.05 * capacity)
    memory.set_xlim(0, reach)
    memory.set_xlabel(f"memory a rank, GiB (of {capacity:.4g})")
    figure.suptitle(f"{title}\n{setting(document)}", fontsize=11)


def number(value):
    """With four digits, all of them before the point where there are more."""
    return f"{value:.0f}" if value >= 1000 else f"{value:.4g}"


def draw_lines(axes, ways, value, title):
    """A line for each way over the ranks, hollow where it does not fit."""
    variants = list(dict.fromkeys(way["name"].partition(" ")[2] for way in ways if " " in way["name"]))
    for name in dict.fromkeys(way["name"] for way in ways):
        own = [way for way in ways if way["name"] == name]
        variant = name.partition(" ")[2]
        marker, line = LINES[variants.index(variant) % len(LINES) if variant else 0]
        colour, width = METHODS.get(own[0]["method"], ("#cc79a7", 1.1))
        style = {"color": colour, "marker": marker, "markersize": 3.4 + 1.2 * width, "markeredgewidth": 1}
        axes.plot([way["ranks"] for way in own], [value(way) for way in own], line, linewidth=width, label=name, **style)
        hollow = [way for way in own if not way["fits"]]
        axes.plot([way["ranks"] for way in hollow], [value(way) for way in hollow], linestyle="none",
                  markerfacecolor="white", **style)
    axes.set_title(title, fontsize=10, loc="left")
    axes.set_xscale("log", base=2)
    ranks = sorted({way["ranks"] for way in ways}, reverse=True)
    every = 1 + (len(ranks) - 1) // 6  # labels that there is room for
    axes.set_xticks(ranks, ["" if i % every else str(rank) for i, rank in enumerate(ranks)])
    axes.minorticks_off()
    least, most = min(map(value, ways)), max(map(value, ways))
    if least > 0 and most > 8 * least:
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter("{x:g}")
        axes.yaxis.set_minor_formatter("")
    elif most > 2 * least:
        axes.set_ylim(-0.03 * most, 1.06 * most)
    axes.grid(True, color="#e2e2e2", linewidth=0.5)


def draw_sweep(document, ways):
    figure, axes = plt.subplots(2, 3, figsize=(10, 6), layout="constrained")
    step, optimizer, exposed, volume, memory, legend = axes.flat
    draw_lines(step, ways, lambda way: 1e3 * way["step_s"], "step, ms")
    draw_lines(optimizer, ways, lambda way: 1e3 * way["optimizer_s"], "optimizer, ms")
    draw_lines(exposed, ways, lambda way: 1e3 * way["exposed_total_s"], "exposed communication, ms")
    draw_lines(volume, ways, lambda way: way["optimizer_gib"], "optimizer's volume a rank, GiB")
    draw_lines(memory, ways, lambda way: way["memory_bytes"]["total"] / GIB, "memory a rank, GiB")
    capacity = ways[0]["memory_bytes"]["capacity"] / GIB
    memory.axhline(capacity, color=LIMIT, linestyle="--", linewidth=1.2,
                   label=f"capacity, {capacity:.4g} GiB" + " (hollow: does not fit)" * (not all(way["fits"] for way in ways)))
    memory.set_ylim(0, 1.06 * max(capacity, *(way["memory_bytes"]["total"] / GIB for way in ways)))
    for panel in (exposed, volume, memory):
        panel.set_xlabel("ranks")
    legend.axis("off")
    legend.legend(*memory.get_legend_handles_labels(), loc="center", frameon=False, handlelength=3.2, fontsize=9)
    figure.suptitle(setting(document), fontsize=11)


def main():
    if len(sys.argv) != 3:
        sys.exit("plot_plan.py: expected DATA.json PICTURE")
    data, picture = sys.argv[1:]
    suffix = os.path.splitext(picture)[1]
    if suffix not in UNDATED:
        sys.exit(f"plot_plan.py: {picture}: expected a name that ends in .png, .svg or .pdf")
    plt.rcParams.update({"font.size": 10, "axes.spines.top": False, "axes.spines.right": False, "axes.axisbelow": True,
                         "svg.hashsalt": "prowl-plan", "savefig.dpi": 180})
    try:
        with sys.stdin if data == "-" else open(data, encoding="utf-8") as file:
            document = json.load(file)
        draw = draw_sweep if document["sweep"] else draw_ways
        draw(document, document["ways"])
    except OSError as error:
        sys.exit(f"plot_plan.py: {data}: {error.strerror}")
    except (ValueError, LookupError, TypeError) as error:
        sys.exit(f"plot_plan.py: {data}: not a document of prowl-plan ({error!r})")
    part = f"{picture}.writing-{os.getpid()}{suffix}"  # the picture appears whole or not at all
    try:
        os.makedirs(os.path.dirname(picture) or ".", exist_ok=True)
        plt.savefig(part, metadata=UNDATED[suffix])
        os.replace(part, picture)
    except (OSError, ValueError) as error:
        if os.path.exists(part):
            os.remove(part)
        sys.exit(f"plot_plan.py: {picture}: {getattr(error, 'strerror', None) or error}")


if __name__ == "__main__":
    main()
