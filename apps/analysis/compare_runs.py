#!/usr/bin/env python3
"""A table of runs: final losses, time a step, and the optimizer's time, in the Markdown of the README.

Times are medians, over groups of 12 steps, of the mean in a group: fair to every period that divides 12, and robust against
a busy machine.
"""
import argparse
import json
import os
import statistics
import sys


def read(folder):
    with open(os.path.join(folder, "metrics.jsonl"), encoding="utf-8") as file:
        lines = file.read().split("\n")
    return [json.loads(line) for line in lines[:-1] if line.strip()]  # what has no end is being written


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("runs", nargs="+", help="folders of prowl-train; ratios are to the first")
    parser.add_argument("--label", nargs="*", default=[], help="a name for each run")
    arguments = parser.parse_args()
    if len(arguments.label) > len(arguments.runs):
        sys.exit(f"compare_runs.py: {len(arguments.label)} labels for {len(arguments.runs)} runs")
    labels = arguments.label + [os.path.basename(os.path.normpath(r)) for r in arguments.runs[len(arguments.label):]]

    print("| run | first validation loss | final validation loss | step, ms | optimizer a step, ms | ratio |")
    print("|---|---|---|---|---|---|")
    base = None
    for folder, label in zip(arguments.runs, labels):
        try:
            rows = read(folder)
        except (OSError, ValueError) as error:
            sys.exit(f"compare_runs.py: {folder}: {error}")
        losses = [row["val_loss"] for row in rows if row.get("val_loss") is not None]
        steps = [row for row in rows if "seconds" in row]
        if not losses or len(steps) < 12:
            sys.exit(f"compare_runs.py: {folder}: expected at least 12 steps and a validation loss")
        steps = steps[len(steps) % 12:]
        groups = [steps[i:i + 12] for i in range(0, len(steps), 12)]
        optimizer = statistics.median(statistics.fmean(s["optimizer_seconds"] for s in g) for g in groups)
        whole = statistics.median(statistics.fmean(s["seconds"] for s in g) for g in groups)
        base = base or optimizer or 1.0
        label = label.replace("|", r"\|")  # which ends a cell
        print(f"| {label} | {losses[0]:.3f} | {losses[-1]:.4f} | {1e3 * whole:.0f} | {1e3 * optimizer:.2f} | {optimizer / base:.2f} |")


if __name__ == "__main__":
    main()
