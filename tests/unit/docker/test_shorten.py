"""Shared libraries of the images are cut behind their last segment: what is loaded is what it was."""

from __future__ import annotations

import importlib.util
import shutil
import struct
import subprocess
import sys
from pathlib import Path

import kiwisolver
import numpy
import pytest

ROOT = Path(__file__).resolve().parents[3]
PROGRAM = ROOT / "docker" / "shorten.py"


def shorten(directory: Path) -> None:
    subprocess.run([sys.executable, "-B", PROGRAM, directory], check=True, stdout=subprocess.DEVNULL)


def segments(data: bytes) -> list[tuple[int, ...]]:
    """Return the program headers of a library of 64 bits: type, flags, offset, address, -, bytes in the file, ..."""
    [table] = struct.unpack_from("<Q", data, 32)
    [count] = struct.unpack_from("<H", data, 56)
    return [struct.unpack_from("<IIQQQQQQ", data, table + 56 * number) for number in range(count)]


def copied(library: Path, to: Path) -> Path:
    return Path(shutil.copy(library, to / library.name))


def compiled(package: str, pattern: str) -> Path:
    [directory] = importlib.util.find_spec(package).submodule_search_locations  # type: ignore[union-attr, misc]
    return next(Path(directory).glob(pattern))


LIBRARIES = {
    "with symbols for debuggers": compiled("kiwisolver", "_cext.*.so"),
    "patched by wheels' tools": next(
        Path(numpy.__file__).parents[1].glob("numpy.libs/libscipy_openblas64_*")
    ),
}


@pytest.mark.parametrize("library", LIBRARIES.values(), ids=LIBRARIES)
def test_every_segment_is_where_it_was_with_the_bytes_it_had(library: Path, tmp_path: Path) -> None:
    before, file = library.read_bytes(), copied(library, tmp_path)
    shorten(tmp_path)
    after = file.read_bytes()
    assert len(after) < len(before)
    assert segments(after) == segments(before)
    for _, _, begin, _, _, length, *_ in segments(before):
        own = slice(max(begin, 64), begin + length)  # the header's own fields change
        assert after[own] == before[own]
    assert len(after) == max(begin + length for _, _, begin, _, _, length, *_ in segments(after))
    assert file.stat().st_mode == library.stat().st_mode


def test_its_header_names_no_sections(tmp_path: Path) -> None:
    file = copied(LIBRARIES["with symbols for debuggers"], tmp_path)
    before = file.read_bytes()
    shorten(tmp_path)
    after = file.read_bytes()
    assert struct.unpack_from("<Q", after, 40) == (0,)
    assert struct.unpack_from("<HHH", after, 58) == (0, 0, 0)
    assert after[:40] + after[48:58] == before[:40] + before[48:58]


def test_what_is_shortened_loads_and_computes(tmp_path: Path) -> None:
    place = tmp_path / "kiwisolver"
    shutil.copytree(Path(kiwisolver.__file__).parent, place, ignore=shutil.ignore_patterns("__pycache__"))
    size = sum(file.stat().st_size for file in place.rglob("*.so"))
    shorten(tmp_path)
    assert sum(file.stat().st_size for file in place.rglob("*.so")) < size
    program = """
import kiwisolver, sys
assert kiwisolver.__file__.startswith(sys.argv[1]), kiwisolver.__file__
x, solver = kiwisolver.Variable("x"), kiwisolver.Solver()
solver.addConstraint(2 * x == 14)
solver.updateVariables()
print(x.value())
"""
    ran = subprocess.run(
        [sys.executable, "-B", "-c", program, str(tmp_path)],
        env={"PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert ran.stdout == "7.0\n"


def test_twice_is_as_once(tmp_path: Path) -> None:
    file = copied(LIBRARIES["with symbols for debuggers"], tmp_path)
    shorten(tmp_path)
    once = file.read_bytes()
    shorten(tmp_path)
    assert file.read_bytes() == once


def test_what_is_no_shared_library_stays(tmp_path: Path) -> None:
    whole = LIBRARIES["with symbols for debuggers"].read_bytes()
    others = {
        "text.so": b"INPUT(libc.so.6)",  # a linker's script
        "short.so": whole[:40],
        "cut.so": whole[:100],  # its program headers are missing
        "other.so": whole[:4] + b"\x01" + whole[5:],  # of 32 bits
        "object.so": whole[:16] + b"\x01\x00" + whole[18:],  # of sections, for a linker
        "text.txt": whole,
    }
    for name, data in others.items():
        (tmp_path / name).write_bytes(data)
    (tmp_path / "link.so").symlink_to("text.txt")
    shorten(tmp_path)
    assert {name: (tmp_path / name).read_bytes() for name in others} == others
    assert (tmp_path / "link.so").is_symlink()
