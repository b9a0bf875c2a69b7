"""Who sends to whom."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from capstan_client.errors import CapstanError
from workloads.description import Endpoint, PatternName


class PatternError(CapstanError, ValueError):
    """A pattern that these hosts cannot show; the text says what is missing."""


Pair = tuple[Endpoint, Endpoint]


def sides(hosts: Sequence[Endpoint]) -> tuple[list[Endpoint], list[Endpoint]]:
    """Return hosts of the first half of the leaves and those of the second half (of three leaves: 1 and 2)."""
    leaves = sorted({host.leaf for host in hosts})
    if len(leaves) < 2:
        raise PatternError("pattern 'left-to-right' needs hosts on at least two leaves")
    left_leaves = set(leaves[: len(leaves) // 2])
    left = [host for host in hosts if host.leaf in left_leaves]
    return left, [host for host in hosts if host.leaf not in left_leaves]


def senders(pattern: PatternName, hosts: Sequence[Endpoint]) -> list[Endpoint]:
    """Return hosts that may send under a pattern."""
    return sides(hosts)[0] if pattern == "left-to-right" else list(hosts)


def pairs(
    pattern: PatternName, hosts: Sequence[Endpoint], rng: np.random.Generator, *, n: int, spread: bool = False
) -> list[Pair]:
    """Return the source and destination of *n* flows; the two of a pair are never the same host.

    random: any source, a destination below another leaf (any other host in a fabric of one leaf);
    permutation: every host sends to one other host and receives from one, drawn once;
    incast: all to one receiver, drawn once;
    left-to-right: sources below the first half of the leaves, destinations below the second half.

    spread: deal sources, and with left-to-right destinations, out in turn (for long flows) instead of drawing each by
    itself.

    Raises:
        PatternError: too few hosts.
    """
    if len(hosts) < 2:
        raise PatternError(f"pattern {pattern!r} needs at least two hosts, the fabric has {len(hosts)}")
    if pattern == "left-to-right":
        left, right = sides(hosts)
        return list(zip(_draw(left, rng, n, spread), _draw(right, rng, n, spread), strict=True))
    if pattern == "incast":
        receiver = hosts[int(rng.integers(len(hosts)))]
        others = _elsewhere(hosts, receiver)
        return [(source, receiver) for source in _draw(others, rng, n, spread)]
    if pattern == "permutation":
        partner = _derangement(hosts, rng)
        return [(source, partner[source]) for source in _draw(hosts, rng, n, spread)]
    result = []
    elsewhere: dict[str, list[Endpoint]] = {}  # by source, which has some hundred flows
    for source in _draw(hosts, rng, n, spread):
        if source.host not in elsewhere:
            elsewhere[source.host] = _elsewhere(hosts, source)
        others = elsewhere[source.host]
        result.append((source, others[int(rng.integers(len(others)))]))
    return result


def _elsewhere(hosts: Sequence[Endpoint], host: Endpoint) -> list[Endpoint]:
    """Return hosts below other leaves, or all others if there are none."""
    far = [other for other in hosts if other.leaf != host.leaf]
    return far or [other for other in hosts if other != host]


def _draw(hosts: Sequence[Endpoint], rng: np.random.Generator, n: int, spread: bool) -> list[Endpoint]:
    if not spread:
        return [hosts[int(index)] for index in rng.integers(len(hosts), size=n)]
    order = rng.permutation(len(hosts))
    return [hosts[int(order[index % len(hosts)])] for index in range(n)]


def _derangement(hosts: Sequence[Endpoint], rng: np.random.Generator) -> dict[Endpoint, Endpoint]:
    """Return a permutation without a fixed point (Sattolo: one cycle), between leaves where a few draws find one."""
    best: list[Endpoint] = []
    fewest = len(hosts) + 1
    for _ in range(32):
        cycle = [hosts[int(index)] for index in rng.permutation(len(hosts))]
        local = sum(a.leaf == b.leaf for a, b in zip(cycle, [*cycle[1:], cycle[0]], strict=True))
        if local < fewest:
            best, fewest = cycle, local
        if fewest == 0:
            break
    return dict(zip(best, [*best[1:], best[0]], strict=True))
