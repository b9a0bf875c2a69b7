"""What was found on a machine, as plain data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from topologies.cores import Cores


@dataclass(frozen=True)
class Attempt:
    """What came of trying something. worked: None if it was not tried; said: what it answered, or why it failed."""

    worked: bool | None
    said: str = ""


NOT_TRIED = Attempt(None, "not tried: this probe needs root")
NO_PRESSURE = Attempt(False, "this kernel does not measure processor pressure")
"""What came of looking for a control group's account of it."""


@dataclass(frozen=True)
class Facts:
    """Everything that the probes found; the judgement needs nothing else."""

    python: tuple[int, int]
    user_id: int
    capabilities: frozenset[str]
    """Effective ones, of those that have a name in `topologies.machine.CAPABILITIES`."""
    missing_programs: Mapping[str, str] = field(default_factory=dict)
    """Debian packages by program."""
    attempts: Mapping[str, Attempt] = field(default_factory=dict)
    """By what was tried; the names are those in `throwaway.TRIALS` and in `probes`."""
    cores: Cores = field(default_factory=lambda: Cores(1))
    memory_available: int = 0
    """Bytes."""
    results_directory: str = ""
    results_free: int = 0
    """Bytes."""
    seccomp: int = 0
    """Mode in /proc/self/status: 0 off, 1 strict, 2 a filter."""
    apparmor: str = ""
    """Profile of this process; empty where the kernel has no AppArmor."""
    congestion_default: str = ""
    congestion_available: tuple[str, ...] = ()
    environment: bool = True
    """Whether Capstan's Python environment has been made."""
    versions: Mapping[str, Attempt] = field(default_factory=dict)
    """Of programs that only the whole examination asks: mininet, openvswitch, docker, compose, chromium, node."""
