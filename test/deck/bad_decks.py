#!/usr/bin/env python3
"""Bad decks and command lines: each is refused with status 2 and one line that names the place, the key and what was
expected; none crashes, hangs, or is accepted. The keys and types are those of --list-options.

    bad_decks.py [EVERY]     prowl-plan reads all of them, prowl-train every EVERY-th (default 100)"""
import os
import re
import subprocess
import sys
import tempfile
import unittest
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

DECK = {"model.hidden": "64", "model.layers": "2", "model.patch": "2", "model.size": "16",
        "model.encoder_widths": "[32]", "model.encoder_tokens": "[4]", "train.batch": "8"}
GROUP = "optimizer.group"

# By type: values that no key of the type takes. A string takes any text but for those below.
WRONG = {
    "integer": ["1.5", '"1"', "true", "[1]", "{}", "nan", "-inf", "", "9223372036854775808", "-9223372036854775808",
                "9223372036854775807", "1e300", "0x", "1_", "1979-05-27"],
    "number": ['"1"', "true", "[1.0]", "{}", "nan", "-nan", "inf", "-inf", "", "1e999", "-1e308", "1..2"],
    "true or false": ["1", '"true"', "[true]", "True", "", "nan"],
    "string": ["1", "true", "[]", "{}", "", '"a', '"\\x00"', '"\\ud800"', "'a\nb'", '"\x01"'],
    "list of integers": ["1", "[1.5]", '["1"]', "[[1]]", "[nan]", "[1, 9223372036854775808]", "[-1]", "[0]", "[", ""],
    "list of strings": ['"a"', "[1]", '[["a"]]', '["a", 1]', "[", ""],
}
OUT_OF_RANGE = {  # beyond the types: of keys with a range of their own
    "run.seed": ["-1"], "run.steps": ["0", "4294967296"], "run.resume": ['""'], "run.folder": ['""'],
    "run.time_limit": ["-0.001"], "model.preset": ['"mmdit-2b"', '"MMDIT-1.3B"', '" "'], "model.hidden": ["65", "-64", "65600"],
    "model.layers": ["-1", "10001"], "model.patch": ["0", "3", "1048577"], "model.channels": ["0", "-1"],
    "model.size": ["0", "15", "2147483648", "4294967312"], "model.encoder_widths": ["[32, 32]", "[4294967328]"],
    "model.encoder_tokens": ["[]", "[1048577]", "[4294967300]"], "model.pooled_width": ["0"],
    "train.batch": ["0", "-8", "4294967304"], "train.accumulate": ["0", "3", "16", "4294967297"],
    "train.validate_every": ["-1"], "train.validation_batches": ["0", "4294967297"], "train.checkpoint_every": ["-1"],
    "train.keep": ["0", "4294967297"], "train.dump_step": ["-2"], "train.log_every": ["0"],
    "train.caption_drop": ["-0.1", "1.1"], "optimizer.method": ['"sgd"', '"Muon"'], "optimizer.period": ["0", "-1"],
    "optimizer.gamma": ["0", "-1.0"], "optimizer.momentum": ["1.0", "-0.1"], "optimizer.adjust_lr": ['"yes"'],
    "optimizer.rate": ["-1e-9"], "optimizer.decay": ["-1"], "optimizer.baseline_rate": ["-1"], "optimizer.adamw_rate": ["-1"],
    "optimizer.adamw_decay": ["-1"], "optimizer.beta1": ["1"], "optimizer.beta2": ["1.5"], "optimizer.epsilon": ["0"],
    "optimizer.warmup": ["-1"], "optimizer.schedule": ['"linear"'], "optimizer.final_rate_fraction": ["1.5"],
    "optimizer.clip": ["-1"], "optimizer.on_nonfinite": ['"ignore"'], "optimizer.system": ['"fast"'],
    "optimizer.bucket_mib": ["0", "1048577"], "optimizer.wire": ['"fp16"'], "parallel.placement": ['"both"'],
    "parallel.owners": ['"last"'], "parallel.replicate": ["0", "3", "4294967297"], "parallel.replicate_broadcast": ['"no"'],
    "parallel.residency": ['"z1"'], "parallel.prefetch": ["-1"], "sample.steps": ["0", "4294967297"],
    "sample.guidance": ["-1"], "sample.every": ["-1"],
}
GROUPS = {  # rows of [[optimizer.group]], and a key that the message names
    '{pattern = "nothing*"}': "pattern", '{pattern = ""}': "pattern", "{rate = 1.0}": "pattern", '{pattern = 1}': "pattern",
    '{pattern = "*bias*", momentum = 0.5}': "momentum", '{pattern = "*", route = "adamw", period = 2}': "period",
    '{pattern = "*bias*", route = "muon"}': "bias", '{pattern = "*", route = "sgd"}': "route",
    '{pattern = "blocks.*.q.weight", beta1 = 0.5}': "beta1", '{pattern = "blocks.*.q.weight", epsilon = 1e-8}': "epsilon",
    '{pattern = "*bias*", nesterov = true}': "nesterov", '{pattern = "*bias*", gamma = 0.1}': "gamma",
    '{pattern = "*bias*", adjust_lr = "none"}': "adjust_lr", '{pattern = "*"}, {pattern = "blocks*"}': "group[1]",
    '{pattern = "blocks*"}, {pattern = "*"}, {pattern = "*q*"}': "group[2]", '{pattern = "*", rat = 1.0}': "rat",
    '{pattern = "*", rate = nan}': "rate", '{pattern = "*", momentum = 1.0}': "momentum", '{pattern = "[", rate = 1.0}': "pattern",
}
TEXTS = {  # whole files, and what the message names
    "": "model.hidden", "\0": "deck.toml", "\ufeff[model": "deck.toml", "[model]\nhidden = 64\nhidden = 64": "hidden",
    "[model]\n[model]": "model", "[[[model]]]": "key", "[[[": "key", "model = 1": "model", "[model.hidden]\na = 1": "model.hidden", "[[model]]\nhidden = 64": "model",
    "[optimizer.group]\npattern = '*'": "optimizer.group", "optimizer.group = 1": "optimizer.group",
    "[[optimizer.group]]\n[[optimizer.group.pattern]]\na = 1": "pattern", "hidden = 64": "model.hidden", "a.b.c.d.e = 1": "a.b",
    "[model]\nhiden = 64": "model.hidden", "[modle]\nhidden = 64": "modle", "= 1": "deck.toml", "[]": "deck.toml",
    "[model]\nhidden 64": "deck.toml", "\u00e9 = 1": "deck.toml", '"" = 1': "deck.toml",
    "model = {hidden = 64, layers = [[[[[[]]]]]]}": "model.layers", "a = " + "[" * 2000 + "]" * 2000: "deck.toml",
    "a = '" + "x" * 100000 + "'": "a", "x" * 5000 + " = 1": "unknown key", "[optimizer]\ngroup = [1, 2]": "optimizer.group",
}
ASSIGNMENTS = ["model.hidden", "=", "=1", ".=1", "model.=1", ".hidden=1", "model..hidden=1", "model=1", "model.hidden.x=1", "optimizer.group=1",
               "optimizer.group[0].rate=1", "optimizer.group.rate=1", "train.batch=8=8", "train.batch=8\n[model]", "train.batch=8 # x\ny=1",
               "train.batch=\n", "train.batsh=8", "TRAIN.BATCH=8", "\u00e9=1", "train.batch=\u0668", "run.folder=\udcff", "\udcff=1", "optimizer.method=\udcff", "--nothing", "-x", "train.batch"]
