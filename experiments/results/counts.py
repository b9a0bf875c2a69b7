"""Packets and paths over all flows and repeats of a scheme: totals and shares, without intervals."""

from __future__ import annotations

from typing import Any

import numpy as np

from experiments.results.outcome import Runs
from workloads.records import TrafficClassName


def counts(runs: Runs) -> dict[str, Any]:
    """Return the totals over all flows and repeats, and the share of repairs (and of copies) among the packets sent.

    overhead: repairs and packets of second copies, over the flows' own packets.
    """
    flows = [flow for run in runs for flow in run]
    packets = sum(flow.packets for flow in flows)
    copies = sum(flow.copy_packets for flow in flows)
    coded = [flow for flow in flows if flow.repairs]
    return {
        "retransmissions": sum(flow.retransmissions for flow in flows),
        "spurious_retransmissions": sum(flow.duplicates_reported for flow in flows),
        "reordering": sum(flow.out_of_order for flow in flows),
        "reordered_in_fabric": sum(flow.reordered for flow in flows),
        "recovered_packets": sum(flow.recovered for flow in flows),
        "lost_packets": sum(flow.lost for flow in flows),
        "release_timeouts": sum(flow.release_timeouts for flow in flows),
        "packets": packets,
        "repairs": sum(flow.repairs for flow in flows),
        "copy_packets": copies,
        "overhead": (sum(flow.repairs for flow in flows) + copies) / packets if packets else 0.0,
        "coded_overhead": sum(flow.repairs for flow in coded) / max(1, sum(flow.packets for flow in coded)),
    }


def per_class(runs: Runs, traffic_class: TrafficClassName) -> dict[str, Any]:
    """Return those of the totals of `counts` that differ by class, for one class."""
    flows = [flow for run in runs for flow in run if flow.traffic_class == traffic_class]
    return {
        "retransmissions": sum(flow.retransmissions for flow in flows),
        "spurious_retransmissions": sum(flow.duplicates_reported for flow in flows),
        "reordering": sum(flow.out_of_order for flow in flows),
        "recovered_packets": sum(flow.recovered for flow in flows),
    }


def path_balance(runs: Runs, traffic_class: TrafficClassName) -> dict[str, Any]:
    """Return the datagrams by path stamp, how many paths flows used, and the busiest path's share times the paths
    used."""
    flows = [flow for run in runs for flow in run if flow.traffic_class == traffic_class]
    total: dict[str, int] = {}
    used = []
    for flow in flows:
        stamped = {stamp: count for stamp, count in flow.paths.items() if stamp != "0" and count}
        if stamped:
            used.append(len(stamped))
        for stamp, count in stamped.items():
            total[stamp] = total.get(stamp, 0) + count
    datagrams = sum(total.values())
    return {
        "datagrams": {stamp: total[stamp] for stamp in sorted(total, key=int)},
        "paths_per_flow": float(np.mean(used)) if used else None,
        "busiest_over_mean": max(total.values()) * len(total) / datagrams if datagrams else None,
    }
