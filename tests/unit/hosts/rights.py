"""Tests that need root's rights, and the same without them."""

from __future__ import annotations

import contextlib
import fcntl
import os
import tempfile
from collections.abc import Iterator

import pytest

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="changing the machine needs root")

_NOBODY = 65534


@contextlib.contextmanager
def without_root() -> Iterator[None]:
    """Within, this process has no rights of root's."""
    before = os.geteuid()
    if before == 0:
        os.seteuid(_NOBODY)
    try:
        yield
    finally:
        os.seteuid(before)


@contextlib.contextmanager
def alone_on_the_machine() -> Iterator[None]:
    """The suite may run twice at the same time, but the machine has each of its settings once."""
    folder = os.open(tempfile.gettempdir(), os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        yield
    finally:
        os.close(folder)
