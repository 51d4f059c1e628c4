"""What a cluster starts while it is driven is watched from when it is there."""

from __future__ import annotations

import threading

import pytest

from dyno.lab.follower import Follower
from dyno.model.base import RunError
from tests.making import until


def test_one_that_is_started_again_or_takes_over_is_watched_once_by_its_subject() -> None:
    there = {"n1": 10, "n2": 20}
    watched: list[tuple[int, str]] = []
    follower = Follower(lambda: dict(there), lambda pid, subject: watched.append((pid, subject)))
    follower.begin(there)
    there["n1"] = 11
    until(lambda: len(watched) == 1)
    del there["n2"]
    there["haproxy"] = 30
    until(lambda: len(watched) == 2)
    follower.end()
    there["n1"] = 12
    assert watched == [(11, "n1"), (30, "haproxy")]


def test_a_process_that_could_not_be_watched_is_told_of_at_the_end() -> None:
    looked = threading.Event()

    def watch(_pid: int, _subject: str) -> None:
        looked.set()
        raise RunError("it cannot be watched")

    follower = Follower(lambda: {"n1": 11}, watch)
    follower.begin({"n1": 10})
    assert looked.wait(10)
    with pytest.raises(RunError, match="it cannot be watched"):
        follower.end()
