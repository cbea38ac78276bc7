#!/usr/bin/env python3
"""Draws the loss curves of one or more runs from their metrics.jsonl.

    plot_loss.py runs/emoji [runs/other ...] -o loss.png [--label NAME ...]

Faint: the training loss, averaged over a few steps. Bold with dots: the validation loss.
"""
import argparse
import json
import os
import sys

from interpreter import need

need("matplotlib")
import matplotlib  # noqa: E402

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402
from matplotlib import ticker  # noqa: E402

COLOURS = ["#1f6f8b", "#d1495b", "#3a7d44", "#8e5ea2", "#c77d0a", "#555555"]


def read(run):
    """(steps, losses), (steps, validation losses) of a run's folder or metrics file."""
    path = os.path.join(run, "metrics.jsonl") if os.path.isdir(run) else run
    training, validation = [], []
    try:
        with open(path, encoding="utf-8") as file:
            lines = file.read().split("\n")
    except OSError as error:
        sys.exit(f"plot_loss.py: {path}: {error.strerror}")
    for number, line in enumerate(lines, 1):
        if not line:
            continue
        try:
            row = json.loads(line)
            step = row["step"]
        except (ValueError, KeyError, TypeError):
            if number == len(lines):  # a line without its end: the run is writing it, or was killed
                continue
            sys.exit(f"plot_loss.py: {path}:{number}: not a JSON object with a step")
        if row.get("loss") is not None:
            training.append((step, row["loss"]))
        if row.get("val_loss") is not None:
            validation.append((step, row["val_loss"]))
    values = [value for _, value in training + validation]
    if values and not any(isinstance(value, (int, float)) and 0 < value < float("inf") for value in values):
        sys.exit(f"plot_loss.py: {path}: no loss above 0 and below infinity")
    if not training and not validation:
        sys.exit(f"plot_loss.py: {path}: no losses yet")
    return training, validation


def smoothed(points, window):
    """The mean of each value and those before it, `window` in all."""
    total, result = 0.0, []
    for i, (step, value) in enumerate(points):
        total += value
        if i >= window:
            total -= points[i - window][1]
        result.append((step, total / min(i + 1, window)))
    return result


def tick_label(value, _position=None):
    """Plain numbers at 1, 2, 3 and 5 of each decade."""
    text = f"{value:.6g}"
    return text if text.strip("0.")[:1] in "1235" and len(text.strip("0.")) == 1 else ""


def label_losses(axes):
    """Numbers on a logarithmic axis: those of tick_label, or round ones in even steps where they would be few."""
    low, high = axes.get_ylim()
    if high / low > 10:
        axes.yaxis.set_major_formatter(tick_label)
        axes.yaxis.set_minor_formatter(tick_label)
        return
    ticks = [tick for tick in ticker.MaxNLocator(6).tick_values(low, high) if low <= tick <= high]
    axes.yaxis.set_major_locator(ticker.FixedLocator(ticks))
    axes.yaxis.set_major_formatter("{x:.6g}")
    axes.yaxis.set_minor_locator(ticker.NullLocator())


def shown(name):
    """As Matplotlib draws it: it takes dollars for formulas, and leaves what begins with _ out of legends."""
    return (" " if name.startswith("_") else "") + name.replace("$", r"\$")


class Parser(argparse.ArgumentParser):
    """One line for a wrong argument."""

    def error(self, message):
        sys.exit(f"plot_loss.py: {message}; see --help")


def main():
    parser = Parser(description="Draws the loss curves of runs.")
    parser.add_argument("runs", nargs="+", metavar="RUN", help="a run's folder, or its metrics.jsonl")
    parser.add_argument("-o", "--output", required=True, help="the picture: .png, .pdf or .svg")
    parser.add_argument("--label", action="append", default=[], help="a run's name; once for each run, in order")
    parser.add_argument("--smooth", type=int, default=0, help="steps to average the training loss over (default: 1%%)")
    parser.add_argument("--linear", action="store_true", help="a linear loss axis (default: logarithmic)")
    arguments = parser.parse_args()
    if arguments.label and len(arguments.label) != len(arguments.runs):
        sys.exit(f"plot_loss.py: {len(arguments.label)} labels for {len(arguments.runs)} runs, expected as many")
    if arguments.smooth < 0:
        sys.exit(f"plot_loss.py: --smooth {arguments.smooth}, expected at least 0")
    labels = [shown(label) for label in arguments.label] or [shown(os.path.basename(os.path.abspath(run))) for run in arguments.runs]

    plt.rcParams.update({"font.size": 10, "axes.spines.top": False, "axes.spines.right": False})
    figure, axes = plt.subplots(figsize=(7.2, 4.2), dpi=150)
    for i, (run, label) in enumerate(zip(arguments.runs, labels)):
        training, validation = read(run)
        colour = COLOURS[i % len(COLOURS)]
        if training:
            window = arguments.smooth or max(1, len(training) // 100)
            axes.plot(*zip(*smoothed(training, window)), color=colour, alpha=0.35, linewidth=1.0,
                      label=None if validation else f"{label}, training")
        if validation:
            last = validation[-1][1]
            axes.plot(*zip(*validation), color=colour, linewidth=1.8, marker="o", markersize=3,
                      label=f"{label}, validation ({last:.4f} at the end)")
    if not arguments.linear:
        axes.set_yscale("log")
        label_losses(axes)
    axes.set_xlabel("step")
    axes.set_ylabel("loss (mean squared error of the velocity)")
    axes.grid(True, which="both", color="#dddddd", linewidth=0.5)
    axes.set_axisbelow(True)
    axes.margins(x=0.02)
    axes.legend(frameon=False, loc="upper right")
    figure.tight_layout()
    try:
        figure.savefig(arguments.output)
    except (OSError, ValueError) as error:
        sys.exit(f"plot_loss.py: {arguments.output}: {error}")
    print(arguments.output)


if __name__ == "__main__":
    main()
