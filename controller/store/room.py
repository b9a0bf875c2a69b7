"""How much may be kept: the database's size against a bound."""

from __future__ import annotations

from typing import Final

from sqlalchemy import Connection, Engine

from capstan_client.errors import CapstanError

GIB: Final = 1 << 30
MOST_BYTES: Final = 32 * GIB
"""Unless `--keep-results-gib` says otherwise: some 5000 runs of 20 000 flows."""


class FullError(CapstanError, RuntimeError):
    """What is kept has reached its bound; the text says how much it is, and what to do."""


def check_room(engine: Engine, most_bytes: int) -> None:
    """Raise FullError if the database has more than *most_bytes*."""
    with engine.connect() as connection:
        stored_bytes = kept_bytes(connection)
    if stored_bytes > most_bytes:
        raise FullError(
            f"the controller's database has {stored_bytes / GIB:.3g} GiB, more than the {most_bytes / GIB:.3g} GiB "
            "that it may have, so no more results are kept: begin the controller with a larger --keep-results-gib, or "
            "with --keep-records-days DAYS, which deletes flow records of older experiments"
        )


def kept_bytes(connection: Connection) -> int:
    """Return the bytes that a database occupies; of SQLite without those that were given free."""
    if connection.dialect.name == "sqlite":
        pages, free, size = (
            int(connection.exec_driver_sql(f"PRAGMA {name}").scalar_one())
            for name in ("page_count", "freelist_count", "page_size")
        )
        return (pages - free) * size
    return int(connection.exec_driver_sql("SELECT pg_database_size(current_database())").scalar_one())
