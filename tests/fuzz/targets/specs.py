"""Specs and submissions, as the API gets them."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Final

from engine.simulated_check import MOST_HERE, tried_here
from engine.submission import read_submission
from engine.submission_bodies import SubmissionBody, SubmissionError
from experiments.spec.check import PRESETS, check
from experiments.spec.spec import Spec
from plain.reading import PlainError, build
from tests.fuzz.target import Target

SUBMISSION_CPU_S: Final = 2.0
"""Of processor time: each takes a thread of the API's."""


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


class Submissions(Target):
    """What is submitted: a message that is an object of JSON is fields of a body, all others are put into its text."""

    samples = (
        *(
            json.dumps(fields).encode()
            for fields in (
                {"kind": "simulation"},
                {"preset": "small"},
                {"preset": "caps-fat-tree", "schemes": ["all"]},
                {"schemes": ["ecmp", "caps"]},
                {"schemes": []},
                {"name": "own", "seed": 7, "repeats": 3},
                {"sweep": {"workload.flows.count": [4, 8]}},
                {
                    "sweep": [
                        {"label": "load", "fields": ["workload.flows.arrivals.load"], "values": [0.2, 0.6]}
                    ]
                },
                {"set": {"fabric.leaves": 200, "fabric.spines": 255, "fabric.hosts_per_leaf": 50}},
                {"set": {"fabric.topology": "fat-tree", "fabric.k": 22, "fabric.hosts_per_leaf": None}},
                {"set": {"schemes.0": {"name": 5}, "workload.flows.count": 1000000}},
            )
        ),
        b"schemes: [{name: 5, label: {}}]\n",
        b"fabric: {leaves: 200, spines: 255, down: [l1-s1]}\n",
    )
    _WHOLE: Final = (PRESETS / "small.yaml").read_text()

    def run(self, messages: Sequence[bytes]) -> None:
        rng = random.Random(b"".join(messages))
        asked: dict[str, Any] = {}
        text = self._WHOLE
        for data in messages:
            try:
                fields = json.loads(data)
            except (ValueError, RecursionError):
                fields = None
            if isinstance(fields, dict):
                asked |= fields
            else:
                at = rng.choice([place for place, sign in enumerate(text) if sign == "\n"] or [0]) + 1
                text = text[:at] + data.decode("utf-8", errors="replace") + text[at:]
        try:
            body = build(
                SubmissionBody, asked if {"preset", "text"} & asked.keys() else asked | {"text": text}, "body"
            )
        except PlainError:
            return
        before = time.process_time()
        with suppress(SubmissionError):
            read_submission(body, _small)
        took_s = time.process_time() - before
        assert took_s < SUBMISSION_CPU_S, f"a submission has taken {took_s:.1f} s of processor time"


def _small(spec: Spec, scheme_links: int) -> str:
    """Try out what the API tries out in its own process."""
    return tried_here(spec, scheme_links) if scheme_links <= MOST_HERE else ""
