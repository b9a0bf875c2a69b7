"""A PostgreSQL server of the tests' own: a cluster in a temporary directory behind a Unix socket, gone afterwards."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import psycopg

OWNER: Final = "postgres"
START_S: Final = 30.0


def program(name: str) -> str:
    """Where a program of the server is: Debian keeps them off PATH."""
    places = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"))
    found = shutil.which(name) or (str(places[-1]) if places else None)
    assert found is not None, f"{name} is not here: apt-get install postgresql"
    return found


@dataclass
class Server:
    """``new`` makes a database and gives its SQLAlchemy URL."""

    directory: Path
    made: int = 0

    def new(self) -> str:
        self.made += 1
        name = f"capstan{self.made}"
        with psycopg.connect(host=str(self.directory), user=OWNER, dbname="postgres", autocommit=True) as own:
            own.execute(f"CREATE DATABASE {name}")
        return f"postgresql+psycopg://{OWNER}@/{name}?host={self.directory}"


@contextmanager
def postgresql_server() -> Iterator[Server]:
    """Between entry and exit. The server refuses to run as root: it runs as Debian's user for it then."""
    directory = Path(tempfile.mkdtemp(prefix="capstan-postgresql-"))
    who: dict[str, Any] = {}
    if os.geteuid() == 0:
        shutil.chown(directory, OWNER, OWNER)
        who = {"user": OWNER, "group": OWNER, "extra_groups": []}
    data = directory / "data"
    log = (directory / "log").open("wb")
    process: subprocess.Popen[bytes] | None = None
    try:
        make = [
            program("initdb"),
            "-D",
            str(data),
            "-U",
            OWNER,
            "-A",
            "trust",
            "-E",
            "UTF8",
            "--locale=C",
            "-N",
        ]
        subprocess.run(make, check=True, stdout=log, stderr=log, cwd="/", **who)
        # Nobody needs these data after a crash of the machine; the server ends with us, even if we are killed.
        argv = [
            "setpriv",
            "--pdeathsig",
            "INT",
            "--",
            program("postgres"),
            "-D",
            str(data),
            "-k",
            str(directory),
        ]
        argv += ["-c", "listen_addresses=", "-c", "fsync=off", "-c", "max_connections=60"]
        process = subprocess.Popen(argv, stdout=log, stderr=log, cwd="/", **who)
        deadline = time.monotonic() + START_S
        while not (directory / ".s.PGSQL.5432").exists() or not _answers(directory):
            assert process.poll() is None, (directory / "log").read_text()
            assert time.monotonic() < deadline, (directory / "log").read_text()
            time.sleep(0.05)
        yield Server(directory)
    finally:
        if process is not None:
            process.send_signal(2)  # "fast": connections are ended
            process.wait(20)
        log.close()
        shutil.rmtree(directory)


def _answers(directory: Path) -> bool:
    try:
        psycopg.connect(host=str(directory), user=OWNER, dbname="postgres").close()
    except psycopg.OperationalError:
        return False
    return True
