"""The command `doctor`: its options, and how a report is shown."""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from doctor.judgement import DoctorReport, Part, judge, lines
from doctor.probes import examine

RESULTS: Final = Path("results")
HEADINGS: Final[dict[Part, str]] = {
    "lab": "A lab: every one of these is needed",
    "features": "What a lab can do",
    "results": "Room for runs and results",
    "benchmarks": "Benchmarks",
    "containers": "Containers",
    "tests": "Tests and the dashboard",
}


def run(arguments: Sequence[str] | None = None) -> int:
    """Do what a command line asks for; return 0 if a lab can be built, else 1."""
    parser = argparse.ArgumentParser(
        prog="capstan doctor",
        description="Say what this machine has and lacks for what, and what to do about it. Nothing is installed, "
        "changed or left behind. Exit code 0 if a lab can be built, 1 if not.",
        epilog="Examples:  ./capstan doctor    sudo ./capstan doctor --json -",
    )
    parser.add_argument(
        "--json", metavar="FILE", help="Write the findings as one JSON document; - for standard output."
    )
    parser.add_argument(
        "--results",
        type=Path,
        default=RESULTS,
        help="Directory of results, for its free space (%(default)s).",
    )
    options = parser.parse_args(arguments)
    if options.json not in (None, "-") and not _may_be_written(Path(options.json)):
        parser.error(f"argument --json: {options.json!r} cannot be written")
    return show(options.results, options.json)


def _may_be_written(file: Path) -> bool:
    """Return True if a file may be written, or made."""
    directory = file.absolute().parent
    if not os.access(directory, os.X_OK) or file.is_dir():
        return False
    return os.access(file if file.exists() else directory, os.W_OK)


def show(results: Path, json_file: str | None) -> int:
    """Examine this machine; print a report, or write it as JSON (to standard output alone for "-").

    results: the directory of results. Return 0 if a lab can be built, else 1. Raises OSError.
    """
    began = time.monotonic()
    report = judge(examine(results))
    took_s = time.monotonic() - began
    if json_file is not None:
        document = json.dumps({**report.to_dict(), "took_s": round(took_s, 3)}, indent=2) + "\n"
        if json_file == "-":
            sys.stdout.write(document)
        else:
            Path(json_file).write_text(document, encoding="utf-8")
    if json_file != "-":
        print(text(report, took_s))
    return 0 if report.lab else 1


def text(report: DoctorReport, took_s: float) -> str:
    """Return the whole report for a person."""
    parts = []
    for part, heading in HEADINGS.items():
        findings = report.of([part]).findings
        if findings:
            parts += [heading, *(f"  {line}" for line in lines(findings)), ""]
    unknown = sum(result.state == "unknown" for result in report.findings)
    lacks = [result.name for result in report.findings if result.state == "lacks"]
    if report.lab:
        parts.append(f"A lab can be built here ({took_s:.1f} s).")
    elif lacks:
        parts.append(f"No lab can be built here: {', '.join(lacks)} ({took_s:.1f} s).")
    if unknown:
        parts.append(f"{unknown} probes were not tried; those that need root: sudo ./capstan doctor")
    return "\n".join(parts)
