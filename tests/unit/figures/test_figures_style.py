"""Figures look the same everywhere, can be distinguished by everybody, and come out as the same bytes."""

from __future__ import annotations

import json
import subprocess
import sys
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.backends.backend_agg import FigureCanvasAgg
from numpy.typing import NDArray

from controller.schemes.loader import scheme_names
from figures import charts, style

Colour = NDArray[np.float64]
LABELS = Path(__file__).parents[1] / "golden" / "label_styles.json"

DEFICIENCIES = {
    # Machado, Oliveira, Fernandes: A physiologically-based model for simulation of color vision deficiency, 2009:
    # severity 1.0, on linear RGB
    "none": np.eye(3),
    "protan": np.array(
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]
    ),
    "deutan": np.array(
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]
    ),
    "tritan": np.array(
        [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]]
    ),
}


def linear(colour: str) -> Colour:
    """Return ``#rrggbb`` as linear sRGB, 0 .. 1."""
    raw = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255.0
    return np.where(raw <= 0.04045, raw / 12.92, ((raw + 0.055) / 1.055) ** 2.4)


def lab(rgb: Colour) -> Colour:
    """Return linear sRGB as CIELAB (D65)."""
    to_xyz = np.array(
        [[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]], dtype=np.float64
    )
    xyz = to_xyz @ np.clip(rgb, 0, 1) / np.array([0.9505, 1.0, 1.089])
    f = np.where(xyz > (6 / 29) ** 3, np.cbrt(xyz), xyz / (3 * (6 / 29) ** 2) + 4 / 29)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


def contrast_with_white(colour: str) -> float:
    """Return the WCAG 2 contrast ratio."""
    return 1.05 / (float(linear(colour) @ np.array([0.2126, 0.7152, 0.0722])) + 0.05)


@pytest.mark.parametrize("name", list(style.SCHEMES))
def test_every_colour_stands_out_from_white(name: str) -> None:
    assert contrast_with_white(style.SCHEMES[name].colour) >= 3.0


@pytest.mark.parametrize("eyes", list(DEFICIENCIES))
def test_two_schemes_never_look_alike(eyes: str) -> None:
    seen = {
        name: lab(DEFICIENCIES[eyes] @ linear(one.colour)) for name, one in style.SCHEMES.items()
    }  # 10: plainly another colour (CIE76)
    for a, b in combinations(style.SCHEMES, 2):
        alike = np.linalg.norm(seen[a] - seen[b]) < 10.0
        one, other = style.SCHEMES[a], style.SCHEMES[b]
        assert not alike or (one.marker, one.hatch) != (other.marker, other.hatch), (a, b, eyes)


def test_no_two_schemes_share_a_colour() -> None:
    colours = [one.colour for one in style.SCHEMES.values()]
    assert len(set(colours)) == len(colours)


def test_the_schemes_that_come_with_capstan_are_distinguished() -> None:
    drawn = [(one.colour, one.marker, one.line) for one in map(style.scheme_style, scheme_names())]
    assert len(set(drawn)) == len(drawn)


@given(st.dictionaries(st.text(max_size=8), st.sampled_from(["caps", "ecmp", "mine", "yours"]), max_size=64))
def test_labels_look_different_and_the_first_of_a_scheme_as_the_scheme_does(labels: dict[str, str]) -> None:
    styles = style.label_styles(labels)
    assert list(styles) == list(labels)
    assert len({(one.colour, one.marker) for one in styles.values()}) == len(labels)
    for scheme in set(labels.values()):
        first = next(label for label, of in labels.items() if of == scheme)
        assert styles[first] == style.scheme_style(scheme)


def test_labels_look_as_recorded_and_so_do_those_of_the_page() -> None:
    """Of the page: webui/tests/schemes.test.ts, with the same file."""
    for case in json.loads(LABELS.read_text()).values():
        styles = style.label_styles(case["schemes"])
        assert {label: [one.colour, one.marker] for label, one in styles.items()} == case["styles"]


