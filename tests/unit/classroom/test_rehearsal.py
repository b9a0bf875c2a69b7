"""Lab 7's controller: it speaks as the real one does, and refuses what the real one refuses."""

from __future__ import annotations

from inspect import signature
from pathlib import Path
from typing import get_type_hints

import pytest

from capstan_client.controller import ControllerClient
from capstan_client.errors import ControllerError
from classroom import application
from classroom.answer import AnswerError
from classroom.rehearsal import Rehearsal, fabric_links
from controller.api.answers import AppliedScheme, SchemeView
from controller.api.answers_live import FaultView, LinkLoadView, LinksView, LoadView, QueueLoadView


@pytest.mark.parametrize("name", ["begin_fault", "end_fault", "faults", "scheme", "set_scheme"])
def test_what_a_student_writes_for_it_runs_on_the_real_client(name: str) -> None:
    real, rehearsed = (signature(getattr(client, name)) for client in (ControllerClient, Rehearsal))
    assert rehearsed == real


def test_a_sample_has_the_fields_of_the_api() -> None:
    sample = Rehearsal().sample()
    assert sample.keys() - {"topic"} == get_type_hints(LinksView).keys()
    for link in sample["links"]:
        assert link.keys() == get_type_hints(LinkLoadView).keys()
        assert link["ab"].keys() == get_type_hints(LoadView).keys()
        assert link["ab"]["queues"][0].keys() == get_type_hints(QueueLoadView).keys()


def test_it_refuses_what_a_controller_refuses() -> None:
    fabric = Rehearsal(refusals=1)
    with pytest.raises(ControllerError) as away:
        fabric.begin_fault("link-down", "l1-s1")
    fault = fabric.begin_fault("link-down", "l1-s1")
    with pytest.raises(ControllerError) as twice:
        fabric.begin_fault("link-down", "l1-s1")
    fabric.end_fault(fault["id"])
    with pytest.raises(ControllerError) as gone:
        fabric.end_fault(fault["id"])
    assert [error.value.status for error in (away, twice, gone)] == [503, 409, 404]
    assert fabric.changes == ["link-down l1-s1", "end l1-s1"]


def test_leaves_are_connected_while_a_spine_reaches_both() -> None:
    fabric = Rehearsal()
    for link in ("l1-s1", "l1-s2", "l2-s3"):
        fabric.take_down(link)
        assert fabric.connected()
    fabric.take_down("l2-s4")
    assert not fabric.connected()
    assert [link["name"] for link in fabric.sample()["links"] if not link["up"]] == [
        name for name in fabric_links() if name in ("l1-s1", "l1-s2", "l2-s3", "l2-s4")
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("def make_application(controller):\n    return 3\n", "a method on_event"),
        (
            "class A:\n    def on_event(self, event):\n        return 1 / 0\n\n\n"
            "def make_application(controller):\n    return A()\n",
            "line 3: ZeroDivisionError",
        ),
    ],
)
def test_an_application_that_fails_says_where(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "mine.py"
    file.write_text(text)
    with pytest.raises(AnswerError, match=said):
        application.check(file, tmp_path)


def test_faults_and_schemes_have_the_fields_of_the_api() -> None:
    fabric = Rehearsal(slow={"l1-s2"})
    applied = fabric.set_scheme("caps", 0.0024)
    fabric.begin_fault("link-down", "l1-s1")
    assert [(fault["kind"], fault["target"]) for fault in fabric.faults()] == [
        ("slow-link", "l1-s2"),
        ("link-down", "l1-s1"),
    ]
    assert all(fault.keys() == get_type_hints(FaultView).keys() for fault in fabric.faults())
    assert fabric.scheme().keys() == get_type_hints(SchemeView).keys()
    assert applied.keys() == get_type_hints(AppliedScheme).keys()
    for fault in fabric.faults():
        fabric.end_fault(fault["id"])
    assert (fabric.faults(), fabric.slow, fabric.mistakes) == ([], set(), [])
