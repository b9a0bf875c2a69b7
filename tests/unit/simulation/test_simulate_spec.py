"""Specs in simulation: the flows of `run`, whole results, the same bytes for the same seed, and what cannot be."""

from __future__ import annotations

import csv
import errno
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from cli.app import capstan
from cli.specs import load_spec
from controller.schemes import loader
from experiments.results.document import json_text
from experiments.results.report import read_result
from experiments.spec.serialized import spec_to_dict
from experiments.spec.spec import Spec, spec_from_dict
from protocol.version import VERSION
from simulation.experiment import simulate_document, simulate_spec
from simulation.fabrics import SettingsError
from simulation.spec_fabric import simulated_fabric
from topologies.fabric_spec import FabricSpec
from topologies.links import Link, shape_commands
from workloads.description import Application, LongFlows, Sizes


def small(*schemes: str, **changes: Any) -> Spec:
    spec = load_spec("small", schemes or ("ecmp", "rps")).spec
    return replace(spec, **changes)


def without_times(document: dict[str, Any]) -> str:
    return json_text(
        {key: value for key, value in document.items() if key not in ("started", "duration_s", "machine")}
    )


def test_a_result_has_the_flows_of_run_and_the_files_of_run(tmp_path: Path) -> None:
    spec = small()
    result = simulate_spec(spec, "text", tmp_path)
    assert result.document["kind"] == "simulation"
    assert result.document["versions"]["capstan"] == VERSION
    assert {run["plan"] for run in result.document["runs"]} == {spec.plan(0).digest()}
    document, flows = read_result(result.directory)
    assert document["schemes"].keys() == {"ecmp", "rps"}
    planned = {str(flow.id): flow for flow in spec.plan(0).flows}
    assert len(flows) == 2 * len(planned)
    for flow in flows:
        assert flow["source_port"] == str(planned[flow["id"]].source_port)
        assert flow["state"] == ("finished" if flow["size_bytes"] else "background")
        if flow["size_bytes"]:
            least_s = int(flow["size_bytes"]) * 8 / 5e6 / (4 if flow["scheme"] == "rps" else 1)
            assert float(flow["fct_s"]) > least_s
    assert (result.directory / "spec.yaml").read_text(encoding="utf-8") == "text"
    assert "Completion time of short flows" in (result.directory / "tables.txt").read_text(encoding="utf-8")


def test_the_same_seed_gives_the_same_bytes_whatever_else_runs() -> None:
    spec = small("rps", "ecmp", "caps-spray")
    first, _ = simulate_document(spec)
    assert without_times(simulate_document(spec)[0]) == without_times(first)
    alone, _ = simulate_document(small("rps"))
    assert alone["schemes"]["rps"]["short"]["afct_ms"] == first["schemes"]["rps"]["short"]["afct_ms"]
    other, _ = simulate_document(replace(spec, seed=2))
    assert without_times(other) != without_times(first)


def test_under_ecmp_a_flow_has_one_path_and_its_packets_come_in_order() -> None:
    _, runs = simulate_document(small("ecmp"))
    for flow in runs[0].flows:
        assert len(flow.paths) == 1
        assert flow.reordered == 0


def test_what_was_sent_again_is_counted_to_the_byte() -> None:
    spec = small("ecmp")
    flows = replace(spec.workload.flows, sizes=Sizes("fixed", bytes=500), count=100)
    workload = replace(spec.workload, flows=flows, long_flows=LongFlows(4))
    fabric = replace(spec.fabric, link=replace(spec.fabric.link, buffer_packets=2))
    _, (run,) = simulate_document(replace(spec, workload=workload, fabric=fabric))
    sized = [flow for flow in run.flows if flow.size_bytes]
    assert sum(flow.retransmissions for flow in sized) > 0
    assert all(flow.bytes_retransmitted == 500 * flow.retransmissions for flow in sized)


