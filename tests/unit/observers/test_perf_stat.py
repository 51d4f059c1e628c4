"""What `perf stat` tells of processes, where the machine has hardware counters and where it has none."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import ValidationError

from dyno.observers.perf_stat import Count, PerfStatOptions, notes, parse, rates

TOOLS = Path(__file__).parents[2] / "golden" / "tools"


@pytest.fixture(scope="module")
def hardware() -> list[Count]:
    """In the form of perf-stat(1), of a machine with fewer counters than events and none for the instruction TLB."""
    return list(parse((TOOLS / "perf-6.1-stat-hardware.txt").read_text()))


def told(counts: list[Count]) -> dict[tuple[float, str], float]:
    return {(round(at_s), metric): value for at_s, metric, value in rates(counts)}


def test_counts_are_told_for_each_second(hardware: list[Count]) -> None:
    found = told(hardware)
    assert found[1, "cycles"] == pytest.approx(3198640119 / 1.000106203)
    assert found[2, "instructions"] == pytest.approx(2078916277 / (2.000318514 - 1.000106203))
    assert found[1, "task-clock"] == pytest.approx(1.0, rel=1e-3), "CPU seconds a second"
    assert found[2, "cpu-migrations"] == 0


def test_what_was_counted_for_a_part_of_the_time_says_so(hardware: list[Count]) -> None:
    found = told(hardware)
    assert found[1, "cycles.running"] == 62.5
    assert (2, "cycles.running") not in found
    assert (1, "task-clock.running") not in found
    (scaled,) = (note for note in notes(hardware) if "scaled" in note)
    assert "Counts of cycles, instructions, branches" in scaled
    assert "task-clock" not in scaled


def test_what_is_not_counted_is_absent_and_not_0(hardware: list[Count]) -> None:
    found = told(hardware)
    assert not [metric for _, metric in found if metric.startswith("iTLB")]
    # No counter was free for it in the first second, in which the process ran.
    assert (1, "dTLB-load-misses") not in found
    assert found[2, "dTLB-load-misses"] > 0
    assert "This machine does not count iTLB-load-misses: they are not known." in list(notes(hardware))


SOFTWARE = """\
     1.000;<not supported>;;cycles;0;100.00;;
     1.000;<not supported>;;instructions;0;100.00;;
     1.000;250.00;msec;task-clock;250000000;100.00;0.250;CPUs utilized
     1.000;12;;context-switches;250000000;100.00;48.000;/sec
     2.000;<not supported>;;cycles;0;100.00;;
     2.000;<not supported>;;instructions;0;100.00;;
     2.000;<not counted>;msec;task-clock;0;100.00;;
     2.000;<not counted>;;context-switches;0;100.00;;
"""


def test_a_machine_without_hardware_counters_says_once_what_is_not_known() -> None:
    counts = list(parse(SOFTWARE))
    assert told(counts) == {
        (1, "task-clock"): 0.25, (1, "context-switches"): 12,
        # No CPU ran it in the second second, so there was nothing to count.
        (2, "task-clock"): 0, (2, "context-switches"): 0,
    }  # fmt: skip
    (note,) = notes(counts)
    assert note.startswith(
        "This machine has no hardware counters that perf can use: cycles, instructions are not known"
    )


def test_without_rights_what_happens_in_the_kernel_is_not_known() -> None:
    """Asked for user time alone, as perf asks without rights, switches were counted as 0."""
    counts = list(parse("1.0;0;;context-switches:u;1000;100.00;;\n1.0;77;;page-faults:u;1000;100.00;;\n"))
    assert told(counts) == {(1, "page-faults"): 77}
    assert list(notes(counts)) == [
        "Without rights perf counts user time alone: context-switches are not known.",
        "perf counted user time alone: of the kernel's work the counts say nothing.",
    ]


def test_other_lines_are_not_taken_for_counts() -> None:
    text = "print interval < 100ms. The overhead percentage could be high\n# started on Sun\n\n1.0;x;;cycles;1;100;;\n"
    assert list(parse(text)) == []


@pytest.mark.parametrize(
    "options", [{"hz": 20}, {"events": []}, {"events": ["cycles,instructions"]}, {"events": ["-a"]}]
)
def test_options_that_cannot_be_are_refused(options: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        PerfStatOptions.model_validate(options)
