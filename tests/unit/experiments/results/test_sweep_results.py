"""Results of sweeps: the document over all points, its tables, and what they say of wrong ones."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest

from experiments.results.document import json_text, text_of
from experiments.results.sweep_results import point_table, sweep_document, sweep_tables, write_sweep
from experiments.results.tables import milliseconds, new_table
from experiments.spec.sweep import points
from tests.unit.swept_spec import TEXT, point_document, spec, whole


def test_tables_show_titles_and_units_in_brackets_as_they_are_written() -> None:
    table = new_table("Delay [ms]", ["1\n[kB]", "[red]2"], first="scheme \\ load [ms]")
    table.add_row("caps", "1", "2")
    shown = text_of(table)
    assert all(text in shown for text in ("Delay [ms]", "[kB]", "[red]2", "scheme \\ load [ms]"))


@pytest.mark.parametrize(
    ("value_ms", "shown"),
    [(0.0123, "0.012"), (0.08, "0.080"), (0.97, "0.970"), (1.0, "1.0"), (99.94, "99.9"), (287.4, "287")],
)
def test_times_have_digits_enough_to_be_compared(value_ms: float, shown: str) -> None:
    assert milliseconds(value_ms) == shown


def test_the_document_has_every_point_with_its_figures(tmp_path: Path) -> None:
    document = whole()
    write_sweep(tmp_path, document, TEXT)
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {"result.json", "points.csv", "tables.txt", "spec.yaml"}
    rows = list(csv.DictReader(io.StringIO((tmp_path / "points.csv").read_text())))
    assert len(rows) == 6 * 2
    first = rows[0]
    assert (first["long flows"], first["asymmetry"], first["scheme"]) == ("1", "1", "ecmp")
    figures = document["points"][0]["schemes"]["ecmp"]
    assert float(first["short_afct_ms"]) == pytest.approx(figures["short"]["afct_ms"], rel=1e-5)
    assert (
        float(first["short_afct_ms_low"])
        <= float(first["short_afct_ms"])
        <= float(first["short_afct_ms_high"])
    )
    assert float(first["long_goodput_mbps"]) == pytest.approx(4)
    assert first["short_p99_ms"] == first["long_goodput_mbps_low"] == "", "too few flows, and one repeat"
    assert [point["at"] for point in document["points"]] == [[1, 1], [1, 2], [1, 4], [3, 1], [3, 2], [3, 4]]
    assert document["points"][3]["schemes"]["ecmp"]["long"]["goodput_mbps"] == pytest.approx(12)
    assert '"kind": "sweep"' in json_text(document)
    assert document["cpu_limited"] is False


@pytest.mark.slow
def test_claims_stand_beside_what_each_point_showed() -> None:
    first, second = whole()["claims"]
    assert [found["verdict"] for found in first["ours"]] == ["seen"] * 6
    assert first["ours"][0]["ratio"] == pytest.approx(0.5)
    assert {found["verdict"] for found in second["ours"]} == {"no figure"}
    text = text_of(sweep_tables(whole()))
    assert "Claim (a paper, Fig. 1; qualitative): CAPS is better." in text
    assert "long flows = 3, asymmetry = 4 times: 0.50 [0.50, 0.50] seen" in text


def test_tables_have_a_column_for_each_point_units_and_reasons() -> None:
    text = text_of(sweep_tables(whole()))
    for part in (
        "Mean completion time of short flows, ms",
        "Goodput of long flows, sum in Mbit/s",
        "asymmetry, times",
        "10.00",
        "p99 is not shown for fewer than 1000 short flows",
        "no netem here",
    ):
        assert part in text, part
    assert "p99 of the completion time" not in text


def test_a_sweep_may_set_which_schemes_run(tmp_path: Path) -> None:
    """Its tables are written when all has run, and raised KeyError: all was lost."""
    document = whole()
    last = document["points"][-1]["schemes"]
    last["rps"] = last.pop("ecmp")
    write_sweep(tmp_path, document, TEXT)
    rows = [line.split() for line in (tmp_path / "tables.txt").read_text().splitlines()]
    assert ["rps", *["-"] * 5] in [row[:6] for row in rows]
    assert any(row[:1] == ["ecmp"] and row[-1] == "-" for row in rows)


def test_tables_say_for_how_much_of_the_time_leaves_were_on() -> None:
    document = whole()
    assert "Leaves ON" not in text_of(sweep_tables(document)), "no leaf ever was"
    for share, point in enumerate(document["points"], 41):
        point["schemes"]["caps"]["on_share"] = share / 100
    table = text_of(sweep_tables(document)).partition("Leaves ON, % of the time")[2]
    (row,) = [line for line in table.splitlines() if line.split()[:1] == ["caps"]][:1]
    assert row.split() == ["caps", "41", "42", "43", "44", "45", "46"]


def test_a_limited_point_is_marked_and_shows_no_claim() -> None:
    document = whole(limited=True)
    assert document["cpu_limited"] is True
    text = text_of(sweep_tables(document))
    assert "CPU LIMITED" in text
    assert "caps*" in text
    assert "ecmp*" not in text
    assert {found["verdict"] for found in document["claims"][0]["ours"]} == {"no figure"}


def test_a_disturbed_point_is_marked_among_the_points() -> None:
    document = whole()
    document["points"][1]["schemes"]["caps"]["disturbed"] = True
    del document["points"][2]["schemes"]["caps"]["disturbed"]  # as of before there was such a mark
    rows = list(csv.DictReader(io.StringIO(point_table(document))))
    assert [row["disturbed"] for row in rows] == ["0", "0", "0", "1", *["0"] * 8]


def test_points_of_another_version_or_machine_than_the_first_are_said() -> None:
    results = [
        (point.at, Path(f"point-{index}"), point_document(point.spec, 0.5))
        for index, point in enumerate(points(spec()), 1)
    ]
    assert sweep_document(spec(), results)["notices"] == []
    cores = results[0][2]["machine"]["cores"]
    for _, _, document in results[4:]:
        document["versions"] = {"numpy": "3"}
        document["machine"] |= {"cores": cores + 1}
    document = sweep_document(spec(), results)
    (notice,) = document["notices"]
    assert notice.startswith(
        "2 of 6 points (the first of them: long flows = 3, asymmetry = 2 times) had numpy 3 in place of 2, "
        f"cores {cores + 1} in place of {cores}: "
    )
    assert "Note: 2 of 6 points" in text_of(sweep_tables(document))
    for _, _, point in results:
        point["kind"] = "simulation"
    (notice,) = sweep_document(spec(), results)["notices"]
    assert "numpy 3 in place of 2: " in notice, "no simulation depends on the machine"


def test_times_over_the_baseline_have_a_table_of_their_own() -> None:
    text = text_of(sweep_tables(whole()))
    assert "Mean completion time of short flows, / ecmp [95 % CI]" in text


def test_flows_that_failed_are_said_of_both_classes() -> None:
    document = whole()
    scheme = document["points"][0]["schemes"]["ecmp"]
    scheme["short"]["failed"] = 2
    scheme["long"] |= {"failed": 3, "failed_background_flows": 1}
    text = " ".join(text_of(sweep_tables(document)).split())
    where = "ecmp at long flows = 1, asymmetry = 1 times"
    assert f"Short flows that failed, and are in no mean: {where}: 2." in text
    assert f"Long flows that failed, and are in no mean: {where}: 3." in text
    assert f"Long flows without end that failed; sums count what they had sent: {where}: 1." in text
