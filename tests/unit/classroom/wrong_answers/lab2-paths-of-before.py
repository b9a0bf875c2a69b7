"""A flow leaves a path that has died, but seldom, and for one of the paths that there were at first."""

from host_agent.paths.base import PathPolicy, flow_entropy


class LeastSent(PathPolicy):
    def __init__(self, rng, packet_time_s):
        self.known, self.sent, self.cells = (), {}, {}

    def entropy(self, flow, route, size, now):
        if not route.labels:
            return flow_entropy(flow)
        self.known = self.known or tuple(reversed(route.labels))
        label, left = self.cells.get(flow.id, (0, 0))
        if left < size or label not in route.labels:
            label = min(self.known, key=lambda label: self.sent.get(label, 0))
            left = 420_000
        self.cells[flow.id] = label, left - size
        self.sent[label] = self.sent.get(label, 0) + size
        return label

    def forget(self, flow):
        self.cells.pop(flow, None)
