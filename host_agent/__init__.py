"""The end host's part: wraps the packets of its host, chooses their entropy, codes them, and puts them in order.

`core.AgentCore` decides, on plain data; `shell` moves bytes between a TUN device and the underlay.
"""
