"""The JSON Schema of a spec, made from the types that hold one. `python -m experiments.spec.schema` prints it.

`experiments/spec.schema.json` is that output; editors use it, and a test keeps the two alike.
"""

from __future__ import annotations

import dataclasses
import json
import sys
import types
import typing
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, Literal, get_args, get_origin

from experiments.spec.simulated import DESCRIBED, Simulation
from experiments.spec.spec import ALL_SCHEMES, Axis, Claim, Comparison
from topologies.fabric_spec import FabricSpec
from topologies.links import Link
from workloads.description import Application, Arrivals, Flows, LongFlows, Sizes, Transport, Workload
from workloads.plan import FIRST_SOURCE_PORT
from workloads.sizes import table_names

PUBLISHED: Final = Path(__file__).parents[1] / "spec.schema.json"

FIRST_SERVER_PORT: Final = 1024
_POSITIVE: Final = {"exclusiveMinimum": 0}
_FROM_0: Final = {"minimum": 0}
_FROM_1: Final = {"minimum": 1}

_SAID: Final[dict[type, dict[str, tuple[str, dict[str, Any]]]]] = DESCRIBED | {
    Link: {
        "rate_mbps": ("Mbit/s (10^6 bit) on layer 2; null: unshaped", _POSITIVE),
        "buffer_packets": ("packets that the port's queue holds before it drops the newest", _FROM_1),
        "delay_ms": ("one-way delay in ms, where the kernel has netem", _FROM_0),
    },
    FabricSpec: {
        "topology": ("", {}),
        "leaves": ("leaf switches", {"minimum": 1, "maximum": 255}),
        "spines": ("spine switches: the number of paths between two leaves", {"minimum": 1, "maximum": 255}),
        "hosts_per_leaf": ("hosts below each leaf", {"minimum": 1, "maximum": 254}),
        "k": ("ports per switch of a fat tree, even", {"minimum": 2, "maximum": 22}),
        "link": ("links between switches", {}),
        "access": ("links between hosts and leaves", {}),
        "overrides": ("single links that differ, by name like l1-s3", {}),
        "down": ("names of links that start out taken down", {}),
        "mtu": ("bytes, of all interfaces", {"minimum": 1280, "maximum": 9000}),
    },
    Sizes: {
        "kind": (
            "uniform: low_bytes up to high_bytes; fixed: bytes; mix: both; table: a published distribution",
            {},
        ),
        "low_bytes": ("smallest size in bytes (kinds uniform, mix)", _FROM_1),
        "high_bytes": ("sizes stay below this many bytes (kinds uniform, mix)", _FROM_1),
        "bytes": ("the size in bytes (kind fixed; of the large flows, kind mix)", _FROM_1),
        "large_share": ("share of the flows that have `bytes` (kind mix)", {"minimum": 0, "maximum": 1}),
        "table": ("name of a flow-size table (kind table)", {"enum": [*table_names(), None]}),
        "scale": ("factor on every size", _POSITIVE),
    },
    Arrivals: {
        "kind": ("poisson: steady; burst: only during ON periods", {}),
        "rate_per_s": ("flows per second (of an ON period, if burst)", _POSITIVE),
        "load": ("share of the fabric's capacity between the sending and receiving hosts", _POSITIVE),
        "on_s": ("seconds of an ON period (kind burst)", _POSITIVE),
        "off_s": ("seconds of silence between two ON periods (kind burst)", _FROM_0),
    },
    Application: {
        "name": ("what tables call it", {"pattern": "^[a-z0-9][a-z0-9._-]{0,30}$"}),
        "sizes": ("how large its flows are", {}),
        "share": ("its part of the load, relative to the others'", _POSITIVE),
        "port": (
            "TCP port of its servers; left out: the generator's",
            {"minimum": FIRST_SERVER_PORT, "maximum": FIRST_SOURCE_PORT - 1},
        ),
        "hosts": ("names of the hosts that run it, clients and servers; left out: all", {"minItems": 2}),
    },
    Flows: {
        "sizes": ("how large they are; this or applications", {}),
        "arrivals": ("when they start", {}),
        "pattern": ("who sends to whom", {}),
        "count": ("number of flows of one run; this or duration_s", {"minimum": 1, "maximum": 20000}),
        "duration_s": ("seconds over which flows arrive; this or count", _POSITIVE),
        "applications": ("several kinds of flows, mixed; this or sizes", {}),
        "lead_in_s": ("flows that start in these first seconds are sent, but not counted", _FROM_0),
        "changes_port": ("application whose servers listen 100 ports higher after lead_in_s", {}),
    },
    LongFlows: {
        "number": (
            "background flows that send from a run's start to its end",
            {"minimum": 1, "maximum": 1000},
        ),
        "pattern": ("who sends to whom; sources and destinations are dealt out in turn", {}),
    },
    Workload: {
        "flows": ("flows that end", {}),
        "long_flows": ("background flows", {}),
        "short_limit_bytes": ("a flow is short if it carries less payload than this", _FROM_1),
        "large_limit_bytes": (
            "flows of at least this many bytes are shown as large, and those between as medium; left out: not",
            _FROM_1,
        ),
    },
    Transport: {
        "congestion_control": ("of the senders' sockets; default cubic, with the ns2 profile reno", {}),
        "profile": ("linux: as the kernel comes; ns2: the simulated TCP of the papers (no RACK)", {}),
    },
    Claim: {
        "text": ("what should be seen", {}),
        "source": ("paper, venue, year", {}),
        "figure": ("where in it, like 'Fig. 11'", {}),
        "kind": ("figures: the text has the paper's own; qualitative: only what it concludes from them", {}),
        "compare": ("the ratio of ours in which it would show, printed beside it", {}),
    },
    Comparison: {
        "measure": ("completion time of a class, or rate of background flows", {}),
        "scheme": ("label of the scheme that the paper says is better", {}),
        "against": ("label of the other", {}),
        "at_most": ("the claimed ratio of times", _POSITIVE),
        "at_least": ("the claimed ratio of goodput", _POSITIVE),
        "between": ("the claimed range of the ratio", {"minItems": 2, "maxItems": 2}),
    },
    Axis: {
        "label": ("what tables and figures call it", {"minLength": 1}),
        "fields": ("dotted paths of the fields that take the values, like workload.long_flows.number", {}),
        "values": ("the values, in the order of the figure", {}),
        "unit": ("of the values as they are shown", {}),
        "shown": ("other numbers to show in their place, one for each", {}),
    },
}


