"""Forward error correction between hosts, off the packets' way: codes, redundancy, unit size (docs/coding.md).

What agents decide of it, packet by packet, is `native/agent/src/coding/` and `native/agent/src/receiving/`.
"""
