"""Schemes from files: every shipped one is whole, and whatever is wrong is named with file, line and what was meant."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from controller.schemes import loader
from controller.schemes.loader import SchemeError
from controller.schemes.overrides import with_overrides
from controller.schemes.policy import policy_for
from host_agent.coding.redundancy import paper_rule, repairs_for
from plain.reading import PlainError
from plain.yaml_source import path_of, read
from protocol.policy import Policy, PolicyError
from tests.unit.hyline_tables import TABLE_4

MAX_BLOCKING_PROBABILITY = 0.6  # the most that an agent believes (docs/coding.md)
GOOD = """\
name: mine
title: A scheme of one's own
summary: For tests.
short:
  group: spray
  coding:
    code: rlc
    max_k: 16
  release:
    packet_times: 4.25
long:
  by_mode:
    on: hash
    off: spray
control:
  group: spray
mode: {}
"""


def load_text(directory: Path, text: str) -> Any:
    path = directory / "mine.yaml"
    path.write_text(text)
    return loader.load(path)


@pytest.mark.parametrize("name", loader.scheme_names())
def test_every_shipped_scheme_is_whole(name: str) -> None:
    scheme = loader.load(name)
    assert scheme.name == name
    assert scheme.title
    assert len(scheme.summary) > 40
    for paper in scheme.papers:
        assert paper.title
        assert paper.venue
        assert 1990 <= paper.year <= 2030
    plain = loader.scheme_to_dict(scheme)
    assert loader.scheme_from_dict(json.loads(json.dumps(plain))) == scheme, "through the API"
    assert loader.scheme_from_dict(read(yaml.safe_dump(plain), name).data) == scheme, "through a file"


@pytest.mark.parametrize("name", loader.scheme_names())
@pytest.mark.parametrize("rate_mbps", [2, 3, 20, 1000])
def test_every_shipped_scheme_gives_agents_a_policy_at_every_rate(name: str, rate_mbps: float) -> None:
    packet_time_s = 1500 * 8 / (rate_mbps * 1e6)
    scheme = loader.load(name)
    policy = policy_for(scheme, packet_time_s, 7)
    assert Policy.from_dict(json.loads(json.dumps(policy.to_dict()))) == policy
    assert (policy.version, policy.scheme, policy.packet_time_s) == (7, name, packet_time_s)
    assert policy.short_limit_bytes == scheme.limit_bytes
    for kind in ("short", "long", "control"):
        wanted, reported = getattr(scheme, kind), getattr(policy, kind)
        assert reported.path.kind == wanted.entropy
        assert (reported.coding is None) == (wanted.coding is None)
        assert (reported.release is None) == (wanted.release is None)
        if wanted.release is not None:
            assert reported.release.timeout_s == pytest.approx(wanted.release.packet_times * packet_time_s)
        if wanted.coding is not None:
            assert reported.coding.flush_s == pytest.approx(wanted.coding.flush_packet_times * packet_time_s)
            for same in ("code", "redundancy", "estimator", "max_k", "max_r", "max_overhead"):
                assert getattr(reported.coding, same) == getattr(wanted.coding, same)
            assert reported.coding.target_decode_probability == wanted.coding.target_decode_probability


def test_the_papers_figures_are_in_the_files() -> None:
    """CAPS, INFOCOM 2018: 500 us of sampling at 1 Gbit/s is 41.7 packet times; ours says why it is shorter."""
    caps, paper, ecmp = loader.load("caps"), loader.load("caps-paper"), loader.load("ecmp")
    for scheme in (caps, paper):
        assert scheme.short_limit_bytes == 100_000
        assert scheme.group_of("long", "on") == "hash"
        assert scheme.group_of("long", "off") == "spray"
        assert scheme.group_of("short", "on") == scheme.group_of("short", "off") == "spray"
        assert scheme.long.coding is None
        assert scheme.control.coding is None
    assert paper.short.coding is not None
    assert (paper.short.coding.code, paper.short.coding.redundancy) == ("ldpc", "paper")
    assert paper.short.coding.estimator == "rtt-smoothed"
    assert paper.mode is not None
    assert paper.mode.sampling_packet_times == pytest.approx(500e-6 * 1e9 / (1500 * 8), abs=0.05)
    assert paper.mode.longest_hold == 1
    assert paper.short.coding.sampling_packet_times == pytest.approx(200e-6 * 1e9 / (1500 * 8), abs=0.05)
    assert {ecmp.group_of(kind, "on") for kind in ("short", "long", "control")} == {"hash"}  # type: ignore[arg-type]
    sent = policy_for(paper, 12e-6, 1).short.coding
    assert sent is not None
    for k in range(
        1, 43
    ):  # up to the largest pB that an agent assumes; from 43 on r would be above 64, the most there is
        assert repairs_for(sent, MAX_BLOCKING_PROBABILITY, k) == paper_rule(k, MAX_BLOCKING_PROBABILITY) > k


def test_hylines_threshold_is_table_4s_by_load() -> None:
    """CAPTON, Table 4, web search by core load; a flow that needs no grant is short."""
    hyline = loader.load("hyline")
    for row in TABLE_4:
        at = with_overrides(hyline, {"admission.load": row.core_load / 100})
        sent = policy_for(at, 0.0006, 1)
        assert sent.admission is not None
        assert (
            sent.admission.threshold_bytes == round(row.websearch_by_core * 1e6) == sent.short_limit_bytes - 1
        )
    for wrong in ({"admission.load": None}, {"admission.threshold_by_load": []}):
        with pytest.raises(PlainError, match="give both or neither"):
            with_overrides(hyline, wrong)
    fixed = with_overrides(hyline, {"admission.load": None, "admission.threshold_by_load": []})
    assert policy_for(fixed, 0.0006, 1).short_limit_bytes == 100_000


def test_htpc_has_the_papers_estimator_and_ours_by_another_name() -> None:
    """HTPC, Eq. 4: the share of ACKs whose RTT is above twice the average; every 500 us of 1 Gbit/s."""
    htpc, overdue = loader.load("htpc"), loader.load("htpc-overdue")
    for scheme, estimator in ((htpc, "rtt-average"), (overdue, "loss-rate")):
        assert scheme.short.coding is not None
        assert scheme.short == scheme.long
        assert scheme.short.coding.estimator == estimator
        assert scheme.short.coding.sampling_packet_times == pytest.approx(500e-6 / 12e-6, abs=0.5)
    assert htpc.short.coding is not None
    assert overdue.short.coding is not None
    assert replace(htpc.short.coding, estimator="loss-rate") == overdue.short.coding


def test_the_example_of_the_tests_is_good(tmp_path: Path) -> None:
    scheme = load_text(tmp_path, GOOD)
    assert scheme.short.coding is not None
    assert scheme.short.coding.max_k == 16
    assert scheme.mode is not None


WRONG = {
    "unknown field": ("max_k: 16", "max_kk: 16", 8, "field 'max_kk' is not known; did you mean 'max_k'?"),
    "unknown class": ("control:", "controll:", 15, "field 'controll' is not known; did you mean 'control'?"),
    "unknown word": ("code: rlc", "code: rcl", 7, "scheme.short.coding.code: 'rcl' is not known; did you mean 'rlc'?"),
    "out of range": ("max_k: 16", "max_k: 129", 8, "scheme.short.coding.max_k: must be 1..128"),
    "wrong type": ("max_k: 16", "max_k: many", 8, "scheme.short.coding.max_k: expected int, got 'many'"),
    "number for text": ("title: A scheme of one's own", "title: 5", 2, "scheme.title: expected str, got 5"),
    "missing field": ("title: A scheme of one's own\n", "", 1, "scheme: field 'title' is missing"),
    "no group": ("group: spray\n  coding", "entropy: spray\n  coding", 4, "scheme.short.group: is missing"),
    "two groups": ("  by_mode:\n", "  group: hash\n  by_mode:\n", 12, "scheme.long.group: give either group"),
    "bad name": ("name: mine", "name: My Scheme", 1, "scheme.name: 'My Scheme' must be 1 to 40 of a-z"),
    "empty title": ("title: A scheme of one's own", "title: ' '", 2, "scheme.title: must not be empty"),
    "no mode": ("mode: {}\n", "", 12, "scheme.long.by_mode: needs a mode: add `mode: {}`"),
    "mode for no class":
        ("by_mode:\n    on: hash\n    off: spray", "group: hash", 15, "scheme.mode: no class follows it"),
    "coded control":
        ("control:\n  group: spray", "control:\n  group: spray\n  coding: {}", 17,
         "control packets are never coded"),
    "negative wait":
        ("packet_times: 4.25", "packet_times: -1", 10, "scheme.short.release.packet_times: must be above 0"),
    "endless wait": ("packet_times: 4.25", "packet_times: .inf", 10, "packet_times: .inf is not a finite number"),
    "no number": ("packet_times: 4.25", "packet_times: .nan", 10, "packet_times: .nan is not a finite number"),
    "list for object": ("mode: {}", "mode: []", 17, "scheme.mode: expected an object, got []"),
    "zero intervals": ("mode: {}", "mode: {quiet_intervals: 0}", 17, "scheme.mode.quiet_intervals: must be 1..1024"),
    "negative limit": ("mode: {}", "mode: {}\nshort_limit_bytes: -1", 18, "short_limit_bytes: must be 0..46"),
    "a limit beyond 64 bits":
        ("mode: {}", "mode: {}\nshort_limit_bytes: 100000000000000000000", 18,
         "short_limit_bytes: must be 0..4611686018427387904 B"),
    "a threshold beyond 64 bits":
        ("mode: {}", "mode: {}\nqueues: {number: 2}\npriority: {thresholds_bytes: [1], scale: 1.0e+30}", 19,
         "scheme.priority.thresholds_bytes: must be at most 4611686018427387904 B, times scale, too"),
    "a key twice": ("mode: {}", "mode: {}\nname: other", 18, "'name' is given twice"),
    "a tab": ("mode: {}", "mode:\n\tx: 1", 18, "is not YAML: found character '\\t'"),
    "an open bracket": ("mode: {}", "mode: {", 18, "is not YAML"),
    "a key that is a list": ("mode: {}", "? [a, b]\n: 1", 17, "a key must be text"),
    "an object of Python":
        ("mode: {}", "mode: !!python/object/apply:os.system [id]", 17, "means nothing here"),
}  # fmt: skip


@pytest.mark.parametrize(("old", "new", "line", "words"), WRONG.values(), ids=WRONG)
def test_an_error_names_file_line_field_and_what_was_meant(
    tmp_path: Path, old: str, new: str, line: int, words: str
) -> None:
    assert GOOD.count(old) == 1
    with pytest.raises(SchemeError) as caught:
        load_text(tmp_path, GOOD.replace(old, new))
    said = str(caught.value)
    assert said.startswith(f"{tmp_path}/mine.yaml:{line}:"), said
    assert words in said
    assert "\n" not in said


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "expected an object, got None"),
        ("- a\n- b\n", "expected an object"),
        ("just words", "expected an object, got 'just words'"),
        ("a: 1\n---\nb: 2\n", "is not YAML: but found another document"),
        ("[" * 3000, "is nested too deeply"),
        ("name: &a [*a]", "an alias must not lie within what it stands for"),
        ("name: *absent", "found undefined alias 'absent'"),
        ("title: " + "9" * 5000, "is not a number here: write it in decimal"),
        ("name:\n  \x07", ":2:3: is not YAML: character '\\x07' is not allowed"),
    ],
)
def test_a_file_that_is_no_scheme_at_all_is_said_to_be_none(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(SchemeError, match=r"mine\.yaml:\d+:\d+: ") as caught:
        load_text(tmp_path, text)
    assert words in str(caught.value)


def test_files_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    with pytest.raises(SchemeError, match=r"missing\.yaml: there is no such file"):
        loader.load(tmp_path / "missing.yaml")
    with pytest.raises(SchemeError, match=r"cannot be read: .*directory"):
        loader.load(f"{tmp_path}/")
    (tmp_path / "latin.yaml").write_bytes(b"name: caf\xe9")
    with pytest.raises(SchemeError, match=r"latin\.yaml: cannot be read: .*utf-8"):
        loader.load(tmp_path / "latin.yaml")


@pytest.mark.parametrize(
    ("name", "hint"),
    [("capz", "did you mean 'caps'?"), ("CAPS", "caps"), ("zzzzzz", "known: "), ("", "known: ")],
)
def test_a_misspelt_name_gets_a_hint(name: str, hint: str) -> None:
    with pytest.raises(SchemeError, match=f"scheme '{name}' is not known") as caught:
        loader.load(name)
    assert hint in str(caught.value)


def test_names_are_not_paths_and_paths_are_not_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "caps").write_text(GOOD)
    (tmp_path / "mine.yml").write_text(GOOD)
    assert loader.load("caps").name == "caps", "not the file of this directory"
    assert loader.load("mine.yml").name == "mine"
    assert loader.load("./mine.yml").name == "mine"
    with pytest.raises(SchemeError, match="is not known"):
        loader.load("..")


def test_words_that_yaml_1_1_takes_for_truth_values_are_words() -> None:
    assert read("{on: yes, off: no, y: true, date: 2018-04-16}", "f").data == {
        "on": "yes",
        "off": "no",
        "y": True,
        "date": "2018-04-16",
    }


@given(st.text(max_size=60))
def test_no_text_whatever_is_more_than_an_error(text: str) -> None:
    assert read(text, "f").place(path_of("short.coding[3]"), key=True) >= (1, 1)


CAPS = loader.load("caps")


@pytest.mark.parametrize(
    ("overrides", "path", "value"),
    [
        ({"short.coding.max_k": 8}, "short.coding.max_k", 8),
        ({"short": {"coding": {"max_k": 8}}}, "short.coding.max_k", 8),
        ({"short.coding": {"max_k": 8}}, "short.coding.max_k", 8),
        ({"long.release.packet_times": 32.5}, "long.release.packet_times", 32.5),
        ({"control.release?.packet_times": 32.5}, "control.release", None),
        ({"short.coding?.max_k": 8}, "short.coding.max_k", 8),
        ({"short.coding": None}, "short.coding", None),
        ({"long.group": "hash", "mode": None}, "long.by_mode", None),
        ({"control.by_mode": {"on": "hash", "off": "spray"}}, "control.group", None),
        ({"short_limit_bytes": 50_000}, "short_limit_bytes", 50_000),
        ({"mode": {}}, "mode.quiet_intervals", 1),
        ({}, "name", "caps"),
    ],
)
def test_an_override_changes_what_it_names_and_nothing_else(
    overrides: dict[str, Any], path: str, value: object
) -> None:
    changed: Any = loader.scheme_to_dict(with_overrides(CAPS, overrides))
    at = changed
    for part in path.split("."):
        at = at[part]
    assert at == value
    before = loader.scheme_to_dict(CAPS)
    assert loader.scheme_to_dict(CAPS) == before
    touched = {name.split(".")[0].rstrip("?") for name in overrides}
    for name in before:
        if name not in touched:
            assert changed[name] == before[name]


@pytest.mark.parametrize(
    ("overrides", "words"),
    [
        ({"shrot.coding": None}, "did you mean 'short'?"),
        ({"short.coding.max_kk": 8}, "did you mean 'max_k'?"),
        ({"short.coding.max_k": 0}, "overrides.short.coding.max_k: must be 1..128"),
        ({"short.group.kind": 1}, "overrides.short.group: is not an object"),
        ({"short.coding.max_k": 8, "short": {"coding": {"max_k": 9}}}, "is given twice"),
        ({"short..coding": 1}, "is not the name of a field"),
        ({"": 1}, "is not the name of a field"),
        ({5: 1}, "5 is not the name of a field"),
        ([], "expected an object, got []"),
        ({"short.group": None}, "overrides.short.group: is missing"),
        ({"long.group": "hash"}, "overrides.mode: no class follows it"),
        ({"name": None}, "overrides.name: expected str"),
        ({"control.coding.code": "rlc"}, "control packets are never coded"),
    ],
)
def test_an_override_that_cannot_be_is_named(overrides: Any, words: str) -> None:
    with pytest.raises(PlainError) as caught:
        with_overrides(CAPS, overrides)
    assert words in str(caught.value)


def test_times_that_agents_would_refuse_are_found_when_the_policy_is_made() -> None:
    slow = with_overrides(CAPS, {"short.release.packet_times": 5000})
    assert policy_for(slow, 0.001, 1).short.release is not None
    with pytest.raises(PolicyError, match=r"policy\.short\.release\.timeout_s: .*at most 10 s"):
        policy_for(slow, 0.01, 1)
