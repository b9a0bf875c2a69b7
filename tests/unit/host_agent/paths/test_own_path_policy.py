"""A path policy in a file of the operator's own: what is taken, what is refused, and whose fault a failure is."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from controller.schemes import loader
from host_agent.core import AgentCore
from host_agent.inner_packet import SYN
from host_agent.paths import Route
from host_agent.paths.own import OwnPathPolicy, PathFileError, read_path_policy
from protocol.control import Peer
from protocol.policy import ClassPolicy, PathSettings, Policy, PolicyError
from protocol.underlay import TrafficClass, label_of
from tests.unit.inner_packets import HOST1, HOST2, tcp

HEAD = "from host_agent.paths.base import PathPolicy\n"
FIRST = f"""{HEAD}
class First(PathPolicy):
    def __init__(self, rng, packet_time_s):
        self.packet_time_s = packet_time_s
    def entropy(self, flow, route, size, now):
        return route.labels[0] if route.labels else 20000
"""
LABELS = (label_of(2049), label_of(2050))
ROUTE = Route("l2", TrafficClass.SHORT, LABELS)


@dataclass(frozen=True)
class Inner:
    id: int = 1
    hash: int = 7


def agent(own: OwnPathPolicy | None) -> AgentCore:
    core = AgentCore("h1", 1, 1426, np.random.default_rng(1), own_path=own)
    peers = [Peer("h1", "10.0.1.1", [HOST1], 1, "near"), Peer("h2", "10.0.1.2", [HOST2], 2, "far")]
    core.set_directory(peers, 0.0)
    return core


def write(directory: Path, text: str, name: str = "mine.py") -> Path:
    file = directory / name
    file.write_text(text)
    return file


def test_the_policy_of_a_file_chooses(tmp_path: Path) -> None:
    own = read_path_policy(write(tmp_path, FIRST))
    policy = own(np.random.default_rng(1), 0.004)
    assert policy.entropy(Inner(), ROUTE, 1400, 1.0) == LABELS[0]
    assert policy.entropies(Inner(), ROUTE, 1400, 3, 100, 1.0) == [LABELS[0]] * 3
    assert policy.entropy(Inner(), Route("l2", TrafficClass.SHORT), 1400, 1.0) == 20000


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("x = = 1\n", "line 1"),
        ("import nothing_of_that_name\n", "line 1: ModuleNotFoundError"),
        (HEAD, "there is none"),
        (FIRST + FIRST.replace("First", "Second"), "First, Second"),
    ],
)
def test_a_file_that_holds_no_policy_is_refused(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(PathFileError, match=said):
        read_path_policy(write(tmp_path, text))


def test_a_missing_file_and_a_wrong_name_are_refused(tmp_path: Path) -> None:
    with pytest.raises(PathFileError, match="no such file"):
        read_path_policy(tmp_path / "none.py")
    with pytest.raises(PathFileError, match=r"end in \.py"):
        read_path_policy(write(tmp_path, FIRST, "mine.txt"))


@pytest.mark.parametrize(
    ("returned", "said"),
    [
        ("70000", "gave 70000"),
        ("None", "gave None"),
        ("8192 + 9", "gave 8201"),
        ("1 / 0", "line 7: ZeroDivisionError"),
    ],
)
def test_what_names_no_path_is_the_files_fault(tmp_path: Path, returned: str, said: str) -> None:
    file = write(tmp_path, FIRST.replace("route.labels[0] if route.labels else 20000", returned))
    policy = read_path_policy(file)(np.random.default_rng(1), 0.004)
    with pytest.raises(PathFileError, match=said):
        policy.entropy(Inner(), ROUTE, 1400, 1.0)


def test_a_class_that_cannot_be_made_is_the_files_fault(tmp_path: Path) -> None:
    file = write(tmp_path, FIRST.replace("(self, rng, packet_time_s)", "(self)"))
    with pytest.raises(PathFileError, match=r"First\(rng, packet_time_s\)"):
        read_path_policy(file)(np.random.default_rng(1), 0.004)


def test_an_agent_without_a_file_refuses_such_a_scheme(tmp_path: Path) -> None:
    asked = ClassPolicy(PathSettings("file"))
    policy = Policy(1, "mine", short=asked)
    with pytest.raises(PolicyError, match=r"policy\.short\.path\.kind.*--path-policy"):
        agent(None).set_policy(policy, 0.0)
    with_file = agent(read_path_policy(write(tmp_path, FIRST)))
    with_file.set_policy(policy, 0.0)
    with_file.packet_from_host(tcp(b"x"), 0.0)
    with_file.set_paths({"far": (2049, 2050)}, {})
    with_file.packet_from_host(tcp(b"x"), 0.0)
    assert [one.source_port for one in with_file.datagrams_to_send()] == [20000, LABELS[0]]


def test_what_a_policy_raises_behind_the_packets_comes_out_of_the_call_that_caused_it(tmp_path: Path) -> None:
    text = FIRST + "    def forget(self, flow):\n        1 / 0\n    def load(self, now):\n        return 7\n"
    core = agent(read_path_policy(write(tmp_path, text)))
    core.set_policy(Policy(1, "mine", long=ClassPolicy(PathSettings("file"))), 0.0)
    core.packet_from_host(tcp(b"x"), 0.0)
    with pytest.raises(PathFileError, match=r"mine\.py, line 9: ZeroDivisionError"):
        core.packet_from_host(tcp(flags=SYN), 1.0)
    with pytest.raises(TypeError, match="Load"):
        core.path_load(0.0)


def test_no_scheme_or_policy_can_name_a_file(tmp_path: Path) -> None:
    scheme = write(
        tmp_path,
        "name: mine\ntitle: T\nsummary: S\nshort: {group: label, entropy: file, path: {file: /etc/passwd}}\n"
        "long: {group: label, entropy: file}\ncontrol: {group: label, entropy: file}\n",
        "mine.yaml",
    )
    with pytest.raises(loader.SchemeError, match="file"):
        loader.load(scheme)
    document = Policy(1, "mine").to_dict()
    document["short"]["path"]["file"] = "/etc/passwd"
    with pytest.raises(PolicyError, match="file"):
        Policy.from_dict(document)


def test_numpy_is_loaded_for_a_file_only(tmp_path: Path) -> None:
    file = tmp_path / "first.py"
    file.write_text(FIRST)
    program = f"""
import sys
import host_agent.shell
from host_agent.paths.own import read_path_policy
from host_agent.randomness import StandardRandom
print("numpy" in sys.modules)
read_path_policy(__import__("pathlib").Path({str(file)!r}))(StandardRandom(1), 0.004)
print("numpy" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "True"]
