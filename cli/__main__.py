"""``python -m cli``: what ``./capstan`` runs once everything is set up."""

from cli.app import main

if __name__ == "__main__":
    main()
