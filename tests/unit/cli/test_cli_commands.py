"""The command line as a person and a script meet it: real processes, their output, errors and exit codes."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import click
import pytest

from cli.app import COMMANDS, capstan
from cli.commands.bench import BENCHMARKS
from cli.commands.test import SMALL_LAB
from cli.overview import SECTIONS
from cli.sizing import duration
from cli.specs import SpecChanges, changed_lab_spec, load_spec
from controller.schemes import loader
from engine.submission import preset_submission
from experiments.spec.check import preset_names
from experiments.spec.sweep import points
from tests.unit.cli.command_line import ENVIRONMENT, ROOT, InProcess
from tests.waiting import PATIENCE_S

CLI = [sys.executable, "-P", "-m", "cli"]


def start(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*CLI, *arguments],
        env=ENVIRONMENT | environment,
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
        timeout=PATIENCE_S,
    )


def command(name: str) -> click.Command:
    found = capstan.get_command(click.Context(capstan), name)
    assert found is not None
    return found


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_with_an_example_that_parses(name: str) -> None:
    one = command(name)
    assert one.name == name
    assert one.help
    examples = re.findall(rf"capstan {name}\b((?:(?!    )[^|])*)", one.epilog or "")
    assert examples
    for example in examples:
        one.make_context(name, example.split())
    for parameter in one.params:
        if isinstance(parameter, click.Option):
            assert parameter.help or parameter.show_default or parameter.type is not click.STRING


def test_help_of_everything_is_printed_by_a_real_process_without_what_takes_long_to_load(
    tmp_path: Path,
) -> None:
    for package in ("sklearn", "scipy", "sqlalchemy", "flask", "matplotlib", "os_ken", "pandas"):
        (tmp_path / f"{package}.py").write_text(f"raise ImportError('{package} is loaded')")
    done = start("--help", PYTHONPATH=f"{tmp_path}:{ROOT}")
    assert (done.returncode, done.stderr) == (0, "")
    for name in COMMANDS:
        assert re.search(rf"^  {name} ", done.stdout, re.MULTILINE)
    assert "Exit codes:" in done.stdout
    assert start("schemes", "--help").stdout.count("Example") == 1


def test_help_lists_every_command_once_in_a_line_of_80_columns_that_is_not_cut() -> None:
    names = [name for commands in SECTIONS.values() for name in commands]
    assert sorted(names) == sorted(COMMANDS)
    listed = start("--help", COLUMNS="80").stdout
    assert "..." not in listed.partition("Options:")[2]
    for commands in SECTIONS.values():
        for name, summary in commands.items():
            assert re.search(rf"^  {name} +{re.escape(summary)}$", listed, re.MULTILINE)


def test_submitting_to_no_controller_says_how_to_start_one(capstan_says: InProcess) -> None:
    done = capstan_says("submit", "small", "--api", "http://127.0.0.1:1")
    assert done.returncode == 1
    assert "start one first" in done.stderr
    assert "capstan page" in done.stderr


def test_the_list_of_schemes_distinguishes_each_from_all_others(capstan_says: InProcess) -> None:
    done = capstan_says("schemes")
    assert done.returncode == 0
    listed = dict(re.findall(r"^(\S+)\n((?:  .*\n)+)", done.stdout, re.MULTILINE))
    assert list(listed) == loader.scheme_names()
    made_of = {name: re.sub(r"^  paper .*\n", "", text, flags=re.MULTILINE) for name, text in listed.items()}
    alike = [name for name, text in made_of.items() if list(made_of.values()).count(text) > 1]
    assert alike == []
    assert all(loader.load(name).papers == () or "  paper " in text for name, text in listed.items())


@pytest.mark.slow
def test_tests_keep_what_they_compile_for_the_processes_that_they_start(tmp_path: Path) -> None:
    (tmp_path / "test_here.py").write_text(
        "import sys\ndef test_it():\n    assert not sys.dont_write_bytecode"
    )
    done = start("test", str(tmp_path), "-q", "-p", "no:cacheprovider", PYTHONDONTWRITEBYTECODE="1")
    assert (done.returncode, done.stderr) == (0, ""), done.stdout


IN_A_DESTRUCTOR = """
import os, sys, time
from cli import app
number = int(sys.argv.pop())

