"""Lab 3: how many repairs? Copy this file; it holds the rule of CAPS's paper."""

from math import ceil


def repairs(k, blocked, target):
    """How many repair packets to send with k packets, of which each is blocked with probability `blocked`, so that
    at least the share `target` of all units is decoded. The smallest number that does it.
    """
    return ceil(k / (1 - blocked) - k)
