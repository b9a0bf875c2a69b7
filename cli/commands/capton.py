"""``capstan capton``: what CAPTON has granted in the running lab, as it changes."""

from __future__ import annotations

import time
from typing import Any, Final

import click
from rich.console import Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from cli.commands.capton_resent import resent_tables
from cli.commands.lab import lab_client
from cli.console import fail, json_option, results, write_json
from plain.finite_range import FiniteRange

MOST_ROWS: Final = 20
BUSY: Final = 0.95


@click.command(
    "capton",
    epilog="Examples:  ./capstan capton    ./capstan capton --once    ./capstan capton --resent    "
    "./capstan capton --json -",
)
@click.option("--lab", "lab_id", help="Id of the lab, if several are up.")
@click.option("--once", is_flag=True, help="Print once, and exit.")
@click.option(
    "--every",
    default=0.5,
    show_default=True,
    type=FiniteRange(0.05, 3600),
    help="Seconds between two updates.",
)
@click.option("--resent", is_flag=True, help="Print what TCP has retransmitted, and why.")
@json_option
def capton_command(
    *, lab_id: str | None, once: bool, every: float, resent: bool, json_file: str | None
) -> None:
    """Watch CAPTON's grants in the running lab: flows that send and wait, and use of virtual links; Ctrl-C ends."""
    with lab_client(lab_id) as client:
        try:
            if resent:
                log = client.capton_resent()
                if json_file is not None:
                    write_json(log, json_file)
                else:
                    results.print(resent_tables(log))
                return
            view = client.capton()
            if json_file is not None:
                write_json(view, json_file)
                return
            if not view["enabled"]:
                fail(
                    f"scheme {view['scheme']} grants nothing; switch to one that does: ./capstan scheme capton"
                )
            if once:
                results.print(tables(view))
                return
            with Live(tables(view), console=results, auto_refresh=False) as live:
                while True:
                    time.sleep(every)
                    live.update(tables(client.capton()), refresh=True)
        except KeyboardInterrupt:
            return


def tables(view: dict[str, Any]) -> Group:
    """Return the view as tables, the first `MOST_ROWS` flows of it."""
    return Group(_totals(view), _flows(view), _links(view))


def _totals(view: dict[str, Any]) -> Text:
    totals, latency = view["totals"], view["latency"]
    text = (
        f"{view['scheme']}: {totals['granted_flows']} flows granted {_mbps(totals['granted_bps'])} Mbit/s, "
        f"{totals['waiting_flows']} wait; {totals['remaining_bytes'] / 1000:.0f} kB left"
    )
    if latency["count"]:
        text += (
            f"; request to decision {latency['median_us'] / 1000:.2f} ms median, "
            f"{latency['p99_us'] / 1000:.2f} ms p99 of {latency['count']}"
        )
    unscheduled = sum(host["unscheduled_now"] for host in view["hosts"])
    if unscheduled:
        text += f"; {unscheduled} flows unscheduled: the controller did not answer in time"
    return Text(text)


def _flows(view: dict[str, Any]) -> Table:
    table = Table(title="flows, the least left first", title_justify="left")
    for name in ("flow", "from", "to", "state", "rate Mbit/s", "left kB", "asked kB", "since s", "path"):
        table.add_column(name, justify="left" if name in ("from", "to", "state") else "right")
    for flow in view["flows"][:MOST_ROWS]:
        path = flow["path"] if view["paths"] == "one" else "all"
        table.add_row(
            str(flow["flow"]),
            flow["source"],
            flow["destination"],
            flow["state"],
            _mbps(flow["rate_bps"]) if flow["rate_bps"] else "-",
            f"{flow['remaining_bytes'] / 1000:.1f}",
            f"{flow['asked_bytes'] / 1000:.1f}",
            f"{flow['asked_s_ago']:.2f}",
            "-" if path is None else str(path),
        )
    more = len(view["flows"]) - MOST_ROWS
    if more > 0:
        table.caption = f"and {more} more"
    return table


def _links(view: dict[str, Any]) -> Table:
    table = Table(title="virtual links", title_justify="left")
    for name in ("link", "kind", "capacity Mbit/s", "granted Mbit/s", "used %"):
        table.add_column(name, justify="left" if name in ("link", "kind") else "right")
    used = sorted(view["links"], key=lambda link: (link["kind"] == "host", -link["utilisation"]))
    for link in used[:MOST_ROWS]:
        busy = link["utilisation"] >= BUSY
        table.add_row(
            link["name"],
            link["kind"],
            _mbps(link["capacity_bps"]),
            _mbps(link["granted_bps"]),
            Text(f"{100 * link['utilisation']:.0f}", style="bold" if busy else ""),
        )
    more = len(used) - MOST_ROWS
    if more > 0:
        table.caption = f"and {more} more, used less"
    return table


def _mbps(bps: float) -> str:
    return f"{bps / 1e6:.1f}"
