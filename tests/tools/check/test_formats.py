"""Each format says the same, in the form that its readers expect."""

from __future__ import annotations

import dataclasses
import json
import re
import urllib.parse
import urllib.request
import xml.etree.ElementTree as ElementTree
from html.parser import HTMLParser
from pathlib import Path

import pytest
from checked_programs import PROGRAM, write
from sarif_schema import violations

from estimator2strategy import __version__
from estimator2strategy.tools.check import formats
from estimator2strategy.tools.check.check_report import (
    Evidence,
    Finding,
    LevelReport,
    NotChecked,
    Outcome,
    Report,
    Severity,
    Verdict,
)
from estimator2strategy.tools.check.checking import check
from estimator2strategy.tools.check.levels.facts import Bar, Bars, Curve, Curves, Number, Table
from estimator2strategy.tools.check.settings import Settings

NASTY = "a <b> & \"c\" 'd' 100% ]]> \x01 \n ::error::"


def finding(rule="E2S201", severity=Severity.WARNING, line=1, message="m", path="a.py"):
    return Finding(path, line, 1, rule, severity, message, "fix it", "f", "x = 1")


def report(*findings, **options):
    return Report(tuple(findings), ("a.py", "b.py"), "facade", **options)


@pytest.fixture
def checked(tmp_path):
    write(tmp_path, program=PROGRAM, clean="x = 1\n")
    return check([str(tmp_path)], Settings(root=tmp_path)), tmp_path


class TestReport:
    def test_verdict_counts_and_names_its_evidence(self):
        made = report(finding(), finding(severity=Severity.ERROR), evidence=Evidence.RECORDED)
        assert made.verdict.startswith("1 error, 1 warning in 2 files (recorded: model_fn")

    def test_levels_of_evidence_are_ordered_and_each_has_words(self):
        assert Evidence.STATIC < Evidence.RECORDED < Evidence.TPU_COMPILED < Evidence.TPU_RUN
        assert len({level.words for level in Evidence}) == len(Evidence) == 8

    def test_problem_comes_before_findings_in_the_exit_code(self):
        assert report(finding(), problems=("no",)).exit_code(Severity.INFO) == 2


class TestJson:
    def test_all_is_in_it(self, checked):
        made = json.loads(formats.render("json", *checked))
        assert [f["rule"] for f in made["findings"] if f["severity"] != "info"] == [
            "E2S219",
            "E2S212",
        ]
        assert made["evidence"]["level"] == "STATIC"
        assert made["files"] == ["clean.py", "program.py"]
        first = made["findings"][-1]
        assert (first["path"], first["line"], first["column"]) == ("program.py", 12, 1)


class TestSarif:
    def test_it_follows_the_schema(self, checked):
        assert violations(json.loads(formats.render("sarif", *checked))) == []

    def test_schema_check_is_strict(self, checked):
        made = json.loads(formats.render("sarif", *checked))
        made["runs"][0]["results"][0]["levle"] = "error"
        made["runs"][0]["results"][1]["level"] = "bad"
        del made["runs"][0]["results"][2]["message"]
        assert len(violations(made)) == 3

    def test_fingerprint_does_not_depend_on_the_line(self, tmp_path):
        def prints(text):
            write(tmp_path, program=text)
            made = check([str(tmp_path / "program.py")], Settings(root=tmp_path))
            results = json.loads(formats.render("sarif", made, tmp_path))["runs"][0]["results"]
            return [r["partialFingerprints"]["e2s/v1"] for r in results]

        assert prints(PROGRAM) == prints("\n\n" + PROGRAM)
        assert len(set(prints(PROGRAM + "estimator.train(input_fn)\n" * 3))) == len(
            prints(PROGRAM + "estimator.train(input_fn)\n" * 3)
        )

    def test_no_more_results_than_code_scanning_takes_and_the_worst_are_kept(self, tmp_path):
        many = [finding(severity=Severity.INFO, line=n) for n in range(1, 25_002)]
        made = report(*many, finding("E2S203", Severity.ERROR, 30_000))
        run = json.loads(formats.render("sarif", made, tmp_path))["runs"][0]
        assert len(run["results"]) == 25_000
        assert run["results"][0]["ruleId"] == "E2S203"
        notes = run["invocations"][0]["toolExecutionNotifications"]
        assert any("2 more findings were left out" in n["message"]["text"] for n in notes)

    def test_tool_and_rules_say_where_to_read_more(self, tmp_path):
        driver = json.loads(formats.render("sarif", report(finding()), tmp_path))["runs"][0]["tool"]
        uris = [driver["driver"]["informationUri"], driver["driver"]["rules"][0]["helpUri"]]
        for uri, heading in zip(uris, ("# ", "## E2S201 "), strict=True):
            page = Path(urllib.request.url2pathname(urllib.parse.urlparse(uri).path))
            assert f"\n{heading}" in "\n" + page.read_text()

    def test_check_that_failed_is_no_success(self, tmp_path):
        run = json.loads(formats.render("sarif", report(problems=("no",)), tmp_path))["runs"][0]
        assert run["invocations"][0]["executionSuccessful"] is False


