"""Lines that commands begin with."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from dyno.cli import _no_response, _some


def test_of_what_an_ended_session_left_the_first_few_are_told_in_a_line() -> None:
    """Sixty nodes' folders and groups were one line of six thousand characters."""
    told = _some([f"removed /somewhere/{'long/' * 60}{number}" for number in range(40)])
    assert told.count(";") == 3
    assert told.endswith("...; and 37 more")
    assert len(told) < 350
    assert _some(["ended process 7"]) == "ended process 7"


def test_of_a_resource_that_is_asked_for_as_a_response_it_is_told_where_it_stands() -> None:
    nowhere: Any = SimpleNamespace()
    said = _no_response(nowhere, "data.at_rest", ["throughput"], {"data.at_rest"})
    assert said.startswith("--response data.at_rest: is a resource, and no response")
    assert "in the table of what an operation costs" in said
    assert "unknown response" in _no_response(nowhere, "data.at_rset", ["throughput"], {"data.at_rest"})
