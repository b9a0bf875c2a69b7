"""Forward error correction between hosts: coding units, codes, redundancy, blocking probability (docs/coding.md).

Sending flow: `unit.UnitEncoder`, fed with a blocking probability from `blocking.estimator` and a unit size from
`unit_size.optimal_k`. Receiving flow: `decoder.UnitDecoder`. Nothing here has a clock or a socket: times are
arguments in seconds.
"""
