"""Cut from shared libraries below directories (arguments) what no loader reads: symbols and lines for debuggers.

`strip` moves sections, and libraries of wheels that tools have patched before no longer load after it. Here nothing
moves: a file ends where its last segment ends, and its header no longer names the table of sections that stood behind.
"""

from __future__ import annotations

import os
import struct
import sys
from pathlib import Path
from typing import Final

MAGIC: Final = b"\x7fELF\x02\x01"
"""Of an ELF file (elf(5)) with 64 bits, least significant byte first: amd64 and arm64."""

SHARED_OBJECT: Final = 3
HEADER_BYTES: Final = 64
KIND: Final = struct.Struct("<16xH")
SEGMENTS: Final = struct.Struct("<32xQ14xHH")
"""Where the program headers begin, the bytes of each and their number."""

SEGMENT: Final = struct.Struct("<8xQ16xQ16x")
"""A program header: where its segment begins in the file, and its bytes there."""

SECTIONS_BEGIN: Final = 40
SECTION_COUNTS: Final = slice(58, 64)


def loaded_part(data: bytes) -> bytes:
    """Return a shared library without what follows its last segment, and *data* itself if it is none."""
    if len(data) < HEADER_BYTES or not data.startswith(MAGIC) or KIND.unpack_from(data) != (SHARED_OBJECT,):
        return data
    begin, each, count = SEGMENTS.unpack_from(data)
    headers_end = begin + count * each
    if each != SEGMENT.size or headers_end > len(data):
        return data
    ends = (sum(SEGMENT.unpack_from(data, begin + number * each)) for number in range(count))
    end = max(HEADER_BYTES, headers_end, *ends)
    if end >= len(data):
        return data
    part = bytearray(data[:end])
    part[SECTIONS_BEGIN : SECTIONS_BEGIN + 8] = bytes(8)
    part[SECTION_COUNTS] = bytes(6)
    return bytes(part)


def main(directories: list[str]) -> None:
    """Shorten the files and say by how much. Raises OSError."""
    saved = 0
    for directory in directories:
        for file in Path(directory).rglob("*.so*"):
            if file.is_symlink() or not file.is_file():
                continue
            whole = file.read_bytes()
            part = loaded_part(whole)
            if len(part) < len(whole):
                new = file.with_name(f"{file.name}.new")
                new.write_bytes(part)
                new.chmod(file.stat().st_mode)
                os.replace(new, file)
                saved += len(whole) - len(part)
    print(f"shared libraries are {saved / 1e6:.1f} MB smaller")


if __name__ == "__main__":
    main(sys.argv[1:])
