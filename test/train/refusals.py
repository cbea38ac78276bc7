#!/usr/bin/env python3
"""Bad input gives one message that says what to do; good questions get one answer."""
import os
import re
import unittest
from pathlib import Path

import launch

INPUTS = Path(__file__).resolve().parents[2] / "inputs"


class Refusals(launch.Case):
    def refused(self, expected, *extra, ranks=2, deck=None, **options):
        """A run that must end with one message in which all of `expected` are."""
        options = {"run.steps": 2, **{k.replace("__", "."): v for k, v in options.items()}}
        arguments = self.arguments("run", options)
        if deck is not None:
            (self.folder / "bad.toml").write_text(deck)
            arguments[0] = self.folder / "bad.toml"
        result = self.mpi("PROWL_TRAIN", ranks, *arguments, *extra)
        self.assertEqual(result.code, launch.REFUSED, result.out + result.error)
        self.assertEqual(len(result.messages()), 1, result.error)
        for text in expected:
            self.assertIn(text, result.error)
        return result

    def test_unknown_key(self):
        self.refused(["optimizer.perod", "optimizer.period"], "optimizer.perod=3")
        self.refused(["bad.toml", "batsh", "train.batch"], deck=launch.DECK.replace("batch =", "batsh ="))

    def test_wrong_type(self):
        self.refused(["train.batch", "integer"], "train.batch=many")
        self.refused(["bad.toml", "model.hidden"], deck=launch.DECK.replace("hidden = 64", 'hidden = "large"'))

    def test_missing_files(self):
        self.refused(["nowhere.h5"], data__path=self.folder / "nowhere.h5")
        self.refused(["data.path"], data__path="")
        for arguments in ([self.folder / "no.toml"], []):
            result = self.mpi("PROWL_TRAIN", 2, *arguments)
            self.assertEqual(result.code, launch.REFUSED)
            self.assertEqual(len(result.messages()), 1, result.error)
            self.assertIn("no.toml" if arguments else "DECK", result.error)

    def test_not_a_data_set(self):
        self.refused([str(self.deck)], data__path=self.deck)

    def test_impossible_sizes(self):
        self.refused(["model.hidden", "100", "64"], model__hidden=100)
        self.refused(["patch", "5"], model__patch=5)
        self.refused(["model.preset", "mmdit-2b"], model__preset="mmdit-2b", model__hidden=0, model__layers=0)
        self.refused(["train.batch", "0"], train__batch=0)
        self.refused(["train.accumulate", "3"], train__accumulate=3)
        self.refused(["parallel.replicate", "3"], parallel__replicate=3)
        self.refused(["optimizer.period", "0"], optimizer__period=0)
        self.refused(["steps", "0"], run__steps=0)

    def test_muon_on_a_bias(self):
        group = '\n[[optimizer.group]]\npattern = "blocks.*.bias"\nroute = "muon"\n'
        self.refused(["blocks.0", "bias", "two-dimensional"], deck=launch.DECK + group)
        group = group.replace("blocks.*.bias", "block.*")
        self.refused(["block.*", "no parameter"], deck=launch.DECK + group)

    def test_folder_that_cannot_be(self):
        # A file where the folder would be: refused to root too.
        (self.folder / "file").write_text("")
        self.refused(["run.folder", str(self.folder / "file")], run__folder=self.folder / "file" / "run")
        self.refused([str(self.folder / "file")], run__folder=self.folder / "file")

    @unittest.skipIf(os.geteuid() == 0, "root may write everywhere")
    def test_unwritable_folder(self):
        (self.folder / "run").mkdir(mode=0o500)
        self.refused([str(self.folder / "run")])

    def test_no_such_checkpoint(self):
        self.refused(["gone.h5"], run__resume=self.folder / "gone.h5")

    def test_prompts_without_hashed_words_are_refused_before_training(self):
        latents = launch.make_latents(self.folder / "latents.h5")
        self.refused(["prompts", "CLIP of a test"], data__path=latents, sample__prompts=["red"])
        self.assertFalse((self.folder / "run" / "metrics.jsonl").exists())


