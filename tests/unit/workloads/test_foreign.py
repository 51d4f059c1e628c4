"""What is made of a tool of others that failed, and of one that did less than was asked."""

from __future__ import annotations

from pathlib import Path

import pytest

from dyno.model.base import InvalidRun, RunError
from dyno.workloads.foreign import Tool, refuse_slow
from tests.unit.workloads.making import Saying


@pytest.mark.parametrize(
    ("lines", "output", "errors", "told"),
    [
        (1, "starting\n", "  FATAL: no server\nFATAL: error 2003\n", "FATAL: no server"),
        (2, "FATAL: no server\nFATAL: error 2003\nFATAL: again\n", "", "FATAL: no server / FATAL: error 2003"),
        (1, "FATAL: said later\n", "FATAL: said first\n", "FATAL: said first"),
        (1, "starting\nunknown option\n\n", "", "unknown option"),
        (1, "", "", "it said nothing"),
    ],
)
def test_a_failure_is_told_in_the_tools_own_words(
    lines: int, output: str, errors: str, told: str, tmp_path: Path
) -> None:
    tool = Tool("tool", "^FATAL", lines)
    with pytest.raises(RunError, match=f"^tool run ended with status 3: {told}$"):
        tool.execute(Saying(tmp_path, output, status=3, errors=errors), "run", ["tool", "--go"])


def test_what_it_wrote_is_given_and_kept(tmp_path: Path) -> None:
    assert Tool("Tool", "x").execute(Saying(tmp_path, "60 done\n"), "load", ["tool"]) == "60 done\n"
    assert (tmp_path / "tool-load.stdout").read_text() == "60 done\n"


def test_operations_may_fail_up_to_the_bound() -> None:
    tool = Tool("tool", "x")
    tool.refuse_failed(95, 5, 0.05, "timeout: 5")
    with pytest.raises(InvalidRun, match=r"6 of 100 operations failed \(timeout: 6\); allowed is 5.000%"):
        tool.refuse_failed(94, 6, 0.05, "timeout: 6")
    with pytest.raises(InvalidRun, match="tool ended without a single successful operation: timeout: 6"):
        tool.refuse_failed(0, 6, 1.0, "timeout: 6")


def test_a_rate_is_reached_from_99_per_cent_on() -> None:
    refuse_slow(0.1, None)
    refuse_slow(99.0, 100)
    with pytest.raises(InvalidRun, match=r"the rate was not reached: 98.9 of 100"):
        refuse_slow(98.9, 100)
