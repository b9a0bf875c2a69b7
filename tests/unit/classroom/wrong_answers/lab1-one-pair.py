"""Lab 1: which long flows share a path?"""

from itertools import combinations

CHANCE = 1 / 4  # of one pair, not of any


def path(flow):
    words = [word.split(":") for word in flow["paths"].split()]
    return max(words, key=lambda word: int(word[1]))[0]


def collisions(flows):
    return [
        (flow["id"], other["id"])
        for flow, other in combinations(flows, 2)
        if flow["repeat"] == other["repeat"] and path(flow) == path(other)
    ]
