"""Lab 7: an application that takes slow links out and chooses the scheme by load, against a rehearsed controller."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from capstan_client.errors import ControllerError
from classroom.answer import Answer, AnswerError, CheckResult
from classroom.rehearsal import Rehearsal, fabric_links

SAMPLES: Final = 8
"""Two seconds: within them an application has acted, or does not."""
BUSY: Final = 0.7
QUIET: Final = 0.3
FAST_KBPS: Final = 20_000.0
BUSY_SCHEME: Final = "caps"
QUIET_SCHEME: Final = "ecmp"


def check(file: Path, results: Path) -> list[CheckResult]:
    """Return what the application in *file* does in five rehearsals. Raises AnswerError."""
    answer = Answer(file)
    return [
        _check_result("step 4", _slow_link, answer, "the slow link is taken out, and nothing else"),
        _check_result("step 5", _last_way, answer, "the last way between leaves stays"),
        _check_result(
            "step 6", _refused, answer, "what was refused is asked for again, what was done is not"
        ),
        _check_result("step 7", _load, answer, "the scheme follows the load, and not its spikes"),
        _check_result("step 8", _resumed, answer, "after a break it goes by the controller's state"),
    ]


class _EndedError(Exception):
    """The application let a refusal of the controller end it; the text says which."""


class _Play:
    """A rehearsal with the application that gets its events."""

    def __init__(self, answer: Answer, share: float = 0.5) -> None:
        self.fabric = Rehearsal(share=share)
        application = answer.function("make_application")(self.fabric)
        on_event = getattr(application, "on_event", None)
        if on_event is None:
            raise AnswerError(
                "make_application() returns nothing with a method on_event(event): it is in start.py"
            )
        self._on_event = answer.guarded(on_event)
        self.hand_over(self.fabric.hello(resumed=False))

    def hand_over(self, event: dict[str, Any]) -> None:
        """Hand an event to the application. Raise _EndedError, AnswerError."""
        try:
            self._on_event(event)
        except AnswerError as error:
            if isinstance(error.__cause__, ControllerError):
                raise _EndedError(f"{error}: catch it, and try again at the next sample") from None
            raise

    def samples(self, count: int = SAMPLES) -> None:
        for _ in range(count):
            self.hand_over(self.fabric.sample())


def _slow_link(answer: Answer) -> str:
    """Return what is wrong; "": nothing."""
    for slow in ("l1-s2", "l2-s3"):
        play = _Play(answer)
        play.fabric.idle = frozenset({"l1-s4", "l2-s4"})  # as ECMP's hash may leave them
        play.samples()
        if play.fabric.changes:
            return f"no link is slow (l1-s4 is idle), but it asks for {_words(play.fabric)}"
        play.fabric.slow.add(slow)
        play.samples()
        if f"link-down {slow}" not in play.fabric.changes:
            return (
                f"{slow} carries 500 kbit/s, the others 5000: it stays up for 2 s (faults() has what makes it slow, "
                "too, by kind)"
            )
        if set(play.fabric.changes) != {f"link-down {slow}"}:
            return f"only {slow} is slow, but it asks for {_words(play.fabric)}"
    # On a faster fabric, so that no fixed rate does: one link has less than half of the fastest's, one has more.
    play = _Play(answer)
    play.fabric.rates = dict.fromkeys(fabric_links(), FAST_KBPS) | {"l1-s2": 8000.0, "l2-s3": 12000.0}
    play.samples()
    if "link-down l1-s2" not in play.fabric.changes:
        return f"l1-s2 carries 8000 kbit/s, the fastest {FAST_KBPS:.0f}: it stays up for 2 s"
    if set(play.fabric.changes) != {"link-down l1-s2"}:
        return (
            f"l1-s2 carries 8000 kbit/s, l2-s3 12000, the others {FAST_KBPS:.0f}: only l1-s2 is slow, but it asks for "
            f"{_words(play.fabric)}"
        )
    return ""


def _last_way(answer: Answer) -> str:
    """Return what is wrong where slow links of both leaves leave a single spine between them."""
    for order in (("l1-s1", "l1-s2", "l1-s3", "l1-s4"), ("l1-s1", "l1-s2", "l2-s3", "l2-s4")):
        play = _Play(answer)
        for number, slow in enumerate(order):
            play.fabric.slow.add(slow)
            play.samples()
            if not play.fabric.connected():
                return f"{_words(play.fabric)}: no spine is left that reaches both leaves"
            if number < 3 and f"link-down {slow}" not in play.fabric.changes:
                return f"{slow} is slow, and spines are left without it: it stays up"
    return ""


def _refused(answer: Answer) -> str:
    play = _Play(answer)
    play.fabric.slow.add("l1-s2")
    play.fabric.refusals = 2
    play.samples()
    if "link-down l1-s2" not in play.fabric.changes:
        return "the controller was away (503) at the first try; there is none after it"
    if play.fabric.mistakes:
        return f"it asks again for what is done: {play.fabric.mistakes[0]}"
    play.fabric.share, play.fabric.refusals = 0.9, 1
    play.samples()
    # Where it has asked for no scheme at all, nothing was refused: step 7 is about that.
    if not play.fabric.refusals and f"scheme {BUSY_SCHEME}" not in play.fabric.changes:
        return f"the controller was away (503) when it asked for {BUSY_SCHEME}; there is no try after it"
    return ""


def _load(answer: Answer) -> str:
    play = _Play(answer, share=0.5)
    play.samples()
    play.fabric.share = 0.9
    play.samples(2)
    play.fabric.share = 0.5
    play.samples()
    if play.fabric.changes:
        return f"a spike of half a second, and it asks for {_words(play.fabric)}: wait for 4 samples in a row"
    wanted: list[str] = []
    for share, scheme in ((0.85, BUSY_SCHEME), (0.5, ""), (0.1, QUIET_SCHEME), (0.5, ""), (0.9, BUSY_SCHEME)):
        play.fabric.share = share
        play.samples()
        wanted += [f"scheme {scheme}"] if scheme else []
        if play.fabric.changes != wanted:
            return (
                f"a load of {share:.0%} for 2 s (of each link that is up the fuller direction): it asks for "
                f"{_words(play.fabric)}, not {', '.join(wanted)}"
            )
    if play.fabric.packet_time_us != Rehearsal().packet_time_us:
        return (
            f"it sets a packet time of {play.fabric.packet_time_us:g} us: GET /scheme says which is in force"
        )
    return ""


def _resumed(answer: Answer) -> str:
    play = _Play(answer, share=0.9)
    play.fabric.slow.add("l1-s2")
    play.samples()
    # The controller of another lab answers: nothing of what was asked for is in force, and l1-s1 is down already.
    play.fabric.restart(QUIET_SCHEME)
    play.fabric.take_down("l1-s1")
    play.fabric.slow.add("l1-s1")
    play.fabric.changes.clear()
    play.fabric.mistakes.clear()
    play.hand_over(play.fabric.hello(resumed=False))
    play.samples()
    if play.fabric.mistakes:
        return f"l1-s1 is down already (GET /faults): {play.fabric.mistakes[0]}"
    for wanted in ("link-down l1-s2", f"scheme {BUSY_SCHEME}"):
        if wanted not in play.fabric.changes:
            return (
                f"hello came with resumed false: {wanted} is needed again; it asks for {_words(play.fabric)}"
            )
    return ""


def _check_result(step: str, wrong_in: Callable[[Answer], str], answer: Answer, right: str) -> CheckResult:
    try:
        wrong = wrong_in(answer)
    except _EndedError as error:
        wrong = str(error)
    return CheckResult(not wrong, f"{step}: {wrong or right}")


def _words(fabric: Rehearsal) -> str:
    return ", ".join(fabric.changes) or "nothing"
