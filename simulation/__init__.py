"""Simulated runs: settings, traces of flows, and what came of them; `capstan_native.Simulation` does the work."""
