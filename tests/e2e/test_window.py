"""Windows: the lock, the watch over the machine, killed windows and full disks.

Whether the machine is quiet is not for these tests to say: none of them needs a clean window.
"""

import json
import os
import resource
import signal
import subprocess
import sys
import time
import unittest

import program
from program import DATA, PROGRAM, ROOT, TIMEOUT, ProgramTest


def alive_in_group(group):
    """Processes of a process group that have not ended."""
    found = []
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            with open(f"/proc/{entry}/stat", encoding="utf-8", errors="replace") as stat:
                fields = stat.read().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[2]) == group and fields[0] not in "ZX":
            found.append(int(entry))
    return found


class Window(ProgramTest):
    def setUp(self):
        super().setUp()
        self.receipts = self.folder / "receipts"

    def plan(self, name="plan", **fields):
        body = {
            "schema": "assay.window-plan/1",
            "name": name,
            "device": "cpu",
            "items": [
                {
                    "name": "ticket",
                    "model": str(DATA / "kev-tiny-hybrid" / "run"),
                    "request": str(ROOT / "examples" / "ticket.json"),
                },
                {"name": "norm", "op": "rms_norm", "sizes": {"rows": 8, "dim": 256}, "calls": 10},
            ],
            "forms": [{"name": "default"}, {"name": "reference", "ops": {"rms_norm": "reference"}}],
            "repetitions": 4,
            **fields,
        }
        path = self.folder / f"{name}.json"
        path.write_text(json.dumps(body), encoding="utf-8")
        return path

    def arguments(self, plan, *more):
        return ["window", "run", plan, "--lock-folder", self.folder, "--receipts", self.receipts, *more]

    def start(self, plan, *more, **options):
        """A window in a process group of its own, which is gone when the test ends."""
        process = subprocess.Popen(
            [PROGRAM, *map(str, self.arguments(plan, *more))],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
            **options,
        )

        def clean_up():
            if process.poll() is None:
                process.kill()
            process.communicate()

        self.addCleanup(clean_up)
        return process

    def wait_for_line(self, process, words):
        """The first line on standard error with those words."""
        for line in process.stderr:
            if words in line.decode():
                return line.decode()
        self.fail(f"ended without saying '{words}'")

    def files(self):
        return sorted(path.name for path in self.receipts.glob("*")) if self.receipts.exists() else []

    def short_plan(self, **fields):
        items = [{"name": "norm", "op": "rms_norm", "sizes": {"rows": 8, "dim": 256}}]
        return self.plan("short", items=items, **fields)

    def long_plan(self, name="long"):
        return self.plan(name, repetitions=10000)

    def test_a_window_gives_a_receipt_with_every_sample(self):
        printed = json.loads(self.succeed(*self.arguments(self.plan(), "--json")))
        (name,) = self.files()
        receipt = json.loads((self.receipts / name).read_text(encoding="utf-8"))
        self.assertEqual(receipt, printed)
        result = receipt["result"]
        self.assertEqual(len(result["samples"]), 2 * 2 * 2 * 4)
        self.assertEqual([sample["order"] for sample in result["samples"]], list(range(32)))
        starts = [sample["start"] for sample in result["samples"]]
        self.assertEqual(starts, sorted(starts), "one worker at a time, in the order of the turns")
        self.assertEqual({cell["count"] for cell in result["times"]}, {8})
        self.assertEqual({pair["pairs"] for pair in result["pairs"]}, {8})
        self.assertEqual(len(receipt["subject"]["items"][0]["model"]), 64)
        self.assertIn("rms_norm=reference", receipt["subject"]["forms"][1]["forms"])
        self.assertEqual(result["clean"], not result["contention"])
        self.assertTrue(result["environment"]["seconds"])

    def test_two_receipts_are_two_windows(self):
        for _ in range(2):
            self.succeed(*self.arguments(self.plan(alive="together")))
        first, second = (self.receipts / name for name in self.files())
        message = self.fail_with(2, "window", "compare", first, second)
        self.assertIn("two windows", message)
        for path in (first, second):
            identity = json.loads(path.read_text(encoding="utf-8"))["result"]["window"]["id"]
            self.assertIn(identity, message)
        self.assertIn("against", self.succeed("window", "compare", first, first))

    def test_busy_loops_beside_it_make_it_contended(self):
        loops = [
            subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(os.cpu_count() or 1)
        ]
        try:
            plan = self.plan(repetitions=40)
            receipt = json.loads(self.succeed(*self.arguments(plan, "--json")))
        finally:
            for loop in loops:
                loop.kill()
                loop.wait()
        self.assertFalse(receipt["result"]["clean"])
        self.assertTrue(any("other processes took" in reason for reason in receipt["result"]["contention"]))
        self.assertTrue(receipt["result"]["environment"]["other_processes"])

    def test_the_second_window_waits_for_the_first(self):
        first = self.start(self.long_plan("first"))
        self.wait_for_line(first, "timing")
        self.assertIn(f"process {first.pid}", self.fail_with(2, *self.arguments(self.plan("hasty"), "--no-wait")))
        second = self.start(self.plan("second"))
        told = self.wait_for_line(second, "waiting")
        self.assertIn(f"process {first.pid}", told)
        self.assertIn("first", told)
        self.assertIsNone(second.poll())
        first.kill()
        second.communicate(timeout=TIMEOUT)
        self.assertEqual(second.returncode, 0)
        self.assertEqual(len(self.files()), 1)

    def test_a_signal_ends_it_and_leaves_nothing_behind(self):
        self.succeed(*self.arguments(self.plan()))
        earlier = self.files()
        for number in (signal.SIGTERM, signal.SIGINT):
            window = self.start(self.long_plan())
            self.wait_for_line(window, "timing")
            self.assertGreater(len(alive_in_group(window.pid)), 1)
            window.send_signal(number)
            _, errors = window.communicate(timeout=TIMEOUT)
            self.assertEqual(window.returncode, 2)
            self.assertIn("stopped by a signal", errors.decode())
            self.assertEqual(alive_in_group(window.pid), [])
            self.assertEqual(self.files(), earlier)
        self.assertEqual((self.folder / "assay-cpu.lock").read_text(encoding="utf-8"), "")

    def test_workers_die_with_a_killed_window(self):
        window = self.start(self.long_plan())
        self.wait_for_line(window, "timing")
        window.kill()
        window.communicate(timeout=TIMEOUT)
        deadline = time.monotonic() + TIMEOUT
        while alive_in_group(window.pid):
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.05)
        self.assertEqual(self.files(), [])

    def test_a_full_disk_is_an_error_and_earlier_receipts_stand(self):
        self.succeed(*self.arguments(self.plan()))
        (earlier,) = self.files()
        before = (self.receipts / earlier).read_bytes()

        def limit():
            # As much as the lock file needs; a receipt is larger.
            resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)

        window = self.start(self.plan(), preexec_fn=limit)
        _, errors = window.communicate(timeout=TIMEOUT)
        self.assertEqual(window.returncode, 2, errors.decode())
        self.assertIn("cannot be written", errors.decode())
        self.assertEqual(self.files(), [earlier])
        self.assertEqual((self.receipts / earlier).read_bytes(), before)

    def test_a_table_that_cannot_be_printed_leaves_no_receipt(self):
        for more in ((), ("--json",)):
            with open("/dev/full", "wb") as full:
                done = subprocess.run(
                    [PROGRAM, *map(str, self.arguments(self.short_plan(), *more))],
                    stdout=full, stderr=subprocess.PIPE, timeout=TIMEOUT,
                )  # fmt: skip
            self.assertEqual(done.returncode, 2)
            self.assertIn("standard output", done.stderr.decode())
            self.assertEqual(self.files(), [])

    def test_a_folder_that_takes_no_receipt_is_found_before_the_window(self):
        self.receipts.write_text("a file in the way")
        started = time.monotonic()
        done = program.assay(*self.arguments(self.long_plan()))
        self.assertLess(time.monotonic() - started, TIMEOUT / 10)
        self.assertEqual((done.returncode, done.stdout), (2, b""))
        self.assertIn("nothing was run yet", done.stderr.decode())

    def test_a_receipt_that_cannot_be_written_does_not_take_the_table_away(self):
        window = self.start(self.plan(repetitions=40))
        self.wait_for_line(window, "timing")
        self.receipts.rmdir()
        self.receipts.write_text("a file in the way")
        out, errors = window.communicate(timeout=TIMEOUT)
        self.assertEqual(window.returncode, 2, errors.decode())
        self.assertIn("against", out.decode())
        self.assertIn(str(self.receipts), errors.decode())

    def test_a_receipts_folder_that_was_taken_away_comes_back(self):
        window = self.start(self.plan(repetitions=40))
        self.wait_for_line(window, "timing")
        self.receipts.rmdir()
        _, errors = window.communicate(timeout=TIMEOUT)
        self.assertEqual(window.returncode, 0, errors.decode())
        self.assertEqual(len(self.files()), 1)

    def test_two_names_for_one_run_are_pointed_out(self):
        forms = [{"name": "a"}, {"name": "b\u202e", "threads": 0}, {"name": "c", "precision": "fp32"}]
        out = self.succeed(*self.arguments(self.short_plan(forms=forms, repetitions=6)))
        self.assertIn("a and b\\xe2\\x80\\xae are the same run by two names", out)
        self.assertEqual(out.count("the same run"), 1)
        self.assertNotIn("\u202e", out)

    def test_bad_plans_are_refused_by_file_and_field(self):
        message = self.fail_with(2, *self.arguments(self.plan(repetitons=4)))
        self.assertIn("plan.json", message)
        self.assertIn("repetitons", message)
        self.assertIn("no forms for other devices", self.fail_with(2, *self.arguments(self.plan(device="cuda:0"))))
        self.assertIn("a multiple of 2", self.fail_with(2, *self.arguments(self.plan(repetitions=5))))
        self.assertEqual(self.files(), [])

    def test_a_model_that_does_not_load_ends_it_with_the_workers_error(self):
        run = self.copy_checkpoint("kev-tiny-dense")
        (run / "head.pt").write_bytes(b"not a head")
        items = [{"name": "t", "model": str(run), "request": str(ROOT / "examples" / "ticket.json")}]
        message = self.fail_with(2, *self.arguments(self.plan(items=items)))
        self.assertIn("form default, process 0", message)
        self.assertIn("head.pt", message)


if __name__ == "__main__":
    unittest.main()
