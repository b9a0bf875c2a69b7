"""Records of flows whose application is known, drawn from the published tables."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from controller.tpfs.records import RECORD, Records
from workloads.description import Sizes
from workloads.sizes import distribution

FOUR = ("websearch", "datamining", "cache-follower", "hadoop")


def records_of(
    tables: Sequence[str],
    flows: int,
    rng: np.random.Generator,
    *,
    hosts: int = 10,
    first_port: int = 5000,
    replies: bool = False,
) -> tuple[Records, NDArray[np.int64]]:
    """Return records of *flows* flows between *hosts* hosts, and the number of the application of each.

    Application a has the destination port first_port + a, or with *replies* the source port; the other one is
    ephemeral.
    """
    records = np.zeros(flows, RECORD)
    application = rng.integers(0, len(tables), flows)
    records["source"] = rng.integers(0, hosts, flows)
    records["destination"] = (records["source"] + rng.integers(1, hosts, flows)) % hosts
    records["host"] = records["source"]
    service, ephemeral = first_port + application, rng.integers(32768, 60999, flows)
    records["source_port"], records["destination_port"] = (
        (service, ephemeral) if replies else (ephemeral, service)
    )
    records["protocol"] = 6
    records["end"] = np.sort(rng.uniform(0, 60, flows))
    records["start"] = records["end"] - 1
    for number, table in enumerate(tables):
        mine = application == number
        records["bytes"][mine] = distribution(Sizes(kind="table", table=table)).sample(rng, int(mine.sum()))
    return records, application


def addresses(hosts: int = 10) -> list[str]:
    return [f"10.128.{number}.1" for number in range(hosts)]
