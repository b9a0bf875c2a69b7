"""What the papers claim, by preset, beside what came of it: the rows of docs/evidence.md, for the page."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from functools import lru_cache
from typing import TYPE_CHECKING

from engine import answers
from experiments.spec.check import find_spec, preset_names
from experiments.spec.spec import spec_from_dict
from plain.yaml_source import read

if TYPE_CHECKING:
    from simulation.evidence_rows import EvidenceRow


def evidence(preset: str | None = None) -> list[answers.EvidenceClaim]:
    """Return the claims of a preset, or of all in their order, each with its row if the document has it."""
    return [claim for name in ([preset] if preset else preset_names()) for claim in _of_preset(name)]


@lru_cache(maxsize=256)
def _of_preset(name: str) -> tuple[answers.EvidenceClaim, ...]:
    from simulation.evidence import claimed, claims_of_papers  # with all that simulates: a second
    from simulation.evidence_document import key_of

    spec = spec_from_dict(read(find_spec(name).read_text(encoding="utf-8"), name).data)
    claims: list[answers.EvidenceClaim] = []
    for claim, paper in claims_of_papers(spec.claims):
        assert claim.compare is not None
        row = _rows().get(key_of(name, claim))
        claims.append(
            {
                "preset": name,
                "paper": paper,
                "text": claim.text,
                "source": claim.source,
                "figure": claim.figure,
                "scheme": claim.compare.scheme,
                "against": claim.compare.against,
                "compared": claimed(claim),
                "row": None if row is None else _view(row),
            }
        )
    return tuple(claims)


@lru_cache(maxsize=1)
def _rows() -> Mapping[tuple[str, str, str], EvidenceRow]:
    from simulation.evidence_rows import read_rows

    return {row.key: row for row in read_rows()}


def _view(row: EvidenceRow) -> answers.EvidenceRowView:
    plain = asdict(row)
    return {"simulated": plain["simulated"], "on_switches": plain["on_switches"], "why": row.why}
