#!/usr/bin/env python3
"""Predicted against measured optimizer times: a table of results of `prowl-bench optimizer --hardware FILE --json RESULT`.

An error is predicted / measured - 1, of the median time; the fastest round is shown too, since a busy machine only adds.
"""
import argparse
import json
import statistics
import sys


def read(path):
    try:
        with open(path) as file:
            return json.load(file)
    except (OSError, ValueError) as error:
        sys.exit(f"predictions.py: {path}: {error}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("results", nargs="+", help="JSON files of prowl-bench")
    arguments = parser.parse_args()

    print("| model | ranks | method | K | measured, ms | fastest | predicted | error |")
    print("|---|---|---|---|---|---|---|---|")
    errors, of_fastest = {}, {}
    for path in arguments.results:
        result = read(path)
        for m in result["methods"]:
            if m["predicted_s"] == 0:
                sys.exit(f"predictions.py: {path}: no predictions, expected a run with --hardware")
            period = 1 if m["name"].startswith(("AdamW", "Muon")) else result["period"]
            error, fastest = (m["predicted_s"] / m[key] - 1 for key in ("median_s", "min_s"))
            print(f"| {result['model']} | {result['ranks']} | {m['name']} | {period} | {1e3 * m['median_s']:.2f} | "
                  f"{1e3 * m['min_s']:.2f} | {1e3 * m['predicted_s']:.2f} | {100 * error:+.0f}% |")
            if not m["name"].startswith("AdamW"):
                errors.setdefault(result["ranks"], []).append(abs(error))
                of_fastest.setdefault(result["ranks"], []).append(abs(fastest))
    print("\nmedian error without AdamW, of the medians (of the fastest rounds):")
    for ranks in sorted(errors):
        print(f"  {ranks} ranks: {100 * statistics.median(errors[ranks]):.1f}% ({100 * statistics.median(of_fastest[ranks]):.1f}%)")
    everything, fastest = (sum(e.values(), []) for e in (errors, of_fastest))
    print(f"  all {len(everything)}: {100 * statistics.median(everything):.1f}% ({100 * statistics.median(fastest):.1f}%)")


if __name__ == "__main__":
    main()
