"""Lab 5: types of flows. Copy this file, and put ports whose flows are alike into one type."""


def types_of_ports(flows):
    """The type (any word or number) of each destination port, as {80: 0, 443: 0, 2049: 1}.

    flows: a day's flows as dictionaries: "host", "destination_port", "bytes".
    """
    return {flow["destination_port"]: flow["destination_port"] for flow in flows}
