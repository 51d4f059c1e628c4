"""Lines that commands begin with."""

from __future__ import annotations

from dyno.cli import _some


def test_of_what_an_ended_session_left_the_first_few_are_told_in_a_line() -> None:
    """Sixty nodes' folders and groups were one line of six thousand characters."""
    told = _some([f"removed /somewhere/{'long/' * 60}{number}" for number in range(40)])
    assert told.count(";") == 3
    assert told.endswith("...; and 37 more")
    assert len(told) < 350
    assert _some(["ended process 7"]) == "ended process 7"
