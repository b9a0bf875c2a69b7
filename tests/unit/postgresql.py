"""A PostgreSQL server of the tests' own: a cluster in a temporary directory behind a Unix socket, gone afterwards."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import psycopg

OWNER: Final = "postgres"
START_S: Final = 30.0


def program(name: str) -> str:
    """Return the path of a program of the server: Debian keeps them off PATH."""
    places = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"))
    found = shutil.which(name) or (str(places[-1]) if places else None)
    assert found is not None, f"{name} is not here: apt-get install postgresql"
    return found


@dataclass
class Server:
    """``new`` makes a database and gives its SQLAlchemy URL. ``who``: as whom it runs."""

    directory: Path
    who: dict[str, Any] = field(default_factory=dict)
    made: int = 0
    process: subprocess.Popen[bytes] | None = None

    def make(self) -> None:
        """Make the cluster's files."""
        argv = [program("initdb"), "-D", str(self.directory / "data"), "-U", OWNER, "-A", "trust"]
        self._run([*argv, "-E", "UTF8", "--locale=C", "-N"]).wait()

    def start(self) -> None:
        """Start it on its files; returns when it answers."""
        # These data need not outlive a crash of the machine; the server ends with us, even if we are killed.
        argv = ["setpriv", "--pdeathsig", "INT", "--", program("postgres")]
        argv += ["-D", str(self.directory / "data"), "-k", str(self.directory)]
        argv += ["-c", "listen_addresses=", "-c", "fsync=off", "-c", "max_connections=60"]
        self.process = self._run(argv)
        deadline = time.monotonic() + START_S
        while not (self.directory / ".s.PGSQL.5432").exists() or not _answers(self.directory):
            assert self.process.poll() is None, self._log.read_text()
            assert time.monotonic() < deadline, self._log.read_text()
            time.sleep(0.05)

    def stop(self, number: int = signal.SIGINT) -> None:
        """Stop it. SIGINT: "fast", connections are ended; SIGQUIT: at once, as in a crash."""
        if self.process is not None:
            self.process.send_signal(number)
            self.process.wait(20)
            self.process = None

    def new(self) -> str:
        self.made += 1
        name = f"capstan{self.made}"
        with psycopg.connect(host=str(self.directory), user=OWNER, dbname="postgres", autocommit=True) as own:
            own.execute(f"CREATE DATABASE {name}")
        return f"postgresql+psycopg://{OWNER}@/{name}?host={self.directory}"

    @property
    def _log(self) -> Path:
        return self.directory / "log"

    def _run(self, argv: list[str]) -> subprocess.Popen[bytes]:
        with self._log.open("ab") as log:
            return subprocess.Popen(argv, stdout=log, stderr=log, cwd="/", **self.who)


@contextmanager
def postgresql_server() -> Iterator[Server]:
    """Yield a server; stop it at the end. It refuses to run as root: it runs as Debian's user for it then."""
    server = Server(Path(tempfile.mkdtemp(prefix="capstan-postgresql-")))
    if os.geteuid() == 0:
        shutil.chown(server.directory, OWNER, OWNER)
        server.who = {"user": OWNER, "group": OWNER, "extra_groups": []}
    try:
        server.make()
        server.start()
        yield server
    finally:
        server.stop()
        shutil.rmtree(server.directory)


def _answers(directory: Path) -> bool:
    try:
        psycopg.connect(host=str(directory), user=OWNER, dbname="postgres").close()
    except psycopg.OperationalError:
        return False
    return True
