"""Every model evaluates, draws and prints; studies that say nothing are refused."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from cli.app import capstan
from models.catalogue import MODELS, model_named
from models.drawing import draw, styles_of
from models.study import Axis, Curve, Mark, Panel, Study, curve

ROOT = Path(__file__).parents[3]
X = Axis("x")


@pytest.mark.slow
@pytest.mark.parametrize("name", list(MODELS))
def test_every_model_is_drawn_and_printed(name: str, tmp_path: Path) -> None:
    file = tmp_path / "model.json"
    args = ["model", name, "--figures", str(tmp_path), "--json", str(file)]
    result = CliRunner(env={"COLUMNS": "80"}).invoke(capstan, args)
    assert result.exit_code == 0, result.output
    assert "…" not in result.output  # the table fits a narrow terminal
    document = json.loads(file.read_text())
    assert document["model"] == name
    assert document["rows"]
    assert all(len(row) == len(document["columns"]) for row in document["rows"])
    for panel in document["panels"]:
        assert panel["x"]["what"]
        assert panel["y"]["what"]
        assert all(any(y is not None for y in one["ys"]) for one in panel["curves"])
    styles = styles_of(Curve(**one) for panel in document["panels"] for one in panel["curves"])
    for panel in document["panels"]:
        labels = {one["label"] for one in panel["curves"]}
        assert len({(styles[label].colour, styles[label].line) for label in labels}) == len(labels)
    png, svg = map(Path, document["figures"])
    assert png.read_bytes().startswith(b"\x89PNG")
    assert svg.read_text().startswith("<?xml")
    printed = result.output.replace("\n", "")
    assert str(png) in printed
    assert all(note.replace(" ", "") in printed.replace(" ", "") for note in document["notes"])
    assert f"`{name}`" in (ROOT / "docs" / "models.md").read_text()


@pytest.mark.slow
def test_json_on_standard_output_is_alone_there(tmp_path: Path) -> None:
    result = CliRunner().invoke(capstan, ["model", "htpc-tail", "--figures", str(tmp_path), "--json", "-"])
    assert json.loads(result.stdout)["model"] == "htpc-tail"


def test_without_a_name_the_models_are_listed() -> None:
    reported = CliRunner().invoke(capstan, ["model"])
    assert reported.exit_code == 0
    assert all(name in reported.output for name in MODELS)
    rows = [line.split(maxsplit=1) for line in reported.output.splitlines()[: len(MODELS)]]
    assert rows == [[name, model.shows] for name, model in MODELS.items()], (
        "a name is apart from what it shows"
    )
    document = json.loads(CliRunner().invoke(capstan, ["model", "--json", "-"]).stdout)
    assert [one["name"] for one in document["models"]] == list(MODELS)


def test_a_model_that_is_not_known_is_refused_with_what_was_meant() -> None:
    with pytest.raises(ValueError, match=r"model 'caps-fig7' is not known; did you mean 'caps-fig"):
        model_named("caps-fig7")
    done = subprocess.run(
        [sys.executable, "-m", "cli", "model", "caps-fig7"], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 1
    assert "did you mean 'caps-fig" in done.stderr
    assert "Traceback" not in done.stderr


def test_without_kernels_models_are_listed_and_the_launcher_is_named_for_the_rest() -> None:
    """The formulas are those of host agents, which are compiled; `./capstan model` builds them."""
    without = (
        "import sys; sys.modules['capstan_native'] = None\n"
        "from models.catalogue import MODELS\n"
        "print(len(MODELS))\n"
        "MODELS['caps-unit-readings'].evaluate()"
    )
    done = subprocess.run([sys.executable, "-c", without], cwd=ROOT, capture_output=True, text=True)
    assert done.stdout == f"{len(MODELS)}\n", done.stderr
    assert "start the command through ./capstan" in done.stderr


@pytest.mark.slow
def test_the_same_study_gives_the_same_bytes(tmp_path: Path) -> None:
    study = MODELS["htpc-tail"].evaluate()
    assert study == MODELS["htpc-tail"].evaluate()
    first, second = (draw(study, tmp_path / name) for name in ("a", "b"))
    for one, other in zip(first, second, strict=True):
        assert one.read_bytes() == other.read_bytes()


def test_simulated_points_repeat() -> None:
    assert MODELS["htpc-timeout"].evaluate() == MODELS["htpc-timeout"].evaluate()


def test_panels_that_say_nothing_are_refused() -> None:
    with pytest.raises(ValueError, match="2 values for 1 xs"):
        Panel("p", X, X, (1.0,), (curve("a", [1, 2]),))
    with pytest.raises(ValueError, match="not finite"):
        Panel("p", X, X, (1.0,), (curve("a", [math.inf]),))
    with pytest.raises(ValueError, match="two curves 'a'"):
        Panel("p", X, X, (1.0,), (curve("a", [1]), curve("a", [2])))
    with pytest.raises(ValueError, match="marks of no curve: b"):
        Panel("p", X, X, (1.0,), (curve("a", [1]),), (Mark(1, 1, "b"),))
    with pytest.raises(ValueError, match="does not fit the columns"):
        Study("s", (), ("a", "b"), ((1,),))
