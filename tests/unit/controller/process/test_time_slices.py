"""Slices that a thread asks for, as the kernel has them then."""

from __future__ import annotations

import ctypes
import os
import platform
import struct
import threading

import pytest

from controller.agents.channel_loop import channel_loop
from controller.process.control_thread import ControlThread
from controller.process.time_slices import NICE, SHORT_SLICE_NS, ask_for_short_slices

_GET_ATTRIBUTES = {"x86_64": 315, "aarch64": 275}
KERNEL = tuple(int(part) for part in platform.release().split(".")[:2])


def attributes() -> tuple[int, int, int]:
    """Return policy, nice value and slice (nanoseconds) of the calling thread."""
    buffer = ctypes.create_string_buffer(48)
    assert ctypes.CDLL(None).syscall(_GET_ATTRIBUTES[platform.machine()], 0, buffer, 48, 0) == 0
    _, policy, _, nice, _, runtime, _, _ = struct.unpack("=IIQiIQQQ", buffer.raw)
    return policy, nice, runtime


@pytest.mark.skipif(platform.machine() not in _GET_ATTRIBUTES, reason="system calls have other numbers here")
def test_a_thread_gets_short_slices_and_keeps_all_else() -> None:
    before = attributes()
    found: list[tuple[int, int, int]] = []

    def ask() -> None:
        assert ask_for_short_slices()
        found.append(attributes())

    thread = threading.Thread(target=ask)
    thread.start()
    thread.join()
    [(policy, nice, runtime)] = found
    assert (policy, nice) == before[:2]
    if KERNEL >= (6, 12):
        assert runtime == SHORT_SLICE_NS
    assert attributes() == before, "it is the thread's alone"


def test_a_machine_whose_call_is_not_known_is_left_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    before = os.getpriority(os.PRIO_PROCESS, 0)
    monkeypatch.setattr(platform, "machine", lambda: "riscv64")
    assert not ask_for_short_slices()
    assert os.getpriority(os.PRIO_PROCESS, 0) == before


@pytest.mark.parametrize("allowed", [True, False])
def test_the_threads_of_switches_and_of_agents_go_before_others_and_none_before_the_other(
    monkeypatch: pytest.MonkeyPatch, allowed: bool
) -> None:
    """As root the thread of agents alone did: the other waited for a processor half of the time beside busy agents."""
    asked: list[tuple[int, int]] = []
    done: list[int] = []

    def set_priority(_: int, thread: int, nice: int) -> None:
        if not allowed:
            raise PermissionError
        asked.append((thread, nice))

    async def work() -> None:
        done.append(threading.get_native_id())

    monkeypatch.setattr(os, "setpriority", set_priority)
    of_switches = ControlThread(lambda: done.append(threading.get_native_id()), "openflow", urgent=True)
    of_switches.start()
    of_switches.join()
    of_agents = channel_loop(work, work)
    of_agents.start()
    of_agents.stop()
    of_others = ControlThread(lambda: done.append(0), "learner")
    of_others.start()
    of_others.join()
    assert len(done) == 4
    assert asked == ([(done[0], NICE), (done[1], NICE)] if allowed else [])
