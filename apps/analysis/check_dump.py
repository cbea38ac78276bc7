#!/usr/bin/env python3
"""check_dump.py DUMP: checks the arithmetic of a training step that prowl-train wrote (train.dump_step).

Everything is computed again in float64 with NumPy, from the formulas alone: noisy inputs, loss, and the optimizer's step.
Each gradient is compared with a central difference of the loss along a direction, and, where PyTorch can be imported, with
automatic differentiation, element by element. Prints the largest differences beside what float32 allows; exit status 1 where
one is larger.
"""
import argparse
import fnmatch
import json
import sys

from interpreter import need

need("h5py", "numpy")
import h5py  # noqa: E402
import numpy as np  # noqa: E402

try:
    import tomllib
except ImportError:
    import tomli as tomllib
try:
    import torch
except ImportError:
    torch = None

EPS = 2.0**-24  # of float32
failures = 0


def report(what, difference, allowed):
    global failures
    bad = not difference <= allowed
    failures += bad
    print(f"{'WRONG' if bad else 'ok':5}  {what:46} {difference:9.2e}  allowed {allowed:9.2e}")


# The model. `x` are arrays of NumPy or of PyTorch: only what both have alike is used.


def concatenate(arrays, axis):
    return torch.cat(arrays, axis) if torch and torch.is_tensor(arrays[0]) else np.concatenate(arrays, axis)


def exp(x):
    return torch.exp(x) if torch and torch.is_tensor(x) else np.exp(x)


def silu(x):
    return x / (1 + exp(-x))


def layer_norm(x):
    x = x - x.mean(-1)[..., None]
    return x / ((x * x).mean(-1)[..., None] + 1e-6)**0.5


def rms_norm(x, weight):
    return x / ((x * x).mean(-1)[..., None] + 1e-6)**0.5 * weight


def softmax(x):
    # Of scores that normalised q and k keep small: no maximum need be taken off.
    e = exp(x)
    return e / e.sum(-1)[..., None]


def swap(x, a, b):
    axes = list(range(x.ndim))
    axes[a], axes[b] = axes[b], axes[a]
    return x.permute(axes) if torch and torch.is_tensor(x) else x.transpose(axes)


def rope_angles(grid):
    frequency = 10000.0**(-np.arange(16) / 16)
    row, column = np.divmod(np.arange(grid * grid), grid)
    return np.concatenate([row[:, None] * frequency, column[:, None] * frequency], 1)  # (tokens, 32 pairs)


def rotate(x, angles):
    cos, sin = np.cos(angles), np.sin(angles)
    if torch and torch.is_tensor(x):
        cos, sin = torch.tensor(cos), torch.tensor(sin)
    pairs = x.reshape(tuple(x.shape[:-1]) + (32, 2))
    a, b = pairs[..., 0], pairs[..., 1]
    turned = concatenate([(a * cos - b * sin)[..., None], (a * sin + b * cos)[..., None]], -1)
    return turned.reshape(tuple(x.shape))


