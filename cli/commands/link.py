"""``capstan link``: a link of the running lab down, slower, or as it was."""

from __future__ import annotations

import click

from cli.commands.lab import lab_client
from cli.console import results
from cli.privileges import need_root
from controller.api.bodies import MOST_DELAY_MS, SLOW_MBPS
from plain.finite_range import FiniteRange

OF_LINKS = ("link-down", "slow-link")


@click.command(
    "link",
    epilog="Examples:  ./capstan link l1-s1 down    ./capstan link l1-s1 slow 0.5    ./capstan link l1-s1 up",
)
@click.argument("name")
@click.argument("state", type=click.Choice(["down", "slow", "up"]))
@click.argument("rate_mbps", required=False, type=FiniteRange(*SLOW_MBPS))
@click.option(
    "--delay-ms", type=FiniteRange(0, MOST_DELAY_MS), help="Delay on top, where the kernel has netem."
)
@click.option("--lab", "lab_id", help="Id of the lab, if several are up.")
def link_command(
    *, name: str, state: str, rate_mbps: float | None, delay_ms: float | None, lab_id: str | None
) -> None:
    """Take link NAME of the running lab down, make it slower (to RATE_MBPS, both directions), or put it back (up)."""
    if state != "slow" and (rate_mbps is not None or delay_ms is not None):
        raise click.UsageError(f"a rate or a delay goes with `slow` only, not with `{state}`")
    if state == "slow" and rate_mbps is None and not delay_ms:
        raise click.UsageError("say how slow: `capstan link l1-s1 slow 0.5` (Mbit/s), or --delay-ms, or both")
    need_root("link")
    with lab_client(lab_id) as client:
        turned = "-".join(reversed(name.split("-", 1)))
        there = [
            fault
            for fault in client.faults()
            if fault["kind"] in OF_LINKS and fault["target"] in (name, turned)
        ]
        if state == "up":
            known = client.links()
            if not there and not {name, turned} & set(known):
                raise click.ClickException(f"there is no link {name!r}; there are {', '.join(known)}")
            for fault in there:
                client.end_fault(fault["id"])
            ended = " and ".join(_words(fault) for fault in there)
            results.print(f"{name}: {f'no longer {ended}' if there else 'was up already'}", markup=False)
            return
        if state == "down":
            fault = client.begin_fault("link-down", name)
        else:
            for old in there:
                if old["kind"] == "slow-link":
                    client.end_fault(old["id"])
            fault = client.begin_fault("slow-link", name, rate_mbps, delay_ms)
        results.print(f"{fault['target']}: {_words(fault)}; `capstan link {name} up` ends it", markup=False)


def _words(fault: dict[str, object]) -> str:
    if fault["kind"] == "link-down":
        return "down"
    parts = [f"at most {fault['rate_mbps']:g} Mbit/s"] if fault["rate_mbps"] is not None else []
    parts += [f"{fault['delay_ms']:g} ms later"] if fault["delay_ms"] else []
    return ", ".join(parts)
