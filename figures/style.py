"""One look for all figures.

A scheme has the same colour, marker, line and hatch wherever it is drawn. Hues distinguish families (flow hash black,
spraying blue, flowlets and flowcells green, CAPS red, other codes orange, order-keeping and partitions purple,
replication brown, priorities and admission teal), shades and markers the members of one. Colour is never the only
difference: any two schemes that a colour-blind reader might confuse also differ in marker and hatch.

matplotlib is imported where it is used, for it takes a second; figures are drawn without pyplot and without global
state, so threads may draw.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import XAxis, YAxis
    from matplotlib.figure import Figure


@dataclass(frozen=True, slots=True)
class SchemeStyle:
    """How one scheme is drawn, in matplotlib's words."""

    colour: str
    """``#rrggbb``, at least 3:1 against white."""
    marker: str
    line: str
    hatch: str


def _family(*members: tuple[str, str, str], line: str = "-") -> dict[str, SchemeStyle]:
    hatches = ("", "///", "...", "xxx", "\\\\\\", "---", "++")
    return {
        name: SchemeStyle(colour, marker, line, hatches[i])
        for i, (name, colour, marker) in enumerate(members)
    }


SCHEMES: Final[Mapping[str, SchemeStyle]] = {
    **_family(("ecmp", "#000000", "o"), ("ecmp-pq", "#555555", "s"), ("plb", "#8c8c8c", "^")),
    **_family(
        ("rps", "#0072b2", "s"),
        ("rps-inorder", "#4a9bd4", "D"),
        ("rps-pq", "#003f6b", "^"),
        ("drb", "#6f83d6", "v"),
        ("reps", "#2b3f9e", "P"),
    ),
    **_family(("presto", "#009e73", "^"), ("letflow", "#3b8132", "D")),
    **_family(
        ("caps", "#d55e00", "D"),
        ("caps-paper", "#a33b1f", "o"),
        ("caps-spray", "#e8604c", "s"),
        ("caps-dark", "#6e1f10", "v"),
        ("caps-reps", "#b0184d", "P"),
    ),
    **_family(("htpc", "#b87a00", "v"), ("corrective", "#8a6d1d", "X")),
    **_family(("tr", "#9b59b6", "P"), ("freeway", "#c06aa0", "h")),
    **_family(("repflow", "#7a4b2a", "<"), ("repsyn", "#a8795a", ">")),
    **_family(("pias", "#17868f", "*"), ("tpfs", "#0b5c63", "p"), ("capton", "#3e9c9c", "H")),
}
"""Every scheme of ours; `scheme_style` answers for others."""

PALETTE: Final = ("#0072b2", "#d55e00", "#009e73", "#9b59b6", "#000000", "#b87a00", "#17868f", "#d3476c")
"""Colours of series that are no schemes (parameters of a sweep, terms of a formula), in this order."""
MARKERS: Final = ("o", "s", "^", "D", "v", "P", "X", "*")
LINES: Final = ("-", "--", "-.", ":")
FEW_DECADES: Final = 1000.0
"""A logarithmic axis up to this ratio has ticks at 1, 2 and 5 of each decade, else at 1."""
INK: Final = "#222222"
GRID: Final = "#dddddd"

_SETTINGS: Final[Any] = {  # matplotlib's type for its keys is a Literal of all of them
    "figure.facecolor": "white",
    "figure.dpi": 100,
    "savefig.facecolor": "white",
    "savefig.dpi": 160,
    "font.family": "DejaVu Sans",  # comes with matplotlib: the same glyphs everywhere
    "font.size": 9.0,
    "axes.titlesize": 10.0,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.labelsize": 9.0,
    "axes.labelcolor": INK,
    "axes.edgecolor": INK,
    "axes.linewidth": 0.8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.grid": True,
    "axes.grid.axis": "y",
    "grid.color": GRID,
    "grid.linewidth": 0.6,
    "xtick.color": INK,
    "ytick.color": INK,
    "xtick.labelsize": 8.0,
    "ytick.labelsize": 8.0,
    "text.color": INK,
    "text.parse_math": False,  # $ in a spec's title is a dollar
    "legend.frameon": False,
    "legend.fontsize": 8.0,
    "lines.linewidth": 1.6,
    "lines.markersize": 4.5,
    "errorbar.capsize": 2.5,
    "hatch.linewidth": 0.6,
    "svg.fonttype": "path",
    "svg.hashsalt": "capstan",  # ids within the file would be random
    "text.usetex": False,
}


