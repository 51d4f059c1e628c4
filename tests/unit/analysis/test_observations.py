"""What was published of a machine beside what was observed here: means, ratios, and why there are none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from small_studies import Runs, study
from test_hot_spots import stacks
from test_per_op import usage

import dyno.study
from dyno.analysis import analyse
from dyno.lab import Rooms
from dyno.model.findings import ObservedResult
from dyno.model.published import Published
from dyno.model.run import Outcome
from dyno.model.study import KindSpec, Study
from dyno.model.usage import Usage

HARDWARE = (
    "This machine has no hardware counters that perf can use: cycles, instructions are not known; what the kernel "
    "counts (CPU time, switches, migrations, faults) is."
)
EXT4 = Path(__file__).parents[3] / "studies" / "published" / "ext4_journal_hot_spots.csv"


def beside(
    figures: Sequence[Mapping[str, Any]],
    uses: Mapping[int, Sequence[Usage]],
    of: Study | None = None,
    *,
    where: Mapping[str, Sequence[str]] | None = None,
    observe: Sequence[str] = ("machine", "perf-stat"),
    notes: tuple[str, ...] = (),
    **more: Any,
) -> ObservedResult:
    """A published table beside runs that used just that; two deployments with two thread counts if not said."""
    plan = of or study({"deployment": ["native", "boxed"], "threads": [1, 8]}, compare="deployment")
    given = [{"column": "x", "unit": "1", **each} for each in figures]
    published = Published.model_validate({"observed": [{"file": "f.csv", "where": where or {}, "figures": given}]})
    seen = tuple(KindSpec(kind=kind) for kind in observe)
    plan = plan.model_copy(update={"published": published, "observe": seen})
    runs, used = Runs(plan), {}
    for block in range(max(map(len, uses.values()))):
        for cell, of_cell in uses.items():
            runs.add(cell, block, 100.0, notes=notes, disk="vda")
            used[len(runs)] = of_cell[block]
    (found,) = analyse(plan, runs, ended=None, used=used, **more).observed
    return found


def counts(instructions: Sequence[float], cycles: Sequence[float]) -> list[Usage]:
    return [usage({"server.instructions": i, "server.cycles": c}) for i, c in zip(instructions, cycles, strict=True)]


IPC = {"of": "server.instructions", "over": "server.cycles"}
NATIVE, BOXED = {"deployment": "native"}, {"deployment": "boxed"}


def test_a_ratio_of_counters_stands_beside_the_published_one_and_levels_beside_each_other() -> None:
    found = beside(
        [{"quantity": IPC, "levels": NATIVE, "value": 0.8}, {"quantity": IPC, "levels": BOXED, "value": 0.4}],
        {1: counts([10, 11, 9], [10, 10, 10]), 3: counts([20, 22, 18], [10, 10, 10])},
        where={"threads": ["8"]},
    )
    native, boxed = found.figures
    assert (native.quantity, native.published, native.relative, native.relative_to) == (
        "server.instructions/server.cycles", 0.8, None, {},
    )  # fmt: skip
    (cell,) = native.cells
    assert (cell.cell, cell.n, cell.mean) == (1, 3, pytest.approx(1.0))
    assert cell.of_published == pytest.approx(1.25)
    assert cell.ci is not None
    assert cell.of_published_ci == pytest.approx((cell.ci[0] / 0.8, cell.ci[1] / 0.8))
    # Published half of native, measured twice of it: the shape is the reverse, whatever the machine.
    assert (boxed.relative, boxed.relative_to) == (pytest.approx(0.5), {"deployment": "native"})
    assert boxed.cells[0].relative == pytest.approx(2.0)
    assert boxed.cells[0].relative_ci is not None
    assert found.sentence == "The published figures stand beside the 2 cells with threads=8."


def test_a_figure_that_does_not_tell_all_factors_stands_for_each_cell_that_has_its_levels() -> None:
    found = beside(
        [{"quantity": IPC, "levels": NATIVE, "value": 1.0}], {0: counts([1, 1], [1, 1]), 1: counts([2, 2], [1, 1])}
    )
    assert [(cell.levels["threads"], cell.mean) for cell in found.figures[0].cells] == [("1", 1.0), ("8", 2.0)]
    assert found.sentence.endswith(
        "They do not tell threads: each stands for all cells that have its levels, whatever they have of those."
    )


def test_rates_means_and_shares_are_told_in_the_unit_of_the_publication() -> None:
    figures = [
        {"quantity": {"of": "disk.written", "per": "s"}, "levels": {}, "value": 2.0, "unit": "MB/s"},
        {"quantity": {"of": "disk.w_await"}, "levels": {}, "value": 500.0, "unit": "us"},
        {"quantity": {"of": "server.cpu"}, "levels": {}, "value": 10.0, "unit": "us"},
        {"quantity": {"of": "throughput"}, "levels": {}, "value": 50.0, "unit": "ops/s"},
    ]
    made = usage({"disk.written": 1e4, "server.cpu": 2e-5}, **{"disk.w_await": 0.25})
    found = beside(figures, {0: [made, made]}, study({"threads": [1, 4]}))
    assert [figure.cells[0].mean for figure in found.figures] == pytest.approx([1.0, 250.0, 20.0, 100.0])
    assert [figure.cells[0].of_published for figure in found.figures] == pytest.approx([0.5, 0.5, 2.0, 2.0])
    assert [figure.unit for figure in found.figures] == ["MB/s", "us", "us", "ops/s"]


def test_a_published_zero_has_no_ratio() -> None:
    found = beside([{"quantity": IPC, "levels": NATIVE, "value": 0.0}], {0: counts([1, 2], [1, 1])})
    assert (found.figures[0].cells[0].of_published, found.figures[0].cells[0].mean) == (None, 1.5)


@pytest.mark.parametrize(
    ("quantity", "more", "reason"),
    [
        (IPC, {"notes": (HARDWARE,)}, "this machine has no hardware counters that perf can use"),
        (IPC, {"observe": ("machine",)}, "the study has no observer `perf-stat`, which counts it"),
        ({"of": "server.l1d_loads"}, {}, "`perf-stat` did not count L1-dcache-loads; its `events` may name it"),
        ({"of": "disk.w_await"}, {"observe": ()}, "the study has no observer `machine`, which measures it"),
        ({"of": "disk.w_await"}, {}, "none of the ok runs tells of it"),
        ({"symbol": "memcpy"}, {}, "the study has no observer `perf-record`, which takes call stacks"),
        ({"group": "copy"}, {"observe": ("perf-record",)}, "the runs left no call stacks of their measured parts"),
    ],
)
def test_what_was_not_measured_says_why(quantity, more, reason) -> None:
    unit = "ms" if quantity.get("of") == "disk.w_await" else "1"
    figure = {"quantity": quantity, "levels": NATIVE, "value": 1.0, "unit": unit}
    (figure,) = beside([figure], {0: [usage({"server.cpu": 1e-5})] * 2}, **more).figures
    assert [(cell.mean, cell.n) for cell in figure.cells] == [(None, 0), (None, 0)]
    assert figure.reason == reason


def test_without_an_ok_run_nothing_was_measured() -> None:
    plan = study({"deployment": ["native", "boxed"]}, compare="deployment")
    figures = [
        {"column": "x", "quantity": of, "levels": NATIVE, "value": 1.0, "unit": "1"} for of in (IPC, {"group": "copy"})
    ]
    published = Published.model_validate({"observed": [{"file": "f.csv", "figures": figures}]})
    plan = plan.model_copy(update={"published": published})
    # A results folder in which no run has call stacks has a table of none, without columns.
    (found,) = analyse(plan, Runs(plan).fail(0, 0, Outcome.FAILED), ended=None, stacks=pl.DataFrame()).observed
    assert [each.reason for each in found.figures] == ["no run is ok"] * 2


def ext4(folder: Path) -> Study:
    """A study of the journal under readers, set beside the hot spots that were published of it."""
    (folder / EXT4.name).write_bytes(EXT4.read_bytes())
    text = """\
