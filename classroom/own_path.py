"""Lab 2: a path policy of one's own against ECMP, on paths that are only counted."""

from __future__ import annotations

import ast
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from classroom.answer import AnswerError, CheckResult
from host_agent.paths import CompiledPathPolicy, Flow, PathPolicy, Route
from host_agent.paths.own import PathFileError, read_path_policy
from protocol.policy import PathSettings
from protocol.underlay import TrafficClass, label_of

MOST_LINES: Final = 20
PATHS: Final = 8
PACKET_TIME_S: Final = 0.004
PACKETS: Final = 2000
MOST_UNEVEN: Final = 1.5
"""Load of the busiest path over the mean, of four long flows on eight paths."""
MOST_CHANGES: Final = 0.1
"""Of path, per packet of a long flow: each may reorder what is under way."""


def lines_of_code(text: str) -> int:
    """Return the number of lines that are neither blank, a comment, a docstring nor the begin of an import."""
    docstrings = {
        number
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        for number in range(node.lineno, (node.end_lineno or node.lineno) + 1)
    }
    lines = [line.strip() for number, line in enumerate(text.split("\n"), 1) if number not in docstrings]
    return sum(bool(line) and not line.startswith(("#", "import ", "from ")) for line in lines)


@dataclass(frozen=True)
class _Flow:
    id: int
    hash: int


def check(file: Path, results: Path) -> list[CheckResult]:
    """Return lines, evenness, order, and what happens when a path dies. Raises AnswerError."""
    try:
        make = read_path_policy(file)
        count = lines_of_code(file.read_text(encoding="utf-8"))
        findings = [
            CheckResult(count <= MOST_LINES, f"step 4: {count} lines of code; {MOST_LINES} are enough"),
        ]
        uneven, changes = _run(make(np.random.default_rng(1), PACKET_TIME_S))
        ecmp = CompiledPathPolicy(PathSettings("flow-hash"), PACKET_TIME_S, np.random.default_rng(1))
        hashed, _ = _run(ecmp)
        findings.append(
            CheckResult(
                uneven <= MOST_UNEVEN and uneven < hashed,
                f"step 5: the busiest path carries {uneven:.2f} times the mean (ECMP: {hashed:.2f})"
                + (
                    ""
                    if uneven <= MOST_UNEVEN
                    else f"; at most {MOST_UNEVEN} are wanted: let no flow stay for ever"
                ),
            )
        )
        findings.append(
            CheckResult(
                changes <= MOST_CHANGES,
                f"step 6: a long flow changes its path {changes * 100:.1f} times in 100 packets"
                + ("" if changes <= MOST_CHANGES else f"; more than {MOST_CHANGES * 100:g} reorder too much"),
            )
        )
        findings.append(_dead_path(make(np.random.default_rng(2), PACKET_TIME_S)))
    except PathFileError as error:
        raise AnswerError(str(error)) from error
    return findings


def _run(policy: PathPolicy) -> tuple[float, float]:
    """Return the load of the busiest path over the mean, and changes of path per packet, of four long flows."""
    labels = tuple(label_of(stamp) for stamp in range(2049, 2049 + PATHS))
    route = Route("l2", TrafficClass.LONG, labels)
    rng = np.random.default_rng(3)
    flows: list[Flow] = [_Flow(number + 1, int(rng.integers(2**32))) for number in range(4)]
    load: Counter[int] = Counter()
    last: dict[int, int] = {}
    changes = 0
    for step in range(PACKETS):
        for flow in flows:
            port = policy.entropy(flow, route, 1400, 1 + step * PACKET_TIME_S)
            # An entropy value is a path by hash, as at a switch's group.
            path = port if port in labels else labels[(port * 2654435761 >> 7) % PATHS]
            load[path] += 1400
            changes += last.get(flow.id, path) != path
            last[flow.id] = path
    return max(load.values()) * PATHS / sum(load.values()), changes / (PACKETS * len(flows))


def _dead_path(policy: PathPolicy) -> CheckResult:
    """Return the labels of paths that have died must not be chosen again."""
    labels = tuple(label_of(stamp) for stamp in range(2049, 2049 + PATHS))
    route, flow = Route("l2", TrafficClass.LONG, labels), _Flow(1, 12345)
    for step in range(50):
        last = policy.entropy(flow, route, 1400, 1 + step * PACKET_TIME_S)
    # The path in use dies with half of the others.
    route.labels = tuple(label for label in labels if label != last)[PATHS // 2 - 1 :]
    dead = set(labels) - set(route.labels)
    try:
        late = [policy.entropy(flow, route, 1400, 2 + step * PACKET_TIME_S) for step in range(PACKETS)]
    except PathFileError:
        late = [labels[0]]  # the agent refuses ports of paths that are gone
    return CheckResult(
        not dead & set(late),
        "step 7: "
        + (
            "dead paths get no packets"
            if not dead & set(late)
            else "paths die: choose among route.labels as they are now"
        ),
    )
