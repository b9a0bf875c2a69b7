"""``python -m cli``: what ``./capstan`` runs once everything is set up."""

import atexit
import gc
import sys

# Collections while modules load, and the last one, look at what stays: 0.15 of 0.5 s for a command that runs a lab.
gc.set_threshold(50_000)
atexit.register(gc.freeze)

try:
    from cli.app import main
except ImportError as error:  # started by a Python that is not the one of .venv
    sys.exit(f"capstan: {error}; start it by ./capstan, which sets up what it needs")

if __name__ == "__main__":
    main()
