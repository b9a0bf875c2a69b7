"""Lab 7: takes slow links out, but never the last way, and has CAPS in force while the fabric is loaded."""

import sys

from capstan_client.client import Capstan
from capstan_client.controller import ControllerClient
from capstan_client.errors import ControllerError

BUSY, QUIET, SAMPLES = 0.7, 0.3, 4


def connected(up):
    """Return whether some spine has a link that is up to every leaf; up: of each link's name, such as l1-s2."""
    leaves = {name.split("-")[0] for name in up}
    spines = {name.split("-")[1] for name in up}
    return any(all(up.get(f"{leaf}-{spine}") for leaf in leaves) for spine in spines)


class Application:
    def __init__(self, controller):
        self.controller = controller
        self.wanted, self.samples = None, 0  # a scheme, and how many samples in a row ask for it

    def on_event(self, event):
        if event["topic"] == "hello" and not event["resumed"]:
            self.wanted, self.samples = None, 0
        if event["topic"] != "links":
            return
        links = [link for link in event["links"] if link["kind"] == "fabric" and link["rate_kbps"]]
        try:
            self.take_out_slow_links(links)
            self.choose_scheme([link for link in links if link["up"]])
        except ControllerError as error:  # the next sample comes in 0.25 s
            print(error, file=sys.stderr)

    def take_out_slow_links(self, links):
        down = {fault["target"] for fault in self.controller.faults() if fault["kind"] == "link-down"}
        up = {link["name"]: link["up"] and link["name"] not in down for link in links}
        for link in links:
            name = link["name"]
            if up[name] and link["rate_kbps"] < 1000 and connected({**up, name: False}):
                self.controller.begin_fault("link-down", name)
                up[name] = False

    def choose_scheme(self, links):
        shares = [
            max(way["share"] or 0 for way in (link["ab"], link["ba"]) if way) for link in links if link["ab"]
        ]
        load = sum(shares) / max(1, len(shares))
        wanted = "caps" if load >= BUSY else "ecmp" if load <= QUIET else None
        self.samples = self.samples + 1 if wanted == self.wanted else 1
        self.wanted = wanted
        if wanted is None or self.samples < SAMPLES:
            return
        now = self.controller.scheme()
        if now["base"] != wanted:
            self.controller.set_scheme(wanted, now["packet_time_us"] / 1e6)


def make_application(controller):
    return Application(controller)


if __name__ == "__main__":
    application = make_application(ControllerClient(sys.argv[1]))
    for event in Capstan(sys.argv[1]).events("links"):
        application.on_event(event)
