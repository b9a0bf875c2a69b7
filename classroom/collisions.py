"""Lab 1: which long flows share a path under ECMP."""

from __future__ import annotations

import csv
from itertools import combinations
from numbers import Real
from pathlib import Path
from typing import Any, Final

import numpy as np

from classroom.answer import Answer, AnswerError, CheckResult
from plain.shown import shown

TABLES: Final = 40
CHANCE: Final = 1 - 4 * 3 * 2 * 1 / 4**4
"""That of four flows on four paths, each drawn evenly and on its own, at least two share one."""


def check(file: Path, results: Path) -> list[CheckResult]:
    """Return the function `collisions` on tables that we know, and on the student's own experiment.

    Raises AnswerError.
    """
    answer = Answer(file)
    findings = [_on_known_tables(answer)]
    own = newest_result(results)
    if own is None:
        findings.append(
            CheckResult(False, f"step 2: no result of lab 1 in {results}/: run the experiment first")
        )
    else:
        findings.append(_on_own_table(answer, own))
    chance = answer.value("CHANCE")
    is_number = isinstance(chance, Real)
    right = is_number and bool(CHANCE - 0.005 < chance < CHANCE + 0.005)  # numpy's comparison is no bool
    findings.append(
        CheckResult(
            right,
            f"step 6: CHANCE is {chance if right else shown(chance)}"
            + ("" if right else ": count how many of 4^4 ways have no two"),
        )
    )
    return findings


def newest_result(results: Path) -> Path | None:
    """Return the table of flows of the last run of lab 1."""
    tables = sorted(results.glob("lab1-*/flows.csv"), key=lambda path: path.stat().st_mtime)
    return tables[-1] if tables else None


def is_long(row: dict[str, Any]) -> bool:
    return str(row["traffic_class"]) == "long"


def main_path(row: dict[str, Any]) -> str:
    """Return the path that carried most of a flow's packets."""
    words = (word.split(":") for word in row["paths"].split())
    return str(max(words, key=lambda word: int(word[1]))[0])


def sharing(rows: list[dict[str, Any]]) -> set[frozenset[str]]:
    """Return the pairs of flows of one run and direction that share a path."""
    return {
        frozenset((flow["id"], other["id"]))
        for flow, other in combinations(rows, 2)
        if (flow["repeat"], main_path(flow)) == (other["repeat"], main_path(other))
    }


def _on_own_table(answer: Answer, own: Path) -> CheckResult:
    try:
        table = csv.DictReader(own.read_text(encoding="utf-8").splitlines())
        rows = [
            row for row in table if is_long(row) and row["paths"]
        ]  # without: it never got a packet through
        true = sharing(rows)
    except (OSError, LookupError, ValueError, csv.Error) as error:
        return CheckResult(
            False,
            f"step 5: {own} is no table of flows as a run writes it ({error!r}): run the experiment again",
        )
    answered = _answered(answer, rows)
    return CheckResult(
        answered == true,
        f"step 5: in {own} you find {_words(answered)}"
        + ("" if answered == true else "; compare the column paths of its long flows by eye"),
    )


def _on_known_tables(answer: Answer) -> CheckResult:
    rng = np.random.default_rng(1)
    for _ in range(TABLES):
        rows = []
        for number in range(int(rng.integers(2, 7))):
            stamps = rng.choice(8, size=2, replace=False) + 2049
            most, few = int(rng.integers(500, 900)), int(rng.integers(1, 40))
            words = [f"{stamps[0]}:{few}", f"{stamps[1]}:{most}"]
            rows.append(
                {
                    "id": str(number),
                    "repeat": str(int(rng.integers(2))),
                    "traffic_class": "long",
                    "paths": " ".join(words if number % 2 else words[::-1]),
                }
            )
        true = sharing(rows)
        answered = _answered(answer, rows)
        if answered != true:
            flows = ", ".join(f"{row['id']} of repeat {row['repeat']} on {row['paths']}" for row in rows)
            return CheckResult(
                False, f"step 4: of the flows {flows} you find {_words(answered)}, not {_words(true)}"
            )
    return CheckResult(True, f"step 4: collisions() is right on {TABLES} made-up tables")


def _answered(answer: Answer, rows: list[dict[str, Any]]) -> set[frozenset[str]]:
    """Return the pairs that the student's function gives, of rows of its own: it may change them.

    Raises AnswerError.
    """
    pairs = answer.function("collisions")([dict(row) for row in rows])
    try:
        return {frozenset(str(flow_id) for flow_id in pair) for pair in pairs or ()}
    except (TypeError, ValueError):  # an array of numpy has no truth
        raise AnswerError(
            f"collisions() gives {shown(pairs)}: pairs of ids are wanted, as [('1', '4')]"
        ) from None


def _words(pairs: set[frozenset[str]]) -> str:
    return ", ".join(" and ".join(sorted(pair)) for pair in sorted(pairs, key=sorted)) or "no two that share"
