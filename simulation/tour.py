"""Record the windows that the page's tour plays: ``python -m simulation.tour`` writes webui/src/tour/recordings/.

The same flows under ECMP, RPS and CAPS: tour.yaml. Every machine makes the same windows.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Final

from controller.schemes import loader
from experiments.results.packet_trace import PacketTrace, write_trace
from experiments.spec import check
from experiments.spec.spec import SchemeChoice, Spec
from simulation.experiment import simulate_document
from simulation.packet_trace import Recorder

SPEC: Final = Path(__file__).with_name("tour.yaml")
DIRECTORY: Final = Path(__file__).resolve().parents[1] / "webui" / "src" / "tour" / "recordings"
SCHEMES: Final = ("ecmp", "rps", "caps")
FROM_MS: Final = 2800.0
FOR_MS: Final = 600.0


def tour_spec() -> Spec:
    """Return what the tour shows."""
    return check.load(SPEC.read_text(encoding="utf-8"), str(SPEC), loader.scheme_names())


def record(scheme: str) -> PacketTrace:
    """Return the tour's window under a scheme."""
    spec = replace(tour_spec(), schemes=(SchemeChoice(scheme, scheme),), baseline=scheme)
    recorder = Recorder(FROM_MS, FOR_MS)
    simulate_document(spec, recorder=recorder)
    assert recorder.trace is not None
    return recorder.trace


def main() -> None:
    """Write all windows."""
    DIRECTORY.mkdir(parents=True, exist_ok=True)
    for scheme in SCHEMES:
        file = DIRECTORY / f"{scheme}.trace"
        write_trace(record(scheme), file)
        print(f"{file}: {file.stat().st_size} B")


if __name__ == "__main__":
    main()