def test_leaves_follow_short_flows_and_paths_are_split() -> None:
    _, (caps,) = simulate_document(small("caps"))
    assert {change["leaf"] for change in caps.modes} == {"l1"}  # only acknowledgements leave the other one
    assert [change["mode"] for change in caps.modes[:4]] == ["on", "off", "on", "off"]
    _, (freeway,) = simulate_document(small("freeway"))
    first = freeway.splits[0]
    assert sorted([*first["low_latency"], *first["throughput"]]) == [1, 2, 3, 4]
    kept = [split for split in freeway.splits if split["at_s"] < 0.1]
    long = [flow for flow in freeway.flows if flow.traffic_class == "long"]
    assert kept
    assert all(len(flow.paths) < 4 for flow in long)


def test_types_of_flows_are_learnt_while_a_run_goes_on() -> None:
    sizes = {"queries": 2_000, "copies": 60_000}
    applications = tuple(
        Application(name, Sizes("fixed", bytes=size), share=size, port=6001 + port)
        for port, (name, size) in enumerate(sizes.items())
    )
    spec = small("tpfs", policy={"priority.prediction.interval_s": 1.5, "priority.scale": 0.02})
    flows = replace(spec.workload.flows, sizes=None, applications=applications, count=300)
    arrivals = replace(flows.arrivals, rate_per_s=40)
    workload = replace(spec.workload, flows=replace(flows, arrivals=arrivals))
    _, (run,) = simulate_document(replace(spec, workload=workload))
    assert run.types
    assert all(flow.state != "failed" for flow in run.flows)
    first = run.types[0]
    assert first["at_s"] % 1.5 == 0
    assert (first["features"], first["types"]) == (["destination_port"], 2)
    assert 100 <= first["flows"] < 300


def test_a_link_that_is_down_or_slow_is_that_link() -> None:
    plain = FabricSpec(leaves=2, spines=3, link=Link(5), access=Link(15))
    fabric = replace(plain, down=("l1-s2",), overrides={"l2-s3": Link(1, 7, 2.0), "h3-l2": Link(8)})
    spec = replace(small("rps"), fabric=fabric)
    _, runs = simulate_document(spec)
    used = {stamp for flow in runs[0].flows for stamp in flow.paths}
    assert used <= {"1", "3"}
    simulated = simulated_fabric(fabric)
    changes = {number: (bps, delay) for number, bps, delay in simulated.native["changes"]}
    assert sorted(changes.values()) == sorted([(0, 0)] * 2 + [(10**6, 2 * 10**9)] * 2 + [(8 * 10**6, 0)] * 2)
    assert (changes[2], changes[6]) == ((8 * 10**6, 0),) * 2
    assert sorted(limits for _, *limits in simulated.rooms if limits != [256, None]) == [[7, None]] * 2


@given(rate_mbps=st.floats(1, 2000))
def test_shaped_links_have_the_buckets_of_the_labs(rate_mbps: float) -> None:
    fabric = FabricSpec(leaves=2, spines=1, hosts_per_leaf=1, link=Link(rate_mbps), access=Link(20))
    assert simulated_fabric(fabric).native["bursts"] == []
    simulated = simulated_fabric(fabric, shaped=True)
    words = shape_commands("l1-eth1", fabric.link, netem=False)[1].split()
    of_lab = int(words[words.index("burst") + 1])
    assert sorted(simulated.native["bursts"]) == [(number, 1600) for number in range(4)] + [
        (number, of_lab) for number in range(4, 8)
    ]


def test_a_fat_tree_carries_a_spec() -> None:
    fabric = FabricSpec("fat-tree", k=4, link=Link(5), access=Link(15), down=("a1-c1",))
    _, runs = simulate_document(replace(small("rps"), fabric=fabric))
    assert all(flow.state != "failed" for flow in runs[0].flows)
    numbers = [number for number, *_ in simulated_fabric(fabric).rooms]
    assert len(set(numbers)) == len(numbers) == 2 * len(fabric.link_names())


