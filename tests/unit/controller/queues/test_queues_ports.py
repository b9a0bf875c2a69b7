"""What is written into a switch's database for its queues, tried on a model of such a database."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.queues.ports import COLUMNS, SwitchPlan, plan
from ovsdb.port_queues import (
    APPLIED,
    WRITER,
    Applied,
    PortLimit,
    PortQueues,
    QueueCounters,
    QueuesError,
    counters_from_text,
    counters_to_text,
)
from ovsdb.session import Tables, plain_value

DPID = 0x10001
QUEUES = st.builds(PortQueues, st.integers(1, 8), st.none() | st.integers(1, 1000))
LIMITS = st.builds(PortLimit, st.none() | st.integers(1000, 10**9), st.integers(0, 1000))


class Database:
    """As much of a switch's database as transactions of ours ask for."""

    def __init__(self, datapath: str, ports: int = 2, rate: int = 10**9, writer: bool = False) -> None:
        self.tables: Tables = {name: {} for name in COLUMNS}
        self._uuids = (f"uuid-{number}" for number in itertools.count())
        names = [
            self.add("Port", name="br", interfaces=self.interface("br", "internal", 65534, rate), qos=())
        ]
        for number in range(1, ports + 1):
            qos: Any = ()
            if writer:
                qos = self.add(
                    "QoS", type="linux-noop", queues={}, other_config={}, external_ids={WRITER: "lab"}
                )
            interface = self.interface(f"eth{number}", "", number, rate)
            names.append(self.add("Port", name=f"eth{number}", interfaces=interface, qos=qos))
        self.add("Bridge", name="br", ports=tuple(names), datapath_type=datapath, datapath_id=f"{DPID:016x}")

    def interface(self, name: str, kind: str, number: int, rate: int) -> str:
        return self.add("Interface", name=name, type=kind, ofport=number, link_speed=rate or ())

    def add(self, table: str, **row: Any) -> str:
        uuid = next(self._uuids)
        self.tables[table][uuid] = row
        return uuid

    def port(self, name: str) -> dict[str, Any]:
        return next(row for row in self.tables["Port"].values() if row["name"] == name)

    def transact(self, operations: Any) -> None:
        """Apply the operations that come up here as RFC 7047, section 5.2, says."""
        named: dict[str, str] = {}
        for operation in operations:
            if operation["op"] == "insert":
                named[operation["uuid-name"]] = next(self._uuids)
        for operation in operations:
            rows = self.tables[operation["table"]]
            if operation["op"] == "insert":
                empty = {"queues": {}} if operation["table"] == "QoS" else {}
                row = {key: self._value(value, named) for key, value in operation["row"].items()}
                rows[named[operation["uuid-name"]]] = empty | row
                continue
            ((column, sign, (_, uuid)),) = operation["where"]
            assert (column, sign) == ("_uuid", "==")
            if operation["op"] == "delete":
                del rows[uuid]
            elif operation["op"] == "update":
                rows[uuid].update({key: self._value(value, named) for key, value in operation["row"].items()})
            else:
                for key, what, value in operation["mutations"]:
                    kept = dict(rows[uuid][key])
                    if what == "delete":
                        kept = {name: one for name, one in kept.items() if name not in plain_value(value)}
                    else:
                        kept = plain_value(value) | kept  # an insert leaves keys that are there
                    rows[uuid][key] = kept
        used = {row["qos"] for row in self.tables["Port"].values() if row["qos"]}
        assert used <= set(self.tables["QoS"]), "a port refers to a row that is not there"

    def _value(self, value: Any, named: dict[str, str]) -> Any:
        if isinstance(value, list) and value[0] == "named-uuid":
            return named[value[1]]
        if isinstance(value, list) and value[0] == "map":
            return {key: self._value(one, named) for key, one in value[1]}
        return plain_value(value)

    def write_ports(self, problem: str = "") -> None:
        """Write what is applied into each QoS row, as the writer of the ports does."""
        for row in self.tables["QoS"].values():
            wanted = PortQueues.from_config(row["other_config"])
            rate = min(10**7, wanted.limit.rate_bps or 10**7)
            applied = Applied(wanted.number, wanted.buffer_packets or 256, rate, problem, wanted.limit)
            row["external_ids"] = row["external_ids"] | {APPLIED: applied.to_text()}


