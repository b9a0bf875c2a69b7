"""Reports: everything in one file, the figures that a result has enough for, and the same tables as on a terminal."""

from __future__ import annotations

import base64
import json
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from experiments.results.cpu_use import CpuUse
from experiments.results.document import Run, write_result
from experiments.results.report import (
    CPU_WARNING,
    ReportError,
    drawings,
    html_report,
    read_result,
    write_report,
)
from experiments.results.sweep_results import write_sweep
from figures.results import on_spans
from tests.unit.experiments.results.test_experiments_results import FINE, document, runs_of, spec_small
from tests.unit.swept_spec import whole

SPANS = [{"at_s": 1.0, "leaf": "l1", "mode": "on"}, {"at_s": 2.5, "leaf": "l1", "mode": "off"}]


@pytest.fixture
def result(tmp_path: Path) -> Path:
    """Return a result as `capstan run` keeps it: two repeats, with paths and modes."""
    return kept(tmp_path)


def kept(directory: Path, cpu: CpuUse = FINE, **more: Any) -> Path:
    spec = replace(spec_small(), repeats=2, title="ECMP & <CAPS>", **more)
    runs = [with_paths(run) for run in runs_of(spec, cpu)]
    directory.mkdir(exist_ok=True)
    write_result(directory, document(spec, runs), runs, "name: small\n")
    return directory


def with_paths(run: Run) -> Run:
    flows = tuple(replace(flow, paths={"1": 30, "2": 10 + flow.id}) for flow in run.flows)
    return replace(run, flows=flows, modes=tuple(SPANS) if run.scheme == "caps" else ())