class Destroyed:
    def __del__(self):
        os.kill(os.getpid(), number)
        time.sleep(600)

@app.capstan.command("wait")
def wait():
    Destroyed()
    time.sleep(600)

app.capstan.get_command = lambda context, name: wait
sys.argv.append("wait")
app.main()
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_that_comes_within_a_destructor_ends_the_command(number: signal.Signals) -> None:
    """Python ignores what is raised there."""
    done = subprocess.run(
        [sys.executable, "-c", IN_A_DESTRUCTOR, str(int(number))],
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
        timeout=PATIENCE_S,
    )
    said = "interrupted" if number == signal.SIGINT else "ended by SIGTERM"
    assert (done.returncode, done.stderr.strip()) == (128 + number, f"capstan: {said}")


JSON_COMMANDS = [name for name in COMMANDS if any(one.name == "json_file" for one in command(name).params)]


def test_these_commands_give_json() -> None:
    assert {"demo", "run", "schemes", "bench"} <= set(JSON_COMMANDS)


def test_json_on_standard_output_is_one_document_and_nothing_else() -> None:
    done = start("schemes", "--json", "-")
    assert (done.returncode, done.stderr) == (0, "")
    document = json.loads(done.stdout)
    assert [scheme["name"] for scheme in document["schemes"]] == loader.scheme_names()
    assert document["schemes"][0] == json.loads(json.dumps(loader.scheme_to_dict(loader.all_schemes()[0])))


def test_json_in_a_file_comes_beside_the_table(tmp_path: Path) -> None:
    done = start("schemes", "--json", str(tmp_path / "schemes.json"))
    assert done.returncode == 0
    assert "caps" in done.stdout
    assert json.loads((tmp_path / "schemes.json").read_text())["schemes"]


@pytest.mark.parametrize("name", JSON_COMMANDS)
def test_a_json_file_that_cannot_be_written_is_an_error_before_anything_is_done(
    name: str, tmp_path: Path, capstan_says: InProcess
) -> None:
    spec = ["small"] if name == "run" else []
    for file, words in (("no/such/x.json", "there is no directory"), ("", "is a directory")):
        done = capstan_says(name, *spec, "--json", f"{tmp_path}/{file}")
        assert done.returncode == 2
        assert words in " ".join(done.stderr.split())
        assert done.stdout == ""