@given(st.text(max_size=20))
def test_any_name_has_a_style_that_matplotlib_can_draw(name: str) -> None:
    from matplotlib import colors, lines, markers, patches

    one = style.scheme_style(name)
    assert one == style.scheme_style(name)
    assert colors.is_color_like(one.colour)
    markers.MarkerStyle(one.marker)
    lines.Line2D([0], [0], linestyle=one.line)
    patches.Patch(hatch=one.hatch)


def draw(stem: Path) -> tuple[Path, Path]:
    with style.applied():
        figure = style.new_figure()
        bars, lines = figure.subplots(1, 2)
        names = ("caps", "ecmp", "mine")
        charts.scheme_bars(
            bars,
            {name: charts.Estimate(1.0 + i, 0.9 + i, 1.2 + i, i == 2) for i, name in enumerate(names)},
            1.0,
        )
        style.label(bars, x="scheme", y="completion time", y_unit="ms", title="Bars")
        charts.scheme_lines(
            lines,
            [1.0, 2.0],
            {"caps": [charts.Estimate(1, 1, 1, True), None], "rps": [charts.Estimate(1, 0, 2)] * 2},
        )
        return style.save(figure, stem)


@pytest.mark.slow
def test_the_same_figure_is_the_same_bytes_also_in_another_process(tmp_path: Path) -> None:
    here = draw(tmp_path / "here" / "a")
    assert [path.name for path in here] == ["a.png", "a.svg"]
    code = (
        f"import sys; sys.path[:0] = {sys.path!r}; from pathlib import Path;"
        f"import importlib.util as u; s = u.spec_from_file_location('m', {__file__!r});"
        f"m = u.module_from_spec(s); s.loader.exec_module(m); m.draw(Path({str(tmp_path / 'there' / 'a')!r}))"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
    for path in here:
        assert path.read_bytes() == (tmp_path / "there" / path.name).read_bytes()


def test_settings_of_others_are_left_alone() -> None:
    import matplotlib

    with matplotlib.rc_context({"font.size": 33.0}):
        with style.applied():
            assert matplotlib.rcParams["font.size"] != 33.0
        assert matplotlib.rcParams["font.size"] == 33.0


def test_axes_carry_units() -> None:
    assert style.axis_label("completion time", "ms") == "completion time (ms)"
    assert style.axis_label("share") == "share"


@pytest.mark.parametrize(
    ("values", "ticks"),
    {
        (15.0, 600.0): {"20", "50", "100", "200", "500"},
        (0.02, 40_000.0): {"0.1", "1", "100", "10,000"},
    }.items(),
)
def test_logarithmic_axes_have_plain_numbers(values: tuple[float, float], ticks: set[str]) -> None:
    with style.applied():
        figure = style.new_figure()
        axes = figure.add_subplot()
        axes.plot(values, values)
        style.logarithmic(axes, x=True, y=True)
        FigureCanvasAgg(figure).draw()
        for axis in (axes.xaxis, axes.yaxis):
            shown = {text.get_text() for text in axis.get_ticklabels()}
            assert ticks <= shown
            assert not any("$" in text for text in shown)
        assert axes.xaxis.get_minorticklocs().size == 0


@pytest.mark.parametrize("wrong", [(1.0, 2.0, 3.0), (3.0, 1.0, 2.0), (float("nan"), 0.0, 1.0)])
def test_an_estimate_outside_its_interval_is_an_error(wrong: tuple[float, float, float]) -> None:
    with pytest.raises(ValueError, match="low <= value <= high"):
        charts.Estimate(*wrong)


def test_a_series_of_the_wrong_length_is_named() -> None:
    with style.applied():
        axes = style.new_figure().subplots()
        with pytest.raises(ValueError, match="series 'caps' has 1 points for 2"):
            charts.scheme_lines(axes, [1, 2], {"caps": [charts.Estimate(1, 1, 1)]})
        with pytest.raises(ValueError, match="at least one"):
            charts.scheme_bars(axes, {})


def test_matplotlib_is_imported_only_to_draw() -> None:
    code = "import figures.style, figures.charts, sys; sys.exit('matplotlib' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True, cwd=Path(__file__).parents[3])
