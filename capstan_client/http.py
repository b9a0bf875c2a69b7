"""Requests to the API, their errors, and its stream of events."""

from __future__ import annotations

import json
import os
import socket
import ssl
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, Self

import httpx

from capstan_client.call_thread import CallThread
from capstan_client.errors import ControllerError

CONNECT_TIMEOUT_S: Final = 3.0
SILENCE_S: Final = 25.0
"""The stream says something every 10 s: after so long it is dead."""
AGAIN_S: Final = 1.0
CLOSE_S: Final = 1.0
"""A request whose wait an interrupt ended may still be on its way when the connection is given back."""
ASIDE_S: Final = 500.0
"""For what a controller has another process do, which takes a minute at most, after seven others: large simulations are
tried out, and windows recorded."""
_PIECE_BYTES: Final = 1 << 16
_AWAY: Final = (502, 503, 504)
"""Statuses of a proxy whose controller is being started again, and of one that has no room just now."""
TOKEN_VARIABLE: Final = "CAPSTAN_API_TOKEN"
"""Of the environment: an API's token, for what runs without a file of it."""
NO_URL: Final = "that is not the URL of a controller, such as http://192.0.2.1:8080"


class Connection:
    """To one controller. url: as ``http://127.0.0.1:8080``; token: where it needs one. Safe to use from any thread.

    authority: PEM file that the certificate of an https URL is checked by: certificates of authorities, or that
    certificate itself. None: the machine's authorities. Raises ControllerError if that file or the token is unusable.
    """

    def __init__(self, url: str, token: str | None, timeout_s: float, authority: Path | None = None) -> None:
        self.url = url.rstrip("/")
        self.token = token
        self.timeout_s = timeout_s
        if token and not (token.isascii() and token.isprintable() and token == token.strip()):
            raise ControllerError(
                "the token is not one line of ASCII: it is in the file api-token of the controller's data"
            )
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._http = httpx.Client(
            headers=headers,
            trust_env=False,  # a proxy of the environment has no business with a loopback address
            verify=_certificates(self.url, authority),
        )
        self._main_thread_calls = CallThread()

    @property
    def aside_s(self) -> float:
        """Return how long to wait for what the controller has another process do, seconds."""
        return max(self.timeout_s, ASIDE_S)

    def close(self) -> None:
        """Give the connection back. Harmless if it is closed."""
        self._main_thread_calls.end(self._http.close, CLOSE_S)

    def send(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, Any] | None = None,
        body: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
        timeout_s: float | None = None,
    ) -> httpx.Response:
        """Return the answer, whatever its status; what is None in *query* is left out. Raises ControllerError."""
        given = {name: value for name, value in (query or {}).items() if value is not None}
        wait_s = self.timeout_s if timeout_s is None else timeout_s
        try:
            return self._main_thread_calls.call(
                lambda: self._http.request(
                    method,
                    f"{self.url}/api/v1{path}",
                    params=given or None,
                    json=body,
                    headers=headers,
                    timeout=httpx.Timeout(wait_s, connect=min(wait_s, CONNECT_TIMEOUT_S)),
                )
            )
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise self._unanswered(method, path, error, wait_s) from None

    def get_bounded(
        self, path: str, *, query: Mapping[str, Any] | None, most_bytes: int, within_s: float
    ) -> httpx.Response:
        """Return what ``GET path`` answers, whatever its status, where it is not trusted to end.

        Raises ControllerError for an answer that is longer than *most_bytes*, compressed, or not whole in *within_s*.
        """
        deadline = time.monotonic() + within_s
        try:
            with self._http.stream(
                "GET",
                f"{self.url}/api/v1{path}",
                params=query or None,
                headers={"Accept-Encoding": "identity"},
                timeout=httpx.Timeout(within_s, connect=min(within_s, CONNECT_TIMEOUT_S)),
            ) as answer:
                if answer.headers.get("Content-Encoding", "identity") != "identity":
                    raise ControllerError(f"GET {path}: the answer is compressed, which was not asked for")
                content = bytearray()
                for piece in answer.iter_raw(_PIECE_BYTES):
                    content += piece
                    if len(content) > most_bytes:
                        raise ControllerError(f"GET {path}: the answer is longer than {most_bytes >> 20} MiB")
                    if time.monotonic() > deadline:
                        raise ControllerError(f"GET {path}: the answer is not whole after {within_s:g} s")
        except (httpx.HTTPError, httpx.InvalidURL, ValueError) as error:
            raise self._unanswered("GET", path, error, within_s) from None
        return httpx.Response(answer.status_code, headers=answer.headers, content=bytes(content))

    def ask(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, Any] | None = None,
        body: Mapping[str, Any] | None = None,
        timeout_s: float | None = None,
    ) -> httpx.Response:
        """Return the answer. Raises ControllerError unless it is a success."""
        answer = self.send(method, path, query=query, body=body, timeout_s=timeout_s)
        if answer.is_error:
            raise _refusal(method, path, answer)
        return answer

    def json(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, Any] | None = None,
        body: Mapping[str, Any] | None = None,
        timeout_s: float | None = None,
    ) -> Any:
        """Return the answer's JSON. Raises ControllerError."""
        answer = self.ask(method, path, query=query, body=body, timeout_s=timeout_s)
        try:
            return answer.json()
        except ValueError:
            raise _refusal(method, path, answer) from None

    def get(self, path: str, **query: Any) -> Any:
        """Return the JSON of ``GET path``. Raises ControllerError."""
        return self.json("GET", path, query=query)

    def get_soon(self, path: str) -> Any:
        """Return the JSON of ``GET path``; where the controller is away, or has no room, ask again for a while, as
        `events` does. Raises ControllerError.
        """
        deadline = time.monotonic() + SILENCE_S
        while True:
            try:
                return self.get(path)
            except ControllerError as error:
                if error.status not in (None, *_AWAY) or time.monotonic() + AGAIN_S > deadline:
                    raise
            time.sleep(AGAIN_S)

    def events(self, topics: str) -> Iterator[dict[str, Any]]:
        """Yield events of *topics* (comma-separated) from now on; after an interruption it goes on where it was.

        Each has ``topic`` beside the fields of the API. The first one is the stream's ``hello``.

        Raises:
            ControllerError: the controller refuses, or stays away.
        """
        last: str | None = None
        failures = 0
        while True:
            headers = {"Accept": "text/event-stream"} | ({} if last is None else {"Last-Event-ID": last})
            timeout = httpx.Timeout(SILENCE_S, connect=5.0)
            try:
                with self._http.stream(
                    "GET",
                    f"{self.url}/api/v1/events",
                    params={"topics": topics},
                    headers=headers,
                    timeout=timeout,
                ) as answer:
                    if answer.is_error:
                        answer.read()
                        failures += 1
                        if answer.status_code not in _AWAY or failures > SILENCE_S / AGAIN_S:
                            raise _refusal("GET", "/events", answer)
                        time.sleep(AGAIN_S)
                        continue
                    for identity, event in parse_events(lines_of(answer.iter_text())):
                        last, failures = identity or last, 0
                        yield event
            except (httpx.HTTPError, httpx.InvalidURL) as error:
                failures += 1
                if failures > SILENCE_S / AGAIN_S or isinstance(error, httpx.InvalidURL):
                    raise self._unanswered("GET", "/events", error, SILENCE_S) from None
            time.sleep(AGAIN_S)

    def _unanswered(self, method: str, path: str, error: Exception, wait_s: float) -> ControllerError:
        why = _reason(error, wait_s)
        return ControllerError(f"the controller at {self.url} does not answer {method} {path}: {why}")


