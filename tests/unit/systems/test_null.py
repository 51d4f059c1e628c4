"""The null system, and the stall that can be planted in it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from dyno.hosts import LocalHost, UndoJournal
from dyno.systems.base import Place
from dyno.systems.null import NullOptions, NullSystem


def made(tmp_path: Path, journal: UndoJournal, **options: Any) -> NullSystem:
    place = Place(host=LocalHost(journal), data=tmp_path / "data", logs=tmp_path, core="/nonexistent")
    return NullSystem(NullOptions.model_validate(options), place)


def test_a_stall_is_asked_of_the_driver_and_must_be_effective(tmp_path: Path) -> None:
    with UndoJournal() as journal:
        system = made(tmp_path, journal, stall_at="1500 ms", stall_for="1 s")
        # As the schema of jobs has it; a driver of others reports no stall, and the run is invalid.
        assert system.ready(1).settings == system.asked() == {"stall": {"at_s": 1.5, "for_s": 1.0}}


def test_without_a_stall_nothing_is_asked(tmp_path: Path) -> None:
    with UndoJournal() as journal:
        assert made(tmp_path, journal).asked() == made(tmp_path, journal).ready(1).settings == {}


@pytest.mark.parametrize("options", [{"stall_at": "1 s"}, {"stall_for": "1 s"}, {"stall_at": "1 s", "stall_for": 0}])
def test_half_a_stall_and_one_of_no_time_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        NullOptions.model_validate(options)
