from host_agent.paths.base import PathPolicy, flow_entropy


class Stays(PathPolicy):
    def __init__(self, rng, packet_time_s):
        self.chosen = {}

    def entropy(self, flow, route, size, now):
        if not route.labels:
            return flow_entropy(flow)
        return self.chosen.setdefault(flow.id, route.labels[flow.hash % len(route.labels)])
