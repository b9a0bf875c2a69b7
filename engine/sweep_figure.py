"""``python -m engine.sweep_figure PART FORMAT``: a figure of a sweep, drawn in a process of its own.

Standard input: the sweep's result document as JSON. Standard output: the picture, SVG or PNG; nothing without such a
part. A sweep with several axes has a part for each combination of values of all but the first axis; parts count from 1.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import IO

from experiments.results.drawing import draw_sweep


def main(part: int, kind: str, source: IO[bytes], target: IO[bytes]) -> None:
    """Draw figure number *part* of a sweep's document, as SVG or PNG; nothing if it has fewer."""
    document = json.load(source)
    with tempfile.TemporaryDirectory() as directory:
        files = [file for file in draw_sweep(document, Path(directory)) if file.suffix == f".{kind}"]
        if part <= len(files):
            target.write(files[part - 1].read_bytes())


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2], sys.stdin.buffer, sys.stdout.buffer)
