"""Specs, as the API gets them."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Final

from experiments.spec.check import PRESETS, check
from tests.fuzz.target import Target


class Specs(Target):
    """The text of a spec, as the API gets it: problems with places, or none."""

    samples = tuple(
        line.encode() + b"\n"
        for name in ("small", "demo")
        for line in (PRESETS / f"{name}.yaml").read_text().split("\n")
    )
    _WHOLE: Final = tuple((PRESETS / f"{name}.yaml").read_bytes() for name in ("small", "demo"))

    def run(self, messages: Sequence[bytes]) -> None:
        rng = random.Random(b"".join(messages))
        text = rng.choice(self._WHOLE)
        for data in messages:
            at = rng.randint(0, len(text))
            text = text[:at] + data + text[rng.choice((at, at + len(data))) :]
        for problem in check(
            text.decode("utf-8", errors="surrogateescape"), "fuzz.yaml", ("ecmp", "rps", "caps")
        ):
            assert problem.line >= 1
            assert problem.message
