"""Strict-priority queues on switch ports, and the thresholds that move a flow down through them."""
