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
"""A server that is silent for so long is asked for a sign of life, and given up when as long again brings none."""
MOST_BYTES: Final = 64 << 20
"""Of one message: far more than any switch's tables."""

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


class OvsdbSession:
    """Sans-I/O: `receive` what arrived, send what `data_to_send` gives. ``tables`` is complete from the first Changed.

    columns: by table, what to keep up with. now: seconds of a monotonic clock.
    """

    def __init__(self, columns: Mapping[str, Sequence[str]], now: float) -> None:
        self.tables: Tables = {name: {} for name in columns}
        self.known = False
        """Whether the tables have come."""
        self._arrived = bytearray()
        self._scanner = JsonScanner()
        self._to_send = bytearray()
        self._next = 1
        self._received_at = now
        self._probed = False
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
        return self._received_at + (2 * PROBE_S if self._probed else PROBE_S)

    def timer(self, now: float) -> None:
        """Ask a silent server for a sign of life. Raise OvsdbError when it has been silent for too long."""
        if now < self.deadline():
            return
        if self._probed:
            raise OvsdbError(f"it has not answered for {2 * PROBE_S:g} s")
        self._probed = True
        self._request("echo", [], "echo")

    def receive(self, data: bytes, now: float) -> list[Changed | Done]:
        """Return what the arrived bytes mean. Raises OvsdbError: the connection is of no use any more."""
        self._received_at, self._probed = now, False
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
                messages.append(json.loads(text))
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
            for uuid, change in rows.items():
                if "new" in change:
                    self.tables[table].setdefault(uuid, {}).update(
                        {name: plain_value(value) for name, value in change["new"].items()}
                    )
                else:
                    self.tables[table].pop(uuid, None)

    def _request(self, method: str, params: list[Any], number: int | str) -> None:
        self._send({"method": method, "params": params, "id": number})

    def _send(self, message: Mapping[str, Any]) -> None:
        self._to_send += json.dumps(message).encode()


def plain_value(value: Any) -> Any:
    """Return a value of RFC 7047, section 5.1, as plain data."""
    if not isinstance(value, list):
        return value
    kind, content = value
    if kind == "map":
        return {plain_value(key): plain_value(value) for key, value in content}
    if kind == "set":
        return tuple(plain_value(item) for item in content)
    return content  # a uuid


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
        return ": ".join(str(error[key]) for key in ("error", "details") if error.get(key))
    return str(error)


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
