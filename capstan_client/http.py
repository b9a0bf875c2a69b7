"""Requests to the API, their errors, and its stream of events."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from typing import Any, Final

import httpx

SILENCE_S: Final = 25.0
"""The stream says something every 10 s: after so long it is dead."""
AGAIN_S: Final = 1.0


class CapstanError(RuntimeError):
    """The controller refused, or does not answer. status: None without an answer; field: what was wrong in the request;
    problems: all that was wrong with a submission (field, message, line, column)."""

    def __init__(
        self,
        text: str,
        status: int | None = None,
        field: str | None = None,
        problems: list[dict[str, Any]] | None = None,
    ) -> None:
        super().__init__(text)
        self.status = status
        self.field = field
        self.problems = problems or []


class Connection:
    """To one controller. url: as ``http://127.0.0.1:8080``; token: where it needs one. Safe to use from any thread."""

    def __init__(self, url: str, token: str | None, timeout_s: float) -> None:
        self.url = url.rstrip("/")
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        self._http = httpx.Client(
            base_url=f"{self.url}/api/v1", headers=headers, timeout=timeout_s, trust_env=False
        )

    def close(self) -> None:
        """Harmless if it is closed."""
        self._http.close()

    def ask(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, Any] | None = None,
        body: Mapping[str, Any] | None = None,
    ) -> httpx.Response:
        """The answer. Raises CapstanError unless it is a success."""
        given = {name: value for name, value in (query or {}).items() if value is not None}
        try:
            answer = self._http.request(method, path, params=given, json=body)
        except httpx.HTTPError as error:
            raise CapstanError(f"{self.url} does not answer {method} {path}: {error}") from None
        if answer.is_error:
            raise _problem(method, path, answer)
        return answer

    def get(self, path: str, **query: Any) -> Any:
        """The answer's JSON."""
        return self.ask("GET", path, query=query).json()

    def events(self, topics: str) -> Iterator[dict[str, Any]]:
        """Events of *topics* (comma-separated) from now on, for ever; after an interruption it goes on where it was.

        Each has ``topic`` beside what the API tells. The first one is the stream's ``hello``.

        Raises:
            CapstanError: the controller refuses, or stays away.
        """
        last: str | None = None
        failures = 0
        while True:
            headers = {"Accept": "text/event-stream"} | ({} if last is None else {"Last-Event-ID": last})
            timeout = httpx.Timeout(SILENCE_S, connect=5.0)
            try:
                with self._http.stream(
                    "GET", "/events", params={"topics": topics}, headers=headers, timeout=timeout
                ) as answer:
                    if answer.is_error:
                        answer.read()
                        raise _problem("GET", "/events", answer)
                    for identity, event in parse_events(answer.iter_lines()):
                        last, failures = identity or last, 0
                        yield event
            except httpx.HTTPError as error:
                failures += 1
                if failures > SILENCE_S / AGAIN_S:
                    raise CapstanError(f"{self.url} does not answer GET /events: {error}") from None
            time.sleep(AGAIN_S)


def parse_events(lines: Iterator[str]) -> Iterator[tuple[str | None, dict[str, Any]]]:
    """Events of a stream (WHATWG HTML, section 9.2) with their ids; their data are JSON objects."""
    fields: dict[str, str] = {}
    for line in lines:
        if not line:
            if "data" in fields:
                yield (
                    fields.get("id"),
                    {"topic": fields.get("event", "message"), **json.loads(fields["data"])},
                )
            fields = {}
            continue
        name, _, value = line.partition(":")
        if name:  # else a comment
            value = value.removeprefix(" ")
            fields[name] = f"{fields[name]}\n{value}" if name == "data" and name in fields else value


def _problem(method: str, path: str, answer: httpx.Response) -> CapstanError:
    try:
        told = answer.json()
    except ValueError:
        told = {}
    detail = told.get("detail") or answer.reason_phrase
    return CapstanError(
        f"{method} {path}: {detail}", answer.status_code, told.get("field"), told.get("problems")
    )
