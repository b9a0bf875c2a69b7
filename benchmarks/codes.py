"""How fast the codes are: a unit of 32 packets of 1400 B with 4 repairs, and 4 of its packets lost.

All rates count source bytes: 44,800 a unit, whatever is read or written besides. Everything takes turns within one run,
in rounds of some milliseconds on one core with the data in its caches; a rate is that of the fastest quarter of the
rounds, for what disturbs only slows down. Beside our kernels stand a memcpy of the sources and public libraries, which
are installed for the benchmark alone.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import capstan_native
import numpy as np

from benchmarks.figures import Figure, document
from benchmarks.public_codes import BLOCK_BYTES, LOST, REPAIRS, SOURCES, public_codes
from protocol.datagram import CodeId

ENCODE_GOAL_GBPS: Final = 9.0
DECODE_GOAL_GBPS: Final = 6.0
ISA_L_GOAL: Final = 0.6
ROUNDS: Final = 61
ROUND_S: Final = 0.003
UNIT_BYTES: Final = SOURCES * BLOCK_BYTES
SEED: Final = 7


def run() -> dict[str, Any]:
    """Measure, and return the figures."""
    sources = np.random.default_rng(1).integers(0, 256, (SOURCES, BLOCK_BYTES), dtype=np.uint8)
    calls = _own(sources)
    with tempfile.TemporaryDirectory(prefix="capstan-bench-") as folder:
        public, notes = public_codes(sources, Path(folder))
        calls.update(public)
        rates = measure(calls)
    return document(_figures(rates), (*_explanation(), *notes))


def measure(calls: Mapping[str, Callable[[], object]]) -> dict[str, float]:
    """Return the source bytes per second of each call, in GB/s: the first quartile of rounds in which all take
    turns."""
    counts = {name: _count(call) for name, call in calls.items()}
    seconds: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(ROUNDS):
        for name, call in calls.items():
            seconds[name].append(_time(call, counts[name]))
    return {name: UNIT_BYTES / _first_quartile(times) / 1e9 for name, times in seconds.items()}


def _first_quartile(times: list[float]) -> float:
    return statistics.quantiles(times, n=4)[0] if len(times) > 1 else times[0]


def _time(call: Callable[[], object], count: int) -> float:
    """Return seconds of one call, averaged over so many."""
    start = time.perf_counter()
    for _ in range(count):
        call()
    return (time.perf_counter() - start) / count


def _count(call: Callable[[], object]) -> int:
    """Return how many calls fill a round."""
    call()
    return max(1, round(ROUND_S / _time(call, 3)))


def _own(sources: np.ndarray) -> dict[str, Callable[[], object]]:
    """Return our kernels on arrays, our codes on packets, and memcpy; what decodes is checked once."""
    copy, repairs, rebuilt = np.empty_like(sources), _rows(REPAIRS), _rows(len(LOST))
    calls: dict[str, Callable[[], object]] = {"memcpy": lambda: np.copyto(copy, sources)}
    holes = sources.copy()
    holes[LOST] = 0
    indices = list(range(REPAIRS))

    def encode(kernel: str | None = None) -> Callable[[], object]:
        return lambda: capstan_native.encode(CodeId.MDS, sources, SEED, repairs, kernel)

    def decode() -> list[int]:
        return capstan_native.decode(CodeId.MDS, holes, LOST, repairs, indices, REPAIRS, SEED, rebuilt)

    encode()()
    if decode() != LOST or not np.array_equal(rebuilt, sources[LOST]):
        raise RuntimeError("the benchmark's unit was not decoded to what was encoded")
    calls["mds encode"] = encode()
    calls["mds decode"] = decode
    calls.update({f"mds encode, {kernel}": encode(kernel) for kernel in capstan_native.kernels()})
    packets = [row.tobytes() for row in sources]
    for code in CodeId:
        calls.update(_on_packets(code, packets))
    return calls


def _rows(count: int) -> np.ndarray:
    return np.empty((count, BLOCK_BYTES), dtype=np.uint8)


def _on_packets(code: CodeId, packets: list[bytes]) -> dict[str, Callable[[], object]]:
    """Return what the agent calls: from packets to repairs, and from what has come to the packets that were lost."""
    name = code.name.lower()
    received = [None if index in LOST else packet for index, packet in enumerate(packets)]
    repairs = dict(enumerate(capstan_native.encode_packets(code, packets, REPAIRS, SEED)))
    return {
        f"{name} packets encode": lambda: capstan_native.encode_packets(code, packets, REPAIRS, SEED),
        f"{name} packets decode": lambda: capstan_native.decode_packets(
            code, received, repairs, REPAIRS, SEED
        ),
    }


def _figures(rates: Mapping[str, float]) -> dict[str, Figure]:
    goals = {"mds encode": ENCODE_GOAL_GBPS, "mds decode": DECODE_GOAL_GBPS}
    figures = {name: Figure(rate, "GB/s", goals.get(name), "higher") for name, rate in rates.items()}
    encode, decode = rates["mds encode"], rates["mds decode"]
    figures["mds encode / memcpy"] = Figure(encode / rates["memcpy"], "ratio", None, "higher")
    figures["mds decode / memcpy"] = Figure(decode / rates["memcpy"], "ratio", None, "higher")
    for name, rate in rates.items():
        library, _, step = name.rpartition(" ")
        if step in ("encode", "decode") and library in ("isa-l", "pyeclib", "zfec", "raptorq"):
            goal = ISA_L_GOAL if name == "isa-l encode" else None
            figures[f"mds {step} / {library}"] = Figure(rates[f"mds {step}"] / rate, "ratio", goal, "higher")
    return figures


def _explanation() -> tuple[str, ...]:
    return (
        f"(k, r) = ({SOURCES}, {REPAIRS}), packets of {BLOCK_BYTES} B, {len(LOST)} sources lost; GB/s of source bytes,"
        f" fastest quarter of {ROUNDS} rounds, one core",
        "mds encode, decode: on arrays, coefficients and elimination included; packets: what the agent calls, from and"
        " to Python's bytes",
    )
