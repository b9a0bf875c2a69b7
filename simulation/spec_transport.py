"""Hosts' TCP as a spec has it: a profile, its congestion control, and single settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from experiments.spec.simulated import SimulatedTcp
from experiments.spec.spec import Spec
from protocol.admission import AdmissionPolicy
from simulation.fabrics import SettingsError
from simulation.tcp import PROFILES, Control, Tcp

_OF_LAB: Final[Mapping[str, Control]] = {"cubic": "cubic", "reno": "newreno"}
_PLAIN: Final = {
    "initial_window": "initial_window",
    "largest_window": "largest_window",
    "duplicate_acks": "duplicates",
    "sack": "sack",
    "rack": "rack",
    "reordering_window_quarters": "reorder_quarters",
    "delayed_ack_packets": "delayed_packets",
    "mark_acknowledgements": "mark_acknowledgements",
}
_MS: Final = {
    "initial_rto_ms": "initial_timeout_us",
    "min_rto_ms": "least_timeout_us",
    "delayed_ack_ms": "delayed_us",
}


def transport_of(spec: Spec) -> Tcp:
    """Return the hosts' TCP.

    Raises:
        SettingsError: what is not simulated, or does not go together.
    """
    simulation = spec.simulation
    profile = PROFILES[simulation.profile or spec.transport.profile]
    control = simulation.congestion_control or (profile.control if simulation.profile else _of_lab(spec))
    tcp = replace(profile, control=control, marks=control == "dctcp", **_settings(simulation.tcp))
    if tcp.rack and not tcp.sack:
        raise SettingsError(
            "needs sack, which says what has arrived",
            where="simulation.tcp.rack",
            remedy="give rack: false, too, or sack: true",
        )
    if simulation.tcp.reordering_window_quarters is not None and not tcp.rack:
        raise SettingsError(
            "only RACK waits for what is late",
            where="simulation.tcp.reordering_window_quarters",
            remedy="give rack: true and sack: true, too, or leave it out",
        )
    if tcp.least_timeout_us > tcp.largest_timeout_us or tcp.initial_timeout_us > tcp.largest_timeout_us:
        raise SettingsError(
            f"time-outs are at most {tcp.largest_timeout_us / 1e6:g} s", where="simulation.tcp"
        )
    if tcp.initial_window > tcp.largest_window:
        raise SettingsError(
            f"{tcp.initial_window} is above the largest window ({tcp.largest_window} packets)",
            where="simulation.tcp.initial_window",
            remedy="give less, or a larger simulation.tcp.largest_window",
        )
    if tcp.delayed_packets > 1 and tcp.delayed_us == 0:
        raise SettingsError(
            f"acknowledgements wait for {tcp.delayed_packets} packets, so they need a time after which they wait no "
            "longer",
            where="simulation.tcp.delayed_ack_ms",
            remedy="give one above 0 ms, or delayed_ack_packets: 1",
        )
    return tcp


def transport_under(tcp: Tcp, spec: Spec, admission: AdmissionPolicy | None) -> Tcp:
    """Return the hosts' TCP under a scheme: what is granted a rate needs no slow start, so the first window is the
    policy's, unless the spec gives one."""
    if admission is None or spec.simulation.tcp.initial_window is not None:
        return tcp
    return replace(tcp, initial_window=admission.initial_window_packets)


def _of_lab(spec: Spec) -> Control:
    control = _OF_LAB.get(spec.transport.congestion)
    if control is None:
        raise SettingsError(
            f"{spec.transport.congestion} is not simulated",
            where="transport.congestion_control",
            remedy="give cubic or reno, or simulation.congestion_control",
        )
    return control


def _settings(tcp: SimulatedTcp) -> dict[str, Any]:
    plain = {ours: getattr(tcp, name) for name, ours in _PLAIN.items()}
    times = {ours: getattr(tcp, name) for name, ours in _MS.items()}
    return {name: value for name, value in plain.items() if value is not None} | {
        name: value * 1000 for name, value in times.items() if value is not None
    }
