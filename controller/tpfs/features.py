"""Feature combinations: the flows of each value of each non-empty subset of four header fields.

A flow is known when it begins by its source and destination address and port; which of them predict what it will be is
what TPFS finds out. A *value* is one tuple of the fields of a combination that flows were seen with.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from controller.tpfs.records import Records

Feature = Literal["source", "source_port", "destination", "destination_port"]
FEATURES: Final[tuple[Feature, ...]] = ("source", "source_port", "destination", "destination_port")
FAIR_FACTOR: Final = 2.0
"""In one value a host counts at most for so many times the median host (`fair_weights`)."""
LEAST_SHARE: Final = 100
"""Records of a host that are always looked at."""

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Values:
    """The values of one combination that enough flows have.

    flows: indices of their records, shape (f,); value: 0 .. count - 1, of each of those, shape (f,); example: index
    of one record of each value, shape (count,). What is not in ``flows`` has a value of too few flows.
    """

    combination: tuple[Feature, ...]
    flows: Integers
    value: Integers
    example: Integers

    @property
    def count(self) -> int:
        """Return how many different values there are."""
        return len(self.example)


def combinations(records: Records, least_flows: int) -> Iterator[Values]:
    """Yield all 15 combinations, each with its values of at least *least_flows* flows.

    A value of more fields has no more flows than those of fewer fields that it is part of, so flows that have dropped
    out need not be looked at again: that makes ephemeral ports cheap.
    """
    fields = {name: np.unique(records[name], return_inverse=True)[1].astype(np.int64) for name in FEATURES}
    everything = np.arange(len(records), dtype=np.int64)
    yield from _below(
        (), everything, np.zeros(len(records), dtype=np.int64), 0, fields=fields, least_flows=least_flows
    )


def _below(
    combination: tuple[Feature, ...],
    flows: Integers,
    value: Integers,
    first: int,
    *,
    fields: dict[Feature, Integers],
    least_flows: int,
) -> Iterator[Values]:
    for place in range(first, len(FEATURES)):
        name = FEATURES[place]
        of_field = fields[name]
        width = int(of_field.max()) + 1 if len(of_field) else 1
        _codes, inverse, counts = np.unique(
            value * width + of_field[flows], return_inverse=True, return_counts=True
        )
        enough = counts >= least_flows
        mask = enough[inverse]
        renumbered = np.cumsum(enough) - 1
        some, their = flows[mask], renumbered[inverse[mask]].astype(np.int64)
        example = np.empty(int(np.count_nonzero(enough)), dtype=np.int64)
        example[their[::-1]] = some[::-1]
        wider = (*combination, name)
        yield Values(wider, some, their, example)
        yield from _below(wider, some, their, place + 1, fields=fields, least_flows=least_flows)


def fair_share(host: Integers) -> Integers:
    """Return the indices of the records that are looked at, growing.

    Of a host at most `FAIR_FACTOR` times what the median host has (or `LEAST_SHARE`), its latest ones. host: number of
    the host that sent each record, shape (n,).
    """
    if not len(host):
        return np.zeros(0, dtype=np.int64)
    counts = np.bincount(host)
    most = max(LEAST_SHARE, int(FAIR_FACTOR * np.median(counts[counts > 0])))
    order = np.argsort(host, kind="stable")
    from_last = np.cumsum(counts)[host[order]] - np.arange(len(host))
    return np.sort(order[from_last <= most])


def fair_weights(values: Values, host: Integers) -> Floats:
    """Return a weight for each of ``values.flows``, shape (f,), such that no host can speak for many.

    host: number of the host that sent each record, shape (n,). In each value a host's flows weigh together at most
    `FAIR_FACTOR` times what the median of the hosts with that value has (of an even number, the lower one). Where
    only one host has a value it is its own affair: all weigh 1.
    """
    if "source" in values.combination or not len(values.flows):
        return np.ones(len(values.flows))
    width = int(host.max()) + 1
    pairs, inverse, counts = np.unique(
        values.value * width + host[values.flows], return_inverse=True, return_counts=True
    )
    of_value = pairs // width
    order = np.lexsort((counts, of_value))
    firsts = np.searchsorted(of_value, np.arange(values.count))
    hosts = np.bincount(of_value, minlength=values.count)
    median = counts[order][firsts + (hosts - 1) // 2]
    weight = np.minimum(1.0, FAIR_FACTOR * median[of_value] / counts)
    return np.asarray(weight[inverse], dtype=float)
