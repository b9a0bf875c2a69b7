"""Which of several controllers runs the queue of a database that they share."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from sqlalchemy import Engine, create_engine, text
from sqlalchemy.exc import SQLAlchemyError

from controller.store.queue_lock import QueueLock
from tests.unit.conftest import NewDatabase
from tests.unit.postgresql import Server, postgresql_server
from tests.waiting import eventually


@contextmanager
def processes(url: str) -> Iterator[tuple[Engine, Engine]]:
    """Yield the engines of two controllers on one database."""
    engines = create_engine(url, pool_pre_ping=True), create_engine(url, pool_pre_ping=True)
    try:
        yield engines
    finally:
        for engine in engines:
            engine.dispose()


def end_sessions(engine: Engine) -> None:
    """End the sessions that hold advisory locks, as a server does that loses them."""
    with engine.connect() as connection:
        connection.execute(text("SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory'"))


@pytest.mark.slow
def test_the_first_has_the_queue_until_it_gives_it_up(new_database: NewDatabase) -> None:
    with processes(new_database()) as (one, two):
        first, second = QueueLock(one), QueueLock(two)
        assert (first.take(), second.take()) == (True, False)
        assert (first.take(), second.take()) == (True, False)
        second.give_up()
        assert not second.take(), "to give up what it has not changes nothing"
        first.give_up()
        eventually(second.take)
        assert not first.take()
        second.give_up()


def test_queues_of_two_databases_have_nothing_to_do_with_each_other(new_database: NewDatabase) -> None:
    with processes(new_database()) as (one, _), processes(new_database()) as (other, _):
        locks = QueueLock(one), QueueLock(other)
        assert [lock.take() for lock in locks] == [True, True]
        for lock in locks:
            lock.give_up()


def test_all_connections_of_the_pool_remain(postgresql: Server) -> None:
    engine = create_engine(postgresql.new(), pool_size=1, max_overflow=0, pool_timeout=0.1)
    lock = QueueLock(engine)
    assert lock.take()
    with engine.connect() as connection:
        assert connection.execute(text("SELECT 1")).scalar_one() == 1
    lock.give_up()
    engine.dispose()


def test_a_session_that_the_server_has_ended_is_replaced_while_the_queue_is_free(postgresql: Server) -> None:
    with processes(postgresql.new()) as (one, two):
        first, second = QueueLock(one), QueueLock(two)
        assert first.take()
        end_sessions(two)
        eventually(first.take)
        assert not second.take()
        end_sessions(two)
        eventually(second.take)
        assert not first.take(), "the other was quicker"
        second.give_up()


@pytest.mark.slow
def test_while_the_server_is_away_an_error_says_so_and_then_the_queue_is_had_again() -> None:
    with postgresql_server() as server, processes(server.new()) as (one, two):
        lock = QueueLock(one)
        assert lock.take()
        server.stop()
        with pytest.raises(SQLAlchemyError):
            lock.take()
        server.start()
        assert lock.take()
        assert not QueueLock(two).take()
        lock.give_up()