def planned(database: Database, queues: PortQueues) -> SwitchPlan:
    found = plan(database.tables, DPID, queues)
    assert found is not None
    assert [port.number for port in found.ports] == [1, 2], "the bridge's own port is none"
    return found


@given(st.lists(QUEUES, min_size=1, max_size=4))
def test_a_writer_is_informed_and_believed(wishes: list[PortQueues]) -> None:
    database = Database("netdev", writer=True)
    database.write_ports()
    for queues in wishes:
        database.transact(planned(database, queues).operations)
        assert planned(database, queues).operations == ()
        for row in database.tables["QoS"].values():
            assert PortQueues.from_config(row["other_config"]) == queues
        database.write_ports()
        found = planned(database, queues)
        assert found.in_force
        assert found.problems == ()
        assert {(port.by, port.queues) for port in found.ports} == {("writer", queues.number)}


def test_a_writer_that_has_not_answered_or_cannot_is_not_believed() -> None:
    database = Database("netdev", writer=True)
    eight = PortQueues(8, 64)
    assert not planned(database, PortQueues()).in_force, "nothing has been reported"
    database.write_ports()
    assert planned(database, PortQueues()).in_force
    database.transact(planned(database, eight).operations)
    assert not planned(database, eight).in_force
    assert planned(database, eight).problems == (), "it is on its way"
    database.write_ports("no more memory")
    assert not planned(database, eight).in_force
    assert planned(database, eight).problems == ("eth1, eth2: no more memory",)


def test_a_port_without_a_rate_has_one_queue_and_that_is_fine() -> None:
    database = Database("netdev", writer=True)
    database.transact(planned(database, PortQueues(8)).operations)
    for row in database.tables["QoS"].values():
        row["external_ids"][APPLIED] = Applied(1, 0, 0).to_text()
    found = planned(database, PortQueues(8))
    assert found.in_force
    assert "nothing ever waits" in found.ports[0].limits[0]


@given(st.lists(st.integers(1, 8), min_size=1, max_size=4))
def test_open_vswitch_gets_rows_and_loses_them(numbers: list[int]) -> None:
    database = Database("system")
    for number in [*numbers, 1]:
        queues = PortQueues(number)
        database.transact(planned(database, queues).operations)
        found = planned(database, queues)
        assert found.in_force
        assert found.operations == ()
        assert len(database.tables["Queue"]) == (2 * number if number > 1 else 0)
        assert len(database.tables["QoS"]) == (2 if number > 1 else 0)
        if number > 1:
            for name in ("eth1", "eth2"):
                qos = database.tables["QoS"][database.port(name)["qos"]]
                assert (qos["type"], qos["other_config"]) == ("linux-htb", {"max-rate": str(10**9)})
                assert [
                    database.tables["Queue"][qos["queues"][queue]]["other_config"]["priority"]
                    for queue in range(number)
                ] == [str(queue) for queue in range(number)]


def test_rows_that_another_program_has_changed_are_made_anew() -> None:
    database = Database("system")
    database.transact(planned(database, PortQueues(3)).operations)
    uuid = database.port("eth1")["qos"]
    del database.tables["QoS"][uuid]["queues"][2]
    found = planned(database, PortQueues(3))
    assert [port.in_force for port in found.ports] == [False, True]
    database.transact(found.operations)
    assert planned(database, PortQueues(3)).in_force
    assert database.port("eth1")["qos"] != uuid


@pytest.mark.parametrize(
    ("database", "words"),
    [
        (Database("netdev"), "eth1, eth2: the userspace datapath brings no packet to a queue"),
        (Database("", rate=0), "eth1, eth2: Open vSwitch does not know its rate"),
    ],
)
def test_what_has_no_queues_says_why(database: Database, words: str) -> None:
    found = planned(database, PortQueues(8))
    assert found.operations == ()
    assert not found.in_force
    assert found.problems[0].startswith(words)
    assert planned(database, PortQueues()).in_force


