"""The door to the native kernels: what of `capstan_native` the agent uses (native/capstan_native.pyi describes it)."""

from __future__ import annotations

try:
    from capstan_native import ContradictionError, decode_packets, encode_packets, ldpc_rows, worth_trying
except ImportError as error:
    raise ImportError(
        "the native kernels (capstan_native) are not in this Python environment, or not for this machine: "
        "start the command through ./capstan, which builds them and says what is missing"
    ) from error

__all__ = ["ContradictionError", "decode_packets", "encode_packets", "ldpc_rows", "worth_trying"]