OPTIONS = [["--ranks", "0"], ["--ranks", "nan"], ["--ranks", "4294967297"], ["--ranks", ""], ["--ranks"], ["--mesh", "3x1"], ["--mesh", "0x2"],
           ["--mesh", "4294967298x1"], ["--per-rank", "0"], ["--per-rank", "1e9"], ["--per-rank", "1073741824"], ["--k", "0"], ["--k", "3..1"],
           ["--bucket", "nan"], ["--wire", "fp16"], ["--placement", "none"], ["--type", "int8"], ["--hardware", "/"], ["--hardware", "none"],
           ["--json", "/"], ["--csv", "/dev/null/a.csv"], ["--plot", "a.txt"], ["--trace", "/dev/null/a"], ["--sweep", "ranks=0"]]


def listed_types():
    out = subprocess.run([os.environ["PROWL_TRAIN"], "--list-options"], check=True, stdout=subprocess.PIPE, text=True).stdout
    rows = re.findall(r"^(\S+)  +(true or false|integer|number|string|list of integers|list of strings)  ", out, re.MULTILINE)
    return {key: kind for key, kind in rows if not key.startswith(GROUP)}


def deck_text(changes, extra=""):
    sections = {}
    for key, value in {**DECK, **changes}.items():
        section, _, name = key.partition(".")
        sections.setdefault(section, []).append(f"{name} = {value}")
    return "\n".join(f"[{s}]\n" + "\n".join(lines) for s, lines in sections.items()) + "\n" + extra


class Case:
    def __init__(self, text, arguments, names):
        self.text, self.arguments, self.names = text, arguments, names


def cases():
    types = listed_types()
    assert len(types) > 45 and set(OUT_OF_RANGE) <= set(types), set(OUT_OF_RANGE) - set(types)
    good = deck_text({})
    for key, kind in types.items():
        section = key.split(".")[0]
        for value in WRONG[kind]:
            if key == "run.seed" and value == "9223372036854775807":
                continue
            # TOML that is no TOML is refused by its place; a value by its key.
            yield Case(deck_text({key: value}), [], [["deck.toml", key], ["deck.toml:"]])
        for value in OUT_OF_RANGE.get(key, []):
            names = [[section + "."]]
            yield Case(deck_text({key: value}), [], names)
            yield Case(good, [f"{key}={value}"], names)
        if kind in ("integer", "number"):
            for value in ("nan", "-inf", "", "x", "1 2"):
                yield Case(good, [f"{key}={value}"], [["command line", key]])
    for rows, name in GROUPS.items():
        yield Case(good, [f"{GROUP}=[{rows}]"], [["command line", name]])
    for text, name in TEXTS.items():
        yield Case(text, [], [[name]])
    for assignment in ASSIGNMENTS:
        yield Case(good, [assignment], [["command line"]])


