"""The spec that a request names or has, and what the request changes in it; nothing of that is checked here."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any, Final

import yaml

from engine.submission_bodies import FieldProblem, SubmissionBody, SubmissionError
from experiments.spec.check import find_spec, preset_names
from experiments.spec.spec import title_with
from experiments.spec.sweep import SweepError, set_field
from plain.reading import did_you_mean

MOST_BYTES: Final = 1 << 20
"""Of a spec's text."""
DEEPEST_FIELD: Final = 32
"""Names in a dotted path."""
_ONE_OF: Final = ("spec", "text", "preset")


def text_of(request: SubmissionBody) -> tuple[str, str]:
    """Return the field that has the spec, and the spec's text."""
    given = [name for name in _ONE_OF if getattr(request, name) is not None]
    if len(given) != 1:
        raise SubmissionError([FieldProblem("", f"exactly one of {', '.join(_ONE_OF)} is needed")])
    where = given[0]
    if request.preset is not None:
        if request.preset not in preset_names():
            hint = did_you_mean(request.preset, preset_names())
            raise SubmissionError([FieldProblem("preset", f"preset {request.preset!r} is not known{hint}")])
        return where, find_spec(request.preset).read_text(encoding="utf-8")
    if request.spec is not None:
        return where, yaml.safe_dump(request.spec, sort_keys=False, allow_unicode=True, width=110)
    assert request.text is not None
    if len(request.text.encode()) > MOST_BYTES:
        raise SubmissionError([FieldProblem(where, f"is longer than {MOST_BYTES >> 10} KiB")])
    return where, request.text


def changes_of(request: SubmissionBody) -> dict[str, Any]:
    """Return values of dotted fields of the spec that the request gives."""
    fields = {
        "name": request.name,
        "seed": request.seed,
        "repeats": request.repeats,
        "schemes": request.schemes,
    }
    own = {name: value for name, value in fields.items() if value is not None}
    changed = own | {path: value for path, value in request.set.items() if path not in own}
    if request.schemes is not None:  # what the spec says of its own schemes goes, what the request says stays
        changed = {"baseline": None, "claims": None} | changed
    if request.sweep is not None:
        changed["sweep"] = _axes(request.sweep)
    return changed


def retitled(data: Mapping[str, Any], schemes: list[str] | None) -> dict[str, Any]:
    """Return the spec's title for the schemes that a request has run in place of its own; empty: as it is."""
    title, own = data.get("title"), data.get("schemes")
    if schemes is None or not isinstance(title, str) or not isinstance(own, list):
        return {}
    named = [_label(item) for item in own]
    return {"title": title_with(title, [label for label in named if label], schemes)}


def need_no_own_schemes(request: SubmissionBody, data: Mapping[str, Any]) -> None:
    """Raise SubmissionError if a request has other schemes run than those of which the spec's sweep sets fields."""
    if request.schemes is None or request.sweep is not None or "sweep" in request.set:
        return
    axes = data.get("sweep")
    for axis in axes if isinstance(axes, list) else []:
        fields = axis.get("fields") if isinstance(axis, Mapping) else None
        for field in fields if isinstance(fields, list) else []:
            if isinstance(field, str) and field.startswith("schemes."):
                text = f"the spec's sweep sets {field!r}, of its own schemes: leave schemes out, or give a sweep, too"
                raise SubmissionError([FieldProblem("schemes", text)])


def _label(scheme: Any) -> str:
    """Return what tables call a scheme of a spec that nothing has checked; empty: it is none."""
    given = (scheme.get("label") or scheme.get("name")) if isinstance(scheme, Mapping) else scheme
    return given if isinstance(given, str) else ""


def _axes(sweep: Any) -> Any:
    """Return a sweep's short form, `{"dotted.field": [values]}`, as axes; anything else as it is."""
    if not isinstance(sweep, Mapping):
        return sweep
    last = Counter(str(path).rpartition(".")[2] for path in sweep)
    return [
        {"label": _axis_label(str(path), last), "fields": [path], "values": values}
        for path, values in sweep.items()
    ]


def _axis_label(path: str, last: Mapping[str, int]) -> str:
    """Return what tables call an axis: the last name of its field, or all of them where two axes end alike."""
    name = path.rpartition(".")[2]
    return (name if last[name] == 1 else path.replace(".", " ")).replace("_", " ")


def with_changes(data: dict[str, Any], changed: Mapping[str, Any]) -> dict[str, Any]:
    """Return *data*, a spec, in which these dotted fields have been set; None removes a field of the spec itself.

    Raises SubmissionError for what is no field of it.
    """
    for path, value in changed.items():
        if value is None and path in data:
            del data[path]  # what belongs to other schemes
        elif path.count(".") >= DEEPEST_FIELD:
            raise SubmissionError([FieldProblem(f"set.{path[:100]}", "is not a field of this spec")])
        elif value is not None or "." in path:
            try:
                set_field(data, path, value)
            except (SweepError, IndexError, TypeError, ValueError, AttributeError):
                raise SubmissionError([FieldProblem(f"set.{path}", "is not a field of this spec")]) from None
    return data
