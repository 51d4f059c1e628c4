"""What every test has: an undo journal of its own, so that no test sees or cleans another's changes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from dyno.hosts import LocalHost, UndoJournal


@pytest.fixture(autouse=True)
def state(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The state folder that dyno finds in this test, and in the processes that the test starts."""
    folder = tmp_path_factory.mktemp("state")
    monkeypatch.setenv("DYNO_STATE", str(folder))
    return folder


@pytest.fixture
def journal(state: Path) -> Iterator[UndoJournal]:
    """A journal that is closed after the test, with all that the test left in it."""
    with UndoJournal() as opened:
        yield opened


@pytest.fixture
def host(journal: UndoJournal) -> LocalHost:
    """The machine under test, with that journal."""
    return LocalHost(journal)


@pytest.fixture
def workspace(host: LocalHost, tmp_path: Path) -> Path:
    """A folder in which the host may remove what it likes."""
    return host.temporary_folder(tmp_path / "workspace")
