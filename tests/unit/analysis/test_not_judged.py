"""Scale smoke, where all is shown and nothing is judged: two tiny runs of each cell once headlined "faster"."""

from __future__ import annotations

import pytest
from small_studies import Runs, study

from dyno.analysis import analyse, compare_folders, gate_blocks
from dyno.model.findings import Findings
from dyno.model.published import Published, PublishedFigure, PublishedTable
from dyno.model.study import Study
from dyno.model.targets import Target

SLOW, FAST = [100.0, 101.0, 99.0, 100.5], [301.0, 300.0, 302.0, 301.5]
CLAIM = {
    "id": "wal-is-faster",
    "says": "wal is faster",
    "here": "yes",
    "predicate": {"ratio": {"of": "throughput", "b": {"journal": "wal"}, "a": {"journal": "delete"}}, "wanted": "> 1"},
}
REASON = "scale smoke shows that everything works, not how fast anything is"
JUDGED = ("faster", "slower", "is shown", "are shown", "x the throughput of", "met", "missed")


def plan(scale: str) -> Study:
    of = study({"journal": ["delete", "wal"], "threads": [1, 4]}, compare="journal", min=4, max=4)
    table = PublishedTable(
        file="published.csv",
        response="throughput",
        same_within=0.1,
        figures=tuple(
            PublishedFigure(levels=cell.levels, value=value, interval=(0.99 * value, 1.01 * value))
            for cell, value in zip(of.cells, (1000.0, 1000.0, 3000.0, 3000.0), strict=True)
        ),
    )
    return of.model_copy(
        update={
            "scale": scale,
            "targets": (Target(response="throughput", bound="> 1 ops/s"),),
            "published": Published.model_validate({"tables": [table], "findings": [CLAIM]}),
        }
    )


def found(scale: str) -> Findings:
    of = plan(scale)
    return analyse(of, runs(of), ended="done")


def runs(of: Study) -> Runs:
    return Runs(of).add_cells({0: SLOW, 1: SLOW, 2: FAST, 3: FAST})


def test_the_same_runs_answer_at_another_scale_and_say_that_all_works_at_smoke() -> None:
    assert "wal is faster than delete" in found("default").answer
    assert found("smoke").answer == f"Not judged: {REASON}. All 16 runs are ok."
    of = plan("smoke")
    some = analyse(of, runs(of).fail(0, 4), ended="done").answer
    assert some == f"Not judged: {REASON}. Ok: 16 of 17 runs."


def test_no_sentence_of_smoke_says_which_is_faster() -> None:
    smoke = found("smoke")
    told = [each.sentence for each in (*smoke.comparisons, *smoke.overall)]
    told += [each.sentence for shape in smoke.shapes for each in (*shape.curves, *shape.crossings, shape)]
    assert {each.verdict for each in (*smoke.comparisons, *smoke.overall)} == {"not judged"}
    assert {each.equivalent for each in (*smoke.comparisons, *smoke.overall)} == {None}
    assert told[0].startswith("With threads=1, throughput of journal wal against delete is not judged at scale smoke: ")
    assert [sentence for sentence in told if any(word in sentence.split() for word in JUDGED[:2])] == []
    assert [sentence for sentence in told[:3] if any(word in sentence for word in JUDGED)] == []


def test_published_findings_are_open_at_smoke_and_figures_judge_nothing() -> None:
    assert [claim.verdict for claim in found("default").claims] == ["confirmed"]
    smoke = found("smoke")
    assert [(claim.verdict, claim.reason) for claim in smoke.claims] == [("open", f"S{REASON[1:]}.")]
    (table,) = smoke.published
    assert table.ranks.sentence == f"Order of the cells: cannot tell, {REASON}."
    assert {verdict for each in table.ratios for verdict in (each.which_is_higher, each.by_how_much)} == {"cannot tell"}
    assert {each.which_is_higher for each in found("default").published[0].ratios} == {"agrees"}


def test_a_target_is_neither_met_nor_missed_at_smoke() -> None:
    assert found("default").targets[0].verdict == "met"
    (target,) = found("smoke").targets
    assert (target.verdict, {cell.verdict for cell in target.cells}) == ("cannot tell", {"cannot tell"})
    assert target.sentence == f"throughput > 1 ops/s: cannot tell; {REASON}."


def test_a_gate_at_smoke_cannot_tell() -> None:
    of = plan("smoke")
    judged = gate_blocks(of, runs(of), slower=0.03)
    assert (judged.verdict, {cell.why for cell in judged.cells}) == ("cannot tell", {REASON})


def test_folders_of_smoke_are_set_side_by_side_and_not_judged() -> None:
    of = plan("smoke")
    other = Runs(of).add_cells({0: FAST, 1: FAST, 2: FAST, 3: FAST})
    first, *_ = compare_folders(of, runs(of), of, other)
    assert first.verdict == "not judged"
    assert "throughput of the second folder against the first is not judged at scale smoke" in first.sentence


CALL = "podman run --rm " + "--volume /somewhere/long:/data " * 20


@pytest.mark.parametrize(
    ("cause", "told"),
    [
        ("no answer in 60 s", "no answer in 60 s."),
        (f"`{CALL}` ended with status 125: Error: no space left on device", "Error: no space left on device."),
        (f"`{CALL}` took longer than 60 s", "podman took longer than 60 s."),
        (
            f"sysbench run ended with status 1: `{CALL}` ended with status 2:\n  cannot connect",
            "cannot connect.",
        ),
        ("the driver said " + "word " * 100 + "and died", f"… {'word ' * 38}and died."),
    ],
)
def test_where_no_run_is_ok_the_most_frequent_cause_is_the_answer(cause: str, told: str) -> None:
    of = study({"journal": ["delete", "wal"]}, compare="journal")
    of_runs = Runs(of).fail(0, 0, cause="once").fail(1, 0, cause=cause).fail(0, 1, cause=cause)
    assert analyse(of, of_runs, ended=None).answer == f"No answer: there is no ok run. 2 of 3 runs: {told}"
    smoke = of.model_copy(update={"scale": "smoke"})
    assert analyse(smoke, of_runs[1:], ended=None).answer == f"No answer: there is no ok run. All 2 runs: {told}"
