"""The controller as one process: settings in, a running controller until a signal ends it."""

from __future__ import annotations

import hashlib
import ipaddress
import json
import os
import secrets
import signal
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Protocol

from sqlalchemy import Engine

from controller.agents.datagram_keys import PairKeys
from controller.agents.listeners import TcpListener
from controller.agents.settings import ChannelSettings
from controller.agents.token import WORKER_SECRET_FILE, host_tokens, read_or_make_token
from controller.api.body_limits import long_bodies
from controller.api.exporting import MOST_WAITING
from controller.api.front.in_process import HttpThread
from controller.api.front.limits import FrontSettings, TlsFiles, Tokens
from controller.api.front.process import HttpFront
from controller.api.server import ApiSettings, Extension, make_app
from controller.lifecycle import RunningController
from controller.live.event_log import http_restarted
from controller.live.link_sampling import EVERY_S
from controller.openflow.allowed import AllowedSwitches, AllowedSwitchesError, read_allowed_switches
from controller.openflow.tls import SwitchTls, SwitchTlsContexts
from controller.process.control_thread import first_death, on_first_death
from controller.process.freed_memory import FreedMemory
from controller.process.lldp_key import lldp_key, new_lldp_key
from controller.store.database import open_database
from controller.store.experiments import ExperimentStore
from controller.store.finished_flows import FinishedFlowStore
from controller.store.retention import Retention
from controller.store.room import MOST_BYTES
from loops.ending import Ending
from plain.sqlite_url import sqlite_url
from protocol.packet_time import PACKET_TIME_S
from protocol.version import VERSION

API_THREADS: Final = 2 * MOST_WAITING
"""Half of them answer all that is not drawn."""
LOOK_S: Final = 0.5 if sys.platform == "win32" else 10.0
"""Between looks at the memory and whether to end, which a signal cuts short except on Windows."""
LAST_S: Final = 10.0
"""After a control thread died, the process has this long to end in order; then it ends at once."""
DIED_STATUS: Final = 70
"""Exit status then (EX_SOFTWARE)."""


class ServedExtension(Extension, Protocol):
    """The same with a life of its own: `start` once the API answers, `stop` before it ends."""

    def start(self, api: str, token: str | None, authority: Path | None) -> None:
        """Begin, for an API at the URL *api*; authority: the file that its certificate is checked by, if it has one."""

    def stop(self) -> None:
        """End."""


MakeExtension = Callable[[Engine, ExperimentStore, Callable[[Any], None], str], ServedExtension]
"""Of the database, what is kept there, what takes events, and the secret of workers on this machine."""


@dataclass(frozen=True, slots=True)
class Settings:
    """One controller. Ports 0: any that is free. ``packet_time_s``: until an experiment says otherwise.

    data: directory of the database, tokens and `endpoints.json`. lab: faults may be injected by the API.
    api_without_token: although others may reach the address: a firewall or container keeps them from it.
    """

    data: Path
    database_url: str | None = None
    openflow_address: str = "127.0.0.1"
    openflow_port: int = 6653
    openflow_tls: SwitchTls | None = None
    """None: switches connect in clear."""
    switches: Path | None = None
    """Datapath ids of the switches that may connect; None: all."""
    api_address: str = "127.0.0.1"
    api_port: int = 8080
    api_tls: TlsFiles | None = None
    """None: the API is served in clear."""
    api_without_token: bool = False
    agents_socket: Path | None = None
    agents_tcp: TcpListener | None = None
    token_file: Path | None = None
    agent_hosts: tuple[str, ...] = ()
    """Each has a token of its own, and no other host an agent; empty: one token for all."""
    authenticate_datagrams: bool = False
    """Agents authenticate what they send each other, by keys of ours."""
    scheme: str = "ecmp"
    packet_time_s: float = PACKET_TIME_S
    lab: bool = False
    opens_on_tour: bool = False
    links_every_s: float = EVERY_S
    extension: MakeExtension | None = None
    fabric: bool = True
    """False: no switches and no agents, so nothing that they need; the API is on loopback."""
    keep_results_bytes: int = MOST_BYTES
    """Of the database: beyond, results are refused."""
    keep_records_days: float | None = None
    """Flow records of experiments that ended before are deleted; None: they are kept for ever."""

    @property
    def open_to_all(self) -> bool:
        """Return whether the API asks for no token, since only this machine reaches it."""
        return self.api_without_token or ipaddress.ip_address(self.api_address).is_loopback


