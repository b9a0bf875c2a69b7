"""Figures of results: what is drawn where, and that doubtful or missing figures look so."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from experiments.results.drawing import draw_comparison, draw_sweep, sweep_figures
from figures.style import applied


def scheme(name: str, factor: float, baseline: str = "caps", p99: bool = True, **more: Any) -> dict[str, Any]:
    """Return a scheme whose times are *factor* those of the baseline and whose goodput is the inverse."""
    ratios = {
        "short_afct_ratio": factor,
        "short_afct_ratio_ci": (factor * 0.9, factor * 1.1),
        "goodput_ratio": 1 / factor,
        "goodput_ratio_ci": None,
    }
    if p99:
        ratios |= {"short_p99_ratio": factor, "short_p99_ratio_ci": (factor * 0.9, factor * 1.1)}
    return {
        "scheme": name,
        "cpu_limited": False,
        "short": {
            "n": 1002 if p99 else 30,
            "afct_ms": 50 * factor,
            "afct_ci_ms": (45 * factor, 55 * factor),
            "p99_ms": 150 * factor,
            "p99_ci_ms": (100 * factor, 200 * factor),
            "p99_shown": p99,
        },
        "long": {"goodput_mbps": 8 / factor, "goodput_ci_mbps": None},
        "against": {} if name == baseline else {baseline: ratios},
    } | more


def comparison(schemes: dict[str, dict[str, Any]], **more: Any) -> dict[str, Any]:
    return {
        "title": "Tried",
        "schemes": schemes,
        "baseline": "caps",
        "repeats": 3,
        "cpu_limited": False,
    } | more


def texts(svg: Path) -> str:
    """Return all words of a figure; matplotlib leaves them as comments beside the glyphs, one for each line."""
    return " ".join(
        line.strip().removeprefix("<!-- ").removesuffix(" -->")
        for line in svg.read_text().splitlines()
        if line.strip().startswith("<!-- ")
    )


def test_schemes_stand_side_by_side_over_the_baseline(tmp_path: Path) -> None:
    png, svg = draw_comparison(
        comparison({"caps": scheme("caps", 1.0), "ecmp": scheme("ecmp", 4.0)}), tmp_path
    )
    assert (png.name, svg.name) == ("comparison.png", "comparison.svg")
    text = texts(svg)
    for part in (
        "/ caps",
        "mean completion time",
        "p99 completion time",
        "goodput",
        "ecmp",
        "0.25",
        "3 repeats",
    ):
        assert part in text, part
    assert "limited" not in text


def test_without_flows_enough_there_is_no_p99_and_the_reason_is_there(tmp_path: Path) -> None:
    few = {"caps": scheme("caps", 1.0, p99=False), "ecmp": scheme("ecmp", 4.0, p99=False)}
    text = texts(draw_comparison(comparison(few), tmp_path)[1])
    assert "p99 completion time" not in text
    assert "No p99 of fewer than 1000 flows." in text


@pytest.mark.slow
def test_limited_schemes_have_a_star_and_the_caption_says_why(tmp_path: Path) -> None:
    schemes = {"caps": scheme("caps", 1.0), "ecmp": scheme("ecmp", 4.0, cpu_limited=True)}
    text = texts(draw_comparison(comparison(schemes, cpu_limited=True), tmp_path)[1])
    assert "4*" in text
    assert "limited by the" in text


@pytest.mark.slow
def test_disturbed_schemes_are_marked_as_limited_ones_are(tmp_path: Path) -> None:
    schemes = {"caps": scheme("caps", 1.0), "ecmp": scheme("ecmp", 4.0, disturbed=True)}
    text = texts(draw_comparison(comparison(schemes, disturbed=True), tmp_path)[1])
    assert "4*" in text
    assert "a part of the lab ended" in text
    assert "limited by the" not in text
    point = {"at": [1], "schemes": schemes}
    document = sweep([], [axis("load")]) | {"points": [point], "disturbed": True}
    assert "a part of the lab ended" in texts(draw_sweep(document, tmp_path)[1])


def test_one_scheme_has_nothing_to_be_compared_with(tmp_path: Path) -> None:
    assert draw_comparison(comparison({"caps": scheme("caps", 1.0)}), tmp_path) == ()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_many_schemes_are_all_named(tmp_path: Path) -> None:
    schemes = {"caps": scheme("caps", 1.0)} | {
        f"mine-{n}": scheme(f"mine-{n}", 1 + n / 10) for n in range(19)
    }
    text = texts(draw_comparison(comparison(schemes), tmp_path)[1])
    assert all(name in text for name in schemes)


def sweep(ticks: list[tuple[Any, ...]], axes: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "title": "Tried",
        "repeats": 1,
        "cpu_limited": False,
        "sweep": axes,
        "points": [
            {"at": list(at), "schemes": {"caps": scheme("caps", 1.0), "ecmp": scheme("ecmp", 1.0 + index)}}
            for index, at in enumerate(ticks)
        ],
    }


def axis(label: str, unit: str = "") -> dict[str, Any]:
    return {"label": label, "unit": unit}


def test_a_sweep_is_lines_over_its_axis_with_units(tmp_path: Path) -> None:
    files = draw_sweep(sweep([(1.5,), (2,), (3.5,)], [axis("rate", "Mbit/s")]), tmp_path)
    assert [file.name for file in files] == ["sweep.png", "sweep.svg"]
    text = texts(files[1])
    for part in (
        "rate (Mbit/s)",
        "3.5",
        "caps",
        "ecmp",
        "short flows (ms)",
        "long flows (Mbit/s)",
        "1 repeat,",
    ):
        assert part in text, part


def test_a_sweep_that_sets_which_schemes_run_has_a_line_for_each(tmp_path: Path) -> None:
    document = sweep([("ecmp",), ("rps",)], [axis("beside caps")])
    document["points"][1]["schemes"] = {"caps": scheme("caps", 1.0), "rps": scheme("rps", 2.0)}
    text = texts(draw_sweep(document, tmp_path)[1])
    assert all(name in text for name in ("caps", "ecmp", "rps"))


def test_schemes_without_their_baseline_have_nothing_to_be_compared_with(tmp_path: Path) -> None:
    document = comparison({"caps": scheme("caps", 1.0), "rps": scheme("rps", 2.0)})
    assert draw_comparison(document | {"baseline": "drb"}, tmp_path) == ()


@pytest.mark.parametrize("lowest", [0.999, 0.5, 0.01])
def test_the_largest_value_of_a_sweep_has_its_whole_marker(lowest: float) -> None:
    """However little values differ: from the axes' upper edge it is more than a marker's radius, both in points."""
    document = sweep([(1,), (2,)], [axis("load")])
    for point, factor in zip(document["points"], (1.0, lowest), strict=True):
        point["schemes"] = {"caps": scheme("caps", factor)}
        for name in ("afct_ci_ms", "p99_ci_ms"):
            point["schemes"]["caps"]["short"][name] = None
    with applied():
        ((_, _, figure),) = sweep_figures(document)
        figure.draw_without_rendering()
        for axes in figure.axes:
            (line,) = axes.get_lines()
            _, highest = axes.transData.transform((0, max(line.get_ydata())))
            above = (axes.get_window_extent().y1 - highest) * 72 / figure.dpi
            assert above > line.get_markersize() / 2 + line.get_markeredgewidth()


@pytest.mark.slow
def test_titles_and_axes_are_drawn_as_they_are_written(tmp_path: Path) -> None:
    odd = "load $x_$ for $\\foo$"
    document = comparison({"caps": scheme("caps", 1), "rps": scheme("rps", 2)}, title=odd)
    assert odd in texts(next(file for file in draw_comparison(document, tmp_path) if file.suffix == ".svg"))
    files = draw_sweep(sweep([("$a_$",), ("$b^$",)], [axis(odd)]), tmp_path)
    found = texts(next(file for file in files if file.suffix == ".svg"))
    assert all(text in found for text in (odd, "$a_$", "$b^$"))


def test_words_are_ticks_too(tmp_path: Path) -> None:
    text = texts(draw_sweep(sweep([("cubic",), ("reno",)], [axis("congestion control")]), tmp_path)[1])
    assert "reno" in text


@pytest.mark.slow
def test_further_axes_give_a_figure_each(tmp_path: Path) -> None:
    grid = [(1, 2), (1, 4), (3, 2), (3, 4)]
    files = draw_sweep(sweep(grid, [axis("long flows"), axis("load", "%")]), tmp_path)
    assert [file.name for file in files if file.suffix == ".svg"] == ["sweep-1.svg", "sweep-2.svg"]
    assert "load = 4 %" in texts(files[3])


@pytest.mark.slow
@pytest.mark.parametrize("p99", [True, False])
def test_points_without_a_p99_leave_a_gap_or_no_panel(tmp_path: Path, p99: bool) -> None:
    document = sweep([(1,), (2,)], [axis("long flows")])
    document["points"][1]["schemes"] = {
        name: scheme(name, 1.0, p99=False) for name in document["points"][1]["schemes"]
    }
    if not p99:
        document["points"][0] = document["points"][1] | {"at": [1]}
    text = texts(draw_sweep(document, tmp_path)[1])
    assert ("p99 completion time" in text) is p99
    assert "No p99" in text
