"""The result document as tables for people: units in the headers, marks where a figure must not be trusted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from experiments.results.drops import HOPS
from experiments.results.notes import notes
from experiments.results.simulated import Document, is_simulated

_CPU_LIMITED: Final = (
    "CPU LIMITED: the processor, not the fabric, set the pace of the runs marked * below; "
    "do not use these figures. Lower the rates or use a machine with more cores.\n"
)
_DISTURBED: Final = (
    "DISTURBED: a part of the lab ended during the runs marked # below, and again whenever they were repeated; "
    "the notes say which. Run them again for figures to use.\n"
)


def tables(document: Document) -> Group:
    """Return everything that `capstan run` prints of a result."""
    return Group(*warnings(document), *tables_of(document), *(Text(line) for line in notes(document)))


def tables_of(document: Document) -> list[Table]:
    """Return the tables alone."""
    parts: list[Table] = []
    for kind in ("short", "long", "medium", "large"):
        if any("afct_ms" in scheme.get(kind, {}) for scheme in document["schemes"].values()):
            parts.append(completion_table(document, kind))
    if any("applications" in scheme for scheme in document["schemes"].values()):
        parts.append(applications_table(document))
    if any("goodput_mbps" in scheme.get("long", {}) for scheme in document["schemes"].values()):
        parts.append(goodput_table(document))
    parts.append(packets_table(document))
    if any(scheme.get("drops") is not None for scheme in document["schemes"].values()):
        parts.append(drops_table(document))
    if len(document["schemes"]) > 2:
        parts.append(overview_table(document))
    return parts


def warnings(document: Document) -> list[RenderableType]:
    """Return what stands above the tables: marks that some of their figures have."""
    marks = ((_CPU_LIMITED, document["cpu_limited"]), (_DISTURBED, document.get("disturbed")))
    return [Text(words, style="bold red") for words, marked in marks if marked]


def completion_table(document: Document, kind: str) -> Table:
    """Return the completion times of one class."""
    baseline = document["baseline"]
    enough = any(scheme.get(kind, {}).get("p99_shown") for scheme in document["schemes"].values())
    columns = [
        "flows",
        "mean ms\n[95 % CI]",
        "p50\nms",
        "p95\nms",
        *(["p99\nms"] if enough else []),
        "worst\nms",
    ]
    table = new_table(
        f"Completion time of {kind} flows", [*columns, f"mean / {baseline}\n[95 % CI]", "failed"]
    )
    for label, scheme in document["schemes"].items():
        block = scheme.get(kind)
        if block is None or "afct_ms" not in block:
            continue
        p99 = [milliseconds(block["p99_ms"]) if block["p99_shown"] else "-"] if enough else []
        table.add_row(
            scheme_name(label, scheme),
            str(block["n"]),
            f"{milliseconds(block['afct_ms'])} {interval_text(block['afct_ci_ms'], milliseconds)}",
            milliseconds(block["p50_ms"]),
            milliseconds(block["p95_ms"]),
            *p99,
            milliseconds(block["max_ms"]),
            _against(scheme, baseline, f"{kind}_afct_ratio"),
            Text(str(block["failed"]), style="bold red" if block["failed"] else ""),
        )
    return table


def applications_table(document: Document) -> Table:
    """Return short flows of each application: mean completion time, and over the baseline."""
    baseline, schemes = document["baseline"], document["schemes"]
    names = list(
        dict.fromkeys(name for scheme in schemes.values() for name in scheme.get("applications", {}))
    )
    heads = [
        f"{label}{marks(entry)}\nmean ms" + ("" if entry["baseline"] else f"\n/ {baseline} [95 % CI]")
        for label, entry in schemes.items()
    ]
    table = new_table("Completion time of short flows, by application", heads, first="application")
    for name in names:
        cells = []
        for scheme in schemes.values():
            block = scheme.get("applications", {}).get(name)
            text = "-" if block is None else milliseconds(block["afct_ms"])
            if block is not None and not scheme["baseline"]:
                over = {"baseline": False, "against": block["ratios"]}
                text += f"\n{_against(over, baseline, 'afct_ratio')}"
            cells.append(text)
        table.add_row(name, *cells)
    return table


def goodput_table(document: Document) -> Table:
    """Return the rates of background flows."""
    baseline = document["baseline"]
    table = new_table(
        "Goodput of long flows",
        ["sum Mbit/s\n[95 % CI]", "per flow\nMbit/s", "slowest\nMbit/s", f"sum / {baseline}\n[95 % CI]"],
    )
    for label, scheme in document["schemes"].items():
        block = scheme.get("long")
        if block is None or "goodput_mbps" not in block:
            continue
        table.add_row(
            scheme_name(label, scheme),
            f"{block['goodput_mbps']:.2f} {interval_text(block['goodput_ci_mbps'], lambda value: f'{value:.2f}')}",
            f"{block['per_flow_mbps']:.2f}",
            f"{block['slowest_flow_mbps']:.2f}",
            _against(scheme, baseline, "goodput_ratio"),
        )
    return table


def overview_table(document: Document) -> Table:
    """Return everything over the baseline, as in the figure: one line a scheme."""
    baseline = document["baseline"]
    measures = [
        (head, name)
        for head, name in (
            ("all flows\nmean time", "all_afct_ratio"),
            ("short flows\nmean time", "short_afct_ratio"),
            ("short flows\np99 time", "short_p99_ratio"),
            ("long flows\nmean time", "long_afct_ratio"),
            ("medium flows\nmean time", "medium_afct_ratio"),
            ("large flows\nmean time", "large_afct_ratio"),
            ("long flows\ngoodput", "goodput_ratio"),
        )
        if any(
            scheme["against"].get(baseline, {}).get(name) is not None
            for scheme in document["schemes"].values()
        )
    ]
    table = new_table(f"Over {baseline} [95 % CI]", [head for head, _ in measures])
    for label, scheme in document["schemes"].items():
        table.add_row(scheme_name(label, scheme), *(_against(scheme, baseline, name) for _, name in measures))
    return table


def packets_table(document: Document) -> Table:
    """Return what happened to packets, and how much processor a lab had left."""
    simulated = is_simulated(document)
    table = new_table(
        "Packets, all runs of a scheme together",
        [
            "retr.\nsegm.",
            "spurious\nshort /\nlong",
            "out of\norder",
            "packets\nrebuilt",
            "extra\n% of\npackets",
            "paths\nshort\nflow",
            "paths\nlong\nflow",
            "leaf\nON\n%",
            *([] if simulated else ["CPU\nidle\n%"]),
        ],
    )
    for label, scheme in document["schemes"].items():
        mark = marks(scheme)
        idle = [] if simulated else [Text(f"{scheme['cpu']['idle_share'] * 100:.0f}{mark}", style=_bad(mark))]
        table.add_row(
            scheme_name(label, scheme),
            str(scheme["retransmissions"]),
            " / ".join(_spurious(scheme, kind) for kind in ("short", "long")),
            str(scheme["reordering"]),
            str(scheme["recovered_packets"]),
            f"{scheme['overhead'] * 100:.1f}",
            _paths(scheme, "short"),
            _paths(scheme, "long"),
            _share(scheme.get("on_share")),
            *idle,
        )
    return table


def drops_table(document: Document) -> Table:
    """Return the packets that ports dropped at each hop, where that was counted."""
    schemes = {label: entry for label, entry in document["schemes"].items() if entry.get("drops") is not None}
    hops = [hop for hop in HOPS if any(hop in entry["drops"] for entry in schemes.values())]
    heads = [hop.replace(" to ", " to\n") for hop in hops]
    table = new_table("Packets dropped by hop, all runs of a scheme together", [*heads, "all\nhops"])
    for label, entry in schemes.items():
        drops = entry["drops"]
        table.add_row(
            scheme_name(label, entry), *(str(drops.get(hop, 0)) for hop in hops), str(sum(drops.values()))
        )
    return table


def _bad(mark: str) -> str:
    return "bold red" if mark else ""


def _spurious(scheme: Document, kind: str) -> str:
    block = scheme.get(kind, {})
    return str(block["spurious_retransmissions"]) if "spurious_retransmissions" in block else "-"


def _share(share: float | None) -> str:
    return "-" if share is None else f"{share * 100:.0f}"


def new_table(title: str, columns: Sequence[str], first: str = "scheme") -> Table:
    """Return an empty table: *first*, then figures aligned right; narrow enough for a terminal of 80 columns."""
    table = Table(
        title=Text(title, style="table.title"),  # as it is: [ms] would be taken for markup
        title_justify="left",
        box=box.SIMPLE_HEAD,
        padding=(0, 1),
        collapse_padding=True,
    )
    table.add_column(Text(first), no_wrap=True)
    for name in columns:
        table.add_column(Text(name), justify="right", overflow="fold")
    return table


def scheme_name(label: str, scheme: Mapping[str, Any]) -> Text:
    """Return the label, marked if the processor limited it, or a part of the lab ended meanwhile."""
    return Text(label + marks(scheme), style="bold")


def marks(scheme: Mapping[str, Any]) -> str:
    """Return `*` for figures that the processor limited, `#` for disturbed ones."""
    return ("*" if scheme["cpu_limited"] else "") + ("#" if scheme.get("disturbed") else "")


def _paths(scheme: Mapping[str, Any], kind: str) -> str:
    used = scheme["paths"].get(kind, {}).get("paths_per_flow")
    return "-" if used is None else f"{used:.1f}"


def milliseconds(value: float) -> str:
    """Return milliseconds: whole from 100 on, else with one decimal; below 1 with three, as links of 10 Gbit/s take."""
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}" if value >= 1 else f"{value:.3f}"


def interval_text(interval: Sequence[float] | None, show: Any) -> str:
    """Return `[low, high]`; `[-]` where there is none."""
    return "[-]" if interval is None else f"[{show(interval[0])}, {show(interval[1])}]"


def _against(scheme: Mapping[str, Any], baseline: str, name: str) -> str:
    if scheme["baseline"]:
        return "1"
    figures = scheme["against"].get(baseline, {})
    if figures.get(name) is None:
        return "-"
    return f"{figures[name]:.2f} {interval_text(figures[f'{name}_ci'], lambda value: f'{value:.2f}')}"