def serve(settings: Settings) -> None:
    """Run until SIGTERM or SIGINT. Prints one line with the addresses once ready.

    Raises:
        OSError, ChannelError, DatabaseError, SchemeError, TokenError, AllowedSwitchesError, SwitchTlsError: what cannot
            be had, and where.
        ControlThreadDiedError: a thread that the controller needs has died.
    """
    settings.data.mkdir(parents=True, exist_ok=True)
    process = _Process(settings)
    try:
        process.running.start()
    except BaseException as error:
        process.running.stop()
        if isinstance(error, OSError):
            address, port = settings.openflow_address, settings.openflow_port
            raise _not_listening("switches", "--openflow", address=address, port=port, error=error) from None
        raise
    try:
        process.serve_api()
    finally:
        process.close()
    died = first_death()
    if died is not None:
        raise died


class _Process:
    """Database, controller and API of one process, made by its settings."""

    def __init__(self, settings: Settings) -> None:
        data = settings.data
        self._settings: Final = settings
        token = _agents_token(settings)
        hosts = settings.agent_hosts
        own_tokens = host_tokens(data / "agent-tokens", hosts) if hosts else None
        self._tokens: Final = _make_api_tokens(settings)
        self._socket_path: Final = settings.agents_socket or (
            None if settings.agents_tcp or not settings.fabric else data / "agents.sock"
        )
        self._database: Final = open_database(settings.database_url or sqlite_url(data / "capstan.db"))
        key = lldp_key(data / "lldp-key") if settings.fabric else new_lldp_key()
        self.running: Final = RunningController(
            key=key,
            openflow=(settings.openflow_address, settings.openflow_port) if settings.fabric else None,
            allowed=_allowed_switches(settings),
            tls=None if settings.openflow_tls is None else SwitchTlsContexts(settings.openflow_tls),
            channel=ChannelSettings(
                self._socket_path,
                data / "members.json",
                settings.agents_tcp,
                host_tokens=own_tokens,
                datagram_keys=_datagram_keys(settings),
            ),
            token=token,
            state_file=data / "scheme.json",
            initial=(settings.scheme, settings.packet_time_s),
            lab=settings.lab,
            links_every_s=settings.links_every_s,
            finished_flows=FinishedFlowStore(self._database, hashlib.sha256(key).hexdigest()[:16]),
        )
        store = ExperimentStore(self._database, settings.keep_results_bytes)
        make, days = settings.extension, settings.keep_records_days
        self._extension: Final = (
            None
            if make is None
            else make(
                self._database, store, self.running.events.add, read_or_make_token(data / WORKER_SECRET_FILE)
            )
        )
        self._retention: Final = None if days is None else Retention(self._database, days)
        api = ApiSettings(
            self._tokens.operate, settings.lab, self._tokens.read, opens_on_tour=settings.opens_on_tour
        )
        self._app: Final = make_app(self.running, store, api, VERSION, extension=self._extension)
        self._ending: Final = Ending()
        self._no_api: str | None = None
        """Why there is no API any more."""

    def serve_api(self) -> None:
        """Answer until the process is to end. Raises OSError if the API cannot be served."""
        front = self._make_front()
        api = _api_url(self._settings, front.port)
        _end_on_signals(self._ending)
        on_first_death(lambda: _end_for_death(self._ending))
        _write_endpoints(
            self._settings.data / "endpoints.json",
            self._settings,
            api=api,
            running=self.running,
            socket_path=self._socket_path,
        )
        self._print_addresses(api)
        if self._retention is not None:
            self._retention.start()
        front.start()
        try:
            if self._extension is not None:
                self._extension.start(api, self._tokens.operate, _own_authority(self._settings))
            memory = FreedMemory()
            while not self._ending.wait(LOOK_S):
                memory.look()
            if self._no_api is not None:
                raise OSError(self._no_api)
        finally:
            if self._extension is not None:
                self._extension.stop()
            front.stop()

    def close(self) -> None:
        """Disconnect from switches, agents and the database."""
        self.running.stop()
        if self._retention is not None:
            self._retention.stop()
        on_first_death(None)
        self._database.dispose()  # SQLite then folds its -wal into the file, and removes it
        (self._settings.data / "endpoints.json").unlink(missing_ok=True)

    def _make_front(self) -> HttpFront | HttpThread:
        address, port = self._settings.api_address, self._settings.api_port
        settings = FrontSettings(
            API_THREADS,
            long_bodies=long_bodies(self._app),
            tokens=Tokens(self._tokens.operate, self._tokens.read),
            tls=self._settings.api_tls,
        )
        try:
            if not self._settings.fabric:
                return HttpThread(self._app, address, port, settings)
            return HttpFront(
                self._app,
                address,
                port,
                settings,
                on_restart=lambda code, after_s: self.running.events.add(http_restarted(code, after_s)),
                on_given_up=self._give_up,
            )
        except OSError as error:
            raise _not_listening("the API", "--api", address=address, port=port, error=error) from None

    def _give_up(self, why: str) -> None:
        self._no_api = why
        self._ending.set()

    def _print_addresses(self, api: str) -> None:
        if not self._settings.fabric:
            print(
                f"page {api}/watch    tour {api}/tour    begin a simulation {api}/compare    Ctrl-C ends it",
                flush=True,
            )
            return
        print(
            f"capstan controller: API {api}, switches at {_openflow_at(self._settings, self.running)}, "
            f"agents at {_agents_at(self._settings, self.running, self._socket_path)}",
            flush=True,
        )
        for path in self._tokens.fresh:
            print(
                f"capstan controller: new token of the API, kept in {path}: {path.read_text().strip()}",
                flush=True,
            )


