"""A connection of which packets are dropped is left unread for a moment, and what it sent is not lost."""

from __future__ import annotations

import selectors
import socket
from collections import Counter
from collections.abc import Iterator

import pytest

from controller.openflow.connection import SwitchConnection
from controller.openflow.read_pauses import PAUSE_S, ReadPauses

LIMIT_S = 60.0


@pytest.fixture
def ends() -> Iterator[tuple[SwitchConnection, socket.socket, selectors.BaseSelector]]:
    with (
        selectors.DefaultSelector() as selector,
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.create_connection(server.getsockname()) as caller,
    ):
        accepted, _ = server.accept()
        connection = SwitchConnection(accepted, "test", selector, 0.0, Counter())
        yield connection, caller, selector
        connection.close()


def test_it_is_not_read_before_the_pause_is_over(
    ends: tuple[SwitchConnection, socket.socket, selectors.BaseSelector],
) -> None:
    connection, caller, selector = ends
    caller.sendall(b"something")
    assert [key.data for key, _ in selector.select(LIMIT_S)] == [connection]
    pauses = ReadPauses()
    pauses.pause(connection, 10.0)
    assert selector.select(0) == []
    assert pauses.deadline() == 10.0 + PAUSE_S
    pauses.resume(10.0)
    assert selector.select(0) == []
    pauses.resume(10.0 + PAUSE_S)
    assert [key.data for key, _ in selector.select(LIMIT_S)] == [connection]
    assert pauses.deadline() is None


def test_one_that_is_closed_meanwhile_is_left_alone(
    ends: tuple[SwitchConnection, socket.socket, selectors.BaseSelector],
) -> None:
    connection, _, selector = ends
    pauses = ReadPauses()
    pauses.pause(connection, 0.0)
    connection.close()
    pauses.resume(PAUSE_S)
    assert not selector.get_map()
