"""OpenFlow's names of the errors that switches answer with."""

from __future__ import annotations

from typing import Final

from controller.openflow.osken import ofp


def error_names(type_: int, code: int) -> tuple[str, str]:
    """Return OpenFlow's names of an error's type and code; numbers where it has none."""
    type_name = _TYPES.get(type_, f"type {type_}")
    prefix = _CODE_PREFIXES.get(type_name)
    if prefix is not None:
        for name in dir(ofp):
            if name.startswith(prefix) and getattr(ofp, name) == code:
                return type_name, name
    return type_name, f"code {code}"


_TYPES: Final[dict[int, str]] = {getattr(ofp, name): name for name in dir(ofp) if name.startswith("OFPET_")}
_CODE_PREFIXES: Final = {
    "OFPET_HELLO_FAILED": "OFPHFC_",
    "OFPET_BAD_REQUEST": "OFPBRC_",
    "OFPET_BAD_ACTION": "OFPBAC_",
    "OFPET_BAD_INSTRUCTION": "OFPBIC_",
    "OFPET_BAD_MATCH": "OFPBMC_",
    "OFPET_FLOW_MOD_FAILED": "OFPFMFC_",
    "OFPET_GROUP_MOD_FAILED": "OFPGMFC_",
    "OFPET_PORT_MOD_FAILED": "OFPPMFC_",
    "OFPET_TABLE_MOD_FAILED": "OFPTMFC_",
    "OFPET_QUEUE_OP_FAILED": "OFPQOFC_",
    "OFPET_SWITCH_CONFIG_FAILED": "OFPSCFC_",
    "OFPET_ROLE_REQUEST_FAILED": "OFPRRFC_",
    "OFPET_METER_MOD_FAILED": "OFPMMFC_",
    "OFPET_TABLE_FEATURES_FAILED": "OFPTFFC_",
    "OFPET_BAD_PROPERTY": "OFPBPC_",
    "OFPET_ASYNC_CONFIG_FAILED": "OFPACFC_",
    "OFPET_FLOW_MONITOR_FAILED": "OFPMOFC_",
    "OFPET_BUNDLE_FAILED": "OFPBFC_",
}
