"""No garbage is looked for while modules are imported, and later not in them."""

from __future__ import annotations

import gc

import pytest

from plain.imports import imports_to_keep


def test_no_garbage_is_looked_for_within_nor_later_in_what_is_there() -> None:
    before = gc.get_freeze_count()
    with imports_to_keep():
        assert not gc.isenabled()
        module = ["imported"]
        assert any(module is tracked for tracked in gc.get_objects())
    assert gc.isenabled()
    assert gc.get_freeze_count() > before
    assert not any(module is tracked for tracked in gc.get_objects())


def test_after_an_import_that_fails_garbage_is_looked_for_again() -> None:
    with pytest.raises(ModuleNotFoundError), imports_to_keep():
        import no_module_of_this_name  # noqa: F401
    assert gc.isenabled()
