"""The wheel of what simulates, in an environment that has nothing else of ours."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
import tomllib
import venv
import zipfile
from pathlib import Path
from types import ModuleType

import capstan_native
import pytest

from classroom.labs import LABS
from protocol.version import VERSION
from tests.unit.simulation_page.served_page import served_page

ROOT = Path(__file__).resolve().parents[3]
HERE = ROOT / "setup" / "simulator"
OTHERS = Path(capstan_native.__file__).parent
"""Packages that are not ours."""
WITHOUT_SWITCHES = "import sys; sys.modules['os_ken'] = None; from cli.__main__ import main; main()"
PLAIN = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}


def backend() -> ModuleType:
    found = importlib.util.spec_from_file_location("simulator_wheel", HERE / "backend.py")
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


def test_kernels_of_other_systems_are_built_without_calls_of_linux() -> None:
    settings = backend().kernel_settings
    assert settings("linux", None) == {}
    for system in ("darwin", "win32"):
        assert settings(system, {"more": "1"}) == {"build-args": "--no-default-features", "more": "1"}
    manifest = tomllib.loads((ROOT / "native" / "Cargo.toml").read_text())
    assert manifest["features"]["default"] == ["linux"]
    assert manifest["dependencies"]["libc"]["optional"]


def native_wheel(directory: Path) -> Path:
    """Write a wheel with the kernels of this environment, as maturin would."""
    native = directory / "capstan_native-0.1.0-cp311-abi3-linux_x86_64.whl"
    with zipfile.ZipFile(native, "w") as kernels:
        kernels.write(str(capstan_native.__file__), "capstan_native/capstan_native.abi3.so")
        kernels.writestr("capstan_native/__init__.pyi", "")
        tags = "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: false\nTag: cp311-abi3-linux_x86_64\n"
        kernels.writestr("capstan_native-0.1.0.dist-info/WHEEL", tags)
    return native


def test_a_checkout_below_a_folder_that_is_called_build_is_whole_in_its_wheel(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkout = tmp_path / "build" / "capstan"
    checkout.parent.mkdir()
    checkout.symlink_to(ROOT)
    module = backend()
    monkeypatch.setattr(module, "ROOT", checkout)
    name = module.with_rooms(native_wheel(tmp_path), tmp_path)
    with zipfile.ZipFile(tmp_path / name) as wheel:
        assert {"cli/app.py", "simulation/experiment.py"} <= {*wheel.namelist()}


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the programs of an environment with the wheel, its kernels those of this one."""
    directory = tmp_path_factory.mktemp("wheel")
    name = backend().with_rooms(native_wheel(directory), directory)
    assert name == f"capstan_simulator-{VERSION}-cp311-abi3-linux_x86_64.whl"
    with zipfile.ZipFile(directory / name) as wheel:
        files = wheel.namelist()
        packages = directory / "packages"
        wheel.extractall(packages)
    assert len(files) == len(set(files))
    environment = directory / "environment"
    venv.create(environment, with_pip=False)
    (site,) = environment.glob("lib/python*/site-packages")
    # Our own rooms are no packages of OTHERS: a module that the wheel lacks is missing.
    (site / "wheel.pth").write_text(f"{packages}\n{OTHERS}\n")
    return environment / "bin" / "python"


