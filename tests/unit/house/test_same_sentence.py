"""The command line and the API say the same sentence of the same mistake."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from cli.app import main
from experiments.spec.check import PRESETS
from tests.unit.api_world import World, api_world

SMALL = (PRESETS / "small.yaml").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with api_world(tmp_path_factory.mktemp("api")) as made:
        yield made


class CommandLine:
    """Commands in this process, by what they say on standard error."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self._monkeypatch = monkeypatch
        self._capsys = capsys

    def errors(self, *arguments: str) -> list[str]:
        self._monkeypatch.setattr("sys.argv", ["capstan", *arguments])
        with pytest.raises(SystemExit) as leave:
            main()
        assert leave.value.code != 0
        return self._capsys.readouterr().err.splitlines()


@pytest.fixture
def command_line(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> CommandLine:
    return CommandLine(monkeypatch, capsys)


@pytest.mark.parametrize(
    ("sound", "wrong"),
    [
        ("repeats: ", "repeats: 0 # "),
        ("repeats: ", "repeets: "),
        ("schemes: ", "schemes: [capz] # "),
        ("  count: ", "  cout: "),
        ("name: small", "name: [small"),
        ("name: small", "name: small\nsweep: [{fields: [], values: [1], label: x}]"),
        ("name: small", "name: small\nsweep: [{fields: [no.such], values: [1], label: x}]"),
    ],
    ids=["value", "field", "scheme", "nested field", "no YAML", "no fields swept", "unknown field swept"],
)
def test_a_wrong_spec(
    sound: str, wrong: str, world: World, command_line: CommandLine, tmp_path: Path
) -> None:
    assert sound in SMALL
    text = SMALL.replace(sound, wrong, 1)
    file = tmp_path / "wrong.yaml"
    file.write_text(text, encoding="utf-8")
    answer = world.ask("POST", "/experiments/check", data=text, content_type="application/yaml")
    by_api = [
        f"{file}:{problem['line']}:{problem['column']}: "
        + ": ".join(
            filter(None, (problem["field"].removeprefix("body.text").lstrip("."), problem["message"]))
        )
        for problem in answer["problems"]
    ]
    *by_command, _count = command_line.errors("check", str(file))
    assert by_api
    assert by_command == by_api


def test_an_unknown_scheme(world: World, command_line: CommandLine) -> None:
    [line] = command_line.errors("lab", "small", "--scheme", "capz")
    sentence = line.removeprefix("capstan: ")
    assert "did you mean 'caps'" in sentence
    assert world.get("/schemes/capz.yaml", 404)["detail"] == sentence
    assert world.ask("PUT", "/scheme", 422, json={"scheme": "capz"})["detail"] == f"body.scheme: {sentence}"
