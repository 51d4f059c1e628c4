"""Looks that fail while a store is driven."""

from __future__ import annotations

import threading
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

    struck = False

    def __init__(self, failing: set[int]) -> None:
        self.failing, self.looks, self.connections = failing, 0, 0

    def connects(self, _limit: float) -> Source | None:
        self.connections += 1
        return self

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
    observer.looks_at(source.connects, lambda: source.struck)
    observer.start(5.0)
    until(lambda: source.looks >= times)
    return observer.stop(5.0)


def test_a_look_that_is_lost_where_a_node_goes_is_a_gap_and_no_failure(tmp_path: Path) -> None:
    source = Source({6})
    found = looked(source, tmp_path)
    assert found.filter(found["metric"] == LOOKS).height == source.looks - 3 - 1
    assert source.connections == 2, "another node is asked, or the one anew"


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


class Struck(Source):
    """One that ends at its sixth look, is away for five tries to connect, and counts from 0 then."""

    ends_at = 6
    away = 5
    since = 0

    def __init__(self) -> None:
        super().__init__({self.ends_at})

    def connects(self, _limit: float) -> Source | None:
        if self.looks < self.ends_at:
            return super().connects(_limit)
        if self.away > 0:
            self.away -= 1
            return None
        self.since = self.looks
        return super().connects(_limit)

    def read(self) -> Counters:
        super().read()
        return Counters({"reads": float((self.looks - self.since) ** 2)}, {"heap": float(self.looks)})

    def ended(self) -> bool:
        return True


def test_a_server_that_comes_back_is_observed_on_and_what_it_counts_anew_is_no_fall(tmp_path: Path) -> None:
    """It had been observed until its death, and nobody was told."""
    source = Struck()
    found = looked(source, tmp_path, times=12)
    assert source.connections == 2
    assert source.away == 0
    looks, reads = (found.filter(found["metric"] == metric) for metric in (LOOKS, "reads"))
    assert looks.height == source.looks - 3 - 1
    assert reads.height == looks.height - 2, "of the first look and of the first after it came back there is no rate"
    assert reads["value"].min() >= 0 < reads["value"][-2]
    assert found.filter(found["metric"] == "now/heap").height == looks.height - 1


def test_a_server_that_does_not_come_back_is_told_of_by_others(tmp_path: Path) -> None:
    class Gone(Struck):
        away = 10**9

    source = Gone()
    found = looked(source, tmp_path, times=6)
    assert found.filter(found["metric"] == LOOKS).height == 2


def test_a_store_that_is_silent_while_it_is_struck_was_observed_all_the_same(tmp_path: Path) -> None:
    """A node that is frozen has the others wait for it."""
    source = Source(set(range(6, 12)))
    source.struck = True
    found = looked(source, tmp_path, times=12)
    assert found.filter(found["metric"] == LOOKS).height == source.looks - 3 - 6


def test_a_server_that_lets_nobody_connect_anew_in_time_was_not_observed(tmp_path: Path) -> None:
    """While it connects there is nobody to say whether the server has ended."""
    over = threading.Event()

    class Closed(Source):
        def connects(self, _limit: float) -> Source | None:
            if self.looks >= 5:
                self.looks += 1
                over.wait(30)
            return super().connects(_limit)

    source = Closed({5})
    host: Any = SimpleNamespace(name="here")
    observer = DatabaseObserver(DatabaseOptions(hz=10), host, "", tmp_path, tmp_path)
    observer.looks_at(source.connects, lambda: False)
    observer.start(5.0)
    until(lambda: source.looks >= 6)
    try:
        with pytest.raises(RunError, match=r"did not answer within 0\.1 s"):
            observer.stop(0.1)
    finally:
        over.set()