class NotFinite(launch.Case):
    """A first step of 1e30 leaves finite weights, with which all that follows overflows."""

    def options(self, how, **data):
        data = launch.make_latents(self.folder / "data.h5", **data)
        return {"data.path": data, "run.steps": 4, "optimizer.on_nonfinite": how, "optimizer.adamw_rate": 1e30,
                "optimizer.schedule": "constant"}

    def test_fail_names_the_parameter(self):
        result = self.mpi("PROWL_TRAIN", 2, *self.arguments("fail", self.options("fail")))
        self.assertEqual(result.code, launch.FAILED)
        self.assertRegex(result.messages()[0], r"step 1: the gradients? of .*(img_in|final|blocks|text|time|pooled|all \d+ parameters).* not finite")
        self.assertEqual(len(result.messages()), 1, result.error)
        self.assertFalse(self.checkpoints("fail"))

    def test_skip_counts_and_changes_nothing(self):
        options = self.options("skip", training=24)
        out = self.train("skip", 2, **options).out
        self.assertIn("skipped: not finite, as 3 steps so far", out)
        self.assertEqual([row["skipped"] for row in self.metrics("skip") if "skipped" in row], [0, 1, 2, 3])
        state = launch.arrays(self.checkpoints("skip")[-1])
        self.assertEqual(state["attribute skipped"], 3)
        self.train("once", 2, **{**options, "run.steps": 1})
        first = launch.arrays(self.checkpoints("once")[-1])
        self.assertTrue(all((v == first[n]).all() for n, v in state.items() if not n.startswith("attribute")))
        self.train("skip", 2, **{**options, "run.steps": 5})
        self.assertEqual(self.metrics("skip")[4]["skipped"], 4)

    def test_a_validation_loss_that_is_not_finite_ends_the_run(self):
        result = self.mpi("PROWL_TRAIN", 2, *self.arguments("run", self.options("skip")))
        self.assertEqual(result.code, launch.FAILED)
        self.assertRegex(result.messages()[0], "step 4: the validation loss is (inf|-?nan)")
        self.assertEqual(len(result.messages()), 1, result.error)


class NoValidation(launch.Case):
    def test_data_set_without_validation_samples(self):
        data = launch.make_latents(self.folder / "all.h5", training=24)
        result = self.train("run", 2, data__path=data, run__steps=2, train__validate_every=1)
        self.assertNotIn("nan", result.out)
        self.assertTrue(all(row.get("val_loss", 0) is not None for row in self.metrics("run")))


class Questions(launch.Case):
    def answered(self, arguments, once):
        for ranks in (1, 2):
            result = self.mpi("PROWL_TRAIN", ranks, *arguments)
            self.assertEqual(result.code, 0, result.error)
            for text in once:
                self.assertEqual(result.out.count(text), 1, f"{text} in {result.out}")
            self.assertEqual(result.error, "")
        return result.out

    def test_help(self):
        self.answered(["--help"], ["--list-options", "--dry-run"])

    def test_list_options(self):
        out = self.answered(["--list-options"], ["optimizer.bucket_mib"])
        self.assertIn("optimizer.group", out)

    def test_dry_run(self):
        self.answered(self.arguments("run", {}) + ["--dry-run"], ["# parameters", "# memory", "hidden = 64"])
        self.assertFalse((self.folder / "run").exists())

    def test_dry_run_of_the_largest_model(self):
        d, layers = 2880, 40
        trainable = 45 * layers * d * d - 13 * d * d + 19 * layers * d + 8312 * d + 256 * layers + 6211
        out = self.answered([INPUTS / "mmdit-15b.toml", "data.path=\"\"", "--dry-run"],
                            [f"# parameters: {trainable} trainable, {trainable + 16 * layers} with buffers"])
        muon = (45 * layers - 17) * d * d
        self.assertIn(f"{muon} ({100 * muon / trainable:.2f}%) updated by Muon", out)
        # Each weight and gradient is 4 bytes, and half of them on each of 2 ranks.
        for kind in ("weights", "gradients"):
            shards = float(re.search(rf"\b{kind} ([0-9.]+)", out).group(1))
            self.assertAlmostEqual(shards, trainable * 4 / 2 / 2**20, delta=0.001 * shards)


if __name__ == "__main__":
    unittest.main()
