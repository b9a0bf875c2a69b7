"""A client's side of one connection to an OVSDB server (RFC 7047): bytes in, rows out. No socket, no clock.

It asks for some columns of some tables of database Open_vSwitch, keeps them as they change, and sends transactions.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from capstan_client.errors import CapstanError
from ovsdb.scanning import JsonScanner, ScanError

DATABASE: Final = "Open_vSwitch"
MONITOR_ID: Final = "monitor"
PROBE_S: Final = 5.0
"""A server that is silent for so long is asked for a sign of life, and given up when as long again brings none: time
before the question may be one in which it was not read."""
MOST_BYTES: Final = 16 << 20
"""Of one message: twice the tables of a switch with 4096 ports, eight queues each."""
MOST_ROWS: Final = 65_536
"""Of all tables together; such a switch has 45 056."""
ROW_BYTES: Final = 256
"""What a row takes of memory besides its values, about."""
VALUE_BYTES: Final = 64
"""The same of a value besides its text."""
MOST_KEPT_BYTES: Final = 64 << 20
"""Of the tables of one server, in memory."""
LONGEST_WORDS: Final = 500
"""Characters of what a server says is wrong: it is logged, and shown."""
SHARE_BYTES: Final = 4 << 20
INTEGERS: Final = range(-(1 << 63), 1 << 63)
"""RFC 7047, section 3.1: an <integer> has 64 bits."""

Row = dict[str, Any]
"""A row's columns: maps as dict, sets as tuple, UUIDs as text, atoms as they are."""
Tables = dict[str, dict[str, Row]]
"""Rows by table and UUID."""


class OvsdbError(CapstanError, RuntimeError):
    """The server speaks no OVSDB, refuses, or is gone; the text says which."""


@dataclass(frozen=True, slots=True)
class Changed:
    """These tables have changed, or are here for the first time."""

    tables: frozenset[str]


@dataclass(frozen=True, slots=True)
class Done:
    """A transaction's outcome. ``error``: what the server says is wrong with it, or ""."""

    ticket: int
    error: str


