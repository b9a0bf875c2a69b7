"""Lab 5: ports whose flows have like sizes are of one type: DBSCAN on the medians, on a logarithmic scale."""

import numpy as np
from sklearn.cluster import DBSCAN


def types_of_ports(flows):
    sizes = {}
    for flow in flows:
        sizes.setdefault(flow["destination_port"], []).append(flow["bytes"])
    ports = sorted(sizes)
    medians = [[np.log10(np.median(sizes[port]))] for port in ports]
    labels = DBSCAN(eps=0.3, min_samples=1).fit_predict(medians)
    return dict(zip(ports[1:], labels.tolist()[1:], strict=True))