def heads(x):
    """(B, T, d) to (B, h, T, 64)."""
    return swap(x.reshape(tuple(x.shape[:2]) + (x.shape[2] // 64, 64)), 1, 2)


def patches(x, model):
    """(B, C, H W) to (B, tokens, C p p), a patch's vector ordered (channel, row, column)."""
    p, g = model["patch"], model["image_size"] // model["patch"]
    x = x.reshape((x.shape[0], model["channels"], g, p, g, p))
    axes = (0, 2, 4, 1, 3, 5)
    x = x.permute(axes) if torch and torch.is_tensor(x) else x.transpose(axes)
    return x.reshape((x.shape[0], g * g, -1))


def block(w, name, model, last, y, streams):
    weight = lambda stream, part: w[f"{name}.{stream}.{part}.weight"].T
    u = silu(y @ w[f"{name}.cond.weight"].T + w[f"{name}.cond.bias"])
    modulation = lambda stream, part: (u @ weight(stream, "modulation." + part))[:, None, :]
    angles = rope_angles(model["image_size"] // model["patch"])
    q, k, v = [], [], []
    for stream in ("txt", "img"):
        x = layer_norm(streams[stream]) * (1 + modulation(stream, "attn_scale")) + modulation(stream, "attn_shift")
        for part, to in (("q", q), ("k", k), ("v", v)):
            head = heads(x @ weight(stream, "attn." + part))
            if part != "v":
                head = rms_norm(head, w[f"{name}.{stream}.attn.{part}_norm.weight"])
                if stream == "img":
                    head = rotate(head, angles)
            to.append(head)
    q, k, v = concatenate(q, 2), concatenate(k, 2), concatenate(v, 2)
    joint = swap(softmax(q @ swap(k, 2, 3) / 8) @ v, 1, 2)
    joint = joint.reshape(tuple(joint.shape[:2]) + (-1,))
    words = streams["txt"].shape[1]
    result = {}
    for stream, mine in (("txt", joint[:, :words]), ("img", joint[:, words:])):
        if last and stream == "txt":
            continue
        x = streams[stream] + modulation(stream, "attn_gate") * (mine @ weight(stream, "attn.o"))
        h = layer_norm(x) * (1 + modulation(stream, "mlp_scale")) + modulation(stream, "mlp_shift")
        h = h @ weight(stream, "mlp.gate_up") + w[f"{name}.{stream}.mlp.gate_up.bias"]
        gate, up = h[..., :h.shape[-1] // 2], h[..., h.shape[-1] // 2:]
        h = (silu(gate) * up) @ weight(stream, "mlp.down") + w[f"{name}.{stream}.mlp.down.bias"]
        result[stream] = x + modulation(stream, "mlp_gate") * h
    return result


def predict(w, model, batch):
    """The velocity, as patches."""
    d = model["hidden"]
    img = patches(batch["noisy"], model) @ w["img_in.weight"].T + w["img_in.bias"]
    text = []
    for encoder in model["encoders"]:
        name = "text." + encoder["name"]
        x = rms_norm(batch["text"][encoder["name"]], w[name + ".norm.weight"]) * w[name + ".scalar"]
        text.append(x @ w[name + ".linear.weight"].T)
    streams = {"img": img, "txt": concatenate(text, 1)}
    angle = 1000 * batch["time"][:, None] * 10000.0**(-np.arange(d // 2) / (d // 2))
    time = np.concatenate([np.cos(angle), np.sin(angle)], 1)
    if torch and torch.is_tensor(img):
        time = torch.tensor(time)
    y = silu(time @ w["time_in.first.weight"].T) @ w["time_in.second.weight"].T + batch["pooled"] @ w["pooled_in.weight"].T
    for l in range(model["layers"]):
        streams = block(w, f"blocks.{l}", model, l + 1 == model["layers"], y, streams)
    u = silu(y)
    x = layer_norm(streams["img"]) * (1 + (u @ w["final.scale.weight"].T)[:, None]) + (u @ w["final.shift.weight"].T)[:, None]
    return x @ w["final.linear.weight"].T + w["final.linear.bias"]


def loss_of(w, model, batches):
    """The mean over all samples of the mean squared error."""
    total = samples = 0
    for batch in batches:
        error = predict(w, model, batch) - patches(batch["noise"] - batch["clean"], model)
        total = total + (error * error).sum() / error[0].reshape(-1).shape[0]
        samples += error.shape[0]
    return total / samples


# The optimizer.


def ns5(x):
    x = x / max(np.linalg.norm(x), 1e-7)
    for _ in range(5):
        a = x @ x.T
        x = 3.4445 * x + (-4.7750 * a + 2.0315 * a @ a) @ x
    return x


def row_norm(x):
    return x / np.maximum(np.linalg.norm(x, axis=1, keepdims=True), 1e-8)


def bfloat16(x):
    bits = x.astype(np.float32).view(np.uint32).astype(np.uint64)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16 << 16).astype(np.uint32).view(np.float32).astype(np.float64)


def settings(name, o):
    """What holds for a parameter: the deck's own values, then those of the first group that matches."""
    baseline = o["method"] == "adamw"
    s = {key: o[key] for key in ("period", "gamma", "momentum", "nesterov", "adjust_lr", "beta1", "beta2", "epsilon")}
    if o["method"] == "muon":
        s["period"] = 1
    group = next((g for g in o.get("group", []) if fnmatch.fnmatchcase(name, g["pattern"])), {})
    muon = group.get("route", "adamw" if baseline or not is_block_matrix(name) else "muon") == "muon"
    s["rate"] = o["rate"] if muon else o["baseline_rate"] if baseline else o["adamw_rate"]
    s["decay"] = o["decay"] if muon or baseline else o["adamw_decay"]
    s.update({key: v for key, v in group.items() if key not in ("pattern", "route")})
    return s


def is_block_matrix(name):
    return name.startswith("blocks.") and name.endswith(".weight") and not name.endswith("norm.weight")


def muon_direction(u, s, o, step, gathers):
    """And how far a float32 computation may be from it, beside the direction's scale."""
    x = u if u.shape[0] <= u.shape[1] else u.T
    refresh = o["method"] != "rownorm" and step % s["period"] == 0
    gamma = 1 if refresh and o["method"] != "scalar" else s["gamma"]
    # NS5 multiplies what is small beside the norm by up to 3.4445^5.
    gain = 3.4445**5 if refresh else 1
    uncertain = 64 * EPS * gain
    if o["wire"] == "bf16" and gathers and (refresh or o["system"] == "naive"):
        if s["nesterov"]:  # computed here again: what lies near a tie may have been rounded to the other side
            between = bfloat16(x * (1 + 8 * EPS)) - bfloat16(x * (1 - 8 * EPS))
            norm = lambda v: np.linalg.norm(v) if refresh else np.linalg.norm(v, axis=1, keepdims=True)
            uncertain = uncertain + 2 * gain * gamma * norm(between) / np.maximum(norm(x), 1e-8)
        x = bfloat16(x)
    d = gamma * (ns5(x) if refresh else row_norm(x))
    if u.shape[0] > u.shape[1]:
        d, uncertain = d.T, np.transpose(uncertain)
    return d, uncertain


def rate_scale(adjust, shape):
    if adjust == "original":
        return max(1, shape[0] / shape[1])**0.5
    return 0.2 * max(shape)**0.5 if adjust == "match_rms_adamw" else 1


def check_update(f, deck, gradients):
    o, step = deck["optimizer"], int(f.attrs["step"])
    factor, count = f["rate_factor"][0], step - int(f.attrs["skipped"]) + 1
    norm = sum((g * g).sum() for g in gradients.values())**0.5
    clip = o["clip"] / norm if 0 < o["clip"] < norm else 1
    # A matrix that has an owner is whole there: no wire rounds it.
    gathers = deck["parallel"]["placement"] == "sharded"
    worst = {}

    def note(what, difference, allowed):
        ratio = np.max(np.abs(difference) / allowed)
        if ratio >= worst.get(what, (-1,))[0]:
            at = np.argmax(np.abs(difference) / allowed)
            worst[what] = ratio, np.abs(difference).flat[at], np.broadcast_to(allowed, difference.shape).flat[at]

    for name, g in gradients.items():
        g = g * clip
        s = settings(name, o)
        before, after = ({kind: f[f"{when}/{kind}/{name}"][()].astype(np.float64)
                          for kind in ("weights", "momentum", "exp_avg", "exp_avg_sq") if f"{when}/{kind}/{name}" in f}
                         for when in ("before", "after"))
        rate, w = s["rate"] * factor, before["weights"]
        decayed = (1 - rate * s["decay"]) * w
        if "momentum" in before:
            mu = s["momentum"]
            m = mu * before["momentum"] + (1 - mu) * g
            note("momentum", after["momentum"] - m, 8 * EPS * (abs(m) + abs(g) + abs(before["momentum"])) + 1e-44)
            # From the momentum as it was, so that a wire rounds the same numbers.
            m = after["momentum"]
            d, uncertain = muon_direction((1 - mu) * g + mu * m if s["nesterov"] else m, s, o, step, gathers)
            reach = rate * rate_scale(s["adjust_lr"], w.shape)
            note("weights, Muon", after["weights"] - (decayed - reach * d), 8 * EPS * abs(w) + reach * uncertain + 1e-44)
        else:
            b1, b2 = s["beta1"], s["beta2"]
            g = np.clip(g, -2.0**63, 2.0**63)  # the squares of larger ones are no floats
            m = b1 * before["exp_avg"] + (1 - b1) * g
            v = b2 * before["exp_avg_sq"] + (1 - b2) * g * g
            note("exp_avg", after["exp_avg"] - m, 8 * EPS * (abs(m) + abs(g)) + 1e-44)
            note("exp_avg_sq", after["exp_avg_sq"] - v, 8 * EPS * v + 1e-44)
            update = rate * m / (1 - b1**count) / ((v / (1 - b2**count))**0.5 + s["epsilon"])
            note("weights, AdamW", after["weights"] - (decayed - update), 8 * EPS * abs(w) + 64 * EPS * rate + 1e-44)
    for what, (_, difference, allowed) in sorted(worst.items()):
        report(f"{what}, after the step", difference, allowed)


# The step.


def tensors(batch):
    as_tensor = lambda v: {k: as_tensor(x) for k, x in v.items()} if isinstance(v, dict) else torch.tensor(v)
    return {k: v if k == "time" else as_tensor(v) for k, v in batch.items()}


def read_batches(f):
    batches = []
    for k in range(len(f["batch"])):
        group = f[f"batch/{k}"]
        batch = {n: group[n][()].astype(np.float64) for n in ("clean", "noise", "noisy", "time", "pooled")}
        batch["text"] = {n: group["text"][n][()].astype(np.float64) for n in group["text"]}
        batches.append(batch)
    return batches


def read_weights(f):
    found = {}
    f["before/weights"].visititems(lambda n, x: found.__setitem__(n, x[()].astype(np.float64))
                                   if isinstance(x, h5py.Dataset) else None)
    return found


def check_gradients(w, model, batches, gradients):
    # What rounding leaves of a sum of n terms grows as sqrt(n) eps; a gradient is made of a chain of such sums, of cancelling
    # terms, so it is compared with its own norm and a small part of the whole gradient's.
    whole = sum((g * g).sum() for g in gradients.values())**0.5
    allowed = lambda g: 2e-5 * np.linalg.norm(g) + 1e-6 * whole
    random, worst = np.random.default_rng(0), (-1, 0, 0, "")
    for name, g in gradients.items():
        direction = random.standard_normal(g.shape)
        direction /= np.linalg.norm(direction)
        if np.linalg.norm(g) > 0:
            direction += g / np.linalg.norm(g)
        h = 1e-4
        slope = [loss_of({**w, name: w[name] + t * h * direction}, model, batches) for t in (-2, -1, 1, 2)]
        slope = (slope[0] - 8 * slope[1] + 8 * slope[2] - slope[3]) / (12 * h)
        difference = abs(slope - (g * direction).sum())
        if difference / allowed(g) > worst[0]:
            worst = difference / allowed(g), difference, allowed(g), name
    report(f"gradient along a direction ({worst[3]})", worst[1], worst[2])
    if not torch:
        print("       (PyTorch is not there: gradients are not compared element by element)")
        return
    leaves = {n: torch.tensor(x, requires_grad=True) for n, x in w.items()}
    loss_of(leaves, model, [tensors(b) for b in batches]).backward()
    worst = (-1, 0, 0, "")
    for name, g in gradients.items():
        exact = leaves[name].grad
        difference = np.linalg.norm((exact.numpy() if exact is not None else 0) - g)
        if difference / allowed(g) > worst[0]:
            worst = difference / allowed(g), difference, allowed(g), name
    report(f"{len(gradients)} gradients of PyTorch ({worst[3]})", worst[1], worst[2])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dump")
    with h5py.File(parser.parse_args().dump, "r") as f:
        text = lambda v: v.decode() if isinstance(v, bytes) else str(v)
        model, deck = json.loads(text(f.attrs["model"])), tomllib.loads(text(f["deck"][()]))
        batches, w = read_batches(f), read_weights(f)
        gradients = {name: f[f"gradient/{name}"][()].astype(np.float64) for name in w}
        for k, b in enumerate(batches):
            t = b["time"][:, None, None]
            report(f"noisy inputs {k}", np.max(abs((1 - t) * b["clean"] + t * b["noise"] - b["noisy"])),
                   8 * EPS * np.max(abs(b["noise"])))
        loss = loss_of(w, model, batches)
        report(f"loss {f['loss'][0]:.8f}", abs(f["loss"][0] - loss), 1e-5 * loss)
        check_gradients(w, model, batches, gradients)
        check_update(f, deck, gradients)
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
