"""What students get wrong: each file of `wrong_answers/` misses just the items that it is wrong about."""

from __future__ import annotations

from pathlib import Path

import pytest

from classroom.answer import AnswerError
from classroom.labs import LABS
from classroom.marks import item_of

WRONG = Path(__file__).with_name("wrong_answers")
OFTEN = {
    "steps 4 to 6, k = 10, 20% blocked",
    "steps 4 to 6, k = 32, 10% blocked",
    "steps 4 to 6, k = 32, 20% blocked",
    "steps 4 to 6, k = 20, 35% blocked",
    "steps 4 to 6, k = 1, 10% blocked",
}
"""Cases of lab 3 where many are blocked, or few packets are not."""
FEW = "steps 4 to 6, k = 5, 5% blocked"
MISSED = {
    "lab1-all-runs.py": {"step 4"},
    "lab1-first-path.py": {"step 4"},
    "lab1-last-path.py": {"step 4"},
    "lab1-one-pair.py": {"step 6"},
    "lab2-dead-path.py": {"step 7"},
    "lab2-packet-by-packet.py": {"step 6"},
    "lab2-paths-of-before.py": {"step 7"},
    "lab2-stays.py": {"step 5", "step 7"},
    "lab3-mean.py": {*OFTEN, FEW, "step 7"},
    "lab3-repairs-arrive.py": {*OFTEN, "step 7"},
    "lab3-too-many.py": {*OFTEN, FEW, "steps 4 to 6, k = 24, 0% blocked"},
    "lab4-too-long.yaml": {"step 6"},
    "lab4-too-short.yaml": {"step 5"},
    "lab5-a-type-each.py": {"step 5, day 1", "step 5, day 2", "step 5, day 3"},
    "lab5-all-alike.py": {"step 5, day 1", "step 5, day 2", "step 5, day 3", "step 6"},
    "lab5-forgets.py": {"step 4, day 1", "step 4, day 2", "step 4, day 3"},
    "lab5-linear.py": {"step 5, day 1", "step 5, day 2", "step 5, day 3"},
    "lab6-all-stops.yaml": {"step 2"},
    "lab6-counts-polls.yaml": {"step 6"},
    "lab6-nothing-needs-it.yaml": {"step 2"},
    "lab6-rules-stay.yaml": {"step 4"},
    "lab6-tcp-breaks.yaml": {"step 3"},
    "lab6-whole-log.yaml": {"step 6", "step 7", "step 8"},
    "lab7-every-spike.py": {"step 7"},
    "lab7-fixed-rate.py": {"step 4"},
    "lab7-goes-by-memory.py": {"step 8"},
    "lab7-idle-is-slow.py": {"step 4"},
    "lab7-one-direction.py": {"step 7", "step 8"},
    "lab7-one-threshold.py": {"step 7"},
    "lab7-own-leaf-only.py": {"step 5"},
    "lab7-refusal-ends-it.py": {"step 6"},
    "lab7-scheme-refused.py": {"step 6"},
    "lab7-slow-is-down.py": {"step 4", "step 5", "step 6", "step 8"},
}


def test_every_wrong_answer_is_listed_and_every_lab_has_some() -> None:
    files = {path.name for path in WRONG.iterdir() if path.is_file()}
    assert files == MISSED.keys()
    assert {int(name[3]) for name in files} == LABS.keys()


@pytest.mark.parametrize("name", MISSED)
def test_a_wrong_answer_misses_what_it_is_wrong_about(name: str, tmp_path: Path) -> None:
    lab = LABS[int(name[3])]
    missed = {item_of(finding.text) for finding in lab.check(WRONG / name, tmp_path) if not finding.right}
    # Step 2 of lab 1 asks for a result, which nothing has here.
    assert missed - ({"step 2"} if lab.number == 1 else set()) == MISSED[name]


@pytest.mark.parametrize("answer", ["10 ** 5000", "[0] * 1_000_000"])
def test_an_answer_without_bound_is_said_to_be_wrong_in_a_line(answer: str, tmp_path: Path) -> None:
    repairs = tmp_path / "repairs.py"
    repairs.write_text(f"def repairs(k, blocked, target):\n    return {answer}\n")
    with pytest.raises(AnswerError, match="a whole number from 0 to 200 is wanted") as refused:
        LABS[3].check(repairs, tmp_path)
    collisions = tmp_path / "collisions.py"
    collisions.write_text(f"CHANCE = {answer}\n\n\ndef collisions(flows):\n    return []\n")
    *_, chance = LABS[1].check(collisions, tmp_path)
    assert not chance.right
    assert max(len(str(refused.value)), len(chance.text)) < 400
