"""A spec as plain data and as YAML, as `spec_from_dict` reads them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import yaml

from experiments.spec.simulated import Simulation
from experiments.spec.spec import Spec


def spec_to_dict(spec: Spec) -> dict[str, Any]:
    """Return plain data that `spec_from_dict` takes back."""
    return {
        "name": spec.name,
        "title": spec.title,
        "description": spec.description,
        "fabric": spec.fabric.to_dict(),
        "schemes": [asdict(choice) for choice in spec.schemes],
        "baseline": spec.baseline,
        "policy": dict(spec.policy),
        "workload": _without_none(asdict(spec.workload)),
        "transport": _without_none(asdict(spec.transport)),
        **({} if spec.simulation == Simulation() else {"simulation": _without_none(asdict(spec.simulation))}),
        "repeats": spec.repeats,
        "seed": spec.seed,
        "warm_up_s": spec.warm_up_s,
        **({} if spec.quiet_s is None else {"quiet_s": spec.quiet_s}),
        "timeout_s": spec.timeout_s,
        **({"keep_learnt": True} if spec.keep_learnt else {}),
        "claims": [_without_none(asdict(claim)) for claim in spec.claims],
        **({"sweep": [_without_none(asdict(axis)) for axis in spec.sweep]} if spec.sweep else {}),
    }


def spec_text(spec: Spec) -> str:
    """Return YAML that `spec_from_dict` takes back, for a spec that was made by a program."""
    text: str = yaml.safe_dump(plain(spec_to_dict(spec)), sort_keys=False, allow_unicode=True, width=110)
    return text


def plain(value: Any) -> Any:
    """Return mappings and lists only: YAML has no tuples."""
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in value.items()}
    return [plain(item) for item in value] if isinstance(value, list | tuple) else value


def _without_none(data: dict[str, Any]) -> dict[str, Any]:
    return {
        key: _without_none(value) if isinstance(value, dict) else value
        for key, value in data.items()
        if value is not None
    }
