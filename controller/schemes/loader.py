"""Schemes from YAML files: `load` one by name or path, `all_schemes` that come with Capstan.

Everything that cannot be is refused with the file, the line and the field that is wrong.
"""

from __future__ import annotations

import dataclasses
import json
import os
import re
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from capstan_client.errors import CapstanError
from controller.schemes.scheme import ClassScheme, Scheme
from ovsdb.port_queues import queues_problem
from plain.reading import PlainError, build, did_you_mean
from plain.shown import shown
from plain.yaml_source import Problem, path_of, read
from protocol.packet_time import PATH_TIMES
from protocol.policy import PATH_PARAMETERS, coding_problem, one_estimator, path_problem
from protocol.priority import MOST_BYTES, thresholds_problem

SCHEME_DIRECTORY: Final = Path(__file__).parent
_NAME: Final = re.compile(r"[a-z0-9][a-z0-9-]{0,39}")
_UNKNOWN: Final = re.compile(r"field '(.+?)' is not known")
_CLASSES: Final = ("short", "long", "control")


class SchemeError(CapstanError, ValueError):
    """A scheme that is not known or cannot be; the text names file, line and field."""


def load(name_or_path: str | Path) -> Scheme:
    """Return the scheme of this name, or that a YAML file describes (a path has a slash or ends in .yaml or .yml).

    Raises:
        SchemeError: there is none, or what is wrong with it.
    """
    text = str(name_or_path)
    if is_path(name_or_path):
        return _read(Path(text))
    return _load_known(known_name(text))


def is_path(name_or_path: str | Path) -> bool:
    """Return whether `load` takes it for a file."""
    text = str(name_or_path)
    return isinstance(name_or_path, Path) or "/" in text or text.endswith((".yaml", ".yml"))


def scheme_names() -> list[str]:
    """Return names of the schemes that come with Capstan."""
    return sorted(
        name.removesuffix(".yaml") for name in os.listdir(SCHEME_DIRECTORY) if name.endswith(".yaml")
    )


def known_name(name: str) -> str:
    """Return *name*, of a scheme that comes with Capstan. Raise SchemeError that says which was meant."""
    known = scheme_names()
    if name not in known:
        raise SchemeError(f"scheme {shown(name)} is not known{did_you_mean(name, known)}")
    return name


def lab_scheme_names() -> list[str]:
    """Return names of those among them that switches and agents can carry out. Raises SchemeError as `all_schemes`."""
    return [scheme.name for scheme in all_schemes() if scheme.lab_problem is None]


def source(name: str) -> str:
    """Return the YAML of a scheme that comes with Capstan, with its comments. Raises SchemeError."""
    return (SCHEME_DIRECTORY / f"{known_name(name)}.yaml").read_text(encoding="utf-8")


def all_schemes() -> list[Scheme]:
    """Return the schemes that come with Capstan, by name. Raises SchemeError for a file that is wrong."""
    return [_load_known(name) for name in scheme_names()]


def scheme_from_dict(data: object, where: str = "scheme") -> Scheme:
    """Return a scheme from plain data; `scheme_to_dict` is its inverse.

    Raises:
        PlainError: names the first field that does not fit.
    """
    scheme = build(Scheme, data, where)
    check(scheme, where)
    return scheme


def scheme_to_dict(scheme: Scheme) -> dict[str, Any]:
    """Return plain data, ready for JSON and YAML (lists, not tuples)."""
    data: dict[str, Any] = json.loads(_json_of(scheme))
    return data


@lru_cache(maxsize=64)
def _json_of(scheme: Scheme) -> str:
    """Return plain data in a twentieth of the time of `asdict`, most of what a list of schemes would take."""
    return json.dumps(dataclasses.asdict(scheme))


