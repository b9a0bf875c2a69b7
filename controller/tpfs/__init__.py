"""TPFS: types of flows by where they come from and go to, and demotion thresholds for each (docs/tpfs.md)."""
