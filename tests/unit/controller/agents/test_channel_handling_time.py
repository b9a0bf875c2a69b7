"""Which share of the loop's time agents' messages have, and what else the loop does meanwhile."""

from __future__ import annotations

import asyncio
import time
from contextlib import AbstractContextManager
from heapq import heappop, heappush

from controller.agents.inbound import BURST_S, SHARE, SLICE_S, HandlingTime


def test_agents_together_have_a_share_of_the_loops_time_and_one_that_sends_little_waits_little() -> None:
    """200 agents that send without an end, each read costing 20 ms, and one whose message costs 0.1 ms each second."""
    handling, now, last = HandlingTime(0.0), 0.0, 60.0
    ready = [(0.0, number) for number in range(200)] + [(0.0, -1)]
    held = dict[int, AbstractContextManager[float]]()
    spent, waits = 0.0, list[float]()
    while now < last:
        at, number = heappop(ready)
        now = max(now, at)
        if number in held:
            held.pop(number).__exit__(None, None, None)
        took = 0.0001 if number < 0 else 0.02
        now += took
        spent += took
        held[number] = handling.pause(took, now)
        wait = held[number].__enter__()
        if number < 0:
            waits.append(wait)
        heappush(ready, (now + max(wait, 1.0 if number < 0 else 0.0), number))
    assert SHARE * 55 < spent < SHARE * 60 + BURST_S + 200 * 0.02
    assert max(waits) < 0.1
    assert len(waits) > 50


def test_what_else_the_loop_has_to_do_goes_between_two_agents() -> None:
    """200 agents have sent at once: what the API asks meanwhile waited until all of them were handled."""
    handling, order = HandlingTime(time.monotonic()), list[str]()

    async def agent() -> None:
        async with handling.turn():
            order.append("agent")
            until = time.monotonic() + SLICE_S
            while time.monotonic() < until:
                pass

    async def question() -> None:
        for _ in range(5):
            await asyncio.sleep(0)
            order.append("question")

    async def run() -> None:
        await asyncio.gather(question(), *(agent() for _ in range(200)))

    asyncio.run(run())
    assert order.count("agent") == 200
    last = len(order) - order[::-1].index("question")
    assert order[:last].count("agent") <= 6, "an agent for each answer"


def test_agents_that_send_little_are_never_kept_waiting() -> None:
    handling = HandlingTime(0.0)
    for step in range(10_000):
        with handling.pause(0.0008 * SHARE, step * 0.001) as wait:
            assert wait == 0
