"""Lab 6: what goes on and what does not while a controller, an agent or a switch is killed."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

from classroom.answer import AnswerError, CheckResult
from plain.text_file import read_text
from plain.yaml_source import read

RECORDED: Final = Path(__file__).with_name("killed_parts.csv")
"""What measure.py of this lab wrote: `small` under RPS, on two cores."""
PREDICTIONS: Final[Mapping[str, Mapping[str, bool]]] = {
    "controller": {
        "ping_between_hosts_that_have_talked": True,
        "tcp_flow_between_hosts_that_have_talked": True,
        "linux_confirms_a_neighbour_by_unicast_arp": True,
        "first_packet_to_a_host_without_neighbour_entry": False,
        "leaf_changes_between_on_and_off": False,
        "leaf_avoids_a_spine_whose_link_to_the_other_leaf_broke": False,
    },
    "agent": {
        "packets_between_other_hosts": True,
        "tcp_connection_of_its_host_is_open_afterwards": True,
        "ping_of_its_host_is_answered": False,
    },
    "switch": {
        "a_spine_is_away_and_leaves_reach_each_other": True,
        "a_leaf_is_away_and_its_hosts_reach_others": False,
        "its_flows_and_groups_come_back_without_the_controller": False,
    },
}
"""By the part that is away: whether it goes on (docs/architecture.md: tables of a switch, parts of a lab that end)."""
HINTS: Final = {
    "ping_between_hosts_that_have_talked": "who reads a packet on its way?",
    "tcp_flow_between_hosts_that_have_talked": "does a switch know flows, or rules for all of them?",
    "linux_confirms_a_neighbour_by_unicast_arp": "table 6 of a leaf in docs/architecture.md",
    "first_packet_to_a_host_without_neighbour_entry": "who answers a broadcast?",
    "leaf_changes_between_on_and_off": "who decides a mode, and from what?",
    "leaf_avoids_a_spine_whose_link_to_the_other_leaf_broke": "the leaf's own ports are all up: how would it know?",
    "packets_between_other_hosts": "whose packets does an agent carry?",
    "tcp_connection_of_its_host_is_open_afterwards": "the TUN device stays; what does TCP do with lost segments?",
    "ping_of_its_host_is_answered": "who takes packets out of the TUN device?",
    "a_spine_is_away_and_leaves_reach_each_other": "how many ways are there between two leaves?",
    "a_leaf_is_away_and_its_hosts_reach_others": "how many links has a host?",
    "its_flows_and_groups_come_back_without_the_controller": "where does a switch that was killed have its state from?",
}
TOLERANCE_S: Final = 0.25
"""Two and a half of the controller's polls, which come every 0.1 s."""
_STEPS: Final = {
    "controller": ("step 2", "step 6"),
    "agent": ("step 3", "step 7"),
    "switch": ("step 4", "step 8"),
}


@dataclass(frozen=True, slots=True)
class Row:
    """A row of the log; at_s: from the log's begin on."""

    at_s: float
    what: str
    value: str


@dataclass(frozen=True, slots=True)
class Outage:
    """What a log says of the time from a kill to the next.

    pings_lost: requests without an answer; flows_failed: TCP connections begun then that carried nothing within 1 s;
    api_silent_s: from the kill to the controller's first answer after it was silent, 0 where it never was.
    """

    pings_lost: int
    flows_failed: int
    api_silent_s: float


def check(file: Path, results: Path) -> list[CheckResult]:
    """Return predictions and measurements of each part. Raises AnswerError."""
    answers = _answers(file)
    log = _log(file, answers, results)
    outages = measure(read_log(log), log)
    findings = [_predicted(file, answers, part) for part in PREDICTIONS]
    return findings + [_measured(file, answers, part, outages) for part in PREDICTIONS]


def read_log(log: Path) -> list[Row]:
    """Return a log's rows. Raises AnswerError."""
    try:
        with log.open(encoding="utf-8", newline="") as opened:
            return [_row(cells) for cells in csv.DictReader(opened)]
    except (OSError, KeyError, TypeError, ValueError, csv.Error) as error:
        raise AnswerError(f"{log}: no log of measure.py ({error}): measure again") from error


def _row(cells: Mapping[str, str]) -> Row:
    """Return a row of the log. Raises KeyError, TypeError, ValueError where a cell is missing, or no number."""
    row = Row(float(cells["at_s"]), cells["what"], cells["value"])
    if row.what == "ping":
        int(row.value)
    elif not row.value:
        raise ValueError(f"a {row.what} without a value")
    return row


