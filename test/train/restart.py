#!/usr/bin/env python3
"""What a second start in a folder takes, refuses, and keeps."""
import json
import os
import shutil
import unittest

import launch
import numpy as np

CONSTANT = {"optimizer.schedule": "constant"}  # the rate does not depend on run.steps


class Start(launch.Case):
    def names(self, run, pattern):
        return sorted(p.name for p in (self.folder / run).glob(pattern))

    def content(self, run):
        """Every file by name and bytes; the lock says who came last."""
        return {p.name: p.read_bytes() for p in (self.folder / run).iterdir() if p.is_file() and p.name != "run.lock"}

    def damage(self, path):
        os.truncate(path, path.stat().st_size // 2)

    def steps(self, run):
        return [row["step"] for row in self.metrics(run) if "loss" in row]


class AmongCheckpoints(Start):
    def test_auto_and_never_refuse_a_start_at_step_0(self):
        self.train("run", 1, run__steps=4, train__checkpoint_every=2)
        for path in self.checkpoints("run"):
            self.damage(path)
        before = self.content("run")
        for resume, expected in (("auto", ["checkpoint-00000004.h5", "restart"]), ("never", ["checkpoint-00000004.h5"])):
            self.refused("run", ["run.resume", resume, *expected], run__steps=4, run__resume=resume)
            self.assertEqual(self.content("run"), before)

    def test_never_refuses_intact_ones_and_starts_where_there_are_none(self):
        self.train("run", 1, run__steps=2, run__resume="never")
        self.refused("run", ["run.resume", "never", "checkpoint-00000002.h5"], run__steps=4, run__resume="never")

    def test_restart_sets_the_earlier_run_aside(self):
        self.train("run", 2, run__steps=3, sample__prompts=["red"], train__dump_step=1)
        before = self.content("run")
        for number in (1, 2):
            out = self.train("run", 2, run__steps=2, run__resume="restart").out
            self.assertIn(f"previous-{number}", out)
            self.assertIn("starts at step 0", out)
        self.assertEqual({p.name: p.read_bytes() for p in (self.folder / "run" / "previous-1").iterdir()}, before)
        self.assertEqual(self.names("run", "*.h5"), ["checkpoint-00000002.h5"])
        self.assertEqual(self.steps("run"), [0, 1])
        # auto goes on with the new run.
        self.assertIn("resumes at step 2", self.train("run", 2, run__steps=3).out)

    def test_rows_without_a_checkpoint_are_kept(self):
        self.train("run", 1, run__steps=2)
        self.checkpoints("run")[0].unlink()
        before = (self.folder / "run" / "metrics.jsonl").read_bytes()
        self.train("run", 1, run__steps=1)
        self.assertEqual((self.folder / "run" / "previous-1" / "metrics.jsonl").read_bytes(), before)
        self.assertEqual(self.steps("run"), [0])


class GoingBack(Start):
    def setUp(self):
        super().setUp()
        self.options = {**CONSTANT, "train.checkpoint_every": 4, "train.keep": 9}
        self.train("run", 2, run__steps=12, **self.options)
        self.path = self.folder / "run" / "checkpoint-00000004.h5"
        self.back = {**self.options, "run.resume": self.path, "run.accept_changes": True, "optimizer.rate": 0.001}

    def test_the_same_command_goes_on_with_the_new_line(self):
        old = {name: data for name, data in self.content("run").items() if name.startswith("checkpoint")}
        first = self.train("run", 2, run__steps=6, **self.back).out
        self.assertIn(f"resumes at step 4 from {self.path}", first)
        self.assertIn("changed: optimizer.rate: 0.005 -> 0.001", first)
        self.assertEqual(self.names("run", "checkpoint-*"), ["checkpoint-00000004.h5", "checkpoint-00000006.h5"])
        for name in ("checkpoint-00000008.h5", "checkpoint-00000012.h5"):
            self.assertEqual((self.folder / "run" / "previous-1" / name).read_bytes(), old[name])
        self.assertEqual((self.folder / "run" / "previous-1" / "metrics.jsonl").read_text().count("loss\":"), 13)
        self.assertIn("resumes at step 6", self.train("run", 2, run__steps=10, **self.back).out)
        auto = {**self.back, "run.resume": "auto"}
        self.assertIn("resumes at step 10", self.train("run", 2, run__steps=12, **auto).out)
        self.assertEqual(self.steps("run"), list(range(12)))
        self.assertEqual(self.names("run", "previous-*"), ["previous-1"])
        # As in a folder of its own, where it is not interrupted.
        self.train("other", 2, **{**self.back, "run.steps": 12, "run.resume": self.folder / "run" / self.path.name})
        self.assertEqual(self.losses("other"), self.losses("run")[4:])

    def test_another_folders_checkpoint(self):
        self.train("other", 1, run__steps=5, **self.options)
        self.train("other", 2, run__steps=6, **self.back)
        self.assertEqual(self.names("other", "checkpoint-*"), ["checkpoint-00000006.h5"])
        self.assertEqual(self.steps("other"), [4, 5])
        self.path.unlink()
        self.assertIn("resumes at step 6", self.train("other", 2, run__steps=7, **self.back).out)

    def test_ended_before_its_first_checkpoint(self):
        # The files are set aside, the steps not done: as a run leaves it that is killed then.
        self.train("run", 2, run__steps=4, **self.back)
        self.path = self.path.rename(self.folder / "moved.h5")
        self.train("other", 2, **{**self.back, "run.steps": 4, "run.resume": self.path})
        self.checkpoints("other")[0].unlink()
        out = self.train("other", 2, **{**self.back, "run.steps": 6, "run.resume": "auto"}).out
        self.assertIn(f"resumes at step 4 from {self.path}", out)

    def test_a_checkpoint_that_is_refused_changes_nothing(self):
        before = self.content("run")
        self.refused("run", ["optimizer.rate"], **{**self.back, "run.accept_changes": False, "run.steps": 12})
        self.damage(self.folder / "run" / "checkpoint-00000008.h5")
        damaged = self.content("run")
        self.refused("run", ["00000008"], **{**self.back, "run.steps": 12, "run.resume": self.folder / "run" / "checkpoint-00000008.h5"})
        self.assertEqual(self.content("run"), damaged)
        self.assertEqual(before.keys(), damaged.keys())


class ChangedSettings(Start):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        case = cls("train")
        case.folder = cls.shared
        case.train("first", 1, run__steps=3)

    def setUp(self):
        super().setUp()
        shutil.copytree(self.shared / "first", self.folder / "run")

    def test_keys_that_make_another_run_are_refused(self):
        before = self.content("run")
        for key, old, new, shown in (("optimizer.rate", "0.005", 0.01, "0.01"), ("train.batch", "10", 12, "12"),
                                     ("optimizer.warmup", "2", 0, "0"), ("optimizer.schedule", '"cosine"', "constant", '"constant"'),
                                     ("train.caption_drop", "0.1", 0.5, "0.5"), ("run.seed", "0", 3, "3"),
                                     ("optimizer.period", "3", 2, "2")):
            with self.subTest(key=key):
                self.refused("run", [f"{key}: {old} -> {shown}", "checkpoint-00000003.h5", "run.accept_changes"], ranks=1,
                             **{"run.steps": 5, key: new})
        self.refused("run", ["run.steps", "2", "3"], ranks=1, run__steps=2)
        self.assertEqual(self.content("run"), before)

    def test_accepted_they_are_told_and_the_next_start_has_them(self):
        options = {"run.steps": 4, "optimizer.rate": 0.01, "train.batch": 12}
        out = self.train("run", 2, **options, **{"run.accept_changes": True}).out
        self.assertIn("changed: optimizer.rate: 0.005 -> 0.01", out)
        self.assertIn("changed: train.batch: 10 -> 12", out)
        self.train("run", 2, **{**options, "run.steps": 5})

    def test_keys_that_do_not_matter_go_on(self):
        out = self.train("run", 2, run__steps=5, train__keep=7, train__accumulate=2, parallel__placement="dedicated").out
        for line in ("changed: run.steps: 3 -> 5", "changed: train.keep: 2 -> 7", "changed: train.accumulate: 1 -> 2",
                     'changed: parallel.placement: "sharded" -> "dedicated"'):
            self.assertIn(line, out)

    def test_another_methods_state(self):
        for accept in (False, True):
            self.refused("run", ['optimizer.method: "periodic" -> "adamw"', "lacks exp_avg/blocks.0", "has momentum/blocks.0"],
                         run__steps=5, run__accept_changes=accept, optimizer__method="adamw")

    def test_decks_of_all_starts_are_kept(self):
        first = (self.folder / "run" / "deck.toml").read_text()
        self.assertEqual(self.names("run", "deck*"), ["deck-00000000.toml", "deck.toml"])
        for keep in (3, 4):
            self.train("run", 1, run__steps=3, train__keep=keep)
        self.assertEqual(self.names("run", "deck*"),
                         ["deck-00000000.toml", "deck-00000003-2.toml", "deck-00000003.toml", "deck.toml"])
        self.assertEqual((self.folder / "run" / "deck-00000000.toml").read_text(), first)
        self.assertIn("keep = 3 ", (self.folder / "run" / "deck-00000003.toml").read_text())
        self.assertIn("keep = 4 ", (self.folder / "run" / "deck.toml").read_text())

    def test_no_sample_is_skipped_or_seen_twice_after_another_batch(self):
        self.train("whole", 2, run__steps=4, train__dump_step=3)
        self.train("run", 2, run__steps=4, run__accept_changes=True, train__batch=7, train__dump_step=3)
        whole, cut = (launch.arrays(self.folder / run / "step-00000003.h5") for run in ("whole", "run"))
        for name in ("batch/0/clean", "batch/0/noise", "batch/0/time"):  # the first 7 of 10 from sample 30 on
            self.assertEqual(cut[name].tobytes(), whole[name][:7].tobytes(), name)
        self.assertEqual(launch.arrays(self.checkpoints("run")[-1])["attribute sample"], 37)

    def test_the_missing_picture_of_the_checkpoint_is_drawn(self):
        options = {"sample.prompts": ["red", "blue"], "sample.every": 2, "train.checkpoint_every": 2}
        self.train("pictures", 2, run__steps=6, **CONSTANT, **options)
        for last in (4, 6):
            self.train(f"stopped{last}", 2, run__steps=last, **CONSTANT, **options)
            for name in ("samples-00000004.png", "samples-00000006.png"):
                (self.folder / f"stopped{last}" / name).unlink(missing_ok=True)
            self.train(f"stopped{last}", 2, run__steps=6, **CONSTANT, **options)
            drawn = sorted(set(self.names("pictures", "samples-*")) - ({"samples-00000004.png"} if last == 6 else set()))
            self.assertEqual(self.names(f"stopped{last}", "samples-*"), drawn)
            for name in drawn:
                self.assertEqual((self.folder / f"stopped{last}" / name).read_bytes(),
                                 (self.folder / "pictures" / name).read_bytes())


class ChangedData(Start):
    def setUp(self):
        super().setUp()
        self.first = launch.make_latents(self.folder / "first.h5")
        self.train("run", 1, run__steps=2, data__path=self.first)

    def changed(self, change, **options):
        path = self.folder / "changed.h5"
        launch.make_latents(path, **options)
        with launch.h5py.File(path, "r+") as f:
            change(f)
        return path

    def test_other_samples_are_refused(self):
        def latent(f):
            f["latents"][5, 0, 0, 0] += 1

        def caption(f):
            f["captions"][5] = "another"

        def feature(f):
            f["text/b/features"][23, 1, 3] += 1

        for change in (latent, caption, feature):
            self.refused("run", ["data set content", "run.accept_changes"], run__steps=3, data__path=self.changed(change))
        self.refused("run", ["data set training_count: 20 -> 18"], run__steps=3,
                     data__path=self.changed(lambda f: None, training=18))
        self.refused("run", ["model text_encoding", "CLIP of a test", "another CLIP"], run__steps=3,
                     data__path=self.changed(lambda f: None, encoding="another CLIP"))
        self.refused("run", ["model image_size: 8 -> 16"], run__steps=3, data__path=self.changed(lambda f: None, size=16))
        self.train("run", 1, run__steps=3, data__path=self.changed(latent), run__accept_changes=True)

    def test_the_same_samples_elsewhere_go_on(self):
        out = self.train("run", 1, run__steps=3, data__path=shutil.copy(self.first, self.folder / "moved.h5")).out
        self.assertIn("changed: data.path", out)


class Diverging(Start):
    def test_a_run_whose_last_steps_diverge_fails(self):
        for steps in (1, 3):
            for how in ("fail", "skip"):
                run = f"{how}{steps}"
                result = self.mpi("PROWL_TRAIN", 2, *self.arguments(run, {
                    "run.steps": steps, "optimizer.rate": 1e38, "optimizer.on_nonfinite": how}))
                self.assertEqual(result.code, launch.FAILED, result.out + result.error)
                self.assertEqual(len(result.messages()), 1, result.error)
                for path in self.checkpoints(run):
                    for name, values in launch.arrays(path).items():
                        self.assertTrue(np.isfinite(values).all(), f"{path}: {name}")

    def test_a_rate_that_no_weight_can_hold_is_refused(self):
        result = self.mpi("PROWL_TRAIN", 2, *self.arguments("run", {"run.steps": 1, "optimizer.rate": 1e300}))
        self.assertEqual(result.code, launch.REFUSED, result.out + result.error)
        self.assertEqual(len(result.messages()), 1, result.error)
        self.assertIn("1e+300", result.error)


class Validation(Start):
    def test_the_loss_does_not_depend_on_micro_batches_or_ranks(self):
        data = launch.make_latents(self.folder / "latents.h5", count=64, training=40)
        options = {"data.path": data, "run.steps": 2, "train.batch": 16, "train.validate_every": 1,
                   "optimizer.rate": 0.0, "optimizer.adamw_rate": 0.0}
        found = {}
        for ranks, accumulate in ((1, 1), (1, 4), (1, 16), (2, 4), (3, 1), (4, 1), (4, 16)):
            run = f"{ranks}-{accumulate}"
            self.train(run, ranks, **options, **{"train.accumulate": accumulate})
            found[run] = [row["val_loss"] for row in self.metrics(run)]
        for run, losses in found.items():
            # Weights do not move: rounding of a network of n = 64 terms alone.
            self.assertLess(np.abs(np.array(losses) - found["1-1"]).max(), 64 * 2.0**-24 * found["1-1"][0], f"{run}: {found}")
        # 16 samples; 24, all there are, give another number.
        self.train("all", 2, **options, **{"train.validation_batches": 1000})
        self.assertGreater(abs(self.metrics("all")[0]["val_loss"] - found["1-1"][0]), 1e-4)


if __name__ == "__main__":
    unittest.main()
