"""A window of a run, packet by packet: kept of a run on switches, made anew of a simulated one.

`python -m engine.recordings` makes the latter as its input asks.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from typing import Any, Final

from engine.estimate import simulated_s
from experiments.results.packet_trace import trace_bytes
from experiments.spec.spec import is_scheme_file, spec_from_dict
from protocol.version import VERSION
from simulation.fabrics import SettingsError
from simulation.recorded_again import record_again

MOST_RUN_S: Final = 20.0
"""Of one core, as estimated before: larger runs are recorded by the command."""
MOST_SPEC_BYTES: Final = 128 << 10
"""As JSON: reading a large spec takes seconds of a thread of the API's."""
GZIP: Final = b"\x1f\x8b"
"""What recordings begin with; anything else is why there is none."""
_OF_SWEEP: Final = "experiment {} is a sweep: ask for a recording of one of its points"
_NO_SPEC: Final = (ValueError, TypeError, LookupError, AttributeError, AssertionError, ArithmeticError)
"""What reading a spec raises that nothing has checked: one that was kept as it came."""


def kept_run(experiment: Mapping[str, Any], scheme: str, repeat: int) -> int | str:
    """Return the number of the run on switches that has a recording, or why there is none, for people.

    experiment: with its runs. scheme: a label. repeat: from 1 on.
    """
    number, runs = experiment["id"], experiment["runs"]
    if experiment["kind"] == "sweep":
        return _OF_SWEEP.format(number)
    recorded = [run for run in runs if run["recording"] is not None]
    for run in recorded:
        if (run["label"], run["repeat"]) == (scheme, repeat - 1):
            return int(run["id"])
    if recorded:
        has = ", ".join(f"{run['repeat'] + 1} of {run['label']}" for run in recorded)
        return f"experiment {number} has no recording of run {repeat} of {scheme}: it has those of run {has}"
    if experiment["record"] is None:
        return (
            f"experiment {number} ran in a lab, and its packets were not recorded: begin it again with "
            "'Record packets' (the API's record, ./capstan submit --record)"
        )
    if experiment["state"] == "finished":
        return f"nothing was recorded of experiment {number}: the notes of its result say why"
    return f"experiment {number} is {experiment['state']}, and no run of it was recorded yet"


def problem(experiment: Mapping[str, Any]) -> str:
    """Return why no run of a simulated experiment can be recorded; empty: it can be."""
    number, versions = experiment["id"], experiment["versions"] or {}
    if experiment["kind"] == "sweep":
        return _OF_SWEEP.format(number)
    if experiment["state"] != "finished":
        return f"experiment {number} is {experiment['state']}: its runs can be recorded when it has finished"
    if versions.get("capstan", VERSION) != VERSION:
        return (
            f"experiment {number} was simulated by version {versions['capstan']}, this is {VERSION}, which may give "
            "another run: submit it again"
        )
    size = len(json.dumps(experiment["spec"]))
    if size > MOST_SPEC_BYTES:
        return (
            f"the spec of experiment {number} has {size >> 10} KiB, more than {MOST_SPEC_BYTES >> 10} KiB: record it "
            "by ./capstan simulate SPEC --trace FILE"
        )
    try:
        spec = spec_from_dict(experiment["spec"])
        run_s = simulated_s(spec) / (len(spec.schemes) * spec.repeats)
    except _NO_SPEC as error:
        return f"experiment {number} was kept with a spec that this version does not read: {error!r}"
    files = [choice.name for choice in spec.schemes if is_scheme_file(choice.name)]
    if files:
        return (
            f"experiment {number} has a scheme of a file, {files[0]}: record it by "
            "./capstan simulate SPEC --trace FILE"
        )
    if run_s > MOST_RUN_S:
        return (
            f"a run of experiment {number} takes some {run_s:.0f} s of processor time, more than {MOST_RUN_S:g} s: "
            "record it by ./capstan simulate SPEC --trace FILE"
        )
    return ""


def main() -> None:
    """Write the recording that a request asks for to standard output, or why there is none."""
    request = json.load(sys.stdin)
    try:
        trace = record_again(
            spec_from_dict(request["spec"]),
            request["scheme"],
            repeat=request["repeat"],
            from_ms=request["from_ms"],
            for_ms=request["for_ms"],
        )
    except SettingsError as error:
        sys.stdout.buffer.write(str(error).encode())
        return
    sys.stdout.buffer.write(trace_bytes(trace))


if __name__ == "__main__":
    main()