def status_and_lines(command, cwd):
    try:
        done = subprocess.run(command, cwd=cwd, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=60)
    except subprocess.TimeoutExpired:
        return None, ["hangs"]
    return done.returncode, done.stderr.decode(errors="surrogateescape").splitlines()


class BadDecks(unittest.TestCase):
    every = 100

    def complaint(self, program, case, number):
        deck = self.folder / f"{number}" / "deck.toml"
        deck.parent.mkdir(exist_ok=True)
        deck.write_text(case.text, encoding="utf-8", errors="surrogatepass")
        extra = ["--ranks", "2"] if program == "PROWL_PLAN" and "--ranks" not in case.arguments and "--sweep" not in case.arguments else []
        if program == "PROWL_TRAIN":
            extra = ["--dry-run"]
        status, lines = status_and_lines([os.environ[program], "deck.toml", *case.arguments, *extra], deck.parent)
        what = f"{program} {case.arguments} {case.text[:300]!r}: status {status}, {lines[:5]}"
        if status != 2 or len(lines) != 1 or not lines[0].startswith("error: ") or len(lines[0]) > 1000:
            return what
        if not any(all(name in lines[0] for name in names) for names in case.names):
            return f"{what}, expected {case.names}"
        return None

    def check(self, program, list_of_cases):
        with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(2) as pool:
            self.folder = Path(folder)
            found = list(pool.map(lambda c: self.complaint(program, c[1], c[0]), enumerate(list_of_cases)))
        bad = [text for text in found if text]
        print(f"{program}: {len(found)} bad decks, {len(bad)} of them not refused as they should be")
        self.assertEqual(bad, [], "\n" + "\n".join(bad))

    def test_prowl_plan(self):
        options = [Case(deck_text({}), o, [[o[0]], [o[-1]]]) for o in OPTIONS]
        self.check("PROWL_PLAN", list(cases()) + options)

    def test_prowl_train(self):
        self.check("PROWL_TRAIN", list(cases())[::self.every])

    def test_the_deck_that_is_changed_is_good(self):
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "deck.toml").write_text(deck_text({}))
            self.assertEqual(status_and_lines([os.environ["PROWL_PLAN"], "deck.toml", "--ranks", "2"], folder), (0, []))

    def test_data_sets_that_do_not_fit(self):
        try:
            import h5py
        except ImportError:
            self.skipTest("no h5py")
        with tempfile.TemporaryDirectory() as folder:
            def make(name, shape, tokens=4, text_encoding="a test's"):
                with h5py.File(Path(folder) / name, "w") as f:
                    f.attrs.update({"format": "prowl data set", "version": 1, "training_count": 8})
                    f.attrs["text_encoding"] = text_encoding
                    latents = f.create_dataset("latents", (12, *shape), "f4", chunks=(1, 1, 2, 2))
                    if max(shape) < 100:
                        latents[:] = 0
                    f.create_dataset("captions", data=["a"] * 12, dtype=h5py.string_dtype())
                    features = f.create_dataset("text/a/features", (12, tokens, 8), "f4", chunks=(1, 1, 8))
                    if tokens < 100:
                        features[:] = 0
                    f.create_dataset("pooled", data=[[0.0] * 8] * 12, dtype="f4")

            (Path(folder) / "deck.toml").write_text(deck_text({}))
            for name, shape, tokens, names in (("large.h5", (1, 2**30, 2**30), 4, ["1 x 1073741824 x 1073741824"]),
                                               ("wide.h5", (2**32 + 1, 2, 2), 4, ["4294967297"]),
                                               ("long.h5", (1, 2, 2), 2**32 + 4, ["4294967300"]),
                                               ("many.h5", (1, 2**12, 2**12), 4, ["4096"]),
                                               ("oblong.h5", (1, 2, 4), 4, ["2 x 4"]), ("odd.h5", (1, 3, 3), 4, ["model.patch", "3"])):
                make(name, shape, tokens)
                for program in ("PROWL_PLAN", "PROWL_TRAIN"):
                    extra = ["--ranks", "2"] if program == "PROWL_PLAN" else ["--dry-run"]
                    status, lines = status_and_lines([os.environ[program], "deck.toml", f"data.path={name}", *extra], folder)
                    self.assertEqual(status, 2, name)
                    self.assertEqual(len(lines), 1, lines)
                    for text in [name] + names:
                        self.assertIn(text, lines[0])

    def test_files_that_are_no_decks(self):
        with tempfile.TemporaryDirectory() as folder:
            for name in (".", "none.toml", "none/deck.toml", "/dev/null/deck.toml", os.environ["PROWL_PLAN"]):
                status, lines = status_and_lines([os.environ["PROWL_PLAN"], name, "--ranks", "2"], folder)
                self.assertEqual((status, len(lines)), (2, 1), lines)
                self.assertIn(name, lines[0])


if __name__ == "__main__":
    if sys.argv[-1].isdigit():
        BadDecks.every = int(sys.argv.pop())
    unittest.main()