class Page(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.sources: list[str] = []
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.sources += [value or "" for name, value in attrs if name in ("src", "href")]

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.mark.slow
def test_the_page_has_everything_in_it(result: Path) -> None:
    (out,) = write_report(result, result / "report.html")
    page = Page(out.read_text())
    assert "script" not in page.tags
    assert page.tags.count("img") == 5
    for source in page.sources:
        assert source.startswith("data:image/svg+xml;base64,"), "nothing from anywhere else"
        ElementTree.fromstring(base64.b64decode(source.partition(",")[2]))
    for words in (
        "ECMP & <CAPS>",
        "A quick look",
        "Completion time of short flows",
        "no netem here",
        "numpy 2",
    ):
        assert words in page.text
    assert "--seed 1 --repeats 2" in page.text
    assert CPU_WARNING not in page.text


def test_flows_of_the_lead_in_are_in_no_figure(tmp_path: Path) -> None:
    spec = replace(spec_small(), repeats=2)
    runs = [
        replace(run, flows=tuple(replace(flow, counted=flow.id != 1) for flow in run.flows))
        for run in runs_of(spec, FINE)
    ]
    write_result(tmp_path, document(spec, runs), runs, "name: small\n")
    _, records = read_result(tmp_path)
    assert len(records) == sum(len(run.counted) for run in runs) < sum(len(run.flows) for run in runs)
    assert "1" not in {record["id"] for record in records}


def test_markdown_has_the_tables_of_the_terminal_and_figures_beside_it(result: Path, tmp_path: Path) -> None:
    out = tmp_path / "paper.md"
    files = write_report(result, out)
    text = out.read_text()
    assert {file.name for file in files[1:]} == {
        f"paper-{name}.svg" for name in ("comparison", "completion-times", "by-size", "path-balance", "modes")
    }
    for file in files[1:]:
        assert f"({file.name})" in text
    shown, _ = read_result(result)
    for name, scheme in shown["schemes"].items():
        (row,) = [
            line for line in text.splitlines() if line.startswith(f"| {name} | {scheme['short']['n']} |")
        ]
        assert (
            f"| {scheme['short']['afct_ms']:.0f} [" in row or f"| {scheme['short']['afct_ms']:.1f} [" in row
        )
    tables = [line for line in text.splitlines() if line.startswith("|")]
    assert len(tables) >= 4 * (2 + len(shown["schemes"]))


@pytest.mark.slow
def test_a_result_that_the_processor_limited_says_so(tmp_path: Path) -> None:
    limited = kept(tmp_path / "limited", replace(FINE, limited=True))
    assert CPU_WARNING in Page(html_report(*read_result(limited))).text
    write_report(limited, tmp_path / "x.md")
    assert CPU_WARNING in (tmp_path / "x.md").read_text()


@pytest.mark.slow
def test_figures_without_enough_to_show_are_left_out(result: Path) -> None:
    shown, records = read_result(result)
    names = [drawing.name for drawing in drawings(shown, records)]
    assert names == ["comparison", "completion-times", "by-size", "path-balance", "modes"]
    still = shown | {"runs": [run | {"modes": []} for run in shown["runs"]]}
    one_path = [record | {"paths": "1:5"} for record in records[:20]]
    assert [drawing.name for drawing in drawings(still, one_path)] == ["comparison", "completion-times"]
    assert [drawing.name for drawing in drawings(still, [])] == ["comparison"]


def test_what_is_no_result_is_reported(tmp_path: Path) -> None:
    with pytest.raises(ReportError, match=r"holds no result\.json"):
        read_result(tmp_path)
    for text, words in (
        ("{", "cannot be read"),
        ('{"points": []}', "is not a result"),
        ("[]", "is not a result"),
    ):
        (tmp_path / "result.json").write_text(text)
        with pytest.raises(ReportError, match=words):
            read_result(tmp_path)
    with pytest.raises(ReportError, match=r"ends in \.html or \.md"):
        write_report(kept(tmp_path / "fine"), tmp_path / "report.pdf")


@pytest.mark.parametrize(
    ("changes", "spans"),
    [
        ([("on", 1.0), ("off", 2.5)], [(1.0, 1.5)]),
        ([("off", 2.0), ("on", 4.0)], [(0.0, 2.0), (4.0, 1.0)]),
        ([("on", -0.5), ("off", 1.0)], [(0.0, 1.0)]),
        ([("on", 1.0), ("on", 2.0), ("off", 3.0), ("off", 3.5)], [(1.0, 2.0)]),
        ([("on", 7.0)], []),
        ([], []),
    ],
)
def test_times_on_are_those_between_changes(
    changes: list[tuple[str, float]], spans: list[tuple[float, float]]
) -> None:
    assert on_spans([{"mode": mode, "at_s": at} for mode, at in changes], 5.0) == spans


@pytest.mark.slow
def test_a_sweep_has_one_page_with_its_tables_and_figures(tmp_path: Path) -> None:
    document = whole()
    write_sweep(tmp_path, document, "name: sweep\n")
    (out,) = write_report(tmp_path, tmp_path / "report.html")
    page = Page(out.read_text())
    assert page.tags.count("img") == 3, "a line over the first axis for each value of the second"
    for words in ("Goodput of long flows, sum in Mbit/s", "asymmetry, times", "6 points", "numpy 2"):
        assert words in page.text
    assert CPU_WARNING not in page.text
    first, *figures = write_report(tmp_path, tmp_path / "paper.md")
    assert [figure.name for figure in figures] == [f"paper-sweep-{part}.svg" for part in (1, 2, 3)]
    text = first.read_text()
    assert all(f"({figure.name})" in text for figure in figures)
    for label in document["points"][0]["schemes"]:
        rows = [line for line in text.splitlines() if line.startswith(f"| {label}")]
        assert rows
        assert {row.count("|") for row in rows} == {2 + len(document["points"])}
    write_sweep(tmp_path, whole(limited=True), "name: sweep\n")
    assert CPU_WARNING in Page(html_report(*read_result(tmp_path))).text


@pytest.mark.parametrize("left_out", ["title", "schemes", "versions", "claims"])
def test_a_result_that_lacks_something_is_no_traceback(result: Path, left_out: str) -> None:
    file = result / "result.json"
    found = json.loads(file.read_text(encoding="utf-8"))
    del found[left_out]
    found.setdefault("schemes", {})  # without, it is none that a run has written
    file.write_text(json.dumps(found), encoding="utf-8")
    with pytest.raises(
        ReportError, match=r"result\.json lacks what a report is made of \(.*run its spec\.yaml again"
    ):
        write_report(result, result / "report.md")
