import csv
import errno
import io
import json
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest

from experiments.results.claims import find
from experiments.results.cpu_use import CpuSample, CpuUse, judge
from experiments.results.document import (
    Run,
    flow_table,
    json_text,
    new_directory,
    result_document,
    text_of,
    write_result,
)
from experiments.results.outcome import FlowOutcome, OutcomeError, join
from experiments.results.tables import tables
from experiments.run.cpu import CpuWatch, is_free, judge_free, parse_pressure, parse_stat
from experiments.spec.check import find_spec, load
from experiments.spec.spec import Comparison, Spec
from protocol.control import FlowEntry
from tests.busy_loops import busy_loops
from tests.unit.sent_flows import sent
from workloads.plan import Plan
from workloads.records import ReceivedFlow, SentFlow

FINE = CpuUse(0.6, 0.5, 0.1, 0.4, False)
SCHEMES = ["ecmp", "rps", "caps"]


def spec_small() -> Spec:
    path = find_spec("small")
    return load(path.read_text(), str(path), SCHEMES)


def slowed(plan: Plan, factor: float = 1.0) -> list[SentFlow]:
    return sent(plan, lambda flow: factor * (0.02 + flow.id / 1000))


def entry(flow: SentFlow, side: str, **more: Any) -> dict[str, Any]:
    values: dict[str, Any] = {
        "side": side,
        "protocol": 6,
        "source": flow.source_address,
        "source_port": flow.source_port,
        "destination": flow.address,
        "destination_port": flow.port,
        "traffic_class": flow.traffic_class,
        "packets": 40,
        "bytes": 50_000,
        "first_s": 1.0,
        "last_s": 2.0,
    }
    return asdict(FlowEntry(**(values | more)))


def runs_of(spec: Spec, cpu: CpuUse = FINE) -> list[Run]:
    runs = []
    for repeat in range(spec.repeats):
        plan = spec.plan(repeat)
        for index, choice in enumerate(spec.schemes):
            outcomes = join(plan, slowed(plan, 1 / (index + 1)), [], [])
            runs.append(Run(choice.label, choice.name, repeat, plan.digest(), 5.0, outcomes, cpu))
    return runs


def document(spec: Spec, runs: list[Run]) -> dict[str, Any]:
    return result_document(
        spec,
        runs,
        started=datetime.now(UTC),
        duration_s=20.0,
        notices=["no netem here"],
        versions={"numpy": "2"},
    )


def tables_of(result: dict[str, Any]) -> str:
    return text_of(tables(result))


def test_records_of_generator_and_agents_are_joined_by_five_tuple_and_direction() -> None:
    plan = spec_small().plan(0)
    records = slowed(plan)
    one = records[3]
    backwards = entry(one, "receiver", recovered=50)
    backwards["source"], backwards["destination"] = backwards["destination"], backwards["source"]
    entries = [
        entry(one, "sender", packets=40, repairs=4),
        entry(one, "sender", packets=2),
        entry(one, "receiver", recovered=3, reordered=7, paths={"10": 4, "2": 30}),
        entry(one, "receiver", recovered=1, paths={"2": 1}),
        entry(one, "receiver", protocol=17, recovered=100),
        backwards,
    ]
    outcome = join(plan, records, [ReceivedFlow(one.id, 50_000, 9)], entries)[3]
    assert (outcome.packets, outcome.repairs, outcome.recovered, outcome.reordered) == (42, 4, 4, 7)
    assert list(outcome.paths.items()) == [("2", 31), ("10", 4)]
    assert outcome.out_of_order == 9
    assert (outcome.source, outcome.destination) == (plan.flows[3].source, plan.flows[3].destination)


def test_a_planned_flow_without_a_record_is_an_error() -> None:
    plan = spec_small().plan(0)
    with pytest.raises(OutcomeError, match=r"flow 5 .* has no record"):
        join(plan, [record for record in slowed(plan) if record.id != 5], [], [])


