"""Leaf-spine and fat-tree fabrics as Mininet topologies, and the lab that runs them."""

import contextlib
import importlib
import logging

with contextlib.suppress(ImportError):  # `doctor` and `simulate` run without Mininet
    importlib.import_module("mininet.log")
    # It makes each logger that is created later one of its own class: deaf to INFO, with a handler of its own.
    logging.setLoggerClass(logging.Logger)
