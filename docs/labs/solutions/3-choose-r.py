"""Lab 3: the smallest r with P(at most r of k + r packets are blocked) >= target."""

from math import comb


def decoded(k, r, blocked):
    n = k + r
    return sum(comb(n, lost) * blocked**lost * (1 - blocked) ** (n - lost) for lost in range(r + 1))


def repairs(k, blocked, target):
    r = 0
    while decoded(k, r, blocked) < target:
        r += 1
    return r
