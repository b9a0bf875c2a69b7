"""Cases for a fuzzer: messages that are right, in any order, some of them made wrong where parsers trust them."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Final

MOST_MESSAGES: Final = 12
MOST_BYTES: Final = 1 << 16
"""Of a message after its mutations."""
_LENGTHS: Final = (0, 1, 2, 3, 4, 7, 8, 9, 15, 16, 0x7F, 0x80, 0xFF, 0x100, 0x7FFF, 0x8000, 0xFFFE, 0xFFFF)
Message = bytes


def case(rng: random.Random, samples: Sequence[Message]) -> list[Message]:
    """Return up to `MOST_MESSAGES` messages: samples, and samples with up to four mutations."""
    messages = [rng.choice(samples) for _ in range(rng.randint(1, MOST_MESSAGES))]
    return [_mutated(rng, message, samples) if rng.random() < 0.6 else message for message in messages]


def _mutated(rng: random.Random, message: Message, samples: Sequence[Message]) -> Message:
    for _ in range(rng.randint(1, 4)):
        message = rng.choice(_MUTATIONS)(rng, message, samples)[:MOST_BYTES]
    return message


def _flip(rng: random.Random, message: Message, samples: Sequence[Message]) -> Message:
    if not message:
        return bytes((rng.randrange(256),))
    at = rng.randrange(len(message))
    return message[:at] + bytes((message[at] ^ 1 << rng.randrange(8),)) + message[at + 1 :]


def _length(rng: random.Random, message: Message, samples: Sequence[Message]) -> Message:
    """Write a number at which length fields go wrong, of 1, 2 or 4 bytes, somewhere: mostly near the beginning."""
    size = rng.choice((1, 2, 2, 2, 4))
    if len(message) < size:
        return message
    most = len(message) - size
    at = rng.randint(0, min(most, 24)) if rng.random() < 0.5 else rng.randint(0, most)
    near = len(message) + rng.randint(-9, 9)
    value = rng.choice((*_LENGTHS, near, len(message) - at)) % (1 << 8 * size)
    return message[:at] + value.to_bytes(size, "big") + message[at + size :]


def _cut(rng: random.Random, message: Message, samples: Sequence[Message]) -> Message:
    return message[: rng.randint(0, len(message))]


def _drop(rng: random.Random, message: Message, samples: Sequence[Message]) -> Message:
    begin = rng.randint(0, len(message))
    return message[:begin] + message[begin + rng.randint(1, 16) :]


def _repeat(rng: random.Random, message: Message, samples: Sequence[Message]) -> Message:
    begin = rng.randint(0, len(message))
    end = rng.randint(begin, len(message))
    return message[:end] + message[begin:end] * rng.choice((1, 2, 50)) + message[end:]


def _splice(rng: random.Random, message: Message, samples: Sequence[Message]) -> Message:
    other = rng.choice(samples)
    return message[: rng.randint(0, len(message))] + other[rng.randint(0, len(other)) :]


def _noise(rng: random.Random, message: Message, samples: Sequence[Message]) -> Message:
    at = rng.randint(0, len(message))
    return message[:at] + rng.randbytes(rng.randint(1, 32)) + message[at:]


_Mutation = Callable[[random.Random, Message, Sequence[Message]], Message]
_MUTATIONS: Final[tuple[_Mutation, ...]] = (_flip, _length, _length, _cut, _drop, _repeat, _splice, _noise)