def check(scheme: Scheme, where: str = "scheme") -> None:
    """Raise PlainError for the first field that cannot be, or cannot be together with another."""

    def need(true: bool, field: str, text: str) -> None:
        if not true:
            raise PlainError(f"{where}.{field}", text)

    need(
        _NAME.fullmatch(scheme.name) is not None,
        "name",
        f"{scheme.name!r} must be 1 to 40 of a-z, 0-9 and -, not beginning with -",
    )
    need(bool(scheme.title.strip()), "title", "must not be empty")
    for name in _CLASSES:
        _check_class(name, getattr(scheme, name), need)
    codings = [coding for coding in (scheme.short.coding, scheme.long.coding) if coding is not None]
    different = one_estimator([(coding.estimator, coding.sampling_packet_times) for coding in codings])
    need(different is None, "long.coding.estimator", different or "")
    by_mode = [name for name in _CLASSES if getattr(scheme, name).by_mode is not None]
    if scheme.mode is None:
        need(
            not by_mode,
            f"{by_mode[0] if by_mode else ''}.by_mode",
            "needs a mode: add `mode: {}` to the scheme",
        )
    else:
        need(bool(by_mode), "mode", "no class follows it: give one a by_mode, or leave mode out")
    _check_partition(scheme, need)
    _check_queues(scheme, need)
    _check_priority(scheme, need)
    _check_admission(scheme, need)
    _check_hosts(scheme, need)


def _check_hosts(scheme: Scheme, need: Any) -> None:
    pfabric = scheme.pfabric
    if pfabric is None:
        return
    need(scheme.dctcp is None, "pfabric", "cannot be together with dctcp: hosts send by one of them")
    for name in ("queues", "priority", "admission", "replication"):
        need(
            getattr(scheme, name) is None,
            name,
            "cannot be together with pfabric, which orders packets by what is left of their flows",
        )
    for name in ("short", "long"):
        need(getattr(scheme, name).coding is None, f"{name}.coding", "cannot be together with pfabric")
    need(
        pfabric.initial_window <= pfabric.largest_window,
        "pfabric.initial_window",
        f"is above the largest window ({pfabric.largest_window} packets)",
    )


def _check_partition(scheme: Scheme, need: Any) -> None:
    rule = scheme.partition
    if rule is None:
        return
    need(scheme.mode is None, "partition", "cannot be together with a mode: both decide where long flows go")
    for name in ("short", "long"):
        need(
            getattr(scheme, name).group == "label",
            "partition",
            f"goes by path labels: give {name} `group: label`, and an entropy that chooses among labels",
        )


def _check_queues(scheme: Scheme, need: Any) -> None:
    wrong = (
        None if scheme.queues is None else queues_problem(scheme.queues.number, scheme.queues.buffer_packets)
    )
    if wrong is not None:
        need(False, f"queues.{wrong[0]}", wrong[1])
    number = 1 if scheme.queues is None else scheme.queues.number
    for name in _CLASSES:
        priority = getattr(scheme, name).priority
        need(
            0 <= priority < number,
            f"{name}.priority",
            f"must be 0..{number - 1}, below the number of queues, not {priority}"
            if scheme.queues is not None
            else f"is {priority}, but ports have one queue: add `queues: {{number: 2}}` to the scheme",
        )


def _check_priority(scheme: Scheme, need: Any) -> None:
    """Check that thresholds, queues and classes go together, and prediction can be."""
    priority = scheme.priority
    if priority is None:
        return
    wrong = thresholds_problem(priority.thresholds_bytes)
    need(wrong is None, "priority.thresholds_bytes", wrong or "")
    number = 1 if scheme.queues is None else scheme.queues.number
    need(
        len(priority.thresholds_bytes) == number - 1,
        "priority.thresholds_bytes",
        f"must be one fewer than there are queues ({number}: see queues.number), not "
        f"{len(priority.thresholds_bytes)}",
    )
    largest = priority.thresholds_bytes[-1]
    need(
        largest <= MOST_BYTES and largest * priority.scale <= MOST_BYTES,
        "priority.thresholds_bytes",
        f"must be at most {MOST_BYTES} B, times scale, too",
    )
    for name in ("short", "long"):
        release = getattr(scheme, name).release
        need(
            release is None or release.rule != "paths",
            f"{name}.release.rule",
            "paths needs paths that are first in, first out: packets of one flow are in several queues here",
        )
        need(
            getattr(scheme, name).priority == 0,
            f"{name}.priority",
            "means nothing beside the scheme's priority: leave it out",
        )
    need(
        priority.kind != "size" or scheme.prior_knowledge,
        "priority.kind",
        "size needs announced sizes: add prior_knowledge: true",
    )
    prediction = priority.prediction
    if prediction is None:
        return
    need(priority.kind == "bytes-sent", "priority.prediction", "goes with kind bytes-sent only")
    printed = prediction.printed
    need(
        printed is None or prediction.delta_bytes is None,
        "priority.prediction.delta_bytes",
        "means nothing beside printed, whose delta is most_alpha's or Eq. 7's: leave one out",
    )


