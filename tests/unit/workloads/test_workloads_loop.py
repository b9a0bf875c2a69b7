import socket
import time

from workloads.loop import READ, Loop


def test_a_source_closed_by_another_of_the_same_round_is_not_called() -> None:
    loop = Loop()
    pairs = [socket.socketpair() for _ in range(2)]
    called = []

    def close_the_other(index: int) -> None:
        called.append(index)
        other = pairs[1 - index][0]
        loop.forget(other)
        other.close()
        loop.stop()

    for index, (near, far) in enumerate(pairs):
        loop.watch(near, READ, lambda events, index=index: close_the_other(index))
        far.send(b"x")
    loop.run()
    assert len(called) == 1
    for pair in pairs:
        for end in pair:
            end.close()


def test_timers_fire_in_order_and_not_before_their_time() -> None:
    loop = Loop()
    fired = []
    start = time.monotonic()
    for delay in (0.03, 0.01, 0.02):
        loop.at(start + delay, lambda delay=delay: fired.append((delay, time.monotonic() - start)))
    loop.at(start + 0.04, loop.stop)
    loop.run()
    assert [delay for delay, _ in fired] == [0.01, 0.02, 0.03]
    assert all(when >= delay for delay, when in fired)
