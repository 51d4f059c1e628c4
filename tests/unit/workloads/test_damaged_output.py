"""Output of tools that was cut short, or in which a figure is none: always one line that says where, never a traceback.

A disk that fills up cuts what a tool was writing; a tool that divides by a time of zero writes NaN or +Inf.
"""

from __future__ import annotations

import math
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dyno.model.base import InvalidRun, RunError
from dyno.workloads import go_ycsb, sysbench, ycsb_java
from dyno.workloads.base import Measured
from tests.unit.workloads import test_go_ycsb, test_sysbench, test_ycsb_java
from tests.unit.workloads.making import MARIADB, NULL, Saying

stored = test_go_ycsb.stored
program = test_sysbench.program
home = test_ycsb_java.home

# What each wrote on a real system, and the workload that was asked for.
GIVEN: dict[str, tuple[Any, Any, str]] = {
    "go-ycsb": (test_go_ycsb.make(), MARIADB, test_go_ycsb.MIX_F),
    "ycsb-java": (test_ycsb_java.make(target=1480), NULL, test_ycsb_java.TARGET),
    "sysbench": (test_sysbench.make(events=60, max_errors="5%"), MARIADB, test_sysbench.EVENTS),
    "sysbench with a rate": (
        test_sysbench.make(test="oltp_point_select", duration="2 s", rate=40, max_errors="100%"),
        MARIADB,
        test_sysbench.RATE,
    ),
}

PIECES = st.one_of(
    st.sampled_from(["", "NaN", "+Inf", "-1", "1,5", "1..5", "1e400", "1e9", "0", "9" * 40, "٣", ", ", ": ", "\n"]),
    st.text(max_size=4),
)


@st.composite
def damaged(draw: st.DrawFn, text: str) -> str:
    """Up to three pieces of it replaced, and perhaps cut off somewhere."""
    for _ in range(draw(st.integers(0, 3))):
        start = draw(st.integers(0, len(text)))
        end = min(start + draw(st.integers(0, 60)), len(text))
        text = text[:start] + draw(PIECES) + text[end:]
    return text[: draw(st.integers(0, len(text)))] if draw(st.booleans()) else text


def drive(name: str, text: str) -> Measured:
    workload, endpoint, _ = GIVEN[name]
    with tempfile.TemporaryDirectory() as folder:
        measured: Measured = workload.drive(Saying(Path(folder), text), endpoint, seed=1)
        return measured


@pytest.mark.parametrize("name", GIVEN)
@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_damaged_output_is_refused_in_words_or_read_with_finite_figures(name: str, data: st.DataObject) -> None:
    text = data.draw(damaged(GIVEN[name][2]))
    try:
        measured = drive(name, text)
    except (RunError, InvalidRun) as refused:
        assert str(refused)  # noqa: PT017 - whether it is refused depends on the damage
    else:
        assert all(math.isfinite(value) and value >= 0 for value in measured.responses.values())


@pytest.mark.parametrize("name", GIVEN)
def test_output_that_is_whole_is_read(name: str) -> None:
    assert drive(name, GIVEN[name][2]).responses["throughput"] > 0


@pytest.mark.parametrize(
    ("name", "whole", "broken"),
    [
        ("go-ycsb", "Count: 4507,", "Count: abc,"),
        ("go-ycsb", "Avg(us): 1350", "Avg(us): +Inf"),
        ("go-ycsb", "Avg(us): 1350", "Avg(us): NaN"),
        ("go-ycsb", "99.9th(us): 27279, 99.99th(us): 29791", "99.9th(us) 27279"),
        ("ycsb-java", "[READ], AverageLatency(us), 5.636182902584493", "[READ], AverageLatency(us), 5,6"),
        ("ycsb-java", "[READ], AverageLatency(us), 5.636182902584493", "[READ], AverageLatency(us), NaN"),
        ("ycsb-java", "[READ], MaxLatency(us), 7963", "[READ], MaxLate"),
        ("ycsb-java", "Return=OK, 1509", "Return=OK, 1509.5"),
        ("sysbench", "(53.77 per sec.)", "(inf per sec.)"),
        ("sysbench", "1.1067s", "1..1067s"),
        ("sysbench", "     3.748 |*************                            1", "     3.7x8 |*************      1"),
        ("sysbench", "tps: 58.82", "tps: -nan"),
        ("sysbench", "err/s: 1.00 reconn/s: 0.00", "err/"),
    ],
)
def test_the_damaged_line_is_named(name: str, whole: str, broken: str) -> None:
    text = GIVEN[name][2]
    assert whole in text
    text = text.replace(whole, broken)
    (line,) = [line for line in text.splitlines() if broken in line]
    with pytest.raises(RunError) as refused:
        drive(name, text)
    assert line.strip() in str(refused.value)


def test_a_go_ycsb_that_lost_the_line_of_its_total_is_a_run_error() -> None:
    text = test_go_ycsb.MIX_F
    before, total, after = text.rpartition("TOTAL ")
    with pytest.raises(RunError, match="no line of TOTAL"):
        drive("go-ycsb", before + after.partition("\n")[2])
    assert total


def test_gos_broken_durations_are_a_run_error() -> None:
    for text in ("1..5s", "1.5.2s", "", "+Infs", "9" * 40 + "h"):
        with pytest.raises(RunError):
            go_ycsb._go_duration(text)


def test_a_missing_figure_of_ycsb_is_a_run_error() -> None:
    with pytest.raises(RunError, match=r"no line of \[Intended-READ\], 99.9PercentileLatency\(us\)"):
        drive("ycsb-java", test_ycsb_java.TARGET.replace("[Intended-READ], 99.9PercentileLatency(us), 496895\n", ""))
    assert ycsb_java.parse(test_ycsb_java.TARGET).done == 3000


def test_reports_of_sysbench_that_go_back_in_time_are_a_run_error() -> None:
    first, second = (line for line in test_sysbench.RATE.splitlines() if "] thds:" in line)
    with pytest.raises(RunError, match="go back in time"):
        sysbench.parse(test_sysbench.RATE.replace(second, first))
