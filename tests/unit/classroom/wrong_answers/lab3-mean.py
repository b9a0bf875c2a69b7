from math import ceil


def repairs(k, blocked, target):
    return ceil(k * blocked)  # as many as are blocked on average
