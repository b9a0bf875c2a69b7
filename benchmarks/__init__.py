"""Performance figures, as ratios within one run. Each module has ``run() -> Outcome`` data (see `figures`)."""