class TestGithub:
    def lines(self, made, folder):
        return formats.render("github", made, folder).splitlines()

    def test_worst_come_first_and_no_more_than_are_shown(self, tmp_path):
        found = [finding(line=n) for n in range(1, 21)]
        found += [finding("E2S203", Severity.ERROR, n) for n in range(1, 13)]
        lines = self.lines(report(*found), tmp_path)
        kinds = [line.split()[0] for line in lines]
        assert kinds == ["::error"] * 10 + ["::warning"] * 10 + ["::notice"]
        assert "12 more are not annotated" in lines[-1]

    def test_notes_are_counted_and_annotate_no_line(self, tmp_path):
        note = finding("E2S102", Severity.INFO)
        assert self.lines(report(note), tmp_path) == [
            "::notice title=e2s check::1 info in 2 files "
            "(static: the source was read, nothing was run)"
        ]

    def test_place_and_rule_are_properties(self, tmp_path):
        first = self.lines(report(finding(path="a,b:c.py")), tmp_path)[0]
        assert first.startswith("::warning file=a%2Cb%3Ac.py,line=1,col=1,title=E2S201::m%0Afix it")

    def test_text_cannot_make_a_command_of_its_own(self, tmp_path):
        lines = self.lines(report(finding(message=NASTY)), tmp_path)
        assert len(lines) == 2
        assert "100%25" in lines[0]


class TestJunit:
    def test_case_for_each_file_and_rule_and_each_clean_file(self, checked):
        suite = ElementTree.fromstring(formats.render("junit", *checked)).find("testsuite")
        cases = {(c.get("classname"), c.get("name")): c for c in suite.iter("testcase")}
        assert cases["clean.py", "clean"].find("failure") is None
        failed = [key for key, case in cases.items() if case.find("failure") is not None]
        assert sorted(name.split()[0] for _, name in failed) == ["E2S212", "E2S219"]
        assert suite.get("tests") == str(len(cases))
        assert suite.get("failures") == "2"

    def test_any_text_makes_a_document(self, tmp_path):
        made = report(finding(message=NASTY), problems=(NASTY,))
        suite = ElementTree.fromstring(formats.render("junit", made, tmp_path)).find("testsuite")
        assert suite.get("errors") == "1"
        assert "<b>" in suite.find(".//failure").text


