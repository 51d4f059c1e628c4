"""Where instructions go: steps of removal, both ways of counting a component, calls, and all orders."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl
import pytest
from small_studies import Runs, study

from dyno.analysis import analyse
from dyno.model.assemblies import COMPONENTS, KERNEL, Assembly, feasible, parse, path
from dyno.model.findings import ClaimResult, Removal
from dyno.model.published import (
    CallsAre,
    CallsOf,
    Claim,
    MeanIs,
    MeanOf,
    Predicate,
    Published,
    PublishedRemoval,
    PublishedShare,
    RemovalIs,
    RemovalOf,
)
from dyno.model.study import KindSpec, Study
from dyno.observers.base import COUNT_COLUMNS

COSTS: Mapping[str, float] = {
    "keys": 16.0, "log": 12.0, "locks": 16.0, "latches": 10.0, "buffer": 20.0, "transactions": 4.0, "catalogue": 2.0,
}  # fmt: skip
LEFT = 20.0


def cost(assembly: Assembly) -> float:
    """Additive, but that the log costs half as much without latches, and larger pages save 5."""
    if assembly.kernel:
        return 10.0
    there = sum(COSTS[each] for each in assembly.components)
    if "log" in assembly.components and "latches" not in assembly.components:
        there -= COSTS["log"] / 2
    return LEFT + there - 5 * assembly.large_pages


def of(names: list[str]) -> Study:
    made = study({"assembly": names})
    return made.model_copy(
        update={
            "cells": tuple(
                cell.model_copy(
                    update={"system": KindSpec(kind="glass", options={"assembly": cell.levels["assembly"]})}
                )
                for cell in made.cells
            )
        }
    )


def counted(of_study: Study, counts: pl.DataFrame | None = None, blocks: int = 2) -> Removal:
    runs = Runs(of_study)
    for block in range(blocks):
        for cell in of_study.cells:
            value = cost(parse(cell.levels["assembly"]))
            responses = {"throughput": 1e6 / value, "payment.instructions": value}
            runs.add(cell.index, block, responses=responses)
    (found,) = analyse(of_study, runs, ended="done", counts=counts).removal
    return found


def profile(rows: list[tuple[int, str, str, str, float]]) -> pl.DataFrame:
    """Rows of run, call, component, event and value, of the build that keeps components apart."""
    made = [
        ("outlined", "callgrind", "payment", call, part, event, value, False) for _, call, part, event, value in rows
    ]
    table = pl.DataFrame(made, schema=COUNT_COLUMNS, orient="row")
    return table.with_columns(pl.Series("run", [run for run, *_ in rows], dtype=pl.Int64))


PATH = [each.name for each in path()]


def test_each_step_is_what_its_removal_saved_of_the_whole() -> None:
    found = counted(of([*PATH, KERNEL]))
    assert [step.removed for step in found.steps] == [
        "", "keys", "log", "locks", "latches", "pages", "buffer", "catalogue", "transactions",
    ]  # fmt: skip
    assert [step.saved for step in found.steps] == [None, 16.0, 12.0, 16.0, 10.0, 5.0, 15.0, 2.0, 4.0]
    assert sum(step.share or 0 for step in found.steps) == pytest.approx(0.8)
    assert [step.removed for step in found.steps if step.ours] == ["catalogue", "transactions"]
    assert found.kernel is not None
    assert found.kernel.instructions == 10
    assert "2.0 times the 10 of the kernel" in found.sentence
    assert "largest single step is key comparison: 16.0%" in found.sentence


def test_larger_pages_are_of_the_buffer_managers_share() -> None:
    found = {each.component: each for each in counted(of(PATH)).components}
    assert found["buffer"].removed == 20
    assert list(found) == ["keys", "log", "locks", "latches", "buffer", "catalogue", "transactions"]


def test_a_step_over_several_components_is_named_by_all_and_judges_none() -> None:
    found = counted(of(["full", "latches+buffer+transactions+catalogue", "none"]))
    assert [step.removed for step in found.steps] == ["", "keys+log+locks", "latches+buffer+catalogue+transactions"]
    assert found.components == ()


def test_what_a_component_has_before_its_removal_and_its_absent_form_after_it_are_set_off() -> None:
    # Runs are of one cell after the other; the first assembly is that of run 1, the next that of run 2.
    rows = [
        (1, "lookup", "keys", "instructions", 14.0), (1, "", "transaction", "instructions", 90.0),
        (1, "lookup", "", "calls", 3.0), (2, "update", "log", "instructions", 30.0),
        (2, "lookup", "keys", "instructions", 1.0), (3, "", "transaction", "instructions", 40.0),
    ]  # fmt: skip
    found = counted(of(PATH), profile(rows), blocks=1)
    keys, log, locks, *_ = found.components
    assert (keys.own, keys.left) == (14.0, 1.0)
    assert (keys.attributed, keys.apart, keys.agree) == (13.0, pytest.approx(0.03), True)
    assert (log.attributed, log.apart, log.agree) == (30.0, pytest.approx(-0.18), False)
    assert (locks.attributed, locks.agree) == (None, None)
    assert [(call.call, call.calls, call.instructions) for call in found.calls] == [
        ("lookup", 3.0, 14.0), ("", None, 90.0),
    ]  # fmt: skip
    assert found.steps[0].outlined == 104


def test_what_the_machines_counters_told_of_calls_stands_beside_what_valgrind_counted() -> None:
    rows = [(1, "lookup", "keys", "instructions", 14.0), (1, "", "transaction", "instructions", 90.0)]
    valgrind = profile(rows)
    hardware = profile(
        [
            (1, "lookup", "", "instructions", 15.0), (1, "lookup", "", "cycles", 30.0),
            (1, "", "", "instructions", 93.0), (1, "", "", "cycles", 70.0),
        ]
    ).with_columns(by=pl.lit("hardware"))  # fmt: skip
    found = counted(of(PATH), pl.concat([valgrind, hardware]), blocks=1)
    told = [(call.call, call.instructions, call.retired, call.cycles) for call in found.calls]
    assert told == [("lookup", 14.0, 15.0, 30.0), ("", 90.0, 93.0, 70.0)]
    assert found.steps[0].outlined == 104
    assert [call.cycles for call in counted(of(PATH), valgrind, blocks=1).calls] == [None, None]


def test_what_others_do_less_and_the_builds_are_all_that_the_two_ways_differ_by() -> None:
    rows = [
        (1, "lookup", "keys", "instructions", 14.0), (1, "lookup", "trees", "instructions", 50.0),
        (1, "", "transaction", "instructions", 40.0), (2, "lookup", "trees", "instructions", 38.0),
        (2, "", "transaction", "instructions", 40.0),
    ]  # fmt: skip
    keys, *_ = counted(of(PATH), profile(rows), blocks=1).components
    assert keys.elsewhere == {"trees": 12.0}
    assert keys.builds == pytest.approx(16 - 26)  # 16 by removal, where the builds kept apart differ by 26
    assert keys.removed - keys.attributed == pytest.approx(sum(keys.elsewhere.values()) + keys.builds)


def test_where_the_two_ways_do_not_agree_it_is_said_of_which_component_and_why() -> None:
    rows = [
        (2, "update", "log", "instructions", 30.0), (2, "update", "trees", "instructions", 20.0),
        (3, "update", "trees", "instructions", 25.0),
    ]  # fmt: skip
    found = counted(of(PATH), profile(rows), blocks=1)
    (log,) = [each for each in found.shares if each.agree is False]
    assert (log.component, log.removed, log.attributed) == ("log", pytest.approx(0.12), pytest.approx(0.3))
    assert found.agreement.startswith("(a) and (b) do not agree within 10%")
    assert "Logging: its removal saves 12.0% of all instructions, 30.0% are attributed to it" in found.agreement
    assert "-5.0% is what others do less once it is gone (B-trees -5.0%); the rest, -13.0%," in found.agreement


def beside(*shares: tuple[str, str, float]) -> Published:
    made = tuple(PublishedShare(transaction=kind, component=name, share=share) for kind, name, share in shares)
    return Published(removal=PublishedRemoval(file="removed.csv", shares=made))


def test_each_share_stands_beside_what_was_published_of_it() -> None:
    published = beside(
        ("payment", "log", 0.18), ("payment", "buffer", 0.19), ("payment", "pages", 0.14), ("new_order", "keys", 0.9),
        ("payment", "left", 0.05),
    )  # fmt: skip
    found = counted(of(PATH).model_copy(update={"published": published}))
    by_name = {each.component: each for each in found.shares}
    assert list(by_name) == [
        "keys", "log", "locks", "latches", "buffer", "pages", "catalogue", "transactions", "left",
    ]  # fmt: skip
    assert (by_name["keys"].published, by_name["keys"].since) == (None, None)
    assert (by_name["log"].removed, by_name["log"].since) == (pytest.approx(0.12), pytest.approx(-0.06))
    assert (by_name["pages"].removed, by_name["pages"].published) == (pytest.approx(0.05), 0.14)
    # What remains is what the publication left: our own removals come after it.
    assert by_name["left"].removed == pytest.approx(0.26)
    assert found.beside == (
        "Within 5 points of what was published: buffer manager. More than was published: what is left. "
        "Less than was published: logging and larger pages."
    )


def test_how_near_counts_of_the_same_transactions_are_is_told_and_held_against_the_bar() -> None:
    made = of(["full", "log+locks+latches+buffer+transactions+catalogue"])
    for second, told in ((100.05, "0.050%, as they should"), (100.2, "0.200%, which is not below the 0.1%")):
        twice = [
            (1, "optimised", 100.0, False), (1, "optimised", second, True), (2, "optimised", 84.0, False),
            (2, "optimised", 84.0, True), (3, "optimised", 170.0, False), (1, "outlined", 300.0, False),
        ]  # fmt: skip
        rows = [
            (build, "callgrind", "payment", "", "", "instructions", value, again) for _, build, value, again in twice
        ]
        table = pl.DataFrame(rows, schema=COUNT_COLUMNS, orient="row")
        table = table.with_columns(pl.Series("run", [run for run, *_ in twice], dtype=pl.Int64))
        found = counted(made, table)
        assert found.repeats == pytest.approx((second - 100) / 100, rel=0.01)
        assert [step.spread for step in found.steps] == [found.repeats, 0.0]
        assert told in found.repeatability
    assert counted(made).repeats is None
    assert counted(made, table.drop("again")).repeats is None, "a folder of an earlier dyno has none counted twice"


def test_how_far_counts_of_other_transactions_are_from_each_other_is_each_steps_precision() -> None:
    made = of(["full", "log+locks+latches+buffer+transactions+catalogue"])
    runs = Runs(made)
    for block, value in enumerate((100.0, 102.0, 104.0)):
        for cell, less in ((0, 0.0), (1, 16.0)):
            runs.add(cell, block, responses={"throughput": 1.0, "payment.instructions": value - less})
    (found,) = analyse(made, runs, ended="done").removal
    # Student's quantile of two degrees of freedom, 4.3027, of a standard error of 2 / sqrt(3).
    assert found.steps[0].precision == pytest.approx(4.3027 * 2 / 3**0.5 / 102, rel=1e-4)


def judged(predicate: Predicate, counts: pl.DataFrame | None = None, latches: float = 0.0) -> ClaimResult:
    """What three blocks say, in which latching takes so much more."""
    claim = Claim(id="x", says="y", predicate=predicate)
    made = of(PATH).model_copy(update={"published": Published(findings=(claim,))})
    runs = Runs(made)
    for block in range(3):
        for cell in made.cells:
            assembly = parse(cell.levels["assembly"])
            value = cost(assembly) + latches * ("latches" in assembly.components) + 0.001 * block
            responses = {"throughput": 1e6 / value, "payment.instructions": value, "new_order.instructions": 9 * value}
            runs.add(cell.index, block, responses=responses)
    (found,) = analyse(made, runs, ended="done", counts=counts).claims
    return found


def test_a_finding_may_be_of_what_removals_save() -> None:
    every = RemovalOf(transaction="payment", component=("keys", "log", "locks", "latches", "buffer"))
    assert judged(RemovalIs(removal=every, wanted=">= 9%")).verdict == "confirmed"
    found = judged(RemovalIs(removal=every, wanted=">= 11%"))
    assert found.verdict == "contradicted"
    assert "share of latching in instructions of payment" in found.reason
    assert [each.value for each in found.evidence] == pytest.approx([16, 12, 16, 10, 20], rel=0.01)
    assert {each.unit for each in found.evidence} == {"%"}


def test_a_finding_may_be_that_one_removal_saves_the_most() -> None:
    buffer = RemovalIs(removal=RemovalOf(transaction="payment", component=("buffer",)), wanted="largest")
    found = judged(buffer)
    assert (found.verdict, len(found.evidence)) == ("confirmed", 4)
    assert judged(buffer, latches=30.0).verdict == "contradicted"


def test_a_finding_of_cycles_stays_open_where_there_are_no_counters() -> None:
    asked = RemovalOf(transaction="payment", component=("log",), of="cycles", over="instructions")
    found = judged(RemovalIs(removal=asked, wanted="> 1"))
    assert found.verdict == "open"
    assert "was not measured, since the study has no observer `counted`" in found.reason


def test_a_finding_may_be_of_one_response_over_another() -> None:
    mean = MeanOf(of="new_order.instructions", over="payment.instructions", where={"assembly": (PATH[0],)})
    found = judged(MeanIs(mean=mean, wanted="8 to 12"))
    assert (found.verdict, found.evidence[0].value) == ("confirmed", pytest.approx(9))


def test_a_finding_may_be_of_calls_made_just_so_often() -> None:
    rows = [(1 + 9 * block, "lookup", "", "calls", 3.0) for block in range(3)]
    asked = {"transaction": "payment", "where": {"assembly": [PATH[0]]}}
    agreed = judged(CallsAre(calls=CallsOf(made={"lookup": 3}, **asked)), profile(rows))
    assert (agreed.verdict, agreed.evidence[0].value) == ("confirmed", 3)
    for made in ({"lookup": 4}, {"lookup": 3, "create": 3}):
        assert judged(CallsAre(calls=CallsOf(made=made, **asked)), profile(rows)).verdict == "contradicted"
    assert judged(CallsAre(calls=CallsOf(made={"lookup": 3}, **asked))).verdict == "open"


def test_over_all_orders_what_two_components_share_is_halved() -> None:
    found = counted(of([*PATH, *(each.name for each in feasible() if each.name not in PATH)]))
    by_name = {each.component: each for each in found.contributions}
    assert sum(each.mean for each in by_name.values()) == pytest.approx(100 - LEFT)
    for name in ("keys", "locks", "buffer", "catalogue", "transactions"):
        assert by_name[name].mean == pytest.approx(COSTS[name])
        assert by_name[name].least == pytest.approx(by_name[name].most)
    # The 6 that hang on both are saved with whichever goes first; each is first in half of the orders, since only
    # transactions have to wait, for the log among others.
    assert (by_name["log"].least, by_name["log"].most) == (pytest.approx(6), pytest.approx(12))
    assert (by_name["latches"].least, by_name["latches"].most) == (pytest.approx(10), pytest.approx(16))
    assert by_name["log"].mean + by_name["latches"].mean == pytest.approx(12 + 10)
    assert found.contributions_reason == ""


def test_without_all_assemblies_nothing_is_said_of_orders() -> None:
    found = counted(of(PATH))
    assert found.contributions == ()
    assert found.contributions_reason == "72 of the 80 assemblies that there are were not counted"


def test_a_study_of_another_engine_has_no_removal() -> None:
    runs = Runs(study({"assembly": ["full", "none"]}))
    for cell in (0, 1):
        runs.add(cell, 0, responses={"throughput": 1.0, "payment.instructions": 5.0})
    assert analyse(study({"assembly": ["full", "none"]}), runs, ended="done").removal == ()


def test_the_names_of_components_are_those_of_costs() -> None:
    assert set(COSTS) == set(COMPONENTS)
