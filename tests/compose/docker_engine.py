"""A Docker engine for the tests: the one that runs here, or one of our own that touches nothing of the machine.

Our own is for machines on which none runs (starting it removes a `docker0`). It has its data, socket and containerd in
a directory of the test, no bridge, no rules in iptables, and leaves forwarding as it is: nothing is there when it has
ended. It gets its base image from debootstrap, for not everywhere is an image registry to be reached.
"""

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
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
BASE: Final = "debian:bookworm-slim"
OWN: Final = "CAPSTAN_TEST_DOCKER"
"""Set to `own`: people (and CI) who want a dockerd started for the tests say so, for it takes minutes."""
PACKAGES: Final = {"dockerd": "docker.io", "docker-compose": "docker-compose", "debootstrap": "debootstrap"}
AUTHORITIES: Final = "/etc/ssl/certs/ca-certificates.crt"
OWN_AUTHORITIES: Final = Path("/usr/local/share/ca-certificates")
"""Of this machine: what update-ca-certificates inside an image adds again."""
START_S: Final = 120.0
STOP_S: Final = 60.0


class NoEngineError(RuntimeError):
    """No Docker engine is to be had; the text says why."""


@dataclass(frozen=True)
class Engine:
    """How to reach an engine. own: it is ours, and what a build needs it has only in the host's network."""

    environment: dict[str, str]
    own: bool

    def run(
        self, *argv: str, timeout_s: float = 60.0, check: bool = True
    ) -> subprocess.CompletedProcess[str]:
        """Run `docker` or `docker-compose` on it. Raises RuntimeError with what it said."""
        done = subprocess.run(
            argv,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=timeout_s,
            cwd=ROOT,
            check=False,
        )
        if check and done.returncode:
            said = (done.stdout + done.stderr)[-3000:]
            raise RuntimeError(f"`{' '.join(argv)}` failed ({done.returncode}):\n{said}")
        return done


@contextmanager
def docker_engine() -> Iterator[Engine]:
    """Yield an engine that has the base image. Raises NoEngineError."""
    if os.geteuid() != 0:
        raise NoEngineError("needs root")
    if answers(dict(os.environ)) and shutil.which("docker-compose"):
        engine = Engine(dict(os.environ), own=False)
        provide_base(engine)
        yield engine
        return
    if os.environ.get(OWN) != "own":
        raise NoEngineError(
            f"none runs with docker-compose beside it; {OWN}=own starts one, in some 6 minutes"
        )
    install_missing()
    with (
        tempfile.TemporaryDirectory(prefix="capstan-docker-") as scratch,
        own_engine(Path(scratch)) as engine,
    ):
        provide_base(engine)
        yield engine


def answers(environment: dict[str, str]) -> bool:
    """Return whether an engine answers."""
    if shutil.which("docker") is None:
        return False
    asked = subprocess.run(["docker", "info"], env=environment, capture_output=True, check=False)
    return asked.returncode == 0


def install_missing() -> None:
    """Install what an engine of our own needs; no service is started. Raises NoEngineError."""
    missing = [package for program, package in PACKAGES.items() if shutil.which(program) is None]
    if not missing:
        return
    argv = [str(ROOT / "setup" / "install-packages"), *missing]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    if done.returncode:
        raise NoEngineError(
            f"apt-get could not install {', '.join(missing)}: {done.stdout[-500:]}{done.stderr[-500:]}"
        )


@contextmanager
def own_engine(scratch: Path) -> Iterator[Engine]:
    """Yield a dockerd of our own, gone afterwards. Raises NoEngineError if it does not start."""
    address = f"unix://{scratch}/docker.sock"
    environment = {**os.environ, "DOCKER_HOST": address}
    argv = ["dockerd", "--host", address, "--data-root", f"{scratch}/data", "--exec-root", f"{scratch}/exec"]
    argv += ["--pidfile", f"{scratch}/pid", "--bridge=none", "--iptables=false", "--ip-forward=false"]
    argv += ["--ip-masq=false", "--group", "root"]
    log = scratch / "log"
    with log.open("wb") as output:
        process = subprocess.Popen(argv, stdout=output, stderr=subprocess.STDOUT, start_new_session=True)
    try:
        deadline = time.monotonic() + START_S
        while not answers(environment):
            if process.poll() is not None or time.monotonic() > deadline:
                raise NoEngineError(f"dockerd does not start: {log.read_text(errors='replace')[-800:]}")
            time.sleep(0.2)
        yield Engine(environment, own=True)
    finally:
        process.terminate()
        try:
            process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        unmount_below(scratch)


def unmount_below(directory: Path) -> None:
    """Unmount all below *directory*: dockerd leaves its own network namespace mounted when it ends."""
    mounts = [line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    for mount in sorted((one for one in mounts if one.startswith(f"{directory}/")), reverse=True):
        subprocess.run(["umount", mount], check=False)


def provide_base(engine: Engine) -> None:
    """Provide the base image: from a registry, else made here. Raises NoEngineError."""
    if engine.run("docker", "image", "inspect", BASE, check=False).returncode == 0:
        return
    if not engine.own and engine.run("docker", "pull", BASE, timeout_s=120, check=False).returncode == 0:
        return
    with tempfile.TemporaryDirectory(prefix="capstan-base-") as place:
        made = subprocess.run(
            ["debootstrap", "--variant=minbase", "bookworm", place],
            capture_output=True,
            text=True,
            check=False,
        )
        if made.returncode:
            raise NoEngineError(f"debootstrap could not make {BASE}: {made.stdout[-800:]}")
        for leftover in (Path(place) / "var/cache/apt/archives").glob("*.deb"):
            leftover.unlink()
        # This machine may stand behind an authority of its own: package managers inside have to know it.
        (Path(place) / "etc/ssl/certs").mkdir(parents=True, exist_ok=True)
        if Path(AUTHORITIES).exists():
            shutil.copy(AUTHORITIES, f"{place}{AUTHORITIES}")
        if OWN_AUTHORITIES.exists():
            shutil.copytree(OWN_AUTHORITIES, f"{place}{OWN_AUTHORITIES}", dirs_exist_ok=True)
        variables = [f"{name}={AUTHORITIES}" for name in ("SSL_CERT_FILE", "PIP_CERT", "CARGO_HTTP_CAINFO")]
        variables.append(f"NODE_EXTRA_CA_CERTS={AUTHORITIES}")
        tar = subprocess.Popen(["tar", "-C", place, "-c", "."], stdout=subprocess.PIPE)
        imported = subprocess.run(
            ["docker", "import", "--change", f"ENV {' '.join(variables)}", "-", BASE],
            stdin=tar.stdout,
            env=engine.environment,
            capture_output=True,
            text=True,
            check=False,
        )
        if tar.wait() or imported.returncode:
            raise NoEngineError(f"docker could not import {BASE}: {imported.stderr[-500:]}")