@pytest.mark.slow
@pytest.mark.parametrize(
    "arguments", [["schemes"], ["schemes", "--json", "-"], ["--help"], ["run", "--help"]]
)
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_reader_that_goes_away_is_no_error_to_talk_about(arguments: list[str], unbuffered: str) -> None:
    reader, writer = os.pipe()
    process = subprocess.Popen(
        [*CLI, *arguments],
        env=ENVIRONMENT | {"PYTHONUNBUFFERED": unbuffered},
        stdout=writer,
        stderr=subprocess.PIPE,
        text=True,
    )
    os.close(writer)
    os.close(reader)
    _, errors = process.communicate(timeout=PATIENCE_S)
    assert errors == ""
    assert process.returncode in (0, 1, -signal.SIGPIPE)


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["demmo"], 2, "command 'demmo' is not known; did you mean 'demo'?"),
        (["schemes", "--jsn", "-"], 2, "--json"),
        (["check", "dmeo"], 2, "'dmeo' is neither a file nor a preset; did you mean 'demo'?"),
        (["check", "no/such/file.yaml"], 2, "there is no file 'no/such/file.yaml'"),
        (["check"], 2, "Missing argument 'SPEC'"),
        (["serve", "--scheme", "capz"], 1, "scheme 'capz' is not known; did you mean 'caps'?"),
        (["serve", "--log-level", "loud"], 2, "'loud' is not one of"),
        (["serve", "--openflow", "6653"], 2, "'6653' is not ADDRESS:PORT"),
        (["serve", "--openflow", "here:6653"], 2, "'here' is not an IP address"),
        (
            ["serve", "--openflow", "192.0.2.10:6653"],
            2,
            "switches that connect to 192.0.2.10 need TLS: give --certificate, --key and --switch-authority, or "
            "--openflow-without-tls",
        ),
        (["serve", "--switch-authority", "ca.pem"], 2, "--switch-authority needs --certificate and --key"),
        (["serve", "--switch-authority", "ca.pem", "--openflow-without-tls"], 2, "for none: leave one out"),
        (
            ["serve", "--switch-authority", "ca.pem", "--certificate", "cert.pem", "--key", "key.pem"],
            1,
            "certificate cert.pem and key key.pem cannot be used: No such file or directory",
        ),
        (["serve", "--api", "127.0.0.1:99999"], 2, "is not ADDRESS:PORT"),
        (["serve", "--link-rate-mbps", "0"], 2, "must be above 0 Mbit/s"),
        (["serve", "--link-rate-mbps", "nan"], 2, "must be above 0 Mbit/s"),
        (["serve", "--agents-tls", "127.0.0.1:6654"], 2, "--agents-tls needs --certificate and --key"),
        (["serve", "--database", "nonsense"], 1, "database 'nonsense' is not a SQLAlchemy URL"),
        (["agent"], 2, "Missing option"),
        (["simulate", "small", "--seed", "2147483648"], 2, "--seed must be 0..2147483647"),
        (["simulate", "small", "--repeats", "1001"], 2, "--repeats must be 1..1000"),
        (["test", "--seed", "7"], 2, "--seed with --chaos or --world"),
        (["test", "--world", "5", "--fuzz", "1"], 2, "--fuzz and --world are runs of their own: choose one"),
        (["test", "--world", "5", "tests/unit"], 2, "--world runs seeds, and no tests"),
        (["capton", "--every", "1e300"], 2, "is not in the range 0.05<=x<=3600"),
        (["link", "l1-s1", "slow", "nan"], 2, "'nan' is not a finite number"),
        (["simulate", "small", "--trace", "x.trace", "--trace-from", "1e300"], 2, "is not in the range"),
        (["serve", "--keep-results-gib", "inf"], 2, "is not in the range"),
    ],
)
def test_what_was_asked_wrongly_is_one_clear_line(
    arguments: list[str], code: int, words: str, tmp_path: Path, capstan_says: InProcess
) -> None:
    data = ["--data", str(tmp_path)] if arguments[0] == "serve" else []
    done = capstan_says(*arguments, *data)
    assert done.returncode == code
    assert done.stdout == ""
    assert words in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ["check"],
        ["run"],
        ["simulate"],
        ["submit"],
        ["simulate", "--trace-file"],
        ["lab-check", "4"],
        ["lab-check", "6"],
    ],
)
def test_a_file_that_is_no_text_is_named(
    arguments: list[str], tmp_path: Path, capstan_says: InProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "noise.yaml").write_bytes(b"name: \xff\xfe")
    done = capstan_says(*arguments, "noise.yaml")
    assert done.returncode == 1
    assert "noise.yaml: " in done.stderr
    assert done.stderr.count("\n") == 1


LATER = {"matplotlib", "sqlalchemy", "flask", "os_ken", "alembic"}
"""What takes long to load."""


@pytest.mark.slow
def test_a_simulation_prints_its_result_before_it_loads_what_draws_and_keeps_it(tmp_path: Path) -> None:
    program = f"""
import sys
sys.modules["mininet"] = None  # as on a machine without it
from cli import app, console
shown = console.results.print
def show(*words, **options):
    shown(*words, **options)
    print("LOADED", *sorted({LATER!r} & {{name.partition(".")[0] for name in sys.modules}}))
console.results.print = show
sys.argv = ["capstan", "simulate", "small", "--scheme", "ecmp", "--results", {str(tmp_path)!r}]
app.main()
"""
    done = subprocess.run(
        [sys.executable, "-P", "-c", program],
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_S,
    )
    assert done.returncode == 0, done.stderr
    first = next(line for line in done.stdout.splitlines() if line.startswith("LOADED"))
    assert first.split() == ["LOADED"]


def test_a_python_without_our_packages_is_sent_to_the_launcher(tmp_path: Path) -> None:
    (tmp_path / "click.py").write_text("raise ImportError('No module named click')")
    done = start("schemes", PYTHONPATH=f"{tmp_path}:{ROOT}")
    assert done.returncode == 1
    assert (
        done.stderr == "capstan: No module named click; start it by ./capstan, which sets up what it needs\n"
    )


