"""Notebooks run whole in a kernel, in simulation: a lab's says what is missing, with the solution: nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient
from traitlets.config import Config

from classroom.labs import LABS, ClassroomLab
from tests.free_ports import free_port

NOTEBOOKS = Path(__file__).resolve().parents[3] / "docs" / "notebooks"
ANSWER = "%%writefile"
PORTS = ("shell_port", "iopub_port", "stdin_port", "hb_port", "control_port")


def read(name: str) -> Any:
    return nbformat.read(NOTEBOOKS / name, as_version=4)


def answer_of(notebook: Any) -> Any:
    """Return the cell that a student changes."""
    [cell] = [cell for cell in notebook.cells if cell.source.startswith(ANSWER)]
    return cell


def kernel_ports() -> Config:
    """Return settings with ports for a kernel: what it draws may be another program's before it listens there."""
    ports: set[int] = set()
    while len(ports) < len(PORTS):
        ports.add(free_port())
    return Config({"KernelManager": {"cache_ports": False} | dict(zip(PORTS, ports, strict=True))})


def run(notebook: Any, work: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Run all cells; return what they print."""
    monkeypatch.setenv("CAPSTAN_WORK", str(work))
    monkeypatch.setenv("JUPYTER_RUNTIME_DIR", str(work / "runtime"))
    monkeypatch.setenv("IPYTHONDIR", str(work / "ipython"))
    monkeypatch.delenv("CAPSTAN_API", raising=False)
    resources = {"metadata": {"path": str(NOTEBOOKS)}}
    client = NotebookClient(
        notebook, timeout=240, kernel_name="python3", resources=resources, config=kernel_ports()
    )
    client.execute()
    outputs = [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]
    return "".join(output.text for output in outputs if output.output_type == "stream")


def figures(notebook: Any) -> int:
    return sum(
        "image/png" in output.get("data", {})
        for cell in notebook.cells
        if cell.cell_type == "code"
        for output in cell.outputs
    )


@pytest.mark.parametrize("lab", LABS.values(), ids=lambda lab: lab.folder)
def test_a_labs_notebook_begins_with_the_file_to_start_from(lab: ClassroomLab) -> None:
    _, text = answer_of(read(f"lab{lab.number}.ipynb")).source.split("\n", 1)
    assert text.strip() == (lab.directory / lab.start).read_text().strip()


@pytest.mark.slow
@pytest.mark.parametrize("lab", LABS.values(), ids=lambda lab: lab.folder)
def test_with_the_solution_nothing_is_missing(
    lab: ClassroomLab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    notebook = read(f"lab{lab.number}.ipynb")
    cell = answer_of(notebook)
    cell.source = cell.source.split("\n", 1)[0] + "\n" + lab.solution.read_text()
    work = tmp_path / "my class"
    work.mkdir()
    assert f"lab {lab.number}: nothing is missing" in run(notebook, work, monkeypatch)
    assert figures(notebook) == 1


@pytest.mark.slow
def test_with_the_file_to_start_from_it_goes_on_to_its_end_and_says_what_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "MISSING" in run(read("lab3.ipynb"), tmp_path, monkeypatch)


@pytest.mark.slow
def test_the_parameter_study_ends_with_a_table_and_figures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    notebook = read("study.ipynb")
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    run(notebook, tmp_path, monkeypatch)
    assert figures(notebook) == 2
    [table] = [
        output["data"]["text/plain"]
        for cell in notebook.cells
        if cell.cell_type == "code"
        for output in cell.outputs
        if "short_afct_ms" in output.get("data", {}).get("text/plain", "")
    ]
    rows = [line.split() for line in table.splitlines()[1:]]
    assert {(row[1], row[2]) for row in rows} == {
        (load, scheme) for load in ("0.2", "0.4", "0.6") for scheme in ("ecmp", "rps", "caps")
    }
    assert all(float(row[5]) < float(row[4]) < float(row[6]) for row in rows)
