"""What the figures of TPC-C are said to be."""

from __future__ import annotations

import pytest

from dyno.workloads.tpcc import TpccOptions, TpccWorkload


@pytest.mark.parametrize(
    ("keying", "thinking", "told"),
    [
        (False, False, "ran without the specification's keying and thinking times, unaudited"),
        (True, False, "ran with the specification's keying times and without its thinking times, unaudited"),
        (False, True, "ran with the specification's thinking times and without its keying times, unaudited"),
        (True, True, "ran with the specification's keying and thinking times, unaudited"),
    ],
)
def test_the_note_says_which_of_the_waits_were_kept(keying: bool, thinking: bool, told: str) -> None:
    given = TpccOptions(warehouses=1, operations=1, keying_time=keying, think_time=thinking)
    (note,) = TpccWorkload(given).notes()
    assert told in note
    assert "no tpmC" in note