def schema() -> dict[str, Any]:
    """The schema of a whole spec (JSON Schema 2020-12)."""
    overrides = {
        "type": "object",
        "description": "what differs from the scheme's file, in its words: {long: {release: {packet_times: 8}}}",
    }
    label = {"type": "string", "pattern": "^[a-z0-9][a-z0-9._-]{0,30}$"}
    choice = {
        "anyOf": [
            {"type": "string"},
            {
                "type": "object",
                "properties": {
                    "name": {
                        "type": "string",
                        "description": f"a scheme's name, the path of its file, or {ALL_SCHEMES}",
                    },
                    "label": label | {"description": "what tables call it; default: its name"},
                    "overrides": overrides,
                },
                "required": ["name"],
                "additionalProperties": False,
            },
        ]
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Capstan experiment",
        "type": "object",
        "properties": {
            "name": label | {"description": "short name; results are kept under it"},
            "title": {"type": "string", "description": "one line for people"},
            "description": {"type": "string", "description": "what it shows, and what was scaled and why"},
            "fabric": _of(FabricSpec),
            "schemes": {"type": "array", "items": choice, "minItems": 1, "description": "what to compare"},
            "baseline": label
            | {"description": "scheme that the others are compared with; default: the first"},
            "policy": overrides
            | {"description": "overrides for every scheme, in the words of a scheme's file"},
            "workload": _of(Workload),
            "transport": _of(Transport),
            "simulation": _of(Simulation)
            | {"description": "for ./capstan simulate; all but agree_within for nothing else"},
            "repeats": _number("integer", "runs of each scheme, with other seeds each", 1, 1000),
            "seed": _number("integer", "seed of arrivals, sizes and pairs", 0, 2**31 - 1),
            "warm_up_s": _number("number", "seconds of background flows before the first sized flow", 0, 600),
            "quiet_s": _number(
                "number", "seconds between two runs; default: as long as full queues take to drain", 0, 600
            ),
            "timeout_s": _number(
                "number", "a flow not finished this long after the last arrival failed", 1, 3600
            ),
            "keep_learnt": {
                "type": "boolean",
                "description": "runs begin with the flow types of those before them; default: each learns its own",
            },
            "sweep": {
                "type": "array",
                "items": _of(Axis),
                "description": "run the grid of all combinations of these values",
            },
            "claims": {"type": "array", "items": _of(Claim), "description": "printed beside the results"},
        },
        "required": ["name", "title", "fabric", "schemes", "workload"],
        "additionalProperties": False,
    }


def _number(kind: str, description: str, low: float, high: float) -> dict[str, Any]:
    return {"type": kind, "description": description, "minimum": low, "maximum": high}


def _of(kind: Any) -> dict[str, Any]:
    """Schema of a dataclass. Every field must be described here: what is forgotten is a KeyError."""
    hints = typing.get_type_hints(kind)
    properties: dict[str, Any] = {}
    required = []
    for item in dataclasses.fields(kind):
        description, limits = _SAID[kind][item.name]
        entry = _of_type(hints[item.name])
        # a limit on what may also be null does not touch null: JSON Schema's limits are for numbers only
        entry |= limits
        if description:
            entry["description"] = description
        properties[item.name] = entry
        if item.default is dataclasses.MISSING and item.default_factory is dataclasses.MISSING:
            required.append(item.name)
        elif item.default is not dataclasses.MISSING and item.default is not None:
            entry["default"] = list(item.default) if isinstance(item.default, tuple) else item.default
    result: dict[str, Any] = {"type": "object", "properties": properties, "additionalProperties": False}
    return result | ({"required": required} if required else {})


def _of_type(kind: Any) -> dict[str, Any]:
    origin = get_origin(kind)
    if kind is Any:
        return {}
    if dataclasses.is_dataclass(kind):
        return _of(kind)
    if origin is Literal:
        return {"enum": list(get_args(kind))}
    if origin in (types.UnionType, typing.Union):
        inner = _of_type(next(option for option in get_args(kind) if option is not types.NoneType))
        if "enum" in inner:
            return inner | {"enum": [*inner["enum"], None]}
        if "type" not in inner:
            return inner
        return inner | {"type": [inner["type"], "null"]}
    if origin is tuple:
        return {"type": "array", "items": _of_type(get_args(kind)[0])}
    if origin in (dict, Mapping):
        return {"type": "object", "additionalProperties": _of_type(get_args(kind)[1])}
    return {"type": {str: "string", int: "integer", float: "number", bool: "boolean"}[kind]}


def published_text() -> str:
    """What `spec.schema.json` must hold."""
    return json.dumps(schema(), indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    sys.stdout.write(published_text())
