"""The one place that opens the database: engine, pragmas, migrations to head."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from alembic import command
from alembic.config import Config
from sqlalchemy import Engine, create_engine, event
from sqlalchemy.engine import make_url
from sqlalchemy.exc import SQLAlchemyError

_MIGRATIONS: Final = Path(__file__).parent / "migrations"


class DatabaseError(RuntimeError):
    """The database cannot be opened or brought up to date; the text says which and why."""


def open_database(url: str) -> Engine:
    """An engine on a database that is at the newest schema.

    SQLite runs in WAL mode, so that readers never wait for the writer, and checks foreign keys.

    Raises:
        DatabaseError: not reachable, not writable, or of a newer Capstan.
    """
    try:
        parsed = make_url(url)
        if parsed.get_backend_name() == "sqlite" and parsed.database:
            Path(parsed.database).parent.mkdir(parents=True, exist_ok=True)
        engine = create_engine(url)
        if engine.dialect.name == "sqlite":
            event.listen(engine, "connect", _prepare_sqlite)
        migrate(engine)
    except (SQLAlchemyError, OSError) as error:
        raise DatabaseError(f"database {url}: {str(error).splitlines()[0]}") from None
    except Exception as error:  # alembic's CommandError: an unknown revision
        raise DatabaseError(f"database {url} cannot be brought up to date: {error}") from None
    return engine


def migration_config() -> Config:
    """Alembic's configuration for our migrations."""
    config = Config()
    config.set_main_option("script_location", str(_MIGRATIONS))
    return config


def migrate(engine: Engine, revision: str = "head") -> None:
    """Bring the schema forward to *revision*."""
    config = migration_config()
    with engine.begin() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, revision)


def _prepare_sqlite(connection: Any, _: Any) -> None:
    cursor = connection.cursor()
    for pragma in ("journal_mode=WAL", "synchronous=NORMAL", "foreign_keys=ON", "busy_timeout=10000"):
        cursor.execute(f"PRAGMA {pragma}")
    cursor.close()