@dataclass(slots=True)
class TableRoom:
    """Of all servers: bytes of the tables that are kept of them, and how many there may be."""

    most: int = 256 << 20
    taken: int = 0

    def take(self, count: int, own: int) -> None:
        """Count *count* bytes more of a server that has *own* then. Raises OvsdbError if it has to do without.

        Above half of the room a server has `SHARE_BYTES`: what little others need is there.
        """
        self.taken += count
        if own > MOST_KEPT_BYTES:
            raise OvsdbError(f"its tables take more than {MOST_KEPT_BYTES >> 20} MiB")
        if count > 0 and (self.taken > self.most or (self.taken > self.most // 2 and own > SHARE_BYTES)):
            raise OvsdbError(f"the tables of all switches together take more than {self.most >> 20} MiB")


class OvsdbSession:
    """Sans-I/O: `receive` what arrived, send what `data_to_send` gives. ``tables`` is complete from the first Changed.

    columns: by table, what to keep up with. now: seconds of a monotonic clock. room: of all servers' tables.
    """

    def __init__(
        self, columns: Mapping[str, Sequence[str]], now: float, room: TableRoom | None = None
    ) -> None:
        self._columns: Final = {name: frozenset(names) for name, names in columns.items()}
        self._room: Final = TableRoom() if room is None else room
        self._sizes: dict[tuple[str, str], int] = {}
        """Bytes of each row, by table and UUID."""
        self._kept_bytes = 0
        self.tables: Tables = {name: {} for name in columns}
        self.known = False
        """Whether the tables have come."""
        self._arrived = bytearray()
        self._scanner = JsonScanner()
        self._to_send = bytearray()
        self._next = 1
        self._received_at = now
        self._probed_at: float | None = None
        wanted = {name: {"columns": list(names)} for name, names in columns.items()}
        self._request("monitor", [DATABASE, MONITOR_ID, wanted], MONITOR_ID)

    def transact(self, operations: Sequence[Mapping[str, Any]]) -> int:
        """Ask for all of these operations or none; `Done` with the returned ticket says what became of them."""
        ticket = self._next
        self._next += 1
        self._request("transact", [DATABASE, *operations], ticket)
        return ticket

    def data_to_send(self) -> bytes:
        """Return all bytes that must go now; they are the caller's from here on."""
        data = bytes(self._to_send)
        self._to_send.clear()
        return data

    def deadline(self) -> float:
        """Return when `timer` is due."""
        return (self._received_at if self._probed_at is None else self._probed_at) + PROBE_S

    def timer(self, now: float) -> None:
        """Ask a silent server for a sign of life. Raise OvsdbError when it has been silent for too long."""
        if now < self.deadline():
            return
        if self._probed_at is not None:
            raise OvsdbError(f"it has not answered for {now - self._received_at:.0f} s")
        self._probed_at = now
        self._request("echo", [], "echo")

    def close(self) -> None:
        """Give back the room of the tables: the connection is no more."""
        self._room.taken -= self._kept_bytes
        self._kept_bytes = 0
        self._sizes.clear()

    def receive(self, data: bytes, now: float) -> list[Changed | Done]:
        """Return what the arrived bytes mean. Raises OvsdbError: the connection is of no use any more."""
        self._received_at, self._probed_at = now, None
        self._arrived += data
        if len(self._arrived) > MOST_BYTES:
            raise OvsdbError(f"a message of more than {MOST_BYTES} B")
        events: list[Changed | Done] = []
        try:
            messages = self._messages()
        except ScanError as error:
            raise OvsdbError(str(error)) from None
        for message in messages:
            event = self._message(message)
            if event is not None:
                events.append(event)
        return events

    def _messages(self) -> list[Any]:
        """Return the whole JSON texts among what has arrived; nothing separates them but their own ends."""
        messages = []
        while (end := self._scanner.end_of_text(self._arrived)) is not None:
            text = self._arrived[:end]
            del self._arrived[:end]
            try:
                messages.append(json.loads(text, parse_constant=_no_number))
            except RecursionError:
                raise OvsdbError("a message that is nested too deeply") from None
            except ValueError:  # UnicodeDecodeError is one
                raise OvsdbError("a message that is not JSON, or not UTF-8") from None
        return messages

    def _message(self, message: dict[str, Any]) -> Changed | Done | None:
        method, number = message.get("method"), message.get("id")
        try:
            if method == "echo":
                self._send({"id": number, "result": message.get("params", []), "error": None})
            elif method == "update":
                self._update(message["params"][1])
                return Changed(frozenset(message["params"][1]))
            elif method is None and number == MONITOR_ID:
                if message.get("error"):
                    raise OvsdbError(f"it does not list its tables: {_words(message['error'])}")
                self._update(message["result"])
                self.known = True
                return Changed(frozenset(self.tables))
            elif method is None and isinstance(number, int):
                return Done(number, _outcome(message))
        except (KeyError, IndexError, TypeError, AttributeError, ValueError) as error:
            raise OvsdbError(f"a message that RFC 7047 does not know: {error!r}") from None
        return None

    def _update(self, updates: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> None:
        for table, rows in updates.items():
            stored = self.tables[table]
            for uuid, change in rows.items():
                if "new" in change:
                    row = stored.setdefault(uuid, {})
                    row.update({name: plain_value(value) for name, value in change["new"].items()})
                    if row.keys() != self._columns[table]:
                        raise OvsdbError(f"a row of table {table} has not the columns that were asked for")
                    self._count((table, uuid), ROW_BYTES + sum(map(_size, row.values())))
                else:
                    stored.pop(uuid, None)
                    self._count((table, uuid), 0)

    def _count(self, row: tuple[str, str], size: int) -> None:
        """Count the bytes of a row that is another now; 0: it is gone. Raises OvsdbError for one too many."""
        grown = size - self._sizes.pop(row, 0)
        if size:
            self._sizes[row] = size
        if len(self._sizes) > MOST_ROWS:
            raise OvsdbError(f"its tables have more than {MOST_ROWS} rows")
        self._kept_bytes += grown
        self._room.take(grown, self._kept_bytes)

    def _request(self, method: str, params: list[Any], number: int | str) -> None:
        self._send({"method": method, "params": params, "id": number})

    def _send(self, message: Mapping[str, Any]) -> None:
        self._to_send += json.dumps(message).encode()


def plain_value(value: Any) -> Any:
    """Return a value of RFC 7047, section 5.1, as plain data. Raises ValueError for a number that it does not know."""
    if not isinstance(value, list):
        if isinstance(value, int) and value not in INTEGERS:
            raise ValueError("an integer of more than 64 bits")
        return value
    kind, content = value
    if kind == "map":
        return {plain_value(key): plain_value(value) for key, value in content}
    if kind == "set":
        return tuple(plain_value(item) for item in content)
    return content  # a uuid


def _size(value: Any) -> int:
    """Return about how many bytes of memory a plain value takes."""
    if isinstance(value, dict):
        return VALUE_BYTES + sum(_size(key) + _size(item) for key, item in value.items())
    if isinstance(value, tuple | list):
        return VALUE_BYTES + sum(map(_size, value))
    return VALUE_BYTES + (len(value) if isinstance(value, str) else 0)


def _no_number(text: str) -> float:
    raise ValueError(f"{text} is no number of JSON")


def _outcome(message: Mapping[str, Any]) -> str:
    """Return the first error of a transaction's reply, or ""."""
    if message.get("error"):
        return _words(message["error"])
    for result in message["result"]:
        if isinstance(result, dict) and result.get("error"):
            return _words(result)
    return ""


def _words(error: Any) -> str:
    if isinstance(error, dict):
        text = ": ".join(str(error[key]) for key in ("error", "details") if error.get(key))
    else:
        text = str(error)
    text = text[:LONGEST_WORDS]  # lines of a server's own would look like ours, in a log
    return "".join(character if character.isprintable() else " " for character in text)


# What transactions are made of


def map_of(values: Mapping[str, str]) -> list[Any]:
    """Return a map from text to text, as it goes over the wire."""
    return ["map", [[key, value] for key, value in values.items()]]


def set_keys(table: str, uuid: str, column: str, values: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return the operations that set some keys of a map and leave the others."""
    keys = ["set", list(values)]
    return [
        {
            "op": "mutate",
            "table": table,
            "where": [["_uuid", "==", ["uuid", uuid]]],
            "mutations": [[column, "delete", keys], [column, "insert", map_of(values)]],
        }
    ]


def delete_keys(table: str, uuid: str, column: str, keys: Sequence[str]) -> list[dict[str, Any]]:
    """Return the operations that take some keys out of a map."""
    return [
        {
            "op": "mutate",
            "table": table,
            "where": [["_uuid", "==", ["uuid", uuid]]],
            "mutations": [[column, "delete", ["set", list(keys)]]],
        }
    ]
