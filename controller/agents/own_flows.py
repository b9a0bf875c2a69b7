"""What an agent may report of active flows: as many as were asked for, of its own host, by paths that there can be."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import islice

from protocol.control import ActiveFlows, FlowEntry
from protocol.limits import PATHS_MOST
from protocol.underlay import is_path_name


def own_flows(report: ActiveFlows, host: str, owners: Mapping[str, str], most: int) -> ActiveFlows:
    """Return the report with what *host* may say, at most *most* flows.

    owners: the host of each overlay address. Entries of flows that *host* neither sends nor receives, as their side
    says, are left out, and so is what is no path.
    """
    own = (entry for entry in report.flows if _end(entry, owners) == host)
    return replace(report, flows=[_usable(entry) for entry in islice(own, most)])


def _end(entry: FlowEntry, owners: Mapping[str, str]) -> str | None:
    """Return the host that sees the flow from this side; None: there is none."""
    address = {"sender": entry.source, "receiver": entry.destination}.get(entry.side)
    return None if address is None else owners.get(address)


def _usable(entry: FlowEntry) -> FlowEntry:
    paths = ((name, count) for name, count in entry.paths.items() if is_path_name(name))
    return replace(entry, paths=dict(islice(paths, PATHS_MOST)), paths_by_class={})
