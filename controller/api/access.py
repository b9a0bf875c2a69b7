"""Who may ask what: tokens with their roles, pages of other origins, and how often experiments may be begun."""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import math
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit

from controller.api.problems import ProblemError
from controller.token_bucket import TokenBucket

COOKIE: Final = "capstan-session"
"""How the names of our cookies begin (`Access.cookie_name`)."""
READING: Final = frozenset({"GET", "HEAD", "OPTIONS"})
API: Final = "/api/"
SESSION: Final = "/api/v1/session"
_MOST_DIGITS: Final = 12


SESSION_S: Final = 12 * 3600
"""How long a browser's session lasts; the page begins a new one each hour while it is open."""


def cookie_of(token: str, until: int) -> str:
    """Return what a browser keeps in place of a token: it allows the same until then (Unix seconds), and the token does
    not follow from it.
    """
    return f"{until}.{_signature(token, until)}"


def _cookie_name(token: str | None) -> str:
    """Return a name of this controller's own: a browser keeps one cookie of a name for all ports of a machine."""
    if token is None:
        return COOKIE  # no session begins here
    return f"{COOKIE}-{hmac.new(token.encode(), b'capstan cookie', hashlib.sha256).hexdigest()[:8]}"


def _signature(token: str, until: int) -> str:
    return hmac.new(token.encode(), f"capstan session {until}".encode(), hashlib.sha256).hexdigest()


@dataclass(frozen=True, slots=True)
class Session:
    """What a browser keeps, and until when it is valid (Unix seconds)."""

    cookie: str
    until: int


class Access:
    """Decides by a request's head, so that its body need not be read: by the strings of its WSGI environment.

    operate, read: tokens; with ``operate`` None (on loopback) none is needed. ``read`` only allows to read. now:
    returns Unix seconds.
    """

    def __init__(
        self, operate: str | None, read: str | None = None, now: Callable[[], float] = time.time
    ) -> None:
        self.cookie_name: Final = _cookie_name(operate)
        self._operate = operate
        self._read = read
        self._now = now

    def check(self, head: Mapping[str, Any]) -> None:
        """Raise ProblemError for requests that may not be.

        401: no token, or a wrong one; 403: of another origin, or a token for reading only.
        """
        method, path = str(head["REQUEST_METHOD"]), _path_of(head)
        self._check_origin(method, head)
        if self._operate is None or not path.startswith(API):
            return  # pages are no secret: what they show is
        role = self._role(head)
        if role is None:
            raise ProblemError(401, "this address needs the header Authorization: Bearer TOKEN")
        if role == "read" and method not in READING and path != SESSION:
            raise ProblemError(403, "this token is for reading only: the one in api-token may change things")

    def session_of(self, head: Mapping[str, Any]) -> Session | None:
        """Return a session for who has proved to have a token, by itself or by a session; None: none is needed."""
        token = {"operate": self._operate, "read": self._read, None: None}[self._role(head)]
        if token is None:
            return None
        until = int(self._now()) + SESSION_S
        return Session(cookie_of(token, until), until)

    def role(self, head: Mapping[str, Any]) -> str:
        """Return what a request that `check` let pass may do: "operate" or "read"."""
        return self._role(head) or "operate"

    def _role(self, head: Mapping[str, Any]) -> str | None:
        kind, _, given = head.get("HTTP_AUTHORIZATION", "").partition(" ")
        bearer = given.strip() if kind.lower() == "bearer" else ""
        cookies = _cookies(head.get("HTTP_COOKIE", ""), self.cookie_name)
        for role, token in (("operate", self._operate), ("read", self._read)):
            if token is not None and (
                _same(bearer, token) or any(self._is_session(value, token) for value in cookies)
            ):
                return role
        return None

    def _is_session(self, cookie: str, token: str) -> bool:
        until, _, signature = cookie.partition(".")
        if not (until.isascii() and until.isdigit() and len(until) <= _MOST_DIGITS):
            return False
        return _same(signature, _signature(token, int(until))) and self._now() < int(until)

    def _check_origin(self, method: str, head: Mapping[str, Any]) -> None:
        """Refuse a page of another origin: it must not drive this controller through its reader's browser.

        Without a token the name that was asked for counts, too: a page may have had its own name point here.
        """
        origin, host = head.get("HTTP_ORIGIN"), _host_of(head)
        if method not in READING and origin is not None and _netloc(origin) != host:
            raise ProblemError(403, f"requests of pages of {origin[:100]} are not taken: same origin only")
        if self._operate is None and not _is_address(host):
            raise ProblemError(403, f"this controller is not {host[:100]}: ask for 127.0.0.1 or localhost")


class Rate:
    """At most *burst* at once, and *per_s* a second in the long run."""

    def __init__(
        self, per_s: float, burst: float, now: float, too_many: str = "experiments are begun"
    ) -> None:
        self._too_many = too_many
        self._per_s = per_s
        self._requests = TokenBucket(burst, now)
        self._lock = threading.Lock()

    def take(self, now: float, count: float = 1) -> None:
        """Count so many, at most *burst*. Raise ProblemError (429) if it is too soon for them."""
        with self._lock:
            level = self._requests.level(self._per_s, now)
            if level < count:
                wait_s = math.ceil(10 * (count - level) / self._per_s) / 10  # any sooner it is refused again
                raise ProblemError(429, f"too many {self._too_many}: try again in {wait_s:.1f} s")
            self._requests.spend(count)


def _same(given: str, known: str) -> bool:
    return hmac.compare_digest(given.encode(errors="surrogatepass"), known.encode())


def _path_of(head: Mapping[str, Any]) -> str:
    """Return the path as the application reads it, which sees one slash where several begin a path."""
    return "/" + str(head.get("PATH_INFO", "")).lstrip("/")


def _host_of(head: Mapping[str, Any]) -> str:
    """Return the name and port that were asked for; without a header (HTTP/1.0) the address that was reached."""
    host = head.get("HTTP_HOST")
    if host is None:
        return f"{head.get('SERVER_NAME', '')}:{head.get('SERVER_PORT', '')}"
    return str(host).removesuffix(":80")


def _cookies(header: str, ours: str) -> list[str]:
    """Return values of our cookie: a browser may have kept one for each of several paths."""
    pairs = (pair.strip().partition("=") for pair in header.split(";"))
    return [value.strip().strip('"') for name, _, value in pairs if name.strip() == ours]


def _netloc(origin: str) -> str | None:
    """Return host and port of an address; None for what is none."""
    try:
        return urlsplit(origin).netloc
    except ValueError:
        return None


def _is_address(host: str) -> bool:
    try:
        name = urlsplit(f"//{host}").hostname or ""
        if name == "localhost" or name.endswith(".localhost"):
            return True
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