@pytest.mark.parametrize("name", loader.scheme_names())
def test_every_scheme_ends_all_flows(name: str) -> None:
    document, runs = simulate_document(small(name))
    assert all(flow.state in ("finished", "background") for flow in runs[0].flows)
    assert document["schemes"][name]["short"]["failed"] == 0
    scheme = loader.load(name)
    # Where large flows wait for grants nothing is blocked, so no unit is worth a repair.
    coded = scheme.short.coding is not None and scheme.admission is None
    copies = [flow.copy_packets for flow in runs[0].flows if flow.traffic_class == "short"]
    assert (sum(copies) > 0) == (scheme.replication is not None)
    assert (sum(flow.repairs for flow in runs[0].flows) > 0) == coded


def test_what_a_scheme_has_that_is_not_simulated_is_said() -> None:
    with pytest.raises(SettingsError, match=r"`keep_learnt` .* is not simulated yet; ./capstan run has it"):
        simulate_document(small("tpfs", keep_learnt=True))


@pytest.mark.parametrize(
    ("fabric", "words"),
    [
        (FabricSpec(link=Link(None), access=Link(15)), "fabric.link.rate_mbps"),
        (FabricSpec(link=Link(5), access=Link(None)), "fabric.access.rate_mbps"),
        (FabricSpec("fat-tree", k=4, hosts_per_leaf=3, link=Link(5), access=Link(5)), "leave it out"),
    ],
)
def test_fabrics_that_cannot_be_say_why(fabric: FabricSpec, words: str) -> None:
    with pytest.raises(SettingsError, match=words):
        simulated_fabric(fabric)


def test_a_run_that_would_carry_nothing_is_an_error() -> None:
    crawling = FabricSpec(leaves=2, spines=4, link=Link(0.001), access=Link(15))
    with pytest.raises(SettingsError, match="no short flow"):
        simulate_document(replace(small("ecmp"), fabric=crawling, timeout_s=0.1))


def test_the_command_prints_tables_and_keeps_the_result(tmp_path: Path) -> None:
    answer = CliRunner().invoke(
        capstan,
        [
            "simulate",
            "small",
            "--scheme",
            "ecmp",
            "--results",
            str(tmp_path),
            "--json",
            str(tmp_path / "r.json"),
        ],
    )
    assert answer.exit_code == 0, answer.output
    document = json.loads((tmp_path / "r.json").read_text(encoding="utf-8"))
    assert document["kind"] == "simulation"
    (kept,) = tmp_path.glob("small-*")
    with (kept / "flows.csv").open(encoding="utf-8", newline="") as file:
        assert len(list(csv.DictReader(file))) == 21


def test_a_result_gets_its_place_where_no_directory_is_renamed_over_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rename = Path.rename

    def as_on_windows(path: Path, target: Path) -> Path:
        if target.exists():
            raise FileExistsError(target)
        return rename(path, target)

    monkeypatch.setattr(Path, "rename", as_on_windows)
    results = ["--results", str(tmp_path / "what? 50%20"), "--scheme", "ecmp", "--repeats", "1"]
    for _ in range(2):
        answer = CliRunner().invoke(capstan, ["simulate", "small", *results])
        assert answer.exit_code == 0, answer.output
    kept = [path for path in (tmp_path / "what? 50%20").iterdir() if path.is_dir()]
    assert len(kept) == 2
    assert all((path / "result.json").is_file() for path in kept)
    assert (tmp_path / "what? 50%20" / "capstan.db").is_file()


def test_the_spec_beside_a_result_is_what_ran(tmp_path: Path) -> None:
    changes = ["--scheme", "ecmp", "--seed", "9", "--repeats", "2", "--results", str(tmp_path)]
    assert CliRunner().invoke(capstan, ["simulate", "small", *changes]).exit_code == 0
    (kept,) = tmp_path.glob("small-*")
    document = json.loads((kept / "result.json").read_text(encoding="utf-8"))
    spec = load_spec(str(kept / "spec.yaml")).spec
    assert spec_to_dict(spec) == spec_to_dict(spec_from_dict(document["spec"]))
    assert (spec.seed, spec.repeats, [choice.label for choice in spec.schemes]) == (9, 2, ["ecmp"])
    again = CliRunner().invoke(
        capstan, ["simulate", str(kept / "spec.yaml"), "--results", str(tmp_path / "again")]
    )
    assert again.exit_code == 0
    (other,) = (tmp_path / "again").glob("small-*")
    assert (other / "flows.csv").read_bytes() == (kept / "flows.csv").read_bytes()
    assert (other / "spec.yaml").read_bytes() == (kept / "spec.yaml").read_bytes(), "as its file has it"