def test_the_document_has_what_people_look_for_and_is_json() -> None:
    spec = spec_small()
    plain = json.loads(json_text(document(spec, runs_of(spec))))
    assert set(plain["schemes"]) == {"ecmp", "rps", "caps"}
    caps = plain["schemes"]["caps"]
    assert caps["short"]["n"] == len(spec.plan(0).sized)
    assert caps["short"]["afct_ci_ms"][0] <= caps["short"]["afct_ms"] <= caps["short"]["afct_ci_ms"][1]
    assert {"p50_ms", "p95_ms", "p99_ms"} <= set(caps["short"])
    assert caps["long"]["goodput_mbps"] == pytest.approx(4.0)
    assert {"retransmissions", "reordering", "recovered_packets", "overhead"} <= set(caps)
    assert caps["against"]["ecmp"]["short_afct_ratio"] == pytest.approx(1 / 3)
    assert plain["cpu_limited"] is False
    assert caps["cpu"]["pressure"] is None
    assert plain["seed"] == spec.seed
    assert plain["versions"] == {"numpy": "2"}
    assert plain["long_flow_pressure"] == pytest.approx(0.75)
    sizes = plain["flow_sizes"]
    drawn = [flow.size_bytes for repeat in range(200) for flow in spec.plan(repeat).sized]
    assert sizes["mean_bytes"] == pytest.approx(np.mean(drawn), rel=0.05)
    assert sizes["kind"] == spec.workload.flows.sizes.kind
    assert len(plain["runs"]) == 3


def test_one_limited_run_marks_its_scheme_and_the_whole() -> None:
    spec = spec_small()
    runs = runs_of(spec)
    runs[1] = replace(runs[1], cpu=replace(FINE, limited=True, idle_share=0.02, pressure="own"))
    result = document(spec, runs)
    assert [result["schemes"][name]["cpu"]["pressure"] for name in SCHEMES] == [None, "own", None]
    assert result["cpu_limited"] is True
    assert [result["schemes"][name]["cpu_limited"] for name in SCHEMES] == [False, True, False]
    text = tables_of(result)
    assert "CPU LIMITED" in text
    assert "rps*" in text
    assert "caps*" not in text


def test_a_run_that_was_limited_before_says_so() -> None:
    spec = spec_small()
    runs = runs_of(spec)
    runs[1] = replace(runs[1], limited_before=1)
    result = document(spec, runs)
    assert [run["limited_before"] for run in result["runs"][:3]] == [0, 1, 0]
    assert [notice for notice in result["notices"] if "measured again" in notice] == [
        f"{runs[1].label}'s run 1 was measured again with the same flows: the processor had limited it"
    ]


def test_a_result_has_what_was_noticed_of_its_runs() -> None:
    spec = spec_small()
    runs = runs_of(spec)
    runs[1] = replace(runs[1], notices=("the clock was set by +3.0 s",))
    result = document(spec, runs)
    assert "the clock was set by +3.0 s" in result["notices"]
    assert [run["notices"] for run in result["runs"]] == [[], ["the clock was set by +3.0 s"], []]


def test_a_disturbed_run_marks_its_scheme_and_the_whole_and_judges_no_claim() -> None:
    spec = spec_small()
    runs = runs_of(spec)
    assert document(spec, runs)["disturbed"] is False
    death = {"at_s": 1.2, "part": "agent h3", "how": "signal 9", "after_s": 0.4}
    runs[0] = replace(runs[0], disturbed=(death,), repeated=2)
    runs[1] = replace(runs[1], repeated=1)
    result = document(spec, runs)
    assert result["disturbed"] is True
    assert [label for label, one in result["schemes"].items() if one["disturbed"]] == [runs[0].label]
    assert result["runs"][0]["disturbed"] == [death]
    assert [run["repeated"] for run in result["runs"][:3]] == [2, 1, 0]
    text = tables_of(result)
    assert "DISTURBED" in text
    assert f"{runs[0].label}#" in text
    assert f"{runs[1].label}#" not in text or runs[1].label == runs[0].label
    assert (
        f"{runs[0].label}'s run 1 is disturbed: agent h3 ended (signal 9) at 1.2 s and was back after 0.4 s"
        in " ".join(text.split())
    )
    label = runs[0].label
    other = next(one for one in result["schemes"] if one != label)
    found = find(Comparison("short-mean", label, other), result["schemes"])
    assert found.verdict == "no figure"
    assert "a part of the lab ended" in found.why