def _check_admission(scheme: Scheme, need: Any) -> None:
    admission = scheme.admission
    classes = [name for name in _CLASSES if getattr(scheme, name).entropy == "granted"]
    if admission is None:
        need(
            not classes,
            f"{classes[0] if classes else ''}.entropy",
            "granted needs a controller that grants paths: add `admission: {paths: one}` to the scheme",
        )
        return
    wrong = admission.policy().problem()
    if wrong is not None:
        need(False, f"admission.{wrong[0]}", wrong[1])
    rows = admission.threshold_by_load
    need(
        (admission.load is None) == (not rows),
        "admission.load",
        "goes with threshold_by_load: give both or neither",
    )
    need(
        admission.refresh_s < admission.finish_timeout_s,
        "admission.finish_timeout_s",
        f"must be above refresh_s ({admission.refresh_s:g} s), by which hosts say what is left",
    )
    if admission.paths == "one":
        need(
            scheme.long.entropy == "granted" and scheme.long.group == "label",
            "admission.paths",
            "one: long flows need `group: label` and `entropy: granted`, which keeps to the path of the grant",
        )
    need(
        admission.paths == "one" or not classes,
        "admission.paths",
        "must be one where a class has entropy granted: all grants no paths",
    )


def _check_class(name: str, served: ClassScheme, need: Any) -> None:
    need(
        (served.group is None) != (served.by_mode is None),
        f"{name}.group",
        "give either group (spray, hash or label) or by_mode, not both"
        if served.group
        else "is missing: give group (spray, hash or label) or by_mode",
    )
    _check_path(name, served, need)
    coding = served.coding
    if coding is None:
        return
    where = f"{name}.coding"
    need(name != "control", where, "control packets are never coded")
    sampling = coding.sampling_packet_times
    wrong = coding_problem(coding, sampling)
    if wrong is not None:
        field = "sampling_packet_times" if wrong[0] == "sampling_s" else wrong[0]
        need(False, f"{where}.{field}", wrong[1])


def _check_path(name: str, served: ClassScheme, need: Any) -> None:
    given = {} if served.path is None else served.path.given()
    known = {
        f"{field[:-1]}packet_times" if field in PATH_TIMES else field
        for field in PATH_PARAMETERS.get(served.entropy, ())
    }
    for field in given:
        where = f"{name}.path.{field}"
        need(
            field in known,
            where,
            f"means nothing to entropy {served.entropy!r}, which has {', '.join(sorted(known)) or 'no parameters'}",
        )
    wrong = path_problem(served.path_settings(packet_time_s=1e-6))
    if wrong is not None:
        need(False, f"{name}.path.{wrong[0]}", wrong[1])


def _load_known(name: str) -> Scheme:
    scheme = _read(SCHEME_DIRECTORY / f"{name}.yaml")
    if scheme.name != name:
        raise SchemeError(f"{name}.yaml: scheme.name: is {scheme.name!r}, but the file's name says {name!r}")
    return scheme


def _read(path: Path) -> Scheme:
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise SchemeError(f"{path}: there is no such file") from None
    except (OSError, UnicodeDecodeError) as error:
        raise SchemeError(f"{path}: cannot be read: {error}") from None
    return _scheme_of(text, path.name if path.parent == SCHEME_DIRECTORY else str(path))


@lru_cache(maxsize=64)  # reading YAML takes 10 ms a file, and holds up who else needs the interpreter
def _scheme_of(text: str, shown: str) -> Scheme:
    source = read(text, shown)
    if source.problems:
        raise SchemeError(str(min(source.problems)))
    try:
        return scheme_from_dict(source.data, "scheme")
    except PlainError as error:
        path = path_of(error.where)[1:]
        unknown = _UNKNOWN.match(error.what)  # its own place is better than that of the object that has it
        line, column = source.place((*path, unknown[1]) if unknown else path, key=True)
        raise SchemeError(str(Problem(line, column, error.where, error.what, shown))) from None
