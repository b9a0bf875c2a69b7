"""HTPC's analysis (Journal of Cloud Computing 10, 2021): what redundancy does to tails and to time-outs.

The stated model: a window of k packets and its r repairs is sprayed over n paths, of which n_b are bad; a packet that
takes a bad one comes too late (short flows) or not at all (long flows). Short flows should never wait for a tail:
the receiver wants x = k packets. Long flows only must not run into a time-out: x = T_fr packets, those that
duplicate ACKs and fast retransmission take. The weight w(D) leads from one to the other as the bytes sent grow.

Weight and repairs (Eq. 2-5) are what host agents run: `flow_weight` and `htpc_rule` in
`host_agent.coding.redundancy`. The paper's own Eq. 9-17 are in `models.printed.htpc`. They count a time-out wherever
fewer than T_fr packets arrive, though all may be rebuilt, and packets that are blocked as if order did not matter;
what is here counts what TCP sees, exactly, and is held against simulation.
"""

from __future__ import annotations

from functools import lru_cache
from math import ceil
from typing import Final

from host_agent.coding.redundancy import binomial, decode_probability, htpc_rule
from protocol.policy import CodeName, Weight

FAST_RETRANSMIT: Final = 3
"""T_fr: duplicate ACKs that make TCP send again at once (RFC 5681)."""


def tail_probability(k: int, r: int, bad_share: float, code: CodeName = "rlc") -> float:
    """Return P(a window waits for a packet of a bad path): it is not rebuilt from those of good ones."""
    return 1.0 - decode_probability(code, k, r, bad_share)


def timeout_probability(
    k: int,
    r: int,
    bad_share: float,
    *,
    fast_retransmit: int = FAST_RETRANSMIT,
    repairs_acknowledged: bool = True,
) -> float:
    """Return P(a window ends in a time-out): some source is lost, is not rebuilt, and too few duplicate ACKs follow.

    Duplicate ACKs come from packets after the first lost source, at position j = 1 .. k; the window is rebuilt if
    k packets of all came (rank failures, 1/255, are left out). So with Y ~ Binomial(k + r - j, 1 - p) packets after it

        P = sum over j of (1 - p)^(j - 1) p P(Y < min(T_fr, k - j + 1))

    With *repairs_acknowledged* false, only sources make duplicate ACKs, as where the code sits below TCP and keeps
    repairs to itself (our agents): then P(Y_s < T_fr and Y_s + Y_r < k - j + 1) of Y_s ~ Binomial(k - j, 1 - p),
    Y_r ~ Binomial(r, 1 - p).
    """
    p, total = bad_share, 0.0
    for j in range(1, k + 1):
        first = (1.0 - p) ** (j - 1) * p
        if first == 0.0:
            break
        missing = k - j + 1
        if repairs_acknowledged:
            total += first * _below(k + r - j, min(fast_retransmit, missing), 1.0 - p)
        else:
            total += first * sum(
                binomial(k - j, sources, 1.0 - p) * _below(r, missing - sources, 1.0 - p)
                for sources in range(min(fast_retransmit, missing, k - j + 1))
            )
    return min(total, 1.0)


@lru_cache(maxsize=1 << 14)
def _below(trials: int, limit: int, chance: float) -> float:
    """Return P(X < limit) for X ~ Binomial(trials, chance)."""
    if limit > trials:
        return 1.0
    return sum(binomial(trials, x, chance) for x in range(limit))


def flow_overhead(
    flow_bytes: int,
    k: int,
    bad_share: float,
    *,
    weight: Weight,
    packet_bytes: int = 1426,
) -> float:
    """Return the repairs per source packet of a whole flow of *flow_bytes*, in windows of *k* packets, with the weight
    fading."""
    packets = ceil(flow_bytes / packet_bytes)
    sent = added = 0
    while sent < packets:
        size = min(k, packets - sent)
        added += htpc_rule(size, bad_share, weight, sent * packet_bytes)
        sent += size
    return added / packets
