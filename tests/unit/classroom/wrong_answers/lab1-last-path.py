"""Lab 1: which long flows share a path?"""

from itertools import combinations

CHANCE = 1 - 4 * 3 * 2 * 1 / 4**4


def path(flow):
    words = [word.split(":") for word in flow["paths"].split()]
    return words[-1][0]  # the last of a row, not the most used


def collisions(flows):
    return [
        (flow["id"], other["id"])
        for flow, other in combinations(flows, 2)
        if flow["repeat"] == other["repeat"] and path(flow) == path(other)
    ]
