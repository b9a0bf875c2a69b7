"""``python -m controller.process.limited MEMORY_MIB PROCESSOR_S MODULE [ARGUMENT ...]``: a module within limits.

It gets no more memory of its own, and no more processor time, than that: beyond the first its allocations fail, beyond
the second the kernel ends it.
"""

from __future__ import annotations

import atexit
import gc
import runpy
import sys


def run_within(memory_mib: int, processor_s: int, command: list[str]) -> None:
    """Run *command*, a module and its arguments, as `python -m` does. memory_mib: MiB; processor_s: s of one core."""
    try:
        import resource
    except ImportError:  # Windows has none; the deadline of the process that waits holds there, too
        pass
    else:
        for resource_kind, limit in (
            (resource.RLIMIT_DATA, memory_mib << 20),
            (resource.RLIMIT_CPU, processor_s),
        ):
            _, hard = resource.getrlimit(resource_kind)
            resource.setrlimit(
                resource_kind, (limit if hard == resource.RLIM_INFINITY else min(limit, hard), hard)
            )
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    # Collections while modules load, and the last one, look at what stays: 0.17 of the 0.55 s that matplotlib takes.
    gc.set_threshold(50_000)
    atexit.register(gc.freeze)
    sys.argv = command
    runpy.run_module(command[0], run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    run_within(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:])
