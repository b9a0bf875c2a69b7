"""Settings of hosts and ports in plain words with units, as results and traces print them."""

from __future__ import annotations

from simulation.settings import Buffer, FixedWindow, PFabricHosts, Transport
from simulation.tcp import Profile, Tcp

_SECOND_US = 1e6


def transport_words(transport: Transport, profile: Profile | None = None) -> str:
    """Return how hosts send. profile: of a TCP, from which single settings may differ."""
    match transport:
        case Tcp():
            named = f"TCP profile {profile} with" if profile else "TCP"
            return f"{named} {tcp_words(transport)}"
        case PFabricHosts(initial_window=first, largest_window=largest, timeout_us=timeout_us):
            return f"pFabric, windows of {first} to {largest} packets, time-out of {_time(timeout_us)}"
        case FixedWindow(window=window):
            return f"a fixed window of {window} packets, no timer"


def tcp_words(tcp: Tcp) -> str:
    """Return all settings of a TCP, congestion control first."""
    parts = [
        f"{tcp.control}, initial window {tcp.initial_window} packets, at most {tcp.largest_window}",
        f"time-outs from {_time(tcp.least_timeout_us)}{' more than the round trip' if tcp.kernel_timeouts else ''} to "
        f"{_time(tcp.largest_timeout_us)}, the first {_time(tcp.initial_timeout_us)}",
        f"losses by {_losses(tcp)}",
        f"{'with' if tcp.sack else 'without'} SACK",
        "an acknowledgement for each packet"
        if tcp.delayed_packets == 1
        else f"an acknowledgement for {tcp.delayed_packets} packets or after {_time(tcp.delayed_us)}",
    ]
    tick_us = tcp.timestamp_tick_us
    features = {
        "a handshake": tcp.opening,
        "HyStart": tcp.hystart,
        "proportional rate reduction": tcp.prr,
        "undone reductions": tcp.undo,
        "windows that grow by all that has arrived": tcp.count_delivered,
        f"timestamps of {_time(tick_us)} by which late data is discarded (PAWS)": tick_us > 0,
        "marks (ECN)": tcp.marks,
        "marks on acknowledgements": tcp.marks and tcp.mark_acknowledgements,
    }
    has = [name for name, there in features.items() if there]
    lacks = [name for name in ("a handshake", "HyStart", "undone reductions") if not features[name]]
    parts += [f"with {', '.join(has)}"] if has else []
    parts += [f"without {', '.join(lacks)}"] if lacks else []
    return "; ".join(parts)


def room_words(buffer: Buffer, of_links: str = "") -> str:
    """Return the queues of a port and what they hold. of_links: words for what links say instead of the limit."""
    limit = of_links or buffer.limit
    if buffer.queue == "queues":
        return f"{buffer.queues} strict queues, each {limit}"
    return f"{buffer.queue}, {limit}"


def marks_words(buffer: Buffer) -> str:
    """Return from how many waiting packets a port marks (ECN)."""
    if not buffer.mark_from_packets:
        return "no marks"
    others = ", what cannot be marked is dropped there" if buffer.drops_unmarkable else ""
    return f"marks from {buffer.mark_from_packets} waiting packets on{others}"


def _losses(tcp: Tcp) -> str:
    duplicates = f"{tcp.duplicates} duplicate acknowledgement{'' if tcp.duplicates == 1 else 's'}"
    if not tcp.rack:
        return duplicates
    quarters = "a quarter" if tcp.reorder_quarters == 1 else f"{tcp.reorder_quarters} quarters"
    slack = f", its timer {_time(tcp.reorder_slack_us)} later" if tcp.reorder_slack_us else ""
    return f"time (RACK, {quarters} of the least round trip{slack}; at once from {duplicates} on)"


def _time(us: float) -> str:
    if us >= _SECOND_US:
        return f"{us / _SECOND_US:g} s"
    return f"{us / 1000:g} ms" if us >= 1000 else f"{us:g} us"