def scheme_style(name: str) -> SchemeStyle:
    """Return the style of the scheme *name*; for one that is not ours, drawn from its name, the same at every call."""
    if name in SCHEMES:
        return SCHEMES[name]
    number = zlib.crc32(name.encode())
    return SchemeStyle(
        PALETTE[number % len(PALETTE)],
        MARKERS[number // 8 % len(MARKERS)],
        LINES[1 + number // 64 % 3],
        ("ooo", "OO", "**", "|||")[number // 256 % 4],
    )


def label_styles(schemes: Mapping[str, str]) -> dict[str, SchemeStyle]:
    """Return the style of each label (*schemes*: its scheme): that of the scheme, but another where a label before it
    has that already, as of a scheme with two settings. The page chooses alike (webui/src/parts/schemes.ts).
    """
    styles: dict[str, SchemeStyle] = {}
    alike = []
    for name, scheme in schemes.items():
        style = scheme_style(scheme)
        if _look(style) in map(_look, styles.values()):
            alike.append(name)
        else:
            styles[name] = style
    for number, name in enumerate(alike):
        colours = {style.colour for style in styles.values()}
        looks = set(map(_look, styles.values()))
        free = [style for style in _series(LINES[1 + number % 3]) if _look(style) not in looks]
        styles[name] = next(
            (style for style in free if style.colour not in colours),
            free[0] if free else scheme_style(schemes[name]),
        )
    return {name: styles[name] for name in schemes}


def _look(style: SchemeStyle) -> tuple[str, str]:
    return style.colour, style.marker


def _series(line: str) -> list[SchemeStyle]:
    """Return all pairs of a colour and a marker, those first that differ in both."""
    hatches = ("ooo", "OO", "**", "|||", "oo", "O", "*", "||")
    return [
        SchemeStyle(colour, MARKERS[(index + turn) % len(MARKERS)], line, hatches[(index + turn) % 8])
        for turn in range(len(MARKERS))
        for index, colour in enumerate(PALETTE)
    ]


def series_style(index: int) -> SchemeStyle:
    """Return the style of the series number *index* (from 0) of a figure whose series are no schemes."""
    return SchemeStyle(
        PALETTE[index % len(PALETTE)],
        MARKERS[index % len(MARKERS)],
        LINES[index // len(PALETTE) % len(LINES)],
        "",
    )


@contextmanager
def applied() -> Iterator[None]:
    """Apply our settings to matplotlib within this block: make, draw and `save` a figure inside it."""
    import matplotlib

    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(_SETTINGS)
        yield


def new_figure(width_in: float = 6.4, height_in: float = 3.8) -> Figure:
    """Return an empty figure of that size in inches, laid out so that nothing is cut off. Use inside `applied`."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width_in, height_in), layout="constrained")


def axis_label(quantity: str, unit: str = "") -> str:
    """Return a label such as ``completion time (ms)``; a bare *quantity* is a pure number."""
    return f"{quantity} ({unit})" if unit else quantity


def label(axes: Axes, *, x: str, y: str, x_unit: str = "", y_unit: str = "", title: str = "") -> None:
    """Name both axes with their units."""
    axes.set_xlabel(axis_label(x, x_unit))
    axes.set_ylabel(axis_label(y, y_unit))
    if title:
        axes.set_title(title)


def logarithmic(axes: Axes, *, x: bool = False, y: bool = False) -> None:
    """Make the x or the y axis logarithmic, its ticks plain numbers (20, not 2 x 10^1); after what is drawn there."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    chosen: list[XAxis | YAxis] = []
    if x:
        axes.set_xscale("log")
        chosen.append(axes.xaxis)
    if y:
        axes.set_yscale("log")
        chosen.append(axes.yaxis)
    for axis in chosen:
        low, high = axis.get_view_interval()
        axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if high < FEW_DECADES * low else (1.0,)))
        axis.set_major_formatter(FuncFormatter(_plain_number))
        axis.set_minor_locator(NullLocator())


def _plain_number(value: float, _: object) -> str:
    return f"{value:,.0f}" if value >= 1 else f"{value:g}"


def save(figure: Figure, stem: Path) -> tuple[Path, Path]:
    """Write ``stem.png`` and ``stem.svg``; the same figure gives the same bytes, whenever it is drawn.

    Returns both paths. Raises OSError where they cannot be written.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    FigureCanvasAgg(figure)
    stem.parent.mkdir(parents=True, exist_ok=True)
    png, svg = (stem.with_name(f"{stem.name}.{kind}") for kind in ("png", "svg"))
    figure.savefig(png, metadata={"Software": None})
    figure.savefig(svg, metadata={"Date": None, "Creator": "Capstan"})
    return png, svg