def test_a_json_file_that_cannot_be_written_costs_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("cli.simulated_spec.write_text", full)
    results, file = tmp_path / "results", tmp_path / "x.json"
    options = ["--scheme", "ecmp", "--scheme", "rps", "--results", str(results), "--json", str(file)]
    done = CliRunner().invoke(capstan, ["simulate", "small", *options])
    assert done.exit_code == 1
    assert f"{file}: No space left on device: the JSON document was not written" in done.output
    assert "and as experiment 1" in done.output
    (kept,) = results.glob("small-*")
    assert (kept / "comparison.svg").is_file()


def test_figures_are_drawn_though_the_reader_of_the_tables_has_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    printed: list[tuple[object, ...]] = []

    def print_once(*words: object, **_: object) -> None:
        printed.append(words)
        if len(printed) > 1:
            raise SystemExit(1)  # as rich does

    monkeypatch.setattr("cli.console.results.print", print_once)
    arguments = ["simulate", "small", "--scheme", "ecmp", "--scheme", "rps", "--results", str(tmp_path)]
    assert CliRunner().invoke(capstan, arguments).exit_code == 1
    (kept,) = tmp_path.glob("small-*")
    assert (kept / "comparison.svg").is_file()


def test_a_result_is_kept_whole_though_no_table_found_a_reader(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def gone(*_: object, **__: object) -> None:
        raise SystemExit(1)  # as rich does

    monkeypatch.setattr("cli.console.results.print", gone)
    results, trace, document = (tmp_path / name for name in ("results", "ecmp.trace", "x.json"))
    files = ["--results", str(results), "--trace", str(trace), "--trace-for", "50", "--json", str(document)]
    assert CliRunner().invoke(capstan, ["simulate", "small", "--scheme", "ecmp", *files]).exit_code == 1
    assert (results / "capstan.db").is_file()
    assert trace.is_file()
    assert json.loads(document.read_text(encoding="utf-8"))["name"] == "small"


CLAIMS = """\
claims:
  - text: RPS completes short flows sooner.
    compare: {measure: short-mean, scheme: rps, against: ecmp, at_most: 1}
  - text: CAPS completes them sooner still.
    compare: {measure: short-mean, scheme: caps, against: rps, at_most: 1}
"""


def test_the_spec_beside_a_result_has_no_claims_about_schemes_that_did_not_run(tmp_path: Path) -> None:
    file = tmp_path / "claimed.yaml"
    file.write_text(f"{load_spec('small').text}{CLAIMS}", encoding="utf-8")
    changes = ["--scheme", "ecmp", "--scheme", "rps", "--repeats", "1", "--results", str(tmp_path)]
    assert CliRunner().invoke(capstan, ["simulate", str(file), *changes]).exit_code == 0
    (kept,) = tmp_path.glob("small-*")
    spec = load_spec(str(kept / "spec.yaml")).spec
    assert [claim.text for claim in spec.claims] == ["RPS completes short flows sooner."]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "give SPEC or --trace-file"),
        (["small", "--trace-file", "x.csv"], "give SPEC or --trace-file"),
        (["small", "--spines", "4"], "--spines is an option of a trace"),
        (["--trace-file", "x.csv", "--scheme", "ecmp"], "--scheme is an option of SPEC"),
        (["small", "--trace-from", "5"], "--trace-from is of what --trace records: give --trace FILE, too"),
        (["small", "--trace-for", "5"], "--trace-for is of what --trace records"),
        (["small", "--trace", "/nowhere/x.gz", "--scheme", "rps"], "there is no directory '/nowhere'"),
    ],
)
def test_options_of_the_other_kind_are_refused(arguments: list[str], words: str) -> None:
    answer = CliRunner().invoke(capstan, ["simulate", *arguments])
    assert answer.exit_code == 2
    assert words in answer.output
