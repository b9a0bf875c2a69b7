"""Opening the database: from nothing to the newest schema, from any older one, and what keeps it from opening."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from threading import Barrier

import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Engine, MetaData, create_engine, inspect, text
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.schema import CreateTable

from controller.store.database import (
    DatabaseError,
    migrate,
    migration_config,
    open_database,
    prepare_sqlite,
)
from controller.store.experiments import ExperimentStore
from controller.store.models import NEWEST, Base
from tests.free_ports import free_port
from tests.unit.conftest import NewDatabase
from tests.unit.experiments_store import flow_row, new_experiment, run_row

REVISIONS = [script.revision for script in ScriptDirectory.from_config(migration_config()).walk_revisions()][
    ::-1
]


def test_a_directory_that_is_missing_is_made(tmp_path: Path) -> None:
    open_database(f"sqlite:///{tmp_path / 'new' / 'deep' / 'capstan.db'}").dispose()
    assert (tmp_path / "new" / "deep" / "capstan.db").exists()


def test_an_empty_database_becomes_one_of_exactly_the_models(new_database: NewDatabase) -> None:
    engine = open_database(new_database())
    assert set(inspect(engine).get_table_names()) == {*Base.metadata.tables, "alembic_version"}
    with engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        assert compare_metadata(context, Base.metadata) == []
    engine.dispose()


@pytest.mark.slow
def test_migrations_from_nothing_lead_to_what_an_empty_database_is_given(new_database: NewDatabase) -> None:
    given, migrated = open_database(new_database()), create_engine(new_database())
    migrate(migrated, NEWEST)
    assert schema(given) == schema(migrated)
    for engine in (given, migrated):
        engine.dispose()


def schema(engine: Engine) -> dict[str, object]:
    """Return columns, keys, indexes and the version, of all tables."""
    found, tables = inspect(engine), MetaData()
    tables.reflect(engine)
    with engine.connect() as connection:
        version = connection.execute(text("SELECT version_num FROM alembic_version")).scalars().all()
    return {"version": version} | {
        name: (
            [
                {**one, "type": str(one["type"]), "default": str(one["default"])}
                for one in found.get_columns(name)
            ],
            found.get_pk_constraint(name)["constrained_columns"],
            sorted(map(str, found.get_foreign_keys(name))),
            sorted(map(str, found.get_unique_constraints(name))),
            sorted(map(str, found.get_indexes(name))),
        )
        for name in tables.tables
    }


@pytest.mark.slow
def test_a_controller_that_has_nothing_to_migrate_does_not_load_what_migrates(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'capstan.db'}"
    for state in ("made", "found"):
        code = (
            f"import sys, controller.app; controller.app.open_database({url!r})\n"
            "sys.exit(' '.join({'alembic', 'mako'} & set(sys.modules)))"
        )
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
        assert done.stderr.strip() == "", state


def test_migrations_are_one_line_without_branches() -> None:
    scripts = ScriptDirectory.from_config(migration_config())
    assert scripts.get_heads() == [NEWEST]
    assert [f"{number:04}" for number in range(1, len(REVISIONS) + 1)] == REVISIONS


@pytest.mark.slow
@pytest.mark.parametrize("revision", REVISIONS)
def test_a_database_of_any_older_version_keeps_its_rows(new_database: NewDatabase, revision: str) -> None:
    url = new_database()
    old = create_engine(url)
    migrate(old, revision)
    # PostgreSQL's whole numbers had 32 bits in the first schema.
    seed = 2**62 if old.dialect.name == "sqlite" or revision > "0001" else 2**30
    number = write_rows(old, seed)
    old.dispose()
    engine = open_database(url)
    store = ExperimentStore(engine)
    assert store.experiment(number)["seed"] == seed
    assert len(store.flows(number, None, 0, 100)) == 20
    assert store.experiment(new_experiment(store, "new", 2**62))["seed"] == 2**62
    engine.dispose()


def write_rows(engine: Engine, seed: int) -> int:
    """Write an experiment with a run of 20 flows; return its number.

    It uses the columns that the tables have: the store's own may be newer.
    """
    tables = MetaData()
    tables.reflect(engine)
    experiment = {"name": "old", "seed": seed, "spec": {}, "versions": {}, "machine": {}, "state": "running"}
    with engine.begin() as connection:
        number = connection.execute(
            tables.tables["experiments"].insert().returning(tables.tables["experiments"].c.id),
            {**experiment, "error": "", "created_at": 1.0},
        ).scalar_one()
        runs = tables.tables["runs"]
        run = connection.execute(
            runs.insert().returning(runs.c.id), {**run_row(), "experiment_id": number}
        ).scalar_one()
        rows = [{**flow_row(one), "error": "", "run_id": run} for one in range(20)]
        connection.execute(tables.tables["flows"].insert(), rows)
    return int(number)


def test_opening_twice_changes_nothing(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'capstan.db'}"
    number = new_experiment(ExperimentStore(open_database(url)))
    engine = open_database(url)
    assert ExperimentStore(engine).experiment(number)["name"] == "one"
    with engine.connect() as connection:
        assert connection.execute(text("PRAGMA journal_mode")).scalar_one() == "wal"
        assert connection.execute(text("PRAGMA foreign_keys")).scalar_one() == 1


def test_downgrades_lead_back_to_nothing(new_database: NewDatabase) -> None:
    engine = open_database(new_database())
    config = migration_config()
    with engine.begin() as connection:
        config.attributes["connection"] = connection
        command.downgrade(config, "base")
    assert inspect(engine).get_table_names() == ["alembic_version"]
    engine.dispose()


def test_postgresql_gets_64_bit_integers() -> None:
    for table in Base.metadata.sorted_tables:
        statement = str(CreateTable(table).compile(dialect=postgresql.dialect()))
        assert " INTEGER" not in statement
        of_others = ("jobs", "recordings", "compared")
        assert "BIGSERIAL" in statement or table.name in of_others, (
            "which have an experiment's, or a run's, number"
        )
        assert "BIGINT" not in str(CreateTable(table).compile(dialect=sqlite.dialect())), "one word there"


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("nonsense", r"database 'nonsense' is not a SQLAlchemy URL, as sqlite:"),
        ("", r"is not a SQLAlchemy URL"),
        ("sqlite:////proc/nothing/here/capstan.db", r"No such file|cannot|not permitted|Permission"),
        ("sqlite:///{file}/below/capstan.db", r"Not a directory|File exists"),
        ("sqlite:///{directory}", r"unable to open database file"),
        ("sqlite:///{file}", r"file is not a database"),
        ("sqlite://", r"would be gone with the controller: give a file"),
        ("sqlite:///:memory:", r"would be gone with the controller"),
        ("nosuchdatabase://host/name", r"Can't load plugin.*nosuchdatabase"),
        ("mysql+pymysql://host/name", r"needs a Python package that is not installed: .*pymysql"),
    ],
)
def test_a_database_that_cannot_be_opened_is_named_with_the_reason(
    tmp_path: Path, url: str, words: str
) -> None:
    (tmp_path / "file").write_text("something that is certainly no database " * 30)
    with pytest.raises(DatabaseError, match=words):
        open_database(url.format(file=tmp_path / "file", directory=tmp_path))
    assert (tmp_path / "file").read_text().startswith("something")


def test_passwords_are_not_shown() -> None:
    port = free_port()
    for driver in ("mysql+pymysql", "postgresql+psycopg2", "postgresql+psycopg", "sqlite"):
        with pytest.raises(DatabaseError) as caught:
            open_database(f"{driver}://someone:s3cret@127.0.0.1:{port}/name")
        assert "s3cret" not in str(caught.value)


def test_a_database_of_a_newer_capstan_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "capstan.db"
    new_experiment(ExperimentStore(open_database(f"sqlite:///{path}")))
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
    connection.close()
    with pytest.raises(DatabaseError, match=r"cannot be brought up to date: .*9999.*newer Capstan"):
        open_database(f"sqlite:///{path}")
    with sqlite3.connect(path) as connection:
        assert connection.execute("SELECT count(*) FROM experiments").fetchone() == (1,)
    connection.close()


def test_a_database_of_another_program_is_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE flows (water REAL)")
    connection.close()
    with pytest.raises(DatabaseError, match="already exists"):
        open_database(f"sqlite:///{path}")
    with sqlite3.connect(path) as connection:
        tables = {row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    connection.close()
    assert tables == {"flows"}, "all of a migration or nothing"


@pytest.mark.slow
def test_a_new_file_may_be_connected_to_by_many_at_once(tmp_path: Path) -> None:
    """SQLite refuses at once, not after a time-out, where two change a file's journal: every fifth round or so."""
    for number in range(40):
        path, together = tmp_path / f"{number}.db", Barrier(6)

        def connect(path: Path = path, together: Barrier = together) -> str:
            together.wait()
            with closing(sqlite3.connect(path)) as connection:
                prepare_sqlite(connection, None)
                return str(connection.execute("PRAGMA journal_mode").fetchone()[0])

        with ThreadPoolExecutor(6) as pool:
            modes = [future.result() for future in [pool.submit(connect) for _ in range(6)]]
        assert modes == ["wal"] * 6


def test_many_may_open_a_new_database_at_once(new_database: NewDatabase) -> None:
    url = new_database()
    with ThreadPoolExecutor(6) as pool:
        engines = list(pool.map(open_database, [url] * 6))
        numbers = list(pool.map(new_experiment, map(ExperimentStore, engines)))
    assert sorted(numbers) == [1, 2, 3, 4, 5, 6]
    for engine in engines:
        engine.dispose()
