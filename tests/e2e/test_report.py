"""A model's report: from real receipts to one page and the same as JSON; what it refuses; what a browser says."""

import hashlib
import html.parser
import json
import pathlib
import shutil
import sys
import tempfile
import unittest

import browser
import program
from program import ProgramTest

GATES = program.ROOT / "lab" / "gates"
HYBRID = program.run_dir("kev-tiny-hybrid")


def setUpModule():
    if not browser.PROGRAM:
        print("test_report: no chromium here, so NO BROWSER HAS LOOKED AT THE PAGE", file=sys.stderr)


class Outline(html.parser.HTMLParser):
    """Elements, ids, links and texts of a page."""

    VOID = {"meta", "link", "br", "img", "input"}

    def __init__(self, text):
        super().__init__()
        self.elements, self.ids, self.links, self.open = [], [], [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        self.elements.append((tag, attributes))
        if "id" in attributes:
            self.ids.append(attributes["id"])
        if "href" in attributes:
            self.links.append(attributes["href"])
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            raise AssertionError(f"</{tag}> closes nothing")


class Report(ProgramTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.made = pathlib.Path(folder.name) / "receipts"
        cls.measure_everything()

    @classmethod
    def measure_everything(cls):
        """One receipt of every kind, or more, each as small as it may be."""
        plan = cls.made.parent / "plan.json"
        plan.write_text(json.dumps({
            "schema": "assay.window-plan/1", "name": "swiglu-forms", "device": "cpu",
            "items": [
                {"name": "op", "op": "swiglu", "sizes": {"rows": 64, "dim": 512}, "calls": 4},
                {"name": "row", "shape": "kev-tiny", "row_tokens": 40, "questions": 1},
            ],
            "forms": [{"name": name, "precision": "fp32", "ops": {"swiglu": name}} for name in ("reference", "vector")],
            "repetitions": 4,
        }))  # fmt: skip
        model = ("--model", HYBRID, "--threads", "1", "--precision", "fp32")
        taps = program.DATA / "kev-tiny-hybrid.fixture.taps.safetensors"
        for arguments in (
            ("gate", "sweep", GATES / "op-swiglu.json", GATES / "taps-fp32.json", "--vary", "swiglu", "--precision",
             "fp32", "--model", HYBRID, "--fixture", taps),
            ("window", "run", plan, "--lock-folder", cls.made.parent),
            ("lab", "ceilings", "--threads", "1", "--repetitions", "3"),
            ("lab", "call-cost", *model, "--lengths", "1,8,17,33", "--rounds", "3"),
            ("lab", "footprint", *model, "--tokens", "32"),
            ("lab", "footprint", "--growth", *model, "--shortest", "1", "--tokens", "40", "--calls", "40"),
            ("lab", "profile", *model, "--tokens", "16"),
            ("bench", "decision", "--shape", "kev-tiny", "--rows", "40", "--questions", "1", "--repeat", "2"),
        ):  # fmt: skip
            done = program.assay(*arguments, "--receipts", cls.made)
            # A growth that so few calls leave open has status 1 and its receipt all the same.
            if done.returncode not in (0, 1):
                raise AssertionError(done.stderr.decode())

    def setUp(self):
        super().setUp()
        self.receipts = self.folder / "receipts"
        shutil.copytree(self.made, self.receipts)

    def arguments(self):
        return (
            "lab", "report", "--receipts", self.receipts, "--gates", GATES, "--ledger", program.ROOT / "ledger",
            "--model", HYBRID, "--shape", "kev-tiny", "--out", self.folder / "report.html",
            "--json", self.folder / "report.json",
        )  # fmt: skip

    def report(self):
        self.succeed(*self.arguments())
        text = (self.folder / "report.json").read_text(encoding="utf-8")
        return json.loads(text), (self.folder / "report.html").read_text(encoding="utf-8")

    def test_every_receipt_is_used_and_its_numbers_are_there(self):
        report, page = self.report()
        self.assertEqual(report["refused"], [])
        names = {path.stem for path in self.receipts.iterdir()}
        self.assertLessEqual(names, {source["sha256"] for source in report["sources"]})
        for part in ("forms", "gates", "windows", "call_cost", "footprint", "growth", "profile", "ceilings", "bench"):
            self.assertTrue(report[part], part)
        forms = {(form["op"], form["precision"], form["form"]): form for form in report["forms"]}
        vector = forms["swiglu", "fp32", "vector"]
        self.assertEqual(vector["gates"]["op"]["result"], "PASS")
        self.assertEqual(vector["gates"]["runs_passed"], 1)
        window = report["windows"][0]
        self.assertEqual([form["form"] for form in window["forms"]], ["reference", "vector"])
        self.assertEqual({row["item"] for row in report["summary"]["fastest"]}, {"op", "row"})
        for source in report["sources"]:
            self.assertIn(source["sha256"], page)

    def test_the_page_is_sound_html_that_asks_for_nothing(self):
        _, page = self.report()
        outline = Outline(page)
        self.assertEqual(outline.open, [])
        self.assertEqual(len(outline.ids), len(set(outline.ids)), "ids are unique")
        for link in outline.links:
            self.assertTrue(link.startswith(("#", "data:,")), link)
        # A link to a source may be to a file that is named but not here.
        inside = {link[1:] for link in outline.links if link.startswith("#") and not link.startswith("#f-")}
        self.assertLessEqual(inside, set(outline.ids))
        self.assertFalse([tag for tag, attributes in outline.elements if "src" in attributes])
        self.assertFalse([name for _, attributes in outline.elements for name in attributes if name.startswith("on")])
        for tag, attributes in outline.elements:
            if tag == "th":
                self.assertIn("scope", attributes)
        self.assertIn("prefers-color-scheme: dark", page)

    def test_an_edited_receipt_is_named_and_its_numbers_are_nowhere(self):
        before, _ = self.report()
        gate = self.receipts / (before["gates"][0]["receipt"] + ".json")
        gate.write_bytes(gate.read_bytes().replace(b'"cases": ', b'"cases": 9', 1))
        report, page = self.report()
        self.assertEqual(len(report["gates"]), len(before["gates"]) - 1)
        self.assertIn(gate.name, [pathlib.Path(file["file"]).name for file in report["refused"]])
        self.assertIn("edited", page)

    def test_what_is_of_another_device_model_or_build_is_refused(self):
        body = json.loads(next(iter(self.receipts.iterdir())).read_text())
        for name, change in (
            ("device", lambda body: body["device"].update(id="cpu-elsewhere")),
            ("build", lambda body: body["program"].update(sha256="0" * 64, modified=True, commit="") or body.update(made="2020-01-01T00:00:00Z")),
        ):  # fmt: skip
            other = json.loads(json.dumps(body))
            change(other)
            text = json.dumps(other, indent=1).encode()
            path = self.receipts / f"{hashlib.sha256(text).hexdigest()}.json"
            path.write_bytes(text)
            report, _ = self.report()
            (refused,) = report["refused"]
            self.assertIn(f"another {name}", refused["reason"])
            path.unlink()
        dense = program.assay(*self.arguments(), "--model", program.run_dir("kev-tiny-dense"))
        self.assertEqual(dense.returncode, 0, dense.stderr.decode())
        only_dense = [argument for argument in self.arguments() if argument != HYBRID]
        only_dense.insert(only_dense.index("--model") + 1, program.run_dir("kev-tiny-dense"))
        self.assertIn("another model", self.succeed(*only_dense))

    def test_bad_arguments_are_named_and_nothing_is_written(self):
        given = {
            "--receipts": self.receipts, "--gates": GATES, "--model": HYBRID, "--out": self.folder / "report.html",
        }  # fmt: skip
        cases = {
            "nowhere": {"--receipts": self.folder / "nowhere"},
            "no-gates": {"--gates": self.folder / "no-gates"},
            "no-run": {"--model": self.folder / "no-run"},
            "--build": {"--build": "latest"},
            "--selection": {"--selection": self.folder / "none.json"},
            "--ledger": {"--ledger": self.folder / "none"},
        }
        for says, change in cases.items():
            flags = [part for flag in {**given, **change}.items() for part in flag]
            self.assertIn(says, self.fail_with(2, "lab", "report", *flags))
            self.assertFalse((self.folder / "report.html").exists())

    @unittest.skipUnless(browser.PROGRAM, "no chromium")
    def test_a_browser_draws_every_plot_without_a_word_on_its_console(self):
        _, page = self.report()
        plots = page.count("<figure data-plot")
        self.assertGreaterEqual(plots, 4)
        with browser.Browser() as chromium:
            for width, scheme in ((1440, "light"), (390, "dark")):
                with self.subTest(width=width, scheme=scheme):
                    chromium.show((self.folder / "report.html").as_uri(), width=width, scheme=scheme)
                    # Plots in folds are drawn when these open, which a busy machine takes its time for.
                    chromium.value("document.querySelectorAll('details').forEach((fold) => { fold.open = true; })")
                    drawn = "document.querySelectorAll('figure[data-plot] .uplot canvas').length"
                    chromium.until(f"{drawn} === {plots}")
                    self.assertEqual(chromium.value(drawn), plots)
                    self.assertEqual(chromium.value("document.documentElement.scrollWidth"), width, "no scrolling aside")
                    # A name above a plot hides its series, and says so.
                    pressed = "document.querySelector('.legend button').getAttribute('aria-pressed')"
                    self.assertEqual(chromium.value(pressed), "true")
                    chromium.value("document.querySelector('.legend button').click()")
                    self.assertEqual(chromium.value(pressed), "false")
            self.assertEqual(chromium.console, [])

    @unittest.skipUnless(browser.PROGRAM, "no chromium")
    def test_the_browser_here_would_tell_of_an_error(self):
        page = self.folder / "broken.html"
        page.write_text("<!doctype html><title>x</title><script>console.log('told'); none()</script>")
        with browser.Browser() as chromium:
            chromium.show(page.as_uri())
            self.assertIn("told", chromium.console[0])
            self.assertIn("none is not defined", chromium.console[1])


if __name__ == "__main__":
    unittest.main()