class Connected:
    """A client with a connection of its own, given back at the end of a ``with``."""

    _connection: Connection

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Give the connection back."""
        self._connection.close()


def lines_of(pieces: Iterator[str]) -> Iterator[str]:
    """Yield the lines of a stream of events: they end with LF, and not, as httpx has it, with U+2028 and the like."""
    rest = ""
    for piece in pieces:
        *lines, rest = (rest + piece).split("\n")
        yield from (line.removesuffix("\r") for line in lines)


def parse_events(lines: Iterator[str]) -> Iterator[tuple[str | None, dict[str, Any]]]:
    """Yield events of a stream (WHATWG HTML, section 9.2) with their ids; their data are JSON objects."""
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


def _certificates(url: str, authority: Path | None) -> ssl.SSLContext:
    """Return what servers' certificates are checked by; for http nothing is loaded, and no certificate is taken."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    if not url.startswith("https:"):
        return context
    if authority is None:
        return httpx.create_ssl_context(trust_env=False)
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    try:
        context.load_verify_locations(authority)
    except (OSError, ssl.SSLError) as error:
        why = "it is not a PEM file of certificates" if isinstance(error, ssl.SSLError) else error.strerror
        raise ControllerError(f"authority {authority} cannot be used: {why}") from None
    return context


def _reason(error: Exception, wait_s: float) -> str:
    """Return why there is no answer, in words of the system and not of the libraries in between."""
    if isinstance(error, httpx.InvalidURL | httpx.UnsupportedProtocol):
        return NO_URL
    if isinstance(error, httpx.ConnectTimeout):
        return f"no connection within {min(wait_s, CONNECT_TIMEOUT_S):g} s"
    if isinstance(error, httpx.TimeoutException):
        return f"nothing came within {wait_s:g} s"
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLCertVerificationError):
            return f"its certificate is refused: {cause.verify_message}; give the authority that signed it"
        if isinstance(cause, socket.gaierror):
            return "no machine of that name is known"
        if isinstance(cause, OSError) and cause.errno:
            return os.strerror(cause.errno).lower()
        cause = cause.__cause__ or cause.__context__
    return "the connection ended before there was an answer"


def _refusal(method: str, path: str, answer: httpx.Response) -> ControllerError:
    try:
        problem = answer.json()
    except ValueError:
        problem = {"detail": f"{answer.status_code}, and no JSON: {answer.text[:200]!r}"}
    if not isinstance(problem, dict):
        problem = {"detail": f"unexpected answer {problem!r}"}
    detail = str(problem.get("detail") or problem.get("title") or answer.reason_phrase)
    unconfirmed = problem.get("unconfirmed") or []
    if unconfirmed:
        detail += "; not confirmed by " + ", ".join(f"{part['who']} ({part['why']})" for part in unconfirmed)
    return ControllerError(
        f"{method} {path}: {detail}", answer.status_code, problem.get("field"), problem.get("problems")
    )
