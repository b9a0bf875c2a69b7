"""HTPC's Eq. 1-17 as printed (Journal of Cloud Computing 10, 2021), and where the print cannot mean what it says.

Weight and repairs of whole packets (Eq. 2-5) are what host agents run: `flow_weight` and `htpc_rule` in
`host_agent.coding.redundancy`. Here r is the equations' own number, not rounded and possibly negative. k = w_c packets.

Eq. 6-8, the code, are what agents run (`native/coding`); tests compute them as printed.

**Eq. 14 and 16** sum (i - 1) over the number i of blocked packets of k + r, whatever r is: that is Corrective's Eq.
11, in which one repair makes up for one packet. With B ~ Binomial(n, p), n = k + r,

    sum over i = 1 .. n of P(B = i) (i - 1) / k = (n p - 1 + (1 - p)^n) / k,

which *grows* with r: at p = 0.5, k = 10, r = 10 it is 0.90, and without any repair 0.40, so coding would lose
packets. With r repairs, i - r packets are missing where i > r, so what is meant is sum over i > r of P(B = i) (i - r)
/ k (`blocking_meant`), which equals Eq. 11 at r = 1 and p at r = 0. Only with it does Fig. 5(a) show HTPC above RPS
and Corrective.

**Eq. 17** has r_CA in an exponent beside r_HT in the binomial; with r_HT in both it is Eq. 15's form. **Eq. 12** has
RPS's blocking rate, **Eq. 15 and 17** what is left after decoding: `timeouts` takes it as an argument.
"""

from __future__ import annotations

from typing import Final

from host_agent.coding.redundancy import binomial, flow_weight
from protocol.policy import Weight

FAST_RETRANSMIT: Final = 3
"""T_fr."""


def loss_rate(lost: int, sent: int) -> float:
    """Return Eq. 1: P_L = n_d / n_t of a sampling time (500 us)."""
    return lost / sent


def weight(sent_bytes: int, rule: Weight) -> float:
    """Return Eq. 2: w is 1 for D < T_s, 1 - (D - T_s) / (T_w - T_s) up to T_w, then 0; what agents run."""
    return flow_weight(rule, sent_bytes)


def expected(w: float, k: int, fast_retransmit: int = FAST_RETRANSMIT) -> float:
    """Return Eq. 3: x = w k + (1 - w) T_fr packets that the receiver is to get."""
    return w * k + (1 - w) * fast_retransmit


def repairs(w: float, k: int, blocked: float, fast_retransmit: int = FAST_RETRANSMIT) -> float:
    """Return Eq. 4: r = x / (1 - n_b / n) - k, not rounded; negative where no repair is needed."""
    return expected(w, k, fast_retransmit) / (1 - blocked) - k


def repairs_by_bytes(sent_bytes: int, k: int, blocked: float, rule: Weight) -> float:
    """Return Eq. 5: Eq. 2 put into Eq. 4, case by case."""
    if sent_bytes < rule.full_bytes:
        return (1 / (1 - blocked) - 1) * k
    if sent_bytes > rule.none_bytes:
        return rule.fast_retransmit / (1 - blocked) - k
    faded = (sent_bytes - rule.full_bytes) / (rule.none_bytes - rule.full_bytes)
    return ((rule.fast_retransmit - k) * faded + k) / (1 - blocked) - k


def rps_blocking(blocked_acks: int, acks: int) -> float:
    """Return Eq. 9: PB_RPS = n_b / n."""
    return blocked_acks / acks


def timeouts(packets: int, p: float, fast_retransmit: int = FAST_RETRANSMIT) -> float:
    """Return Eq. 10, 12, 15, 17: the chance that fewer than T_fr of so many packets arrive.

    Eq. 10 has w_c packets and PB_RPS; Eq. 12 k + 1 and PB_RPS; Eq. 15 k + r_CA and PB_CA; Eq. 17 k + r_HT and PB_HT.
    """
    return sum(binomial(packets, i, 1 - p) for i in range(min(fast_retransmit, packets + 1)))


def corrective_blocking(k: int, p: float) -> float:
    """Return Eq. 11: PB_Cor of k sources and one repair."""
    return _sum_of_excess(k, 1, p, 1)


def caps_repairs(sent_bytes: int, k: int, blocked: float, rule: Weight) -> float:
    """Return Eq. 13: r_CA is k / (1 - n_b / n) - k for D < T_s, 0 from there on."""
    return k / (1 - blocked) - k if sent_bytes < rule.full_bytes else 0.0


def coded_blocking(k: int, r: int, p: float) -> float:
    """Return Eq. 14 (CAPS) and 16 (HTPC) as printed: as if any number of repairs made up for one packet."""
    return _sum_of_excess(k, r, p, 1)


def blocking_meant(k: int, r: int, p: float) -> float:
    """Return Eq. 14 and 16 as they must be meant: r repairs make up for r packets (ours; see above)."""
    return _sum_of_excess(k, r, p, r)


def _sum_of_excess(k: int, r: int, p: float, made_up: int) -> float:
    n = k + r
    return sum(binomial(n, i, p) * (i - made_up) for i in range(made_up + 1, n + 1)) / k
