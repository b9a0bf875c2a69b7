"""Hosts' TCP and ports' marks as a spec has them: a profile, its congestion control, and single settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from experiments.spec.simulated import SimulatedTcp
from experiments.spec.spec import Spec
from protocol.admission import AdmissionPolicy
from simulation.fabrics import SettingsError
from simulation.tcp import PROFILES, Control, Tcp

MARK_FROM_PACKETS: Final = 65
"""What DCTCP's authors advise at 10 Gbit/s (SIGCOMM 2010, section 3.5)."""
_OF_LAB: Final[Mapping[str, Control]] = {"cubic": "cubic", "reno": "newreno"}
_PLAIN: Final = {
    "initial_window": "initial_window",
    "largest_window": "largest_window",
    "duplicate_acks": "duplicates",
    "sack": "sack",
    "rack": "rack",
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
    asked = spec.simulation
    profile = PROFILES[asked.profile or spec.transport.profile]
    control = asked.congestion_control or (profile.control if asked.profile else _of_lab(spec))
    tcp = replace(profile, control=control, marks=control == "dctcp", **_settings(asked.tcp))
    if tcp.rack and not tcp.sack:
        raise SettingsError(
            "simulation.tcp.rack: needs sack, which says what has arrived: give rack: false, too"
        )
    if tcp.least_timeout_us > tcp.largest_timeout_us or tcp.initial_timeout_us > tcp.largest_timeout_us:
        raise SettingsError(f"simulation.tcp: time-outs are at most {tcp.largest_timeout_us / 1e6:g} s")
    if tcp.initial_window > tcp.largest_window:
        raise SettingsError(
            f"simulation.tcp.initial_window: {tcp.initial_window} is above the largest window ({tcp.largest_window})"
        )
    return tcp


def transport_under(tcp: Tcp, spec: Spec, admission: AdmissionPolicy | None) -> Tcp:
    """Return the hosts' TCP under a scheme: what is granted a rate needs no slow start, so the first window is the
    policy's, unless the spec gives one."""
    if admission is None or spec.simulation.tcp.initial_window is not None:
        return tcp
    return replace(tcp, initial_window=admission.initial_window_packets)


def mark_from(spec: Spec, tcp: Tcp) -> int:
    """Return the number of waiting packets from which ports mark; 0: never.

    Raises:
        SettingsError: no port's buffer holds so many.
    """
    asked = spec.simulation.mark_from_packets
    number = (MARK_FROM_PACKETS if tcp.marks else 0) if asked is None else asked
    if marks_none(spec, number):
        raise SettingsError(
            f"simulation.mark_from_packets: {number}, but links hold {spec.fabric.link.buffer_packets} packets, "
            "so none would be marked: give fewer, or a larger fabric.link.buffer_packets"
        )
    return number


def marks_none(spec: Spec, number: int) -> bool:
    """Return whether no port's buffer ever holds the *number* of packets from which it marks."""
    return has_rooms(spec) and number > spec.fabric.link.buffer_packets


def has_rooms(spec: Spec) -> bool:
    """Return whether switches' ports have the room in packets that their links say."""
    return spec.simulation.buffer_bytes is None and spec.simulation.shared_buffer is None


def _of_lab(spec: Spec) -> Control:
    control = _OF_LAB.get(spec.transport.congestion)
    if control is None:
        raise SettingsError(
            f"{spec.transport.congestion} is not simulated",
            where="transport.congestion_control",
            remedy="give cubic or reno, or simulation.congestion_control",
        )
    return control


def _settings(asked: SimulatedTcp) -> dict[str, Any]:
    plain = {ours: getattr(asked, name) for name, ours in _PLAIN.items()}
    times = {ours: getattr(asked, name) for name, ours in _MS.items()}
    return {name: value for name, value in plain.items() if value is not None} | {
        name: value * 1000 for name, value in times.items() if value is not None
    }
