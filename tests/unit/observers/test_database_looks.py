"""Looks that fail while a store is driven."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from dyno.model.base import RunError
from dyno.model.counters import LOOKS, Counters
from dyno.observers.database import DatabaseObserver, DatabaseOptions
from tests.making import until


class Source:
    """Answers, but for those looks that are to fail; the first four are before the drive."""

    def __init__(self, failing: set[int]) -> None:
        self.failing, self.looks = failing, 0

    def read(self) -> Counters:
        self.looks += 1
        if self.looks in self.failing:
            raise RunError("Job killed: a node has gone")
        return Counters({"reads": float(self.looks)})

    def ended(self) -> bool:
        return False

    def close(self) -> None:
        pass


def looked(source: Source, folder: Path, times: int = 8) -> Any:
    host: Any = SimpleNamespace(name="here")
    observer = DatabaseObserver(DatabaseOptions(hz=10), host, "", folder, folder)
    observer.looks_at(lambda _limit: source)
    observer.start(5.0)
    until(lambda: source.looks >= times)
    return observer.stop(5.0)


def test_a_look_that_is_lost_where_a_node_goes_is_a_gap_and_no_failure(tmp_path: Path) -> None:
    source = Source({6})
    found = looked(source, tmp_path)
    assert found.filter(found["metric"] == LOOKS).height == source.looks - 3 - 1


def test_a_look_that_goes_wrong_in_a_way_nobody_thought_of_is_no_end_of_looking_unsaid(tmp_path: Path) -> None:
    """NULL in place of a figure had ended it, and the run was taken for one that was observed."""

    class Wrong(Source):
        def read(self) -> Counters:
            found = super().read()
            return Counters({"reads": float(None)}) if self.looks == 6 else found  # type: ignore[arg-type]

    with pytest.raises(RunError, match="could not be asked for its counters: TypeError"):
        looked(Wrong(set()), tmp_path, times=6)


@pytest.mark.parametrize("failing", [{5, 6, 7}, set(range(8, 99))])
def test_a_server_that_does_not_answer_again_and_again_or_at_the_end_was_not_observed(
    tmp_path: Path, failing: set[int]
) -> None:
    with pytest.raises(RunError, match="could not be asked for its counters: Job killed"):
        looked(Source(failing), tmp_path, times=min(8, max(failing)))
