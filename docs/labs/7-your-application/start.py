"""Lab 7: an application of your own. Copy this file, and fill in what is missing.

./capstan lab-check 7 FILE plays a controller to it; .venv/bin/python FILE http://127.0.0.1:PORT runs it on a lab.
"""

import sys

from capstan_client.client import Capstan
from capstan_client.controller import ControllerClient


class Application:
    def __init__(self, controller):
        self.controller = controller  # has what ControllerClient has: begin_fault, faults, scheme, set_scheme

    def on_event(self, event):
        """Act on an event of the stream: "topic" says which; its other fields are in docs/api.md, "Live events"."""
        if event["topic"] != "links":
            return
        for link in event["links"]:
            if link["kind"] == "fabric" and link["ab"] and link["ab"]["bits_per_s"] < 1e6:
                self.controller.begin_fault("link-down", link["name"])


def make_application(controller):
    return Application(controller)


if __name__ == "__main__":
    application = make_application(ControllerClient(sys.argv[1]))
    for event in Capstan(sys.argv[1]).events("links"):
        application.on_event(event)
