def types_of_ports(flows):
    return {flow["destination_port"]: flow["destination_port"] for flow in flows}