def test_schemes_with_other_flows_are_no_comparison() -> None:
    spec = spec_small()
    runs = runs_of(spec)
    runs[0] = replace(runs[0], plan="other")
    with pytest.raises(ValueError, match="same flows"):
        document(spec, runs)


def test_tables_have_units_and_no_p99_of_few_flows() -> None:
    spec = spec_small()
    text = tables_of(document(spec, runs_of(spec)))
    for word in ("mean ms", "[95 % CI]", "Mbit/s", "% of", "no netem here", "packet time 2.4 ms"):
        assert word in text, word
    assert "p95" in text
    assert text.count("p99") == 1, "only the line that says why it is not shown"
    assert "…" not in text, "no cell is cut off"


@pytest.mark.slow
def test_tables_show_p99_of_many_flows() -> None:
    spec = replace(spec_small(), repeats=60)
    text = tables_of(document(spec, runs_of(spec)))
    assert text.count("p99") == 2, "of the times, and over the baseline"
    assert "p99 is not shown" not in text


def test_one_table_has_every_scheme_over_the_baseline() -> None:
    spec = spec_small()
    _, _, overview = tables_of(document(spec, runs_of(spec))).partition("Over ecmp [95 % CI]")
    assert "1.00 [-]" in overview, "the same goodput, in one repeat"
    assert "0.50 [0.50, 0.50]" in overview
    assert "0.33 [0.33, 0.33]" in overview


def test_long_flows_that_failed_are_said() -> None:
    spec = spec_small()
    runs = runs_of(spec)
    dead = replace(runs[0].flows[0], state="failed", error="connect: timed out", window_s=0.0)
    runs[0] = replace(runs[0], flows=(dead, *runs[0].flows[1:]))
    text = tables_of(document(spec, runs))
    assert "ecmp: 1 long flows failed" in text
    assert "rps: 1 long" not in text


def test_flow_table_has_every_flow_of_every_run() -> None:
    spec = spec_small()
    rows = list(csv.DictReader(io.StringIO(flow_table(runs_of(spec)))))
    assert len(rows) == 3 * len(spec.plan(0).flows)
    assert {"scheme", "repeat", "fct_s", "retransmissions", "paths", "recovered"} <= set(rows[0])
    assert {row["scheme"] for row in rows} == set(SCHEMES)


def test_results_are_kept_and_never_overwritten(tmp_path: Path) -> None:
    spec = spec_small()
    runs = runs_of(spec)
    result = document(spec, runs)
    first, second = (
        write_result(new_directory(tmp_path, "small", datetime.now(UTC)), result, runs, "name: small\n")
        for _ in range(2)
    )
    assert first != second
    assert {path.name for path in first.iterdir()} == {"result.json", "flows.csv", "tables.txt", "spec.yaml"}
    assert json.loads((second / "result.json").read_text())["name"] == "small"


