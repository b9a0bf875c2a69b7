"""What admission decides on a host: native/agent/src/admission."""

from typing import Literal, Self

class AdmissionRequests:
    """Which flows of a host have asked, and what was decided of them: messages in and out, times in seconds.

    A flow that has asked waits until it is granted a rate. Requests are sent again until they are answered, and now and
    then afterwards. A controller that leaves requests unanswered is not waited for: after the fail-safe time their
    flows go on unscheduled, until it answers again.
    """

    def __new__(cls, retry_s: float, refresh_s: float, fail_safe_s: float, sequence: int) -> Self: ...
    def __len__(self) -> int: ...
    def __contains__(self, flow: int) -> bool: ...
    @property
    def sequence(self) -> int:
        """Of the newest message."""
    @property
    def counts(self) -> dict[str, int]:
        """What was decided, by name; without those that are 0."""
    def take_latencies(self) -> list[float]:
        """Return how long decisions took since the last call, each from the first of the requests that it answers."""
    def rate_bps(self, flow: int) -> float:
        """Return the rate on the link that a flow may send at: 0 while it waits, inf where it does not have to ask."""
    def state(self, flow: int) -> Literal["waiting", "granted", "unscheduled"]:
        """Return the state of a flow that has asked; KeyError if it has not."""
    def stamp(self, flow: int) -> int:
        """Return the path that a flow was granted; 0: none of its own."""
    def standing(self) -> tuple[int, int, int]:
        """Return how many flows send as granted, how many wait, and how many send although nothing was decided."""
    def ask(self, flow: int, destination: str, bytes_left: int, now: float) -> None:
        """Take in that a large flow begins: it waits from now on. *destination*: the underlay address of its peer."""
    def left(self, flow: int, bytes_left: int) -> None:
        """Take in how much a flow that has asked has left by now: it goes with its next request."""
    def end(self, flow: int) -> None:
        """Take in that a flow has nothing left, or is gone; of one that has not asked nothing is sent."""
    def connected(self, now: float) -> None:
        """Take in that the controller listens, perhaps another one: ask again for all flows."""
    def decide(self, sequence: int, flow: int, answers: int, rate_bps: int, stamp: int, now: float) -> bool:
        """Take in a decision (rate 0: the flow has to wait). Return True if the flow's rate or path changes by it."""
    def get_timer(self) -> float | None:
        """Return when `handle_timer` has something to do."""
    def handle_timer(self, now: float) -> list[int]:
        """Ask again what is due. Return the flows that wait no longer for a controller that does not answer."""
    def take_messages(self) -> list[tuple[int, int, tuple[str, int] | None]]:
        """Return messages for the controller: sequence, flow, and destination and bytes left (None: finished)."""
