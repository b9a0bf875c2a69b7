def types_of_ports(flows):
    return {flow["destination_port"]: 0 for flow in flows}
