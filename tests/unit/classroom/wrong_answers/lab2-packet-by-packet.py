from host_agent.paths.base import PathPolicy, flow_entropy


class Random(PathPolicy):
    def __init__(self, rng, packet_time_s):
        self.rng = rng

    def entropy(self, flow, route, size, now):
        if not route.labels:
            return flow_entropy(flow)
        return route.labels[self.rng.integers(len(route.labels))]
