"""Leaf-spine and fat-tree fabrics as Mininet topologies, and the lab that runs them."""

import contextlib
import importlib
import logging
import sys
import warnings
from collections.abc import Iterator


@contextlib.contextmanager
def _without_setuptools() -> Iterator[None]:
    """Have `import distutils` find the standard library's: setuptools puts its own, and all of itself, in its place."""
    finder = getattr(sys.modules.get("_distutils_hack"), "DISTUTILS_FINDER", None)
    if finder not in sys.meta_path:
        yield
        return
    place = sys.meta_path.index(finder)
    del sys.meta_path[place]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            yield
    finally:
        sys.meta_path.insert(place, finder)


with contextlib.suppress(ImportError):  # `doctor` and `simulate` run without Mininet
    importlib.import_module("mininet.log")
    # It makes each logger that is created later one of its own class: deaf to INFO, with a handler of its own.
    logging.setLoggerClass(logging.Logger)
    # Mininet's nodes compare versions by it. From Python 3.12 on only setuptools has it.
    with _without_setuptools():
        importlib.import_module("distutils.version")
