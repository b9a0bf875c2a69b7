"""The codes by name and by number on the wire."""

from __future__ import annotations

from typing import Final

from host_agent.coding.code import Code
from host_agent.coding.ldpc import Ldpc
from host_agent.coding.rlc import Rlc
from host_agent.coding.xor import Xor
from protocol.datagram import CodeId
from protocol.policy import CodeName

_CODES: Final[tuple[Code, ...]] = (Xor(), Rlc(), Ldpc())
_BY_NAME: Final[dict[str, Code]] = {code.name: code for code in _CODES}
_BY_ID: Final[dict[CodeId, Code]] = {code.id: code for code in _CODES}


def code_named(name: CodeName) -> Code:
    """Raises ValueError if no code has that name."""
    try:
        return _BY_NAME[name]
    except KeyError:
        raise ValueError(f"code {name!r} is not known; there are {', '.join(sorted(_BY_NAME))}") from None


def code_numbered(number: CodeId) -> Code:
    """Raises ValueError if no code has that number."""
    try:
        return _BY_ID[number]
    except KeyError:
        raise ValueError(f"code number {number} is not known") from None
