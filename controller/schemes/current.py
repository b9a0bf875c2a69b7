"""The scheme that is in force, and the file that keeps it over restarts of the controller."""

from __future__ import annotations

import json
import logging
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from controller.schemes import loader
from controller.schemes.policy import policy_for
from controller.schemes.scheme import Scheme

_LOG: Final = logging.getLogger("capstan")


@dataclass(frozen=True, slots=True)
class CurrentScheme:
    """What is in force. ``base``: the name or file it began as; ``scheme``: with its overrides."""

    scheme: Scheme
    base: str
    overrides: dict[str, Any]
    packet_time_s: float
    version: int


class SchemeFile:
    """Keeps a scheme in *path*: as a whole, or the one before."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def write(self, current: CurrentScheme) -> None:
        """Keep *current*. Raises OSError; then the file is as it was."""
        data = {
            "scheme": loader.scheme_to_dict(current.scheme),
            "base": current.base,
            "overrides": current.overrides,
            "packet_time_s": current.packet_time_s,
            "version": current.version,
        }
        fresh = self._path.with_suffix(".new")
        fresh.write_text(json.dumps(data))
        fresh.replace(self._path)

    def begin(self) -> CurrentScheme | None:
        """Return what `read` does, and keep it under that version: each start has another one.

        Agents take a policy of the version that they have for the one in force, and go on with what belongs to it.
        """
        current = self.read()
        if current is not None:
            try:
                self.write(current)
            except OSError as error:
                _LOG.warning("%s is not written, the next start has the same version: %s", self._path, error)
        return current

    def read(self) -> CurrentScheme | None:
        """Return what is kept, under the next version; None if nothing is, or (with a warning) nothing of use."""
        try:
            data = json.loads(self._path.read_text())
            scheme = loader.scheme_from_dict(data["scheme"])
            current = CurrentScheme(
                scheme,
                str(data["base"]),
                dict(data["overrides"]),
                float(data["packet_time_s"]),
                int(data["version"]) + 1,
            )
            policy_for(scheme, current.packet_time_s, current.version)
            return current
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
            _LOG.warning("%s cannot be used, starting afresh: %s", self._path, error)
            return None
