"""The engine as a part of a controller that serves."""

from __future__ import annotations

import ipaddress
import socket
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit, urlunsplit

from flask import Blueprint
from sqlalchemy import Engine as Database

from controller.api.access import Rate
from controller.api.routing import blueprint_of
from controller.api.server import SUBMIT_BURST, SUBMITS_PER_S
from controller.store.experiments import ExperimentStore
from controller.store.queue import ExperimentQueue
from engine.dispatcher import Engine
from engine.executors import PATIENCE_S, DaskWorkers, ExecutorError, LocalWorkers, Order, Workers
from engine.routes import EngineRoutes
from engine.routes_runs import run_routes
from engine.routes_simulated import SimulatedRunRoutes
from engine.routes_workers import WorkerRoutes

CHECKS_PER_S: Final = 20.0
"""Each may take the controller's interpreter for some milliseconds."""
CHECK_BURST: Final = 200


class ServedEngine:
    """Routes, queue and workers of one controller."""

    def __init__(
        self,
        database: Database,
        store: ExperimentStore,
        on_event: Callable[[Any], None],
        workers: Workers,
        *,
        labs: int,
        patience_s: float,
        secret: str,
    ) -> None:
        self._engine = Engine(ExperimentQueue(database), workers, on_event, secret)
        self._secret = secret if workers.on_this_machine else None
        self._address = workers.address
        self._labs = labs
        self._patience_s = patience_s
        self.blueprint: Blueprint = blueprint_of(
            "engine",
            "/api/v1",
            EngineRoutes(
                self._engine,
                store,
                Rate(SUBMITS_PER_S, SUBMIT_BURST, time.monotonic()),
                Rate(
                    CHECKS_PER_S,
                    CHECK_BURST,
                    time.monotonic(),
                    "specs are checked or recordings asked for",
                ),
            ),
            WorkerRoutes(self._engine, store),
            SimulatedRunRoutes(self._engine, store),
        )
        self.blueprint.register_blueprint(run_routes(self._engine))

    def progress(self, experiment: int) -> dict[str, Any]:
        """Return the progress of a submitted experiment, a `ProgressView`. Raises NotFoundError."""
        return asdict(self._engine.progress(experiment))

    def start(self, api: str, token: str | None, authority: Path | None = None) -> None:
        """Begin to run what waits. api: where it listens; authority: what its certificate is checked by (PEM).

        Raises ExecutorError if workers cannot reach it there.
        """
        own = address_for_workers(api, self._address)
        # Words around the certificate may be in any language.
        pem = None if authority is None else authority.read_text(encoding="ascii", errors="ignore")
        self._engine.start(
            Order("", own, token, self._labs, self._patience_s, authority=pem, secret=self._secret)
        )

    def stop(self) -> None:
        """End our workers."""
        self._engine.stop()


def experiments_extension(
    labs: int,
    *,
    dask: str | None,
    patience_s: float = PATIENCE_S,
    dask_in_clear: bool = False,
    simulations: int = 0,
) -> Callable[[Database, ExperimentStore, Callable[[Any], None], str], ServedEngine]:
    """Return what makes the engine, for a controller's settings. simulations: workers here that simulate.

    Raises ExecutorError without Dask's scheduler.
    """
    workers: Workers = (
        LocalWorkers(labs, simulations) if dask is None else DaskWorkers(dask, in_clear=dask_in_clear)
    )
    return lambda database, store, on_event, secret: ServedEngine(
        database, store, on_event, workers, labs=labs, patience_s=patience_s, secret=secret
    )


def address_for_workers(api: str, scheduler: str | None) -> str:
    """Return the URL at which workers reach an API that listens at *api*: those here, or of a Dask scheduler's.

    Raises ExecutorError if they cannot.
    """
    parts = urlsplit(api)
    listening = ipaddress.ip_address(parts.hostname or "")
    there = urlsplit(scheduler or "")
    if there.hostname is None or there.port is None:
        own = listening
        if listening.is_unspecified:
            own = ipaddress.ip_address("127.0.0.1" if listening.version == 4 else "::1")
    else:
        own = _address_towards(there.hostname, there.port)
        if listening.is_loopback and not own.is_loopback:
            raise ExecutorError(
                f"workers at {scheduler} cannot reach the API at {api}: let it listen where they do, --api {own}:8080"
            )
        own = own if listening.is_unspecified else listening
    host = f"[{own}]" if own.version == 6 else str(own)
    return urlunsplit((parts.scheme, f"{host}:{parts.port}", "", "", ""))


def _address_towards(host: str, port: int) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    """Return which of our addresses leads to another machine."""
    try:
        family, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_DGRAM)[0]
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect(address)  # sends nothing
            return ipaddress.ip_address(probe.getsockname()[0])
    except OSError as error:
        raise ExecutorError(f"there is no way to {host}: {error}") from None


__all__ = ["ExecutorError", "ServedEngine", "address_for_workers", "experiments_extension"]
