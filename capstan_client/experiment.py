"""One experiment, or sweep, at a controller."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from typing import Any, Final

from capstan_client.errors import CapstanError
from capstan_client.http import Connection
from capstan_client.progress import Progress

OVER: Final = ("finished", "failed", "cancelled", "interrupted")


class Experiment:
    """A number, and what can be asked of it. Nothing is remembered: every call asks the controller."""

    def __init__(self, connection: Connection, number: int) -> None:
        self.number = number
        self._connection = connection
        self._path = f"/experiments/{number}"

    def __repr__(self) -> str:
        return f"Experiment({self.number} at {self._connection.url})"

    @property
    def state(self) -> str:
        """Return its state: queued, running, cancelling, finished, failed, cancelled or interrupted."""
        return str(self.describe()["state"])

    @property
    def simulated(self) -> bool:
        """Return whether it runs, or ran, packet by packet in simulation, not in a lab."""
        return bool(self.describe()["simulated"])

    def describe(self) -> dict[str, Any]:
        """Return all that the controller knows of it: docs/api.md, `GET /experiments/ID`."""
        answer: dict[str, Any] = self._connection.get(self._path)
        return answer

    def progress(self) -> Progress:
        """Return its progress now."""
        return Progress.of(self._connection.get(f"{self._path}/progress"))

    def follow(self) -> Iterator[Progress]:
        """Yield progress about once a second until it is over; the last one says how it ended."""
        for event in self._connection.events("experiments"):
            mine = event.get("experiment") == self.number
            # `gap`: what was lost may have been its end.
            if event["topic"] in ("hello", "gap") or (
                mine and event.get("kind") in ("experiment-ended", "experiment-changed")
            ):
                now = Progress.of(self._connection.get_soon(f"{self._path}/progress"))
                yield now
                if now.state in OVER:
                    return
            elif mine and event.get("kind") == "experiment-progress":
                yield Progress.of(event["progress"])

    def wait(self) -> Experiment:
        """Wait until it has finished. Raise CapstanError, with what the controller says, if it ended
        otherwise.
        """
        for now in self.follow():
            if now.state in OVER and now.state != "finished":
                raise CapstanError(f"experiment {self.number} is {now.state}: {self.describe()['error']}")
        return self

    def cancel(self) -> None:
        """Cancel it: at once if it waits, within seconds if it runs."""
        self._connection.ask("POST", f"{self._path}/cancel")

    def rerun(self) -> Experiment:
        """Run again what did not finish, and return the experiment; runs that were kept stay."""
        self._connection.ask("POST", f"{self._path}/rerun")
        return self

    def points(self) -> list[Experiment]:
        """Return the points of a sweep, in order; of anything else an empty list."""
        return [Experiment(self._connection, child["id"]) for child in self.describe()["children"]]

    def summary(self) -> dict[str, Any]:
        """Return the result document, as in `result.json`. Raises CapstanError while there is none."""
        summary: dict[str, Any] | None = self._connection.get(f"{self._path}/results")["summary"]
        if summary is None:
            raise CapstanError(f"experiment {self.number} is {self.state} and has no results")
        return summary

    def table(self) -> list[dict[str, Any]]:
        """Return a row for each scheme at each point: numbers as numbers, None where there is none. Times in ms, rates
        in Mbit/s; 1 marks what the processor limited (``cpu_limited``), and what a part that ended disturbed
        (``disturbed``). For pandas: ``DataFrame(experiment.table())``."""
        return [
            {name: _value(text) for name, text in row.items()} for row in _rows(self._text("results.csv"))
        ]

    def flows(self) -> list[dict[str, Any]]:
        """Return all flow records: docs/api.md, "Fields of a flow". ``paths`` is JSON text, of which
        ``json.loads(flow["paths"])`` makes datagrams by path stamp."""
        return [{name: _value(text) for name, text in row.items()} for row in _rows(self._text("flows.csv"))]

    def recording(self, scheme: str, repeat: int = 1, from_ms: int = 0, for_ms: int = 1000) -> bytes:
        """Return a window of a run, packet by packet, as a file for the page's view Replay: of the run's `repeat` (from
        1 on) under `scheme`; of a simulated run from `from_ms` on for `for_ms` milliseconds, of a run on switches the
        window that was recorded (`record` of `Capstan.submit`)."""
        query = {"scheme": scheme, "repeat": repeat, "from_ms": from_ms, "for_ms": for_ms}
        path, wait_s = f"{self._path}/recording", self._connection.aside_s
        return self._connection.ask("GET", path, query=query, timeout_s=wait_s).content

    def _text(self, name: str) -> str:
        return self._connection.ask("GET", f"{self._path}/{name}").text


def _rows(text: str) -> Iterator[dict[str, str]]:
    yield from csv.DictReader(io.StringIO(text))


def _value(text: str) -> Any:
    """Return a cell of a CSV file as a number, if it is one; None if it is empty."""
    if not text:
        return None
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