def test_a_package_that_only_one_command_needs_is_missed_by_that_command_only(tmp_path: Path) -> None:
    (tmp_path / "yaml.py").write_text("raise ModuleNotFoundError('No module named yaml')")
    assert start("--version", PYTHONPATH=f"{tmp_path}:{ROOT}").returncode == 0
    done = start("schemes", PYTHONPATH=f"{tmp_path}:{ROOT}")
    assert done.returncode == 1
    assert done.stderr.startswith(
        "capstan: No module named yaml; Capstan's own start sets its environment up: "
    )
    assert "Traceback" in start("schemes", PYTHONPATH=f"{tmp_path}:{ROOT}", CAPSTAN_TRACEBACK="1").stderr


@pytest.mark.slow
@pytest.mark.parametrize("name", preset_names())
def test_every_preset_is_right(name: str, capstan_says: InProcess) -> None:
    done = capstan_says("check", name)
    assert (done.returncode, done.stderr) == (0, "")
    first, *more = done.stdout.strip().splitlines()
    job = preset_submission(name).job
    before, after = ("simulated in about ", " of one processor") if job.simulated else ("about ", "")
    takes = re.search(rf"nothing wrong; {job.runs} runs, {before}(\d+ s|\d+ min|\d+\.\d h){after}$", first)
    assert takes is not None
    assert not job.simulated or takes[1] == duration(job.estimated_s)
    assert bool(more) == job.simulated
    assert all("for simulations only: use ./capstan simulate" in line for line in more)


def test_a_spec_s_title_says_which_schemes_run_in_place_of_its_own() -> None:
    title = load_spec("small").spec.title
    assert load_spec("small", ("caps", "rps", "ecmp")).spec.title == title
    assert load_spec("small", ("ecmp",)).spec.title == f"{title} (only ecmp)"


def test_a_sweep_sets_nothing_of_schemes_that_have_the_place_of_its_own() -> None:
    spec = changed_lab_spec("capton-fig8", SpecChanges(schemes=("capton", "ecmp"))).spec
    assert [axis.fields for axis in spec.sweep] == [("workload.flows.arrivals.load",)]
    assert [point.spec.schemes for point in points(spec)] == [spec.schemes] * 4


def test_the_time_that_a_spec_takes_is_that_of_its_arrivals_and_what_is_between(
    capstan_says: InProcess,
) -> None:
    """`capton-fig8`: five schemes, four points, three repeats."""
    said = capstan_says("check", "capton-fig8").stdout
    found = re.search(r"; (\d+) runs, about (\d+) min", said)
    assert found is not None, said
    runs, minutes = int(found[1]), int(found[2])
    spec = load_spec("capton-fig8").spec
    assert runs == len(spec.schemes) * spec.repeats * len(points(spec)) == 60
    arrivals = sum(
        point.spec.plan(repeat).window_s[1] * len(spec.schemes)
        for point in points(spec)
        for repeat in range(spec.repeats)
    )
    assert arrivals < minutes * 60 < arrivals + runs * 8


def test_a_wrong_spec_is_exit_code_1_and_a_line_each(tmp_path: Path, capstan_says: InProcess) -> None:
    spec = tmp_path / "mine.yaml"
    spec.write_text("name: mine\nfabrik: {}\nschemes: [capz]\n")
    done = capstan_says("check", str(spec))
    assert done.returncode == 1
    assert done.stdout == ""
    lines = done.stderr.splitlines()
    assert lines[-1].endswith(f"{len(lines) - 1} problems")
    assert any(f"{spec}:2:" in line and "did you mean 'fabric'?" in line for line in lines)
    assert any(f"{spec}:3:" in line and "did you mean 'caps'?" in line for line in lines)


def test_benchmarks_that_are_named_are_there() -> None:
    for name in BENCHMARKS:
        assert (ROOT / "benchmarks" / f"{name}.py").is_file()


def test_a_quick_test_is_a_choice_of_its_own_and_its_lab_exists(capstan_says: InProcess) -> None:
    done = capstan_says("test", "--quick", "tests/unit", "-x")
    assert done.returncode == 2
    assert "'tests/unit -x' or --quick" in " ".join(done.stderr.split())
    file, _, function = SMALL_LAB.partition("::")
    assert f"def {function}(" in (ROOT / file).read_text()