@pytest.mark.parametrize("file", ["tables.txt", "result.json"])
def test_a_result_that_a_full_disk_has_no_room_for_is_none(
    file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = Path.write_text

    def full(path: Path, text: str, encoding: str) -> int:
        write(path, text[:9] if file in path.name else text, encoding=encoding)
        if file in path.name:
            raise OSError(errno.ENOSPC, "No space left on device")
        return len(text)

    spec = spec_small()
    runs = runs_of(spec)
    monkeypatch.setattr(Path, "write_text", full)
    with pytest.raises(OSError, match="No space left"):
        write_result(tmp_path, document(spec, runs), runs, "name: small\n")
    assert not [path for path in tmp_path.iterdir() if "result.json" in path.name]


STAT = """cpu  100 0 50 800 50 0 0 0 0 0
cpu0 10 0 10 300 20 1 2 7 0 0
cpu1 50 0 20 200 10 0 0 0 0 0
cpu2 90 0 9 9 9 0 0 0 0 0
intr 5
"""


def test_idle_time_is_read_of_the_usable_cpus_only() -> None:
    assert parse_stat(STAT, [0, 1], 100) == (5.3, 6.3)
    assert parse_stat(STAT, [1], 100) == (2.1, 2.8)


def test_pressure_is_read() -> None:
    assert parse_pressure("some avg10=0.00 avg60=0.10 avg300=0.05 total=823858\nfull total=1\n") == 0.823858
    with pytest.raises(ValueError, match="no 'some' line"):
        parse_pressure("nothing")


@pytest.mark.parametrize(
    ("idle", "late_ms", "stalled", "limited"),
    [
        (0.5, 1.0, 0.3, False),
        (0.11, 7.9, 0.49, False),
        (0.05, 1.0, 0.0, True),
        (0.5, 50.0, 0.0, True),
        (0.5, 1.0, 0.6, True),
        (0.5, 1.0, None, False),
    ],
)
def test_the_rule_of_a_limited_run(idle: float, late_ms: float, stalled: float | None, limited: bool) -> None:
    waited = None if stalled is None else stalled * 10
    first = CpuSample(0.0, 0.0, 0.0, None if stalled is None else 0.0)
    samples = [first, CpuSample(1.0, 0.9, 1.0, waited), CpuSample(10.0, 40 * idle, 40, waited)]
    use = judge(samples, [late_ms / 1e3] * 100, 0.004)
    assert use.limited is limited
    assert bool(use.reason) is limited
    assert use.idle_share == pytest.approx(idle)
    assert use.stalled_share == (None if stalled is None else pytest.approx(stalled))


@pytest.mark.parametrize("whose", ["own", "machine"])
def test_a_verdict_says_whose_tasks_waited(whose: Literal["own", "machine"]) -> None:
    samples = [CpuSample(0.0, 0.0, 0.0, 0.0), CpuSample(10.0, 20.0, 40.0, 7.0)]
    use = judge(samples, [], 0.004, whose)
    assert (use.limited, use.pressure) == (True, whose)
    assert use.reason.startswith(
        f"some task of the {'lab' if whose == 'own' else 'machine'} waited for a CPU 70%"
    )


def test_without_a_gauge_of_waiting_no_holder_is_named() -> None:
    use = judge([CpuSample(0.0, 0.0, 0.0, None), CpuSample(1.0, 3.0, 4.0, 1.0)], [], 0.004, "own")
    assert (use.stalled_share, use.pressure, use.limited) == (None, None, False)


def test_the_watch_reads_the_labs_own_file(tmp_path: Path) -> None:
    gauge = tmp_path / "cpu.pressure"
    gauge.write_text("some avg10=0.00 avg60=0.00 avg300=0.00 total=5000000\n")
    with CpuWatch(1.0, gauge) as watch:
        gauge.write_text("some avg10=0.00 avg60=0.00 avg300=0.00 total=99000000\n")
    assert watch.use is not None
    assert (watch.use.stalled_share, watch.use.pressure) == (1.0, "own")
    with CpuWatch(1.0, tmp_path / "missing") as blind:
        pass
    assert blind.use is not None
    assert (blind.use.stalled_share, blind.use.pressure) == (None, None)


def test_the_watch_sees_this_machine() -> None:
    with CpuWatch(1.0) as watch:
        sum(range(2_000_000))
    assert watch.use is not None
    assert 0 <= watch.use.idle_share <= 1
    assert watch.use.late_ms >= 0


def test_outcome_fields_are_those_that_tables_of_flows_name() -> None:
    assert list(FlowOutcome.__dataclass_fields__)[-1] == "paths"


def test_a_machine_on_which_others_compute_is_not_free() -> None:
    with busy_loops():
        assert not is_free()


@pytest.mark.parametrize(
    ("after_s", "busy_s", "found"),
    [
        (0.2, 0.39, None),  # of two cores for a second a fifth is 0.4 s
        (0.21, 0.41, False),
        (0.9, 0.1, None),
        (1.0, 0.1, True),
        (1.0, 0.39, True),
        (1.0, 0.41, False),
        (1.5, 0.62, False),
    ],
)
def test_a_machine_is_busy_as_soon_as_that_is_certain_and_free_after_a_second(
    after_s: float, busy_s: float, found: bool | None
) -> None:
    before = CpuSample(100.0, 50.0, 200.0, None)
    now = CpuSample(100.0 + after_s, 50.0 + 2 * after_s - busy_s, 200.0 + 2 * after_s, None)
    assert judge_free(before, now, 1.0, 2) is found
