"""What agents get of paths: those of their leaf, at join and whenever they change. Over real sockets."""

from __future__ import annotations

from pathlib import Path

from controller.agents.places import Places
from controller.agents.server import AgentServer
from protocol.control import Directory, Message, Paths, SetPolicy
from protocol.frames import encode
from protocol.policy import Policy
from tests.unit.agents_channel import RawAgent, served

L1, L2 = "0000000000010001", "0000000000010002"


def before_policy(agent: RawAgent, version: int) -> list[Message]:
    """Return all messages that came before the policy of that version."""
    messages = []
    while (message := agent.message()) is not None:
        if isinstance(message, SetPolicy) and message.policy["version"] == version:
            return messages
        messages.append(message)
    raise AssertionError(f"closed before policy {version} came")


def reported(agents: list[RawAgent], server: AgentServer, version: int) -> list[list[Paths]]:
    """Send a policy of *version* to end the stream; return the paths that each agent got before it."""
    server.set_policy(Policy(version, "caps"))
    return [[one for one in before_policy(agent, version) if isinstance(one, Paths)] for agent in agents]


def test_an_agent_gets_the_paths_of_its_leaf_at_join_and_when_they_change(tmp_path: Path) -> None:
    with served(tmp_path) as at:
        server = at.server
        server.set_policy(Policy(1, "caps"))
        server.set_leaf("10.0.1.1", L1)
        server.set_leaf("10.0.1.2", L2)
        server.set_paths(L1, Paths({L2: (1025, 1026)}))
        server.set_paths(L2, Paths({L1: (1025, 1026, 1027)}))
        agents = [RawAgent.joined(at.socket_path, number) for number in (1, 2)]
        for agent in agents:
            assert any(isinstance(one, Directory) for one in before_policy(agent, 1))
        one, other = agents
        assert one.next(Paths) == Paths({L2: (1025, 1026)})
        assert other.next(Paths) == Paths({L1: (1025, 1026, 1027)})
        changed = Paths({L2: (1026,)}, {"short": (1026,)})
        server.set_paths(L1, changed)
        assert one.next(Paths) == changed
        server.set_paths(L1, changed)  # nothing new
        assert reported(agents, server, 2) == [[], []]
        for agent in agents:
            agent.close()


def test_an_agent_is_informed_as_soon_as_its_leaf_is_known_and_again_when_its_host_moves(
    tmp_path: Path,
) -> None:
    with served(tmp_path) as at:
        at.server.set_paths(L1, Paths({L2: (1,)}))
        at.server.set_paths(L2, Paths({L1: (2,)}))
        agent = RawAgent.joined(at.socket_path)
        assert reported([agent], at.server, 1) == [[]]
        at.server.set_leaf("10.0.1.1", L1)
        assert agent.next(Paths) == Paths({L2: (1,)})
        at.server.set_leaf("10.0.1.1", L2)
        assert agent.next(Paths) == Paths({L1: (2,)})
        agent.close()


def test_paths_are_kept_for_who_comes_to_a_leaf() -> None:
    places = Places()
    assert places.set_paths(L1, Paths({L2: (5,)}))
    assert not places.set_paths(L1, Paths({L2: (5,)}))
    assert places.paths_frame("10.0.1.1") is None
    assert places.leaf_of("10.0.1.1") == ""
    assert places.set_leaf("10.0.1.1", L1)
    assert not places.set_leaf("10.0.1.1", L1)
    assert places.paths_frame("10.0.1.1") == encode(Paths({L2: (5,)}))