def capstan(python: Path, *arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [str(python), "-P", "-m", "cli", *arguments]
    return subprocess.run(command, cwd=cwd, env=PLAIN, capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_it_simulates_a_small_spec_and_keeps_the_result(installed: Path, tmp_path: Path) -> None:
    done = capstan(installed, "simulate", "small", "--scheme", "tpfs", "--json", "result.json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert json.loads((tmp_path / "result.json").read_text())["kind"] == "simulation"
    (result,) = (tmp_path / "results").glob("small-*")
    written = capstan(installed, "report", str(result), cwd=tmp_path)
    assert written.returncode == 0, written.stderr
    assert (result / "report.html").exists()


def test_it_offers_the_commands_that_it_has(installed: Path, tmp_path: Path) -> None:
    listed = capstan(installed, "--help", cwd=tmp_path).stdout
    assert "simulate" in listed
    assert "\n  run " not in listed
    refused = capstan(installed, "run", "small", cwd=tmp_path)
    assert refused.returncode == 2
    assert "'run' is not in this installation" in refused.stderr


@pytest.mark.slow
def test_its_page_simulates_what_is_begun_on_it(installed: Path, tmp_path: Path) -> None:
    with served_page([installed, "-P", "-c", WITHOUT_SWITCHES, "page"], tmp_path, PLAIN) as page:
        status, media, tour = page.get("/")
        assert (status, media) == (200, "text/html")
        (script,) = re.findall(rb'src="(/assets/[^"]+[.]js)"', tour)
        assert page.get(script.decode())[:2] == (200, "text/javascript")
        assert page.json("/health")["reasons"] == ["no switch is connected"]
        assert all(claim["row"] for claim in page.json("/evidence?preset=caps-fig26")["claims"])
        experiment = page.simulate(preset="small", schemes=["ecmp", "caps"])
        assert experiment["state"] == "finished", experiment["error"]
        number = experiment["id"]
        assert page.get(f"/api/v1/experiments/{number}/results.csv")[0] == 200
        figure = page.json(f"/experiments/{number}/figures")["figures"][0]["name"]
        assert page.get(f"/api/v1/experiments/{number}/figures/{figure}.svg")[:2] == (200, "image/svg+xml")
        again = page.get(f"/api/v1/experiments/{number}/recording?scheme=caps&repeat=1")
        assert again[2].startswith(b"\x1f\x8b"), again
        assert page.end() == ""
    assert page.process.returncode == 0
    assert not (tmp_path / "data" / "endpoints.json").exists()


def test_a_page_that_is_not_built_or_not_new_is_no_part_of_a_wheel(tmp_path: Path) -> None:
    check = backend().check_page
    for name in ("index.html", "package-lock.json", "vite.config.ts", "src/main.tsx"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    with pytest.raises(SystemExit, match=r"is not built: build it .* npm ci .* npm run build"):
        check(tmp_path)
    built = tmp_path / "dist" / "index.html"
    built.parent.mkdir()
    built.touch()
    check(tmp_path)
    os.utime(built, (1, 1))
    with pytest.raises(SystemExit, match="is older than"):
        check(tmp_path)


@pytest.mark.slow
def test_its_labs_are_simulated_and_checked(installed: Path, tmp_path: Path) -> None:
    listed = capstan(installed, "lab-check", cwd=tmp_path).stdout.splitlines()
    readmes = [Path(line.split()[-1]) for line in listed]
    assert [path.name for path in readmes] == ["README.md"] * len(LABS)
    for number, readme in enumerate(readmes, 1):
        (start,) = readme.parent.glob("start.*")
        unchanged = capstan(installed, "lab-check", str(number), str(start), cwd=tmp_path)
        assert unchanged.returncode == 1, unchanged.stderr
        assert "Traceback" not in unchanged.stderr
        if number == 1:  # needs a result; its spec is beside it
            done = capstan(installed, "simulate", str(readme.with_name("lab1.yaml")), cwd=tmp_path)
            assert done.returncode == 0, done.stderr
        checked = capstan(installed, "lab-check", str(number), str(LABS[number].solution), cwd=tmp_path)
        assert f"lab {number}: nothing is missing" in checked.stdout, checked.stdout + checked.stderr
    packages = installed.parents[2] / "packages"
    assert not list(packages.glob("docs/labs/solutions"))


def test_it_asks_for_nothing_that_a_checkout_does_not() -> None:
    of_wheel = tomllib.loads((HERE / "pyproject.toml").read_text())["project"]
    of_checkout = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert set(of_wheel["dependencies"]) < set(of_checkout["dependencies"])
    assert of_wheel["requires-python"] == of_checkout["requires-python"]


@pytest.mark.slow
def test_its_record_has_every_file_with_its_digest(installed: Path) -> None:
    packages = installed.parents[2] / "packages"
    (record,) = packages.glob("*.dist-info/RECORD")
    rows = [line.split(",") for line in record.read_text().splitlines()]
    files = {path.relative_to(packages).as_posix() for path in packages.rglob("*") if path.is_file()}
    assert {name for name, _, _ in rows} == {name for name in files if "__pycache__" not in name}
    for name, digest, size in rows:
        if name != record.relative_to(packages).as_posix():
            content = (packages / name).read_bytes()
            assert (digest, int(size)) == (backend().digest(content), len(content))


def test_the_programs_of_this_environment_are_not_the_wheels(installed: Path) -> None:
    code = "import capstan_native, simulation; print(capstan_native.__file__, simulation.__file__)"
    command = [installed, "-P", "-c", code]
    found = subprocess.run(command, env=PLAIN, capture_output=True, text=True, check=True).stdout
    assert found.count("/packages/") == 2
    assert str(Path(sys.prefix)) not in found
