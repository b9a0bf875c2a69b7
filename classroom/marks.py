"""Marks of a class as documents: CSV, JSON, and what Gradescope and GitHub Classroom read."""

from __future__ import annotations

import base64
import csv
import io
import json
from collections.abc import Sequence
from typing import Any

from classroom.marking import Mark
from classroom.printable import printable_name

COLUMNS = ("student", "lab", "item", "right", "text")


def item_of(text: str) -> str:
    """Return what a finding is about: ``step 4`` of ``step 4: 3 repairs are too few``."""
    return text.partition(": ")[0]


def as_csv(marks: Sequence[Mark]) -> str:
    """Return a row per student and item, with a header."""
    table = io.StringIO()
    writer = csv.writer(table, lineterminator="\n")
    writer.writerow(COLUMNS)
    for mark in marks:
        student, lab = _cell(printable_name(mark.submission.student)), mark.submission.lab.number
        for name, right, text in _items(mark):
            writer.writerow((student, lab, _cell(name), int(right), _cell(text)))
    return table.getvalue()


def as_json(marks: Sequence[Mark]) -> dict[str, Any]:
    """Return all marks as one document."""
    return {
        "marks": [
            {
                "student": mark.submission.student,
                "lab": mark.submission.lab.number,
                "file": mark.submission.file.name,
                "right": mark.right,
                "items": len(mark.findings),
                "error": mark.error,
                "findings": [
                    {"item": item_of(finding.text), "right": finding.right, "text": finding.text}
                    for finding in mark.findings
                ],
            }
            for mark in marks
        ]
    }


def as_gradescope(marks: Sequence[Mark]) -> dict[str, Any]:
    """Return a student's ``results.json`` as Gradescope reads it: a test per item, a point each."""
    return {
        "tests": [
            {
                "name": f"lab {mark.submission.lab.number}, {name}",
                "score": int(right),
                "max_score": 1,
                "status": "passed" if right else "failed",
                "output": text,
            }
            for mark in marks
            for name, right, text in _items(mark)
        ]
    }


def as_github_classroom(marks: Sequence[Mark]) -> str:
    """Return a student's result as GitHub Classroom's reporter reads it: JSON in base64.

    It is what the reporter's variable ``RUNNER_RESULTS`` must have, RUNNER being the id of the step.
    """
    tests = [
        {
            "name": f"lab {mark.submission.lab.number}, {name}",
            "status": "pass" if right else "fail",
            "score": int(right),
            "message": None if right else text,
            "test_code": f"./capstan lab-check {mark.submission.lab.number} {mark.submission.file.name}",
            "filename": mark.submission.file.name,
            "line_no": 0,
        }
        for mark in marks
        for name, right, text in _items(mark)
    ]
    document = {
        "version": 1,
        "status": "pass" if all(test["status"] == "pass" for test in tests) else "fail",
        "max_score": len(tests),
        "tests": tests,
    }
    return base64.b64encode(json.dumps(document).encode()).decode()


def _items(mark: Mark) -> list[tuple[str, bool, str]]:
    if mark.error is not None:
        return [("file", False, mark.error)]
    return [(item_of(finding.text), finding.right, finding.text) for finding in mark.findings]


def _cell(text: str) -> str:
    """Return *text* as a cell that no spreadsheet takes for a formula: a submission must not run in the lecturer's."""
    return f"'{text}" if text[:1] in ("=", "+", "-", "@", "\t", "\r") else text