@dataclass(frozen=True, slots=True)
class _ApiTokens:
    """``operate``, ``read``: what they allow; None: no token is needed. ``fresh``: files that were made just now."""

    operate: str | None = None
    read: str | None = None
    fresh: tuple[Path, ...] = ()


def _make_api_tokens(settings: Settings) -> _ApiTokens:
    """Return the API's tokens, read from the data directory or made there. Raises TokenError, OSError."""
    if settings.open_to_all:
        return _ApiTokens()
    operate, read = settings.data / "api-token", settings.data / "api-read-token"
    fresh = tuple(path for path in (operate, read) if not path.exists())
    return _ApiTokens(read_or_make_token(operate), read_or_make_token(read), fresh)


def _datagram_keys(settings: Settings) -> PairKeys | None:
    """Return the keys of agents' datagrams; None: they have none. Raises TokenError."""
    if not settings.authenticate_datagrams:
        return None
    secret = read_or_make_token(settings.data / "datagram-secret")
    return PairKeys(secret, time.time(), time.monotonic())


def _agents_token(settings: Settings) -> str:
    """Return what agents show; where there are none, a fresh one that is kept nowhere. Raises TokenError."""
    if not settings.fabric:
        return secrets.token_urlsafe()
    return read_or_make_token(settings.token_file or settings.data / "agents-token")


def _allowed_switches(settings: Settings) -> AllowedSwitches | None:
    if settings.switches is None:
        return None
    allowed = read_allowed_switches(settings.switches)
    if allowed.certificates and settings.openflow_tls is None:
        raise AllowedSwitchesError(
            f"{settings.switches} names certificates, which switches show by TLS only: give --switch-authority, or "
            "leave the names out"
        )
    return allowed


def _not_listening(who: str, option: str, *, address: str, port: int, error: OSError) -> OSError:
    number = error.errno or 0  # asyncio's text repeats the address; a resolver's numbers are negative
    why = os.strerror(number) if number > 0 else error.strerror or error
    return OSError(
        f"{who} cannot be listened for at {_in_url(address)}:{port}: {why}; choose another address or port ({option})"
    )


def _agents_at(settings: Settings, running: RunningController, socket_path: Path | None) -> str:
    tcp = settings.agents_tcp
    places = [] if socket_path is None else [f"unix:{socket_path}"]
    if tcp is not None:
        places.append(f"tls:{_in_url(tcp.address)}:{running.agents.tcp_port}")
    return ", ".join(places)


def _openflow_at(settings: Settings, running: RunningController) -> str:
    scheme = "" if settings.openflow_tls is None else "ssl:"
    return f"{scheme}{settings.openflow_address}:{running.shell.port}"


def _api_url(settings: Settings, port: int) -> str:
    """Return where clients on this machine find the API."""
    scheme = "http" if settings.api_tls is None else "https"
    return f"{scheme}://{_in_url(settings.api_address)}:{port}"


def _own_authority(settings: Settings) -> Path | None:
    """Return what programs that we start take for the API's authority: its certificate itself."""
    return None if settings.api_tls is None else Path(settings.api_tls.certificate)


def _in_url(address: str) -> str:
    return f"[{address}]" if ":" in address else address


def _end_on_signals(ending: Ending) -> None:
    """Set *ending* when a signal asks us to end, from now on."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: ending.set())


def _end_for_death(ending: Ending) -> None:
    """Have `serve` end; a process that a dead thread keeps from ending in order ends at once, later."""
    ending.set()
    last = threading.Timer(LAST_S, os._exit, (DIED_STATUS,))
    last.daemon = True
    last.start()


def _write_endpoints(
    path: Path, settings: Settings, *, api: str, running: RunningController, socket_path: Path | None
) -> None:
    tcp = settings.agents_tcp
    document = {
        "api": api,
        "token_needed": not settings.open_to_all,
        "openflow": {
            "address": settings.openflow_address,
            "port": running.shell.port,
            "tls": settings.openflow_tls is not None,
        }
        if settings.fabric
        else None,
        "agents": {
            "socket": str(socket_path) if socket_path else None,
            "tcp": f"{_in_url(tcp.address)}:{running.agents.tcp_port}" if tcp else None,
        },
        "pid": os.getpid(),
    }
    fresh = path.with_suffix(".new")
    fresh.write_text(json.dumps(document))
    fresh.replace(path)
