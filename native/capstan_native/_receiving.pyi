"""What has arrived: feedback, numbers of datagrams, the order of packets."""

from typing import Final

class Feedback:
    """What a peer says of our datagrams; *body*: of a FEEDBACK datagram. ValueError: it is none."""

    def __init__(self, body: bytes) -> None: ...
    @property
    def numbers(self) -> list[int]:
        """Of each receipt; in `stamps` its path's stamp (0: none), in `delays_us` its delay."""
    @property
    def stamps(self) -> list[int]: ...
    @property
    def delays_us(self) -> list[int]: ...
    @property
    def lost(self) -> list[tuple[int, int]]:
        """First numbers and counts of what the peer has given up."""
    @property
    def recovered(self) -> int:
        """Packets rebuilt from repairs."""

class Arrivals:
    """Numbers of one peer's datagrams as they arrive: which are new, which are replays, which are lost for good.

    One peer and session; times in seconds. A jump of the numbers costs no more than any datagram.
    """

    WINDOW: Final[int]
    """Numbers this far behind the newest are replays, whatever they are."""
    def __init__(self) -> None: ...
    @property
    def newest(self) -> int | None:
        """The newest number that came; None if none did."""
    @property
    def received(self) -> int: ...
    @property
    def replayed(self) -> int: ...
    @property
    def lost(self) -> int: ...
    @property
    def late(self) -> int: ...
    def accept(self, number: int, now: float) -> bool:
        """Return True if this number is seen for the first time, False if it is a replay, to be dropped."""
    def give_up(self, noticed_before: float) -> list[tuple[int, int]]:
        """Give up what was noticed missing by then. Return first numbers and counts: lost, unless they come late."""
    def oldest_missing(self) -> float | None:
        """Return when the gap that is open for longest was noticed; None if there is none."""

class Release:
    """In-order release of one receiving flow: packets behind a gap wait until it is filled or a timer fires.

    Positions are the flow's packet numbers modulo 2**32; each is released at most once. A timeout of 0 s holds nothing
    back: packets go out as they come, each once. *stamp*: of the path that a packet took, 0 where none is known.
    """

    def __init__(self, first: int) -> None: ...
    @property
    def next(self) -> int:
        """The position that is due."""
    @property
    def deadline(self) -> float | None:
        """When `expire` will give up the gap; None while nothing is held."""
    @property
    def held_total(self) -> int: ...
    @property
    def timeouts(self) -> int: ...
    @property
    def duplicates(self) -> int: ...
    @property
    def abandoned(self) -> int:
        """Positions given up, less those whose packet came late."""
    def arrive(
        self, position: int, packet: bytes, timeout_s: float, now: float, number: int = 0
    ) -> list[bytes]:
        """Take in a packet that came or was rebuilt. Return what goes out now, in order."""
    def expire(self, now: float) -> list[bytes]:
        """Give up the gaps before all that has waited for long enough. Return what goes out now, in order."""
    def drain(self) -> list[bytes]:
        """Return all that is held, in order: the flow ends."""
