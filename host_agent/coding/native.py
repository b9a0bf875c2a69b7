"""The compiled functions that coding uses of `capstan_native` (native/capstan_native/ has their types)."""

from __future__ import annotations

try:
    from capstan_native import (
        CodingRules,
        ContradictionError,
        binomial,
        decode_packets,
        decode_probability,
        encode_packets,
        flow_weight,
        htpc_rule,
        ldpc_rows,
        paper_rule,
        worth_trying,
    )
except ImportError as error:
    raise ImportError(
        "the native kernels (capstan_native) are not in this Python environment, or not for this machine: "
        "start the command through ./capstan, which builds them and says what is missing"
    ) from error

__all__ = [
    "CodingRules",
    "ContradictionError",
    "binomial",
    "decode_packets",
    "decode_probability",
    "encode_packets",
    "flow_weight",
    "htpc_rule",
    "ldpc_rows",
    "paper_rule",
    "worth_trying",
]