study: ext4-journal
question: What does the kernel do?
factors:
  data_mode: {journal: {workload.operations: 1000}, ordered: {workload.operations: 2000}}
  readers: [1, 100]
system: {kind: 'null'}
workload: {kind: 'null', threads: "${readers}"}
observe: [machine, perf-record]
published:
  observed:
    - file: ext4_journal_hot_spots.csv
      map: {readers: filereader_instances}
      columns: {cycles_pct: {symbols_in: symbol}}
"""
    (folder / "study.yaml").write_text(text)
    return dyno.study.load(folder / "study.yaml", Rooms.open().kinds())


def test_published_hot_spots_stand_beside_the_functions_that_were_sampled_here(tmp_path: Path) -> None:
    plan = ext4(tmp_path)
    runs = Runs(plan).add_cells({cell.index: [10.0, 11.0] for cell in plan.cells})
    copying = "t;main@fio;vfs_read_[k];copy_user_enhanced_fast_string_[k]"
    # The function has a frame below it in the second stack: then that one was running.
    taken = {copying: 30, f"{copying};clear_page_erms_[k]": 10, "t;main@fio;count@fio": 60}
    # All runs but those of cell 3, which nobody looked at.
    sampled = stacks(**{f"run_{run.run}": taken for run in runs if run.slot.cell != 3})
    (found,) = analyse(plan, runs, ended=None, stacks=sampled).observed
    first = found.figures[0]
    assert (first.quantity, first.title) == (
        "hot spots: symbol copy_user_enhanced_fast_string",
        "function copy_user_enhanced_fast_string, share of the samples of call stacks",
    )
    assert (first.published, first.unit, first.levels) == (48.10, "%", {"readers": "1"})
    assert [(cell.levels["data_mode"], cell.mean) for cell in first.cells] == [("journal", 30.0), ("ordered", 30.0)]
    assert first.note == "Sampled by cpu-clock here, a timer, and not by cycles."
    assert "They do not tell data_mode" in found.sentence
    by_symbol = {(each.quantity.rpartition(" ")[2], each.levels["readers"]): each for each in found.figures}
    # The study compares data modes, of which the publication tells nothing: so its readers stand to each other.
    many = by_symbol["copy_user_enhanced_fast_string", "100"]
    assert (many.relative, many.relative_to) == (pytest.approx(20.90 / 48.10), {"readers": "1"})
    assert [(cell.n, cell.relative) for cell in many.cells] == [(2, pytest.approx(1.0)), (0, None)]
    absent = by_symbol["count_shadow_nodes", "100"]
    assert absent.cells[0].mean == 0
    assert absent.note.endswith("No sample is of it: it may have another name here, or none.")


def test_a_scale_without_these_cells_has_nothing_beside_the_figures() -> None:
    found = beside(
        [{"quantity": IPC, "levels": NATIVE, "value": 1.0}], {0: counts([1], [1])}, where={"threads": ["64"]}
    )
    assert found.figures == ()
    assert found.sentence == "No cell with threads=64 is in this study, so nothing stands beside the published figures."
