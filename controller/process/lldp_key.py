"""The key by which a controller knows its own LLDP frames."""

from __future__ import annotations

import os
import secrets
from pathlib import Path
from typing import Final

_BYTES: Final = 16


def new_lldp_key() -> bytes:
    """Return a key that cannot be guessed."""
    return secrets.token_bytes(_BYTES)


def lldp_key(path: Path) -> bytes:
    """Return the key of our LLDP frames, the same after a restart. Only its owner may read it. Raises ValueError."""
    try:
        key = path.read_bytes()
    except FileNotFoundError:
        key = new_lldp_key()
        draft = path.with_name(f"{path.name}.new")
        draft.unlink(missing_ok=True)
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(key)
        draft.replace(path)
    if len(key) != _BYTES:  # with a key that others can guess, they could make links
        raise ValueError(f"{path} holds {len(key)} B, not {_BYTES}: remove it and a new one is made")
    return key
