"""The one place that opens the database: engine, pragmas, migrations to head."""

from __future__ import annotations

import sqlite3
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import (
    Column,
    Connection,
    Engine,
    MetaData,
    String,
    Table,
    create_engine,
    event,
    inspect,
    select,
)
from sqlalchemy.engine import make_url
from sqlalchemy.exc import SQLAlchemyError

from capstan_client.errors import CapstanError
from controller.store.models import NEWEST, Base

if TYPE_CHECKING:
    from alembic.config import Config

_MIGRATIONS: Final = Path(__file__).parent / "migrations"
_BEGIN: Final = "capstan_begin"
BUSY_S: Final = 10.0
"""How long a locked SQLite file is waited for."""
BUSY_AGAIN_S: Final = 0.005
_MIGRATION_LOCK: Final = 0x63617073
"""Number of PostgreSQL's advisory lock for migrations, ours alone within a database."""
_VERSION: Final = Table("alembic_version", MetaData(), Column("version_num", String(32), primary_key=True))
"""Where Alembic keeps which migration was the last one."""


class DatabaseError(CapstanError, RuntimeError):
    """The database cannot be opened or brought up to date; the text says which and why."""


class _MigrationError(RuntimeError):
    """Alembic refuses; the text says why."""


def open_database(url: str) -> Engine:
    """Return an engine on a database that is at the newest schema.

    SQLite runs in WAL mode, so that readers never wait for the writer, and checks foreign keys.

    Raises:
        DatabaseError: not reachable, not writable, or of a newer Capstan.
    """
    try:
        parsed = make_url(url)
    except SQLAlchemyError:
        raise DatabaseError(
            f"database {url!r} is not a SQLAlchemy URL, as sqlite:////var/lib/capstan/capstan.db or "
            "postgresql+psycopg://user:password@host/name"
        ) from None
    shown = parsed.render_as_string(hide_password=True)
    try:
        if parsed.get_backend_name() == "sqlite":
            _prepare_file(parsed.database, shown)
        engine = create_engine(parsed, pool_pre_ping=True)  # a server that was started anew is no error
        if engine.dialect.name == "sqlite":
            event.listen(engine, "connect", prepare_sqlite)
            event.listen(engine, "begin", _begin_sqlite)
        migrate(engine)
    except ImportError as error:
        raise DatabaseError(
            f"database {shown} needs a Python package that is not installed: {error}",
            remedy=".venv/bin/pip install psycopg[binary], for one",
        ) from None
    except (SQLAlchemyError, OSError) as error:
        raise DatabaseError(f"database {shown}: {str(error).splitlines()[0]}") from None
    except _MigrationError as error:
        raise DatabaseError(
            f"database {shown} cannot be brought up to date: {error}",
            remedy="it may be of a newer Capstan: use that",
        ) from None
    return engine


def database_words(error: SQLAlchemyError) -> str:
    """Return what a database that refused says, in one line without the statement and its values."""
    cause = getattr(error, "orig", None) or error
    lines = [line.strip() for line in str(cause).splitlines() if line.strip()]
    return (
        f"the database refuses: {lines[0] if lines else type(cause).__name__}; what it has taken before stays"
    )


def _prepare_file(database: str | None, shown: str) -> None:
    if not database or database == ":memory:":
        raise DatabaseError(
            f"database {shown} would be gone with the controller: give a file, sqlite:////PATH"
        )
    Path(database).parent.mkdir(parents=True, exist_ok=True)


def migration_config() -> Config:
    """Return Alembic's configuration for our migrations."""
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(_MIGRATIONS))
    return config


def migrate(engine: Engine, revision: str | None = None) -> None:
    """Bring the schema forward to *revision* (None: the newest), wholly or not at all."""
    with engine.connect().execution_options(**{_BEGIN: "IMMEDIATE"}) as connection, connection.begin():
        if connection.dialect.name == "postgresql":  # one at a time, as IMMEDIATE does for SQLite
            connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({_MIGRATION_LOCK})")
        if revision is not None or not _made_newest(connection):
            _upgrade(connection, revision or NEWEST)


def _made_newest(connection: Connection) -> bool:
    """Return True if the database is of the newest schema, which an empty one is given."""
    tables = inspect(connection).get_table_names()
    if not tables:
        Base.metadata.create_all(connection, checkfirst=False)
        _VERSION.create(connection, checkfirst=False)
        connection.execute(_VERSION.insert(), {"version_num": NEWEST})
        return True
    return _VERSION.name in tables and list(connection.scalars(select(_VERSION.c.version_num))) == [NEWEST]


def _upgrade(connection: Connection, revision: str) -> None:
    """Run migrations. Raises _MigrationError."""
    # Half a second of processor time, which only a database of an older schema needs.
    from alembic import command
    from alembic.util import CommandError

    config = migration_config()
    config.attributes["connection"] = connection
    try:
        command.upgrade(config, revision)
    except CommandError as error:
        raise _MigrationError(str(error)) from None


def _begin_sqlite(connection: Connection) -> None:
    """Begin a transaction: Python's driver begins none before CREATE TABLE, and a start that was killed would
    leave half a schema.

    Transactions that read first and then write must ask for IMMEDIATE: SQLite refuses a later upgrade at once.
    """
    connection.exec_driver_sql(f"BEGIN {connection.get_execution_options().get(_BEGIN, 'DEFERRED')}")


def prepare_sqlite(connection: Any, _: Any) -> None:
    """Set up a new connection of Python's SQLite driver. Raises sqlite3.OperationalError if the file stays locked."""
    connection.isolation_level = None  # we begin transactions, not the driver
    cursor = connection.cursor()
    cursor.execute(f"PRAGMA busy_timeout={BUSY_S * 1000:.0f}")
    _use_wal(cursor)
    for pragma in ("synchronous=NORMAL", "foreign_keys=ON"):
        cursor.execute(f"PRAGMA {pragma}")
    cursor.close()


def _use_wal(cursor: sqlite3.Cursor) -> None:
    """Have a new file keep a write-ahead log. Raises sqlite3.OperationalError if it stays locked.

    Of two that change a file's mode at once, SQLite refuses one without waiting: each has a lock that the other needs.
    """
    deadline = time.monotonic() + BUSY_S
    while True:
        try:
            cursor.execute("PRAGMA journal_mode=WAL")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
            time.sleep(BUSY_AGAIN_S)
        else:
            return