def measure(rows: Iterable[Row], log: Path) -> dict[str, Outage]:
    """Return the outage of each part that was killed in a log: controller, agent, switch. Raises AnswerError."""
    rows = sorted(rows, key=lambda row: row.at_s)
    kills = [(row.at_s, row.value.split()[0]) for row in rows if row.what == "kill"]
    missing = PREDICTIONS.keys() - {part for _, part in kills}
    if missing:
        raise AnswerError(f"{log}: no kill of {', '.join(sorted(missing))} in it: measure again")
    ends = [begin for begin, _ in kills[1:]] + [float("inf")]
    return {
        part: Outage(
            _lost(rows, begin, end),
            sum(row.value == "0" for row in rows if row.what == "flow" and begin <= row.at_s < end),
            _silent_s([row for row in rows if row.what == "api" and begin <= row.at_s < end], begin),
        )
        for (begin, part), end in zip(kills, ends, strict=True)
    }


def _lost(rows: list[Row], begin: float, end: float) -> int:
    """Return how many numbers are missing before answers that came from *begin* to *end*, seconds."""
    answered = sorted((int(row.value), row.at_s) for row in rows if row.what == "ping")
    return sum(
        number - before - 1 for (before, _), (number, at_s) in pairwise(answered) if begin <= at_s < end
    )


def _silent_s(polls: list[Row], begin: float) -> float:
    silent = [row.at_s for row in polls if row.value == "0"]
    if not silent:
        return 0.0
    return (
        next((row.at_s for row in polls if row.value == "1" and row.at_s > silent[0]), float("inf")) - begin
    )


def _answers(file: Path) -> dict[str, Any]:
    if not file.is_file():
        raise AnswerError(
            f"{file}: there is no such file: copy start.yaml of this lab, and give the copy's name"
        )
    source = read(read_text(file), str(file))
    if source.problems:
        raise AnswerError(str(source.problems[0]))
    if not isinstance(source.data, dict):
        raise AnswerError(f"{file}: no answers in it: copy start.yaml of this lab")
    return source.data


def _log(file: Path, answers: Mapping[str, Any], results: Path) -> Path:
    if answers.get("log") == "recorded":
        return RECORDED
    if answers.get("log") != "own":
        raise AnswerError(f"{file}: log is {answers.get('log')!r}: own or recorded is wanted")
    logs = sorted(results.glob("lab6-*/log.csv"), key=lambda path: path.stat().st_mtime)
    if not logs:
        raise AnswerError(f"{results}/: no log of yours in it: run measure.py, or write log: recorded")
    return logs[-1]


def _predicted(file: Path, answers: Mapping[str, Any], part: str) -> CheckResult:
    predictions = _table(file, answers, group="predictions", part=part, names=PREDICTIONS[part])
    for name in PREDICTIONS[part]:
        if predictions[name] not in ("yes", "no"):
            raise AnswerError(
                f"{file}: predictions.{part}.{name} is {predictions[name]!r}: yes or no is wanted"
            )
    wrong = [
        name
        for name, goes_on in PREDICTIONS[part].items()
        if predictions[name] != ("yes" if goes_on else "no")
    ]
    right = f"{len(predictions) - len(wrong)} of {len(predictions)}"
    text = f"{_STEPS[part][0]}: {right} predictions hold while the {part} is away"
    return CheckResult(not wrong, text + "".join(f"; {name}: {HINTS[name]}" for name in wrong))


def _measured(
    file: Path, answers: Mapping[str, Any], part: str, outages: Mapping[str, Outage]
) -> CheckResult:
    outage = outages[part]
    wanted: dict[str, float] = {"pings_lost": outage.pings_lost, "flows_failed": outage.flows_failed}
    if part == "controller":
        wanted["api_silent_s"] = outage.api_silent_s
    measured = _table(file, answers, group="measurements", part=part, names=wanted)
    wrong = [
        f"{name} is not {measured[name]}: {_HOW[name]}"
        for name, value in wanted.items()
        if not _is_near(measured[name], value, TOLERANCE_S if name.endswith("_s") else 0.0)
    ]
    shown = ", ".join(f"{name} {measured[name]}" for name in wanted)
    return CheckResult(not wrong, f"{_STEPS[part][1]}: {part}: " + ("; ".join(wrong) or shown))


_HOW: Final = {
    "pings_lost": "count the numbers that are missing from its kill to the next kill",
    "flows_failed": "count rows flow,0 from its kill to the next kill",
    "api_silent_s": "from its kill to the first api,1 that follows an api,0",
}


def _is_near(measured: Any, value: float, tolerance: float) -> bool:
    return (
        isinstance(measured, int | float)
        and not isinstance(measured, bool)
        and abs(measured - value) <= tolerance
    )


def _table(
    file: Path, answers: Mapping[str, Any], *, group: str, part: str, names: Iterable[str]
) -> Mapping[str, Any]:
    tables = answers.get(group)
    table = tables.get(part) if isinstance(tables, dict) else None
    if not isinstance(table, dict):
        raise AnswerError(f"{file}: {group}.{part} is missing: it is in start.yaml")
    for name in names:
        if name not in table:
            raise AnswerError(f"{file}: {group}.{part}.{name} is missing: it is in start.yaml")
    return table
