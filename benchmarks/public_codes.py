"""Public erasure codes from PyPI for comparison, installed into a folder that is deleted afterwards.

ISA-L is called as a C library (it comes with pyeclib), its tables made beforehand: the least that it can take.
"""

from __future__ import annotations

import ctypes
import importlib
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import numpy as np

SOURCES: Final = 32
REPAIRS: Final = 4
BLOCK_BYTES: Final = 1400
LOST: Final = [3, 9, 20, 31]

Calls = dict[str, Callable[[], object]]


def public_codes(sources: np.ndarray, folder: Path) -> tuple[Calls, list[str]]:
    """Return what can be measured of each library, and a line for each that is not there, with the reason.

    Args:
        sources: (SOURCES, BLOCK_BYTES), uint8.
        folder: where they are installed.
    """
    calls: Calls = {}
    notes: list[str] = []
    for package, makers in (("pyeclib", (_isa_l, _pyeclib)), ("zfec", (_zfec,)), ("raptorq", (_raptorq,))):
        place = folder / package
        done = subprocess.run(
            [
                *(sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--only-binary", ":all:"),
                *("--disable-pip-version-check", "--target", place, package),
            ],
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            reason = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
            notes.append(f"{package} is not measured: pip could not install it ({reason})")
            continue
        version = next(place.glob("*.dist-info")).name.removesuffix(".dist-info").partition("-")[2]
        sys.path.insert(0, str(place))
        try:
            for make in makers:
                calls.update(make(sources, place))
            notes.append(f"{package} {version} from PyPI" + (", with its ISA-L" if len(makers) > 1 else ""))
        except (ImportError, OSError, RuntimeError) as error:
            notes.append(f"{package} {version} is not measured: {error}")
        finally:
            sys.path.remove(str(place))
    return calls, notes


def _check(name: str, right: bool) -> None:
    if not right:
        raise RuntimeError(f"{name} did not decode what it had encoded")


def _isa_l(sources: np.ndarray, folder: Path) -> Calls:
    """Return ISA-L's Cauchy matrix and ec_encode_data; decoding is the product with the inverse's rows, made
    beforehand.
    """
    path = next(iter(sorted(folder.glob("pyeclib.libs/libisal*.so*"))), None)
    if path is None:
        raise RuntimeError("ISA-L is not in it")
    library = ctypes.CDLL(str(path))
    matrix = np.zeros((SOURCES + REPAIRS, SOURCES), dtype=np.uint8)
    library.gf_gen_cauchy1_matrix(_address(matrix), SOURCES + REPAIRS, SOURCES)
    repairs = np.zeros((REPAIRS, BLOCK_BYTES), dtype=np.uint8)
    encode = _isa_l_product(library, matrix[SOURCES:].copy(), sources, repairs)
    encode()

    arrived = [index for index in range(SOURCES + REPAIRS) if index not in LOST][:SOURCES]
    square, inverse = matrix[arrived].copy(), np.zeros((SOURCES, SOURCES), dtype=np.uint8)
    if library.gf_invert_matrix(_address(square), _address(inverse), SOURCES) != 0:
        raise RuntimeError("ISA-L could not invert its matrix")
    received = np.concatenate((sources, repairs))[arrived].copy()
    rebuilt = np.zeros((len(LOST), BLOCK_BYTES), dtype=np.uint8)
    decode = _isa_l_product(library, inverse[LOST].copy(), received, rebuilt)
    decode()
    _check("ISA-L", np.array_equal(rebuilt, sources[LOST]))
    return {"isa-l encode": encode, "isa-l decode": decode}


def _isa_l_product(
    library: ctypes.CDLL, coefficients: np.ndarray, rows: np.ndarray, out: np.ndarray
) -> Callable[[], object]:
    tables = np.zeros(32 * coefficients.size, dtype=np.uint8)
    library.ec_init_tables(
        coefficients.shape[1], coefficients.shape[0], _address(coefficients), _address(tables)
    )
    encode = library.ec_encode_data
    encode.restype = None
    inputs, outputs = _addresses(rows), _addresses(out)
    arguments = (rows.shape[1], rows.shape[0], out.shape[0], _address(tables), inputs, outputs)
    referenced = (coefficients, rows, out, tables)  # the library holds addresses of these only

    def call() -> object:
        encode(*arguments)
        return referenced

    return call


def _address(array: np.ndarray) -> ctypes.c_void_p:
    return ctypes.c_void_p(array.ctypes.data)


def _addresses(array: np.ndarray) -> ctypes.Array[ctypes.c_void_p]:
    return (ctypes.c_void_p * len(array))(*(row.ctypes.data for row in array))


def _pyeclib(sources: np.ndarray, folder: Path) -> Calls:
    interface: Any = importlib.import_module("pyeclib.ec_iface")
    driver = interface.ECDriver(k=SOURCES, m=REPAIRS, ec_type="isa_l_rs_cauchy")
    data = sources.tobytes()
    fragments = driver.encode(data)
    received = [fragment for index, fragment in enumerate(fragments) if index not in LOST]
    _check("pyeclib", driver.decode(received) == data)
    return {"pyeclib encode": lambda: driver.encode(data), "pyeclib decode": lambda: driver.decode(received)}


def _zfec(sources: np.ndarray, folder: Path) -> Calls:
    zfec: Any = importlib.import_module("zfec")
    encoder, decoder = zfec.Encoder(SOURCES, SOURCES + REPAIRS), zfec.Decoder(SOURCES, SOURCES + REPAIRS)
    blocks = [row.tobytes() for row in sources]
    numbers = list(range(SOURCES, SOURCES + REPAIRS))
    repairs = encoder.encode(blocks, numbers)
    received, indices = list(blocks), list(range(SOURCES))
    for lost, number, repair in zip(LOST, numbers, repairs, strict=True):
        received[lost], indices[lost] = repair, number
    _check("zfec", [bytes(block) for block in decoder.decode(received, indices)] == blocks)
    return {
        "zfec encode": lambda: encoder.encode(blocks, numbers),
        "zfec decode": lambda: decoder.decode(received, indices),
    }


def _raptorq(sources: np.ndarray, folder: Path) -> Calls:
    raptorq: Any = importlib.import_module("raptorq")
    data = sources.tobytes()

    def encode() -> list[bytes]:
        packets: list[bytes] = raptorq.Encoder.with_defaults(data, BLOCK_BYTES).get_encoded_packets(REPAIRS)
        return packets

    # packets carry 4 bytes of identity, so a unit of the same bytes takes one or two more of them
    packets = [packet for index, packet in enumerate(encode()) if index not in LOST]

    def decode() -> object:
        decoder = raptorq.Decoder.with_defaults(len(data), BLOCK_BYTES)
        for packet in packets:
            done = decoder.decode(packet)
            if done is not None:
                return done
        return None

    decoded: Any = decode()
    _check("raptorq", decoded is not None and bytes(decoded) == data)
    return {"raptorq encode": encode, "raptorq decode": decode}
