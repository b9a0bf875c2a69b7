"""What README and docs show to type, and to write into files, is right: run, or at least read, as it stands."""

from __future__ import annotations

import re
import shlex
import subprocess
from contextlib import suppress
from itertools import pairwise
from pathlib import Path

import click
import pytest

from cli.app import COMMANDS, capstan
from controller.schemes import loader
from experiments.spec import check as checking
from experiments.spec.spec import spec_from_dict
from experiments.spec.sweep import only
from plain.yaml_source import read

ROOT = Path(__file__).resolve().parents[3]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
HARMLESS = ("schemes", "check", "--help", "--version")
"""Commands that need neither a lab nor root."""


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL)


def typed(page: Path) -> list[str]:
    """Return every call of the launcher on a page: in indented blocks, in console blocks, and between backquotes."""
    text = page.read_text().replace("\\\n", " ")
    indented = re.findall(r"^    (\./capstan .*)$", text, re.MULTILINE)
    prompted = re.findall(r"^\w+# (capstan .*)$", text, re.MULTILINE)
    quoted = re.findall(r"`(\./capstan [^`]*)`", text)
    calls = []
    for line in indented + prompted + quoted:
        for part in re.split(r"&&|\|", line.partition("  #")[0]):
            words = part.strip().removesuffix("&").strip()
            if re.match(r"(\./)?capstan ", words):
                calls.append(words.removeprefix("./"))
    return calls


CALLS = sorted({(page.name, call) for page in PAGES for call in typed(page)})


def test_there_are_examples_to_read() -> None:
    assert len(CALLS) > 20
    assert {call.split()[1] for _, call in CALLS} >= set(COMMANDS) - {"exec"}


@pytest.mark.parametrize(("page", "call"), CALLS)
def test_every_command_that_is_shown_can_be_given(page: str, call: str) -> None:
    call = re.sub(r"\[[^\]]*\]", "", call).replace(" ...", "")  # [NAME]: may be left out
    name, *arguments = shlex.split(call)[1:]
    if name.startswith("-"):
        assert name in ("--help", "--version", "-h")
        return
    assert name in COMMANDS, f"{page}: {call}"
    command = capstan.get_command(click.Context(capstan), name)
    assert command is not None
    if not arguments:
        return  # a command's name, where the page speaks of it
    try:
        with suppress(click.exceptions.Exit):  # --help
            command.make_context(name, arguments)
    except click.UsageError as error:
        pytest.fail(f"{page}: {call}: {error.format_message()}")


SWEPT = [(page, call) for page, call in CALLS if " --point " in call and " SPEC " not in call]


@pytest.mark.parametrize(("page", "call"), SWEPT)
def test_every_point_that_is_shown_is_one_of_its_sweep(page: str, call: str) -> None:
    words = shlex.split(call)
    name = words[2]
    file = ROOT / name if "/" in name else checking.find_spec(name)
    spec = spec_from_dict(read(file.read_text(encoding="utf-8"), name).data)
    shown = [value for option, value in pairwise(words) if option == "--point"]
    assert only(spec, shown).sweep, f"{page}: {call}"


RUNNABLE = sorted(
    {call for _, call in CALLS if call.split()[1] in HARMLESS and not re.search("mine|SPEC", call)}
)


@pytest.mark.slow
@pytest.mark.parametrize("call", RUNNABLE)
def test_every_command_that_needs_no_lab_runs_as_it_is_shown(call: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [ROOT / "capstan", *shlex.split(call)[1:]],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_file_that_is_shown_is_right(page: Path, tmp_path: Path) -> None:
    for text in blocks(page, "yaml"):
        if "fabric:" in text:
            problems = checking.check(text, page.name, schemes=loader.scheme_names(), check_overrides=None)
            assert problems == []
        elif "group:" in text:
            path = tmp_path / "shown.yaml"
            path.write_text(text)
            assert loader.load(path).summary
        else:
            pytest.fail(f"{page.name}: a YAML block that no test reads:\n{text}")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_leads_to_something(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", page.read_text()):
        if not re.match(r"[a-z]+:", target):
            assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_what_a_link_to_source_names_is_defined_there_and_nowhere_else() -> None:
    """A formula has one definition: `[`name()`](file.rs)` is a function of that file, and of no other of its crate."""
    named = []
    for page in PAGES:
        for text, target in re.findall(r"\[([^\]]*)\]\(([^)#\s]+\.rs)\)", page.read_text()):
            for name in re.findall(r"`(\w+)\(\)`", text):
                defined = re.compile(rf"^pub(?:\([a-z]+\))? fn {name}\b", re.MULTILINE)
                there = (page.parent / target).resolve()
                crate = next(folder for folder in there.parents if (folder / "Cargo.toml").exists())
                found = [file for file in crate.glob("src/**/*.rs") if defined.search(file.read_text())]
                assert found == [there], f"{page.name}: {name}()"
                named.append(name)
    assert {"paper_rule", "digit_reversed", "of_the_others"} <= {*named}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_anchors_are_headings(page: Path) -> None:
    for target, anchor in re.findall(r"\]\(([^)#\s]*)#([^)]+)\)", page.read_text()):
        if re.match(r"[a-z]+:", target):
            continue
        there = (page.parent / target) if target else page
        headings = re.findall(r"^#+ (.*)$", there.read_text(), re.MULTILINE)
        anchors = {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}
        assert anchor in anchors, f"{page.name}: {target}#{anchor}"


def test_the_pages_show_specs_and_schemes() -> None:
    assert (
        len(blocks(ROOT / "docs/experiments.md", "yaml")) + len(blocks(ROOT / "docs/schemes.md", "yaml")) == 2
    )


def test_python_that_is_shown_compiles() -> None:
    shown = [(page.name, text) for page in PAGES for text in blocks(page, "python")]
    assert shown
    for name, text in shown:
        compile(text, name, "exec")