class _Page(HTMLParser):
    """Notes what a page is made of, and that each element is closed where it should be."""

    EMPTY = frozenset({"meta", "br", "hr", "input"})

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.text, self.links = [], [], [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.links += [v for k, v in attrs if k in ("src", "href")]
        if tag not in self.EMPTY:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


class TestHtml:
    def test_page_is_well_formed_and_needs_nothing_else(self, checked):
        page = _Page(formats.render("html", *checked))
        assert page.open == []
        assert [link for link in page.links if not link.startswith("#")] == []
        assert "script" not in page.tags

    def test_errors_open_the_page_and_each_row_leads_to_the_first_of_its_rule(self, tmp_path):
        quiet, loud = finding(path="a.py"), finding("E2S203", Severity.ERROR, path="b.py")
        text = formats.render("html", report(quiet, quiet, loud), tmp_path)
        assert text.index("<h2>b.py</h2>") < text.index("<h2>a.py</h2>")
        assert '<a href="#f0">E2S203</a>' in text
        assert 'class="error E2S203" id="f0"' in text
        assert '<a href="#f2">next E2S201</a>' in text

    def test_findings_of_a_rule_can_be_hidden(self, tmp_path):
        text = formats.render("html", report(finding()), tmp_path)
        assert "body:has(#show-E2S201:not(:checked)) article.E2S201 { display: none; }" in text
        assert 'id="show-E2S201"' in text

    def test_long_names_in_the_index_of_rules_fit_a_narrow_page(self, tmp_path):
        text = formats.render("html", report(finding()), tmp_path)
        assert '<table class="index">' in text
        assert "table.index td:last-child { overflow-wrap: anywhere; }" in text

    def test_page_says_when_it_was_made_and_by_which_version(self, tmp_path):
        text = formats.render("html", report(), tmp_path)
        assert re.search(rf"Made by version {__version__} on \d{{4}}-\d\d-\d\d \d\d:\d\d UTC", text)

    def test_finding_is_shown_with_the_lines_around_it(self, checked):
        made, folder = checked
        text = "".join(_Page(formats.render("html", made, folder)).text)
        assert "11  estimator = tf.estimator.Estimator(model_fn)" in text
        assert "12  estimator.train(input_fn)" in text
        assert made.verdict in text

    def test_notes_of_a_file_come_after_the_rest_and_are_folded(self, tmp_path):
        made = report(finding("E2S102", Severity.INFO, 1), finding("E2S203", Severity.ERROR, 9))
        text = formats.render("html", made, tmp_path)
        folded = text.index("<summary>1 note</summary>")
        assert text.index("E2S203 line 9") < folded < text.index("E2S102 line 1")

    def test_text_is_never_markup(self, tmp_path):
        (tmp_path / "a.py").write_text("x = '<script>alert(1)</script>'\n")
        page = _Page(formats.render("html", report(finding(message=NASTY)), tmp_path))
        assert "script" not in page.tags
        assert "<script>alert(1)</script>" in "".join(page.text)

    def test_code_in_sentences_is_set_as_code_and_not_in_backquotes(self, tmp_path):
        text = formats.render("html", report(finding(message="no `tf.<x>`, but `")), tmp_path)
        assert "no <code>tf.&lt;x&gt;</code>, but `" in text
        assert "`" not in formats.render("html", report(finding()), tmp_path)

    def test_file_that_is_gone_is_shown_without_lines(self, tmp_path):
        assert _Page(formats.render("html", report(finding()), tmp_path)).open == []


class TestText:
    def test_check_of_nothing_has_no_verdict(self, tmp_path):
        made = check([str(tmp_path / "nope")], Settings(root=tmp_path))
        assert formats.render("text", made, tmp_path).startswith("Could not be done: ")
        assert "nothing found" not in formats.render("text", made, tmp_path)

    def test_places_beyond_the_list_are_counted(self, tmp_path):
        places = tuple(NotChecked("a.py", n, "why") for n in range(1, 14))
        assert "and 3 more places" in formats.render("text", report(not_checked=places), tmp_path)


def leveled():
    """A report of two levels, with a fact of each kind."""
    made = LevelReport(
        Evidence.RECORDED,
        "m:model_fn",
        (
            Verdict("train: records", Outcome.PASSED),
            Verdict("eval: records", Outcome.UNKNOWN, NASTY),
        ),
        (finding("E2S610", path="m.py"),),
        (
            Number("variables take", 3 * 2**20, "bytes"),
            Table("variables", ("name", "bytes"), ((NASTY, 2048),)),
            Bars("memory per core", "bytes", (Bar("v2-8", 9e9, 8e9, "no"), Bar("v3-8", 9e9, 16e9))),
            Curves("loss", "step", (Curve("then", (0, 1), (2, 1)), Curve("now", (0, 1), (2, 1.5)))),
        ),
        ("values",),
    )
    failed = LevelReport(Evidence.REPLICATED, "m:model_fn", problems=("no data",))
    return report(*made.findings, evidence=Evidence.REPLICATED, levels=(made, failed))


def test_the_same_advice_is_printed_once_for_each_file(tmp_path):
    made = report(finding(), finding(line=2), finding(path="b.py"))
    text = formats.render("text", made, tmp_path)
    assert [text.count("x = 1"), text.count("-> fix it")] == [3, 2]


class TestLevels:
    """Every format says what each level found, on what it rests, and what was not looked at."""

    def test_verdict_names_the_levels_that_were_reached_and_those_that_were_not(self):
        verdict = leveled().verdict
        assert verdict.endswith("m:model_fn (static, recorded; not done: replicated)")

    def test_text(self, tmp_path):
        text = formats.render("text", leveled(), tmp_path)
        for words in (
            "train: records: passed",
            "variables take: 3.00 MiB",
            "v2-8: 8.38 GiB of 7.45 GiB (no)",
            "then: 2 ... 1",
            "not checked: values",
            "Not done: compiled by the TPU compiler (--levels tpu-compiled)",
        ):
            assert words in text

    def test_json(self, tmp_path):
        made = json.loads(formats.render("json", leveled(), tmp_path))
        level, failed = made["levels"]
        assert (level["level"], level["subject"]) == ("RECORDED", "m:model_fn")
        assert [v["outcome"] for v in level["verdicts"]] == ["passed", "unknown"]
        assert [f["kind"] for f in level["facts"]] == ["Number", "Table", "Bars", "Curves"]
        assert failed["problems"] == ["no data"]
        assert "TPU_RUN" in made["levels_not_reached"]

    def test_sarif(self, tmp_path):
        made = json.loads(formats.render("sarif", leveled(), tmp_path))
        assert violations(made) == []
        notes = made["runs"][0]["invocations"][0]["toolExecutionNotifications"]
        said = [note["message"]["text"] for note in notes]
        assert "m:model_fn, recorded: train: records: passed" in said
        assert made["runs"][0]["results"][0]["properties"]["evidence"] == "STATIC"

    def test_github_names_the_evidence_beside_the_rule(self, tmp_path):
        found = dataclasses.replace(finding("E2S610"), evidence=Evidence.RECORDED)
        assert "title=E2S610 (recorded)::" in formats.render("github", report(found), tmp_path)

    def test_junit_has_a_case_for_each_verdict(self, tmp_path):
        text = formats.render("junit", leveled(), tmp_path)
        suite = ElementTree.fromstring(text).find("testsuite")
        cases = {c.get("name"): c for c in suite.iter("testcase")}
        assert "passed" in cases["recorded: train: records"].find("system-out").text
        assert cases["recorded: eval: records"].find("skipped") is not None
        assert suite.get("tests") == str(len(list(suite.iter("testcase"))))
        assert suite.get("skipped") == "1"

    def test_page_shows_levels_bars_and_curves_and_needs_nothing_else(self, tmp_path):
        page = _Page(formats.render("html", leveled(), tmp_path))
        text = " ".join("".join(page.text).split())
        assert page.open == []
        assert [link for link in page.links if not link.startswith("#")] == []
        assert page.tags.count("polyline") == 2
        for words in (
            "could not be done",
            "not checked",
            "953.67 MiB too much",
            "What was checked",
        ):
            assert words in text
