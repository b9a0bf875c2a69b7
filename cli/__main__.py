"""``python -m cli``: what ``./capstan`` runs once everything is set up."""

import sys

try:
    from cli.app import main
except ImportError as error:  # started by a Python that is not the one of .venv
    sys.exit(f"capstan: {error}; start it by ./capstan, which sets up what it needs")

if __name__ == "__main__":
    main()
