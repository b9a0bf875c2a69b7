"""Lab 3: how many repairs a unit needs."""

from __future__ import annotations

from math import comb
from pathlib import Path
from typing import Any, Final

import numpy as np

from classroom.answer import Answer, AnswerError, CheckResult
from host_agent.coding.codes import code_named
from plain.shown import shown

CASES: Final = (
    (10, 0.2, 0.95),
    (32, 0.1, 0.95),
    (32, 0.2, 0.95),
    (5, 0.05, 0.99),
    (20, 0.35, 0.9),
    (1, 0.1, 0.999),
    (24, 0.0, 0.95),
)
"""k packets, the share that is blocked, and how many units are to be decoded."""
UNITS: Final = 400
TRIED: Final = (10, 0.2, 0.95)


def decode_probability(k: int, r: int, blocked: float) -> float:
    """Return the chance that at most r of k + r packets are blocked: any k of them decode a unit of an MDS code."""
    n = k + r
    return sum(comb(n, lost) * blocked**lost * (1 - blocked) ** (n - lost) for lost in range(r + 1))


def least_repairs(k: int, blocked: float, target: float) -> int:
    """Return the smallest r with which enough units are decoded."""
    r = 0
    while decode_probability(k, r, blocked) < target:
        r += 1
    return r


def check(file: Path, results: Path) -> list[CheckResult]:
    """Return the function `repairs` on cases of all kinds, and once with a real code. Raises AnswerError."""
    repairs = Answer(file).function("repairs")
    findings = [_case(repairs(*case), *case) for case in CASES]
    k, blocked, target = TRIED
    decoded = share_decoded(k, _whole(repairs(*TRIED)), blocked)
    right = decoded >= target - 0.03  # of 400 units: two standard deviations are 0.02
    findings.append(
        CheckResult(
            right,
            f"step 7: with Capstan's own code (mds), {decoded:.3f} of {UNITS} units were decoded"
            + ("" if right else f"; {target} are wanted"),
        )
    )
    return findings


def share_decoded(k: int, r: int, blocked: float, seed: int = 1) -> float:
    """Return how many of `UNITS` units decode, with random packets, each blocked with that probability."""
    code, rng = code_named("mds"), np.random.default_rng(seed)
    decoded = 0
    for number in range(UNITS):
        packets = [rng.bytes(64) for _ in range(k)]
        coded = code.encode(packets, r, number) if r else []
        here = rng.random(k + r) >= blocked
        sources = [packets[place] if here[place] else None for place in range(k)]
        spare = {place: coded[place] for place in range(r) if here[k + place]}
        missing = sources.count(None)
        if not missing:
            decoded += 1
        elif code.worth_trying(missing, len(spare)):
            rebuilt = dict(code.decode(sources, spare, r, number))
            decoded += len(rebuilt) == missing and all(rebuilt[place] == packets[place] for place in rebuilt)
    return decoded / UNITS


def _case(answer: Any, k: int, blocked: float, target: float) -> CheckResult:
    r, least = _whole(answer), least_repairs(k, blocked, target)
    probability = decode_probability(k, r, blocked)
    text = (
        f"steps 4 to 6, k = {k}, {blocked:.0%} blocked: r = {r} decodes {probability:.3f} of units ({target})"
    )
    if r > least:
        text += f"; {least} would do: repairs are load, too"
    elif r < least:
        text += "; that is too few"
    return CheckResult(r == least, text)


def _whole(answer: Any) -> int:
    if isinstance(answer, bool) or not isinstance(answer, int | np.integer) or not 0 <= answer <= 200:
        raise AnswerError(f"repairs() gave {shown(answer)}: a whole number from 0 to 200 is wanted")
    return int(answer)
