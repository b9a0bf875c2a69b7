"""Who was a member, kept over restarts of the controller in one file."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from controller.agents.membership import Member, members_from_plain, members_to_plain
from plain.reading import PlainError

LOG: Final = logging.getLogger("capstan.agents")


def read_members(path: Path) -> tuple[Member, ...]:
    """Return the members in *path*; none if there is no such file, or (with a warning) none that can be read."""
    try:
        return members_from_plain(json.loads(path.read_text(encoding="utf-8")))
    except FileNotFoundError:
        return ()
    except (OSError, ValueError, RecursionError, PlainError) as error:
        LOG.warning("the list of members %s is lost: %s", path, error)
        return ()


def write_members(path: Path, members: Iterable[Member]) -> None:
    """Keep *members*, as a whole or (with an error in the log) not at all."""
    try:
        draft = path.with_name(f"{path.name}.new")
        draft.write_text(json.dumps(members_to_plain(members)), encoding="utf-8")
        draft.chmod(0o600)
        draft.replace(path)
    except OSError as error:
        LOG.error("the list of members %s cannot be kept: %s", path, error)
