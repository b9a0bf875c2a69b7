"""Names of switches in the stream of events, where they are not to be had at once."""

from __future__ import annotations

import socket

import pytest

from controller.live import stream as stream_module
from controller.live.event_log import EventLog
from controller.live.stream import EventStream
from controller.plane.naming import FabricNames
from tests.unit.controller.live.test_live_links import snapshot
from tests.unit.controller.live.test_live_stream import Reading, mode


def test_names_that_could_not_be_had_once_are_asked_for_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Events had the numbers of switches until the fabric changed, which may be hours later."""
    monkeypatch.setattr(stream_module, "NAMES_AGAIN_S", 0.0)
    failures = [TimeoutError("the control plane is busy")]

    def names() -> FabricNames:
        if failures:
            raise failures.pop()
        return FabricNames(snapshot())

    log = EventLog()
    stream = EventStream(log, names, "1")
    log.added.subscribe(stream.note)
    stream.start()
    ours, readers = socket.socketpair()
    try:
        with readers:
            ours.setblocking(False)
            stream.add(ours, b"", frozenset({"modes"}), None)
            reading = Reading(readers)
            assert reading.next()["topic"] == "hello"
            log.add(mode(1, True))
            assert reading.next()["data"]["leaf"] == "0x1"
            log.add(mode(1, False))
            assert reading.next()["data"]["leaf"] == "l1"
    finally:
        stream.stop()
