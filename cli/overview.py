"""What ``capstan --help`` lists: commands by what they are for, a line each, without reading their modules."""

from __future__ import annotations

from typing import Final

SECTIONS: Final[dict[str, dict[str, str]]] = {
    "First": {
        "demo": "compare ECMP, RPS and CAPS on real switches: three minutes",
        "page": "serve the page: a tour, and simulations begun on it; no root",
        "doctor": "say what this machine has and lacks, and what to do",
        "clean": "end what an earlier lab left behind, and only that",
    },
    "Experiments": {
        "run": "run an experiment on real switches",
        "simulate": "run it packet by packet in simulation; no root",
        "agree": "run it both ways, and compare them measure by measure",
        "check": "report every problem of a spec",
        "report": "write a page about a result",
        "schemes": "list the schemes and their papers",
        "model": "evaluate a paper's equations: a table and a figure",
        "evidence": "simulate every claim of the papers",
    },
    "A lab that stays up": {
        "lab": "bring a fabric up with one scheme, and hold it",
        "exec": "run a program on a host of the lab",
        "scheme": "switch the lab to another scheme",
        "link": "take a link of the lab down, slow it, put it back",
        "capton": "watch CAPTON's grants in the lab",
        "show": "repeat an experiment on one fabric until stopped",
    },
    "A queue of experiments, and a fabric of your own": {
        "serve": "run the controller, with a queue of experiments",
        "submit": "put an experiment into a controller's queue",
        "work": "run what is queued at a controller elsewhere",
        "agent": "run a host agent alone",
    },
    "Class, tests and benchmarks": {
        "lab-check": "check your answer to a classroom lab",
        "test": "check style and types, and run the tests",
        "bench": "measure this machine",
    },
}
"""What each command does, by section; docs/commands.md says more."""
