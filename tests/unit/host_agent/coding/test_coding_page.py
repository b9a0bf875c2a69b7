"""The decode probabilities and repairs that docs/coding.md prints are those of the formulas."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import pytest

from host_agent.coding.redundancy import decode_probability, paper_rule
from protocol.policy import CodeName

PAGE: Final = Path(__file__).resolve().parents[4] / "docs" / "coding.md"
ROW: Final = re.compile(r"^\| k = (\d+), pB = ([\d.]+) \|(.*)\|$", re.MULTILINE)
CELL: Final = re.compile(r"([\d.]+) \((\d+)\) -> ([\d.]+) \((\d+)(, cut)?\)")
CODES: Final[tuple[CodeName, ...]] = ("rlc", "ldpc", "xor")
TARGET: Final = 0.95
CASES: Final = [
    (int(k), float(p), code, cell)
    for k, p, cells in ROW.findall(PAGE.read_text(encoding="utf-8"))
    for code, cell in zip(CODES, CELL.findall(cells), strict=True)
]


def test_the_table_has_three_rows_of_three_codes() -> None:
    assert len(CASES) == 9


@pytest.mark.parametrize(("k", "p", "code", "cell"), CASES)
def test_the_page_prints_what_the_formulas_give(
    k: int, p: float, code: CodeName, cell: tuple[str, ...]
) -> None:
    by_paper, paper_r, by_target, target_r, cut = cell
    assert paper_rule(k, p) == int(paper_r)
    assert f"{decode_probability(code, k, int(paper_r), p):.2f}" == by_paper
    assert f"{decode_probability(code, k, int(target_r), p):.2f}" == by_target
    reached = [r for r in range(k + 1) if decode_probability(code, k, r, p) >= TARGET]
    assert (min(reached, default=k), not reached) == (int(target_r), bool(cut))
