"""The result document as tables for people: units in the headers, marks where a figure must not be trusted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from experiments.results.admissions import admission_note
from experiments.results.claims import compared, heading, verdict_text
from experiments.results.drops import HOPS
from experiments.results.statistics import FLOWS_FOR_P99

Document = Mapping[str, Any]

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


def is_simulated(document: Document) -> bool:
    """Return whether a result, or a sweep's, was simulated."""
    return document.get("kind") == "simulation" or document.get("simulated") is True


def _bad(mark: str) -> str:
    return "bold red" if mark else ""


def _spurious(scheme: Document, kind: str) -> str:
    block = scheme.get(kind, {})
    return str(block["spurious_retransmissions"]) if "spurious_retransmissions" in block else "-"


def _share(share: float | None) -> str:
    return "-" if share is None else f"{share * 100:.0f}"


def congestion_words(document: Document) -> str:
    """Return what a result's notes say of congestion control after a comma; of simulated ones, a notice names all of
    TCP's settings.
    """
    if is_simulated(document):
        return ""
    return f", congestion control {document['transport']['congestion_control']}"


def notes(document: Document) -> list[str]:
    """Return lines below the tables: how to read them, what the papers claim, what to know of this fabric."""
    runs = len(document["runs"])
    lines = [
        f"{runs} runs: {document['repeats']} repeats of {len(document['schemes'])} schemes, seed "
        f"{document['seed']}{congestion_words(document)}, packet time {document['packet_time_ms']:.3g} ms; "
        "every scheme got the same flows.",
        "Extra packets are repairs, and second copies of replicated flows.",
    ]
    if "flow_sizes" in document:  # results of before are shown, too
        lines += _flow_sizes(document["flow_sizes"])
    limits = _limits(document.get("spec", {}).get("workload", {}))
    if limits:
        lines.append(limits)
    if document["long_flow_pressure"] is not None:
        pressure = document["long_flow_pressure"]
        lines.append(
            f"Long flows x access rate / fabric rate = {pressure:.2f}: sprayed long flows "
            + ("can" if pressure >= 1 else "cannot")
            + " fill every path."
        )
    for label, scheme in document["schemes"].items():
        lost = scheme.get("long", {}).get("failed_background_flows", 0)
        if lost:
            lines.append(
                f"{label}: {lost} long flows failed; the sum counts what they had sent (see flows.csv)."
            )
        if scheme.get("admission") is not None:
            lines.append(admission_note(label, scheme["admission"], scheme["retransmitted_bytes"]))
    small = [
        scheme[kind]["n"]
        for scheme in document["schemes"].values()
        for kind in ("short", "long")
        if "n" in scheme.get(kind, {})
    ]
    if small and max(small) < FLOWS_FOR_P99:
        lines.append(f"p99 is not shown for fewer than {FLOWS_FOR_P99} flows; the JSON document has it.")
    for claim in document["claims"]:
        lines.append(heading(claim))
        if claim.get("ours") is not None:
            lines.append(f"  ours: {compared(claim['compare'])}: {verdict_text(claim['ours'])}")
    return lines + [f"Note: {notice}" for notice in document["notices"]]


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


def _flow_sizes(sizes: Document) -> list[str]:
    """Return what was drawn; of several applications, each with how its sizes were scaled."""
    each = sizes.get("applications")
    if each is None:
        return [f"Flow sizes: {_sizes(sizes)}, mean {sizes['mean_bytes'] / 1e3:.3g} kB."]
    lines = [f"Flow sizes: {len(each)} applications, mean {sizes['mean_bytes'] / 1e3:.3g} kB."]
    for entry in each:
        where = f" on port {entry['port']}" if entry["port"] is not None else ""
        if entry["hosts"]:
            where += f" between {', '.join(entry['hosts'])}"
        lines.append(
            f"  {entry['name']}{where}: {entry['share_of_load'] * 100:.3g} % of the load, "
            f"{entry['share_of_flows'] * 100:.3g} % of the flows; {_sizes(entry)}, "
            f"mean {entry['mean_bytes'] / 1e3:.3g} kB"
        )
    return lines


def _sizes(sizes: Document) -> str:
    table = f"table {sizes['table']} ({sizes['source']})" if sizes["table"] else str(sizes["kind"])
    return table + (f", sizes times {sizes['scale']:g}" if sizes["scale"] != 1 else "")


def _limits(workload: Document) -> str:
    """Return what short, medium and large are, where a workload says so itself, and what was not counted."""
    text = ""
    if workload.get("large_limit_bytes") is not None:
        text += (
            f"Short flows carry less than {workload['short_limit_bytes'] / 1e3:g} kB, large ones at least "
            f"{workload['large_limit_bytes'] / 1e3:g} kB, medium ones are between."
        )
    lead_in_s = workload.get("flows", {}).get("lead_in_s")
    if lead_in_s:
        text += f" Flows of the first {lead_in_s:g} s of a run were sent, but are not counted."
    return text.strip()
