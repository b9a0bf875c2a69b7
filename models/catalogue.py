"""Names of the models: what `capstan model` knows."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import Final

from models.study import Study
from plain.reading import did_you_mean

CAPS: Final = "CAPS, IEEE/ACM ToN 27(6), 2019"
HTPC: Final = "HTPC, Journal of Cloud Computing 10, 2021"
TPFS: Final = "TPFS (Improving Flow Scheduling Scheme With Mix-Traffic in Multi-Tenant Data Centers)"
TR: Final = "TR, Journal of Cloud Computing 10, 2021"


@dataclass(frozen=True, slots=True)
class Model:
    """One analysis: where its function is, what it shows, and whose it is."""

    place: str
    """``module:function``, without arguments, giving a `Study`."""
    shows: str
    paper: str
    """What it analyses; docs/models.md says what is the paper's and what is derived."""

    def evaluate(self) -> Study:
        module, function = self.place.split(":")
        study: Study = getattr(importlib.import_module(module), function)()
        return study


MODELS: Final = {
    "caps-fig6": Model(
        "models.printed_studies:caps_fig6", "Fig. 6: repairs, chance to decode (Eq. 1, 2)", CAPS
    ),
    "caps-fig8": Model(
        "models.printed_studies:caps_fig8", "Fig. 8: decoding, delay by unit size (Eq. 2-4)", CAPS
    ),
    "caps-fig9": Model(
        "models.printed_studies:caps_fig9", "Fig. 9: delay with and without code (Eq. 4-6)", CAPS
    ),
    "caps-fig10": Model("models.printed_studies:caps_fig10", "Fig. 10: traffic overhead (Eq. 7)", CAPS),
    "caps-unit-readings": Model(
        "models.caps_studies:unit_readings", "optimal unit sizes by readings of Eq. 4", CAPS
    ),
    "caps-decoding": Model(
        "models.caps_studies:decoding", "decode probability and repairs, by rule and code", CAPS
    ),
    "caps-long-flows": Model(
        "models.caps_studies:long_flows", "short flows' completion time beside m long flows", CAPS
    ),
    "caps-paths": Model("models.caps_studies:paths", "short flows' completion time over n paths", CAPS),
    "htpc-fig5": Model("models.printed_studies:htpc_fig5", "Fig. 5: delivery and time-outs (Eq. 9-17)", HTPC),
    "htpc-redundancy": Model(
        "models.htpc_studies:redundancy", "repairs by bytes sent and by flow size (Eq. 2-5)", HTPC
    ),
    "htpc-tail": Model("models.htpc_studies:tail", "chance that a short flow waits for a bad path", HTPC),
    "htpc-timeout": Model("models.htpc_studies:timeout", "chance that a long flow's window times out", HTPC),
    "tpfs-queues": Model(
        "models.tpfs_studies:strict_queues", "what strict queues do with the flows of TPFS's presets", TPFS
    ),
    "tr-fig6": Model("models.printed_studies:tr_fig6", "Fig. 6: completion time, RPS and TR (Eq. 2-8)", TR),
    "tr-bad-paths": Model("models.tr_studies:bad_paths", "completion time by number of bad paths", TR),
    "tr-asymmetry": Model("models.tr_studies:asymmetry", "completion time by asymmetry of delays", TR),
    "tr-window": Model("models.tr_studies:windows", "what reordering leaves of TCP's window", TR),
}
"""Every model by name, in the order of `capstan model`."""


def model_named(name: str) -> Model:
    """Return the model of that name. Raise ValueError for a name that is not known."""
    if name not in MODELS:
        raise ValueError(f"model {name!r} is not known{did_you_mean(name, MODELS)}")
    return MODELS[name]
