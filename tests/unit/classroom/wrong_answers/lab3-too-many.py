def repairs(k, blocked, target):
    return k
