"""Lab 5: types of flows, found from the flows of the past, that predict the size of the next one."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import numpy as np

from classroom.answer import Answer, AnswerError, CheckResult
from plain.shown import shown

APPLICATIONS: Final = {
    "rpc": ((30001, 30002, 30003, 30004), 2e3, 0.3),
    "web": ((80, 443, 8080), 2e4, 0.5),
    "storage": ((2049, 3260), 1e6, 0.4),
    "backup": ((873,), 3e7, 0.3),
}
"""Destination ports, median of the sizes in bytes, and their spread (of the natural logarithm)."""
SEEDS: Final = (1, 2, 3)
LEAST_AGREEMENT: Final = 0.99
MOST_SPREAD: Final = 0.6


def flows(seed: int, count: int = 1200) -> list[dict[str, Any]]:
    """Return flows that have ended: host, destination_port, bytes. Hosts are drawn at random: they predict nothing."""
    rng = np.random.default_rng(seed)
    names = list(APPLICATIONS)
    made = []
    for _ in range(count):
        ports, median, spread = APPLICATIONS[names[int(rng.integers(len(names)))]]
        made.append(
            {
                "host": f"h{rng.integers(1, 9)}",
                "destination_port": int(ports[int(rng.integers(len(ports)))]),
                "bytes": max(1, int(median * np.exp(rng.normal(0, spread)))),
            }
        )
    return made


def check(file: Path, results: Path) -> list[CheckResult]:
    """Return the types of each port, on three days of flows. Raises AnswerError."""
    types_of_ports = Answer(file).function("types_of_ports")
    from sklearn.metrics import adjusted_rand_score  # two seconds of processor time

    application = {port: name for name, (ports, _, _) in APPLICATIONS.items() for port in ports}
    findings = []
    for seed in SEEDS:
        day = flows(seed)
        types = _types(types_of_ports(day))
        missing = sorted(set(application) - set(types))
        if missing:
            findings.append(
                CheckResult(False, f"step 4, day {seed}: no type of port {missing[0]}: every port needs one")
            )
            continue
        ports = sorted(application)
        agreement = float(
            adjusted_rand_score([application[port] for port in ports], [types[port] for port in ports])
        )
        number = len({types[port] for port in ports})
        right = agreement >= LEAST_AGREEMENT
        text = f"step 5, day {seed}: {number} types; agreement with {len(APPLICATIONS)} applications {agreement:.2f}"
        if not right:
            text += "; too many: ports with like sizes are one type" if number > len(APPLICATIONS) else ""
            text += "; too few: sizes within a type differ too much" if number < len(APPLICATIONS) else ""
        findings.append(CheckResult(right, text))
    test = flows(SEEDS[-1] + 1)
    types = _types(types_of_ports(flows(SEEDS[0])))
    spread = _spread(test, types)
    findings.append(
        CheckResult(
            spread <= MOST_SPREAD,
            f"step 6: a new flow's size is predicted within a factor of {np.exp(spread):.1f} by its type"
            + ("" if spread <= MOST_SPREAD else f"; {np.exp(MOST_SPREAD):.1f} is wanted"),
        )
    )
    return findings


def _types(given: Any) -> dict[Any, int]:
    """Return a student's types as numbers, by port. Raises AnswerError for what is none."""
    if not isinstance(given, dict):
        raise AnswerError(f"types_of_ports() gave {type(given).__name__}: a dict from port to type is wanted")
    numbers: dict[Any, int] = {}
    types: dict[Any, int] = {}
    for port, of_port in given.items():
        try:
            types[port] = numbers.setdefault(of_port, len(numbers))
        except TypeError:
            raise AnswerError(
                f"types_of_ports() gave {shown(of_port)} as the type of port {shown(port)}: a number or a name is "
                "wanted"
            ) from None
    return types


def _spread(test: list[dict[str, Any]], types: dict[Any, int]) -> float:
    """Return the standard deviation of the logarithm of sizes within types, over new flows."""
    of_type: dict[Any, list[float]] = {}
    for flow in test:
        of_type.setdefault(types.get(flow["destination_port"]), []).append(float(np.log(flow["bytes"])))
    residual = [value - float(np.mean(values)) for values in of_type.values() for value in values]
    return float(np.std(residual))
