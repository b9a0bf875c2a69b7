"""Check one submission in a process of its own: ``python -m classroom.alone LAB FILE RESULTS VERDICT``.

VERDICT gets a line of JSON: ``{"findings": [{"right": true, "text": "step 4: ..."}]}`` or ``{"error": "..."}``.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from classroom.answer import AnswerError
from classroom.labs import LABS


def main() -> None:
    """Check what the command line names."""
    number, file, results, verdict = sys.argv[1:]
    try:
        findings = LABS[int(number)].check(Path(file), Path(results))
        document: dict[str, object] = {
            "findings": [{"right": finding.right, "text": finding.text} for finding in findings]
        }
    except AnswerError as error:
        document = {"error": str(error)}
    except SystemExit as ended:  # sys.exit() in a submission is not the end of its check
        document = {"error": f"{file}: ends the program with sys.exit({ended.code!r})"}
    # A submission that forks has a writer a process, and all end with the first: a line is appended in one step.
    line = json.dumps(document).encode() + b"\n"
    descriptor = os.open(verdict, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    os.write(descriptor, line)
    os.close(descriptor)


if __name__ == "__main__":
    main()
