"""Shared secrets in files: made when missing, readable by their owner alone."""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from capstan_client.errors import CapstanError
from controller.agents.membership import HOST

SHORTEST_TOKEN: Final = 16


class TokenError(CapstanError, ValueError):
    """A token file that cannot be used; the text says what to do."""


WORKER_SECRET_FILE: Final = "worker-secret"
"""In the controller's data directory: what makes a worker's report of its lab's address believed."""


def read_or_make_token(path: Path) -> str:
    """Return the token in *path*; a new random one, mode 0600, if there is no such file. Its directory must exist.

    Raises:
        TokenError: unreadable, readable by all users, or too short.
    """
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except FileExistsError:
        return _read(path)
    except OSError as error:
        raise TokenError(f"token file {path} cannot be made: {error.strerror}") from None
    token = secrets.token_urlsafe(32)
    with os.fdopen(handle, "w", encoding="ascii") as file:
        file.write(token + "\n")
    return token


def host_tokens(directory: Path, hosts: Iterable[str]) -> dict[str, str]:
    """Return the token of each host, kept in a file of its name in *directory*, made where there is none.

    Raises TokenError.
    """
    tokens = {}
    try:
        directory.mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise TokenError(
            f"directory {directory} of the agents' tokens cannot be made: {error.strerror}"
        ) from None
    for host in hosts:
        if not HOST.fullmatch(host):
            raise TokenError(f"{host!r} is not a host name: letters, digits, '.', '_' and '-', at most 63")
        tokens[host] = read_or_make_token(directory / host)
    return tokens


def _read(path: Path) -> str:
    try:
        mode = path.stat().st_mode
        text = path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise TokenError(f"token file {path} cannot be read: {error}") from None
    if stat.S_IMODE(mode) & 0o007:
        raise TokenError(f"token file {path} can be read by all users: chmod 0600 it, better make a new one")
    if len(text) < SHORTEST_TOKEN:
        raise TokenError(
            f"token file {path} holds {len(text)} characters, fewer than {SHORTEST_TOKEN}: "
            "remove it and a new one is made"
        )
    return text
