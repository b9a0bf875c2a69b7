"""The lines below a result's tables: how to read them, what the papers claim, what to know of the run."""

from __future__ import annotations

from experiments.results.admissions import admission_note
from experiments.results.claims import compared, heading, verdict_text
from experiments.results.simulated import Document, is_simulated
from experiments.results.statistics import FLOWS_FOR_P99


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