def test_what_another_program_has_made_is_left_alone() -> None:
    database = Database("system")
    others = database.add("QoS", type="linux-sfq", queues={}, other_config={}, external_ids={})
    database.port("eth2")["qos"] = others
    found = planned(database, PortQueues(2))
    assert found.problems == (
        "eth2: it has a QoS of type linux-sfq that is not ours: `ovs-vsctl clear port eth2 qos` frees it",
    )
    database.transact(found.operations)
    database.transact(planned(database, PortQueues()).operations)
    assert list(database.tables["QoS"]) == [others]


def test_a_bridge_that_is_not_there_has_no_plan() -> None:
    assert plan(Database("system").tables, DPID + 1, PortQueues()) is None


@pytest.mark.slow
@given(
    st.dictionaries(
        st.text(min_size=1, max_size=15),
        st.lists(st.builds(QueueCounters, *[st.integers(0, 2**63)] * 5), max_size=8).map(tuple),
    )
)
def test_counters_come_as_they_were_sent(ports: dict[str, tuple[QueueCounters, ...]]) -> None:
    assert counters_from_text(counters_to_text(ports)) == ports


@pytest.mark.parametrize("text", ["", "[]", "7", '{"a": 1}', '{"a": [[1]]}', '{"a": [[1, 2, 3, 4, "x"]]}'])
def test_what_no_writer_writes_is_nothing(text: str) -> None:
    assert counters_from_text(text) == {}
    assert Applied.from_text(text) is None


@pytest.mark.parametrize(
    "config", [{"capstan-queues": "0"}, {"capstan-queues": "9"}, {"capstan-queues": "x"}]
)
def test_queues_that_cannot_be_are_refused(config: dict[str, str]) -> None:
    with pytest.raises(QueuesError):
        PortQueues.from_config(config)


@given(QUEUES, st.lists(st.dictionaries(st.integers(1, 2), LIMITS), min_size=1, max_size=4))
def test_limits_of_single_ports_come_and_go(queues: PortQueues, wishes: list[dict[int, PortLimit]]) -> None:
    database = Database("netdev", writer=True)
    database.write_ports()
    for limits in [*wishes, {}]:
        found = plan(database.tables, DPID, queues, limits)
        assert found is not None
        database.transact(found.operations)
        for number in (1, 2):
            row = database.tables["QoS"][database.port(f"eth{number}")["qos"]]
            asked = PortQueues.from_config(row["other_config"])
            assert asked.limit == limits.get(number, PortLimit()), "and of no other"
        database.write_ports()
        after = plan(database.tables, DPID, queues, limits)
        assert after is not None
        assert after.in_force
        assert [port.rate_bps for port in after.ports] == [
            min(10**7, limits.get(number, PortLimit()).rate_bps or 10**7) for number in (1, 2)
        ]


def test_an_old_refusal_says_nothing_of_a_new_limit() -> None:
    database = Database("netdev", writer=True)
    late = {1: PortLimit(delay_us=5000)}
    found = plan(database.tables, DPID, PortQueues(), late)
    assert found is not None
    database.transact(found.operations)
    database.write_ports("no netem here")
    found = plan(database.tables, DPID, PortQueues(), late)
    assert found is not None
    assert (found.ports[0].in_force, found.ports[0].problem) == (False, "no netem here")
    slow = {1: PortLimit(10**6)}
    found = plan(database.tables, DPID, PortQueues(), slow)
    assert found is not None
    database.transact(found.operations)
    found = plan(database.tables, DPID, PortQueues(), slow)
    assert found is not None
    assert (found.ports[0].in_force, found.ports[0].problem) == (False, "")


def test_a_port_without_a_writer_cannot_be_made_slower() -> None:
    found = plan(Database("netdev").tables, DPID, PortQueues(), {2: PortLimit(10**6)})
    assert found is not None
    assert [(port.in_force, port.problem) for port in found.ports] == [
        (True, ""),
        (False, "no program here can slow it down"),
    ]


@pytest.mark.parametrize(
    "wrong", [{"rate_bps": 999}, {"rate_bps": 10**13}, {"delay_us": -1}, {"delay_us": 10**8}]
)
def test_limits_that_cannot_be_are_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(QueuesError, match=f"{next(iter(wrong))}: must be"):
        PortLimit(**wrong)
