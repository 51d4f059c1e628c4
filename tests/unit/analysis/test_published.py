"""Cells beside published figures: what can be said of order and ratios, by intervals alone."""

from __future__ import annotations

import math

import pytest
from small_studies import Runs, study

from dyno import stats
from dyno.analysis import analyse
from dyno.model.published import Published, PublishedTable

NOISE = [1.0, 1.01, 0.99, 1.005, 0.995, 1.002]


def beside(means: dict[str, float], figures: dict[str, tuple], same_within: float = 0.1):
    """Means by level here; published figures by level, each a value or (value, low, high)."""
    plan = study({"store": list(means)}, compare="store", min=6, max=6)
    rows = [
        {"levels": {"store": level}, "value": figure[0], "interval": figure[1:] or None}
        for level, figure in figures.items()
    ]
    table = PublishedTable.model_validate(
        {"file": "f.csv", "response": "throughput", "figures": rows, "same_within": same_within}
    )
    plan = plan.model_copy(update={"published": Published(tables=(table,))})
    # Noise of its own in each cell: else ratios within blocks would have none.
    values = {i: [mean * NOISE[(i + k) % 6] for k in range(6)] for i, mean in enumerate(means.values())}
    (found,) = analyse(plan, Runs(plan).add_cells(values), ended=None).published
    return found


def test_the_figures_stand_beside_the_means_of_their_cells() -> None:
    found = beside({"a": 100.0, "b": 200.0}, {"b": (20.0, 19.0, 21.0), "c": (30.0,)})
    assert [(cell.levels, cell.published, cell.published_ci) for cell in found.cells] == [
        ({"store": "b"}, 20.0, (19.0, 21.0))
    ]
    assert found.cells[0].mean == pytest.approx(200.07, abs=0.1)
    assert (found.file, found.response, found.unit, found.ratios) == ("f.csv", "throughput", "ops/s", ())


@pytest.mark.parametrize(
    ("published", "which", "how_much"),
    [
        # Here b is twice a.
        ({"a": (10.0, 9.9, 10.1), "b": (20.0, 19.8, 20.2)}, "agrees", "agrees"),
        ({"a": (10.0, 9.9, 10.1), "b": (40.0, 39.0, 41.0)}, "agrees", "differs"),
        ({"a": (10.0, 9.0, 11.0), "b": (20.0, 18.0, 22.0)}, "agrees", "cannot tell"),
        ({"a": (20.0, 19.8, 20.2), "b": (10.0, 9.9, 10.1)}, "differs", "differs"),
        ({"a": (10.0, 5.0, 20.0), "b": (11.0, 6.0, 25.0)}, "cannot tell", "cannot tell"),
        ({"a": (10.0,), "b": (20.0,)}, "cannot tell", "cannot tell"),
        ({"a": (10.0, 9.9, 10.1), "b": (20.0,)}, "cannot tell", "cannot tell"),
        ({"a": (0.0, 0.0, 0.0), "b": (20.0, 19.0, 21.0)}, "cannot tell", "cannot tell"),
    ],
)
def test_a_ratio_agrees_or_differs_by_intervals_and_never_by_naked_points(published, which, how_much) -> None:
    (ratio,) = beside({"a": 100.0, "b": 200.0}, published).ratios
    assert (ratio.which_is_higher, ratio.by_how_much) == (which, how_much), ratio.sentence
    assert ratio.ratio == pytest.approx(2.0, rel=0.01)
    assert ratio.published == (published["b"][0] / published["a"][0] if published["a"][0] else None)


def test_no_difference_here_agrees_with_nothing_that_was_published() -> None:
    (ratio,) = beside({"a": 100.0, "b": 100.0}, {"a": (10.0, 9.99, 10.01), "b": (10.0, 9.99, 10.01)}).ratios
    assert (ratio.which_is_higher, ratio.by_how_much) == ("cannot tell", "agrees")


def test_a_ratio_is_answered_in_a_sentence() -> None:
    found = beside({"a": 100.0, "b": 200.0}, {"a": (10.0, 9.9, 10.1), "b": (20.0, 19.8, 20.2)})
    assert found.ratios[0].sentence == (
        "b against a: 2.00x [1.97, 2.03] here, 2.00x [1.97, 2.03] published; "
        "which is higher: agrees; by how much: agrees."
    )
    found = beside({"a": 100.0, "b": 200.0}, {"a": (10.0,), "b": (21.0,)})
    assert found.ratios[0].sentence.endswith(" here, 2.1x published, without an interval: cannot tell.")


SIX = {"a": 100.0, "b": 200.0, "c": 300.0, "d": 400.0, "e": 500.0, "f": 600.0}


def test_the_order_of_the_cells_agrees_beyond_luck_or_is_not_told() -> None:
    order = {level: (mean / 10,) for level, mean in SIX.items()}
    agrees = beside(SIX, order).ranks
    # Of 6! orders, this one and its reverse are as far from none.
    assert (agrees.tau, agrees.n, agrees.verdict) == (1.0, 6, "agrees")
    assert agrees.p == pytest.approx(2 / math.factorial(6))
    reverse = beside(SIX, {level: (1000 - mean,) for level, mean in SIX.items()}).ranks
    assert (reverse.tau, reverse.verdict) == (-1.0, "differs")
    mixed = beside(SIX, dict(zip("abcdef", [(3.0,), (1.0,), (5.0,), (2.0,), (6.0,), (4.0,)], strict=True))).ranks
    assert mixed.verdict == "cannot tell"
    assert mixed.tau == pytest.approx(stats.kendall(range(6), [3, 1, 5, 2, 6, 4]).tau)
    assert mixed.sentence.startswith("Order of the cells: cannot tell, tau-b 0.")


def test_too_few_cells_have_no_order() -> None:
    found = beside(SIX, {level: (SIX[level],) for level in "abcd"}).ranks
    assert (found.tau, found.verdict) == (None, "cannot tell")
    assert found.sentence == "Order of the cells: cannot tell, 4 cells have both figures and 5 are the fewest."


def test_figures_that_are_all_the_same_have_no_order() -> None:
    found = beside(SIX, dict.fromkeys(SIX, (7.0,))).ranks
    assert found.sentence == "Order of the cells: cannot tell, all figures of one side are the same."


def test_figures_of_what_is_not_measured_here_are_shown_and_judge_nothing() -> None:
    plan = study({"store": list(SIX)}, compare="store", min=6, max=6)
    figures = [{"levels": {"store": level}, "value": mean, "interval": (mean, mean)} for level, mean in SIX.items()]
    why = {"store": {"a": "a mirror stands in for it"}}
    table = PublishedTable.model_validate(
        {"file": "f.csv", "response": "throughput", "figures": figures, "same_within": 0.1, "unlike": why}
    )
    plan = plan.model_copy(update={"published": Published(tables=(table,))})
    runs = Runs(plan).add_cells({i: [mean * noise for noise in NOISE] for i, mean in enumerate(SIX.values())})
    (found,) = analyse(plan, runs, ended=None).published
    assert (len(found.cells), found.ranks.n) == (6, 5)
    of_it, others = ([each for each in found.ratios if ("a" in (each.a, each.b)) == is_it] for is_it in (True, False))
    assert {(each.which_is_higher, each.by_how_much) for each in of_it} == {("cannot tell", "cannot tell")}
    assert {each.which_is_higher for each in others} == {"agrees"}
    assert of_it[0].sentence.endswith(" here, 2x published of what is not measured here: open.")
    assert found.unlike == ("store a is held against no published figure: a mirror stands in for it.",)


def test_bare_figures_are_counted_by_the_side_on_which_they_are() -> None:
    bare = {"a": (10.0,), "b": (20.0,), "c": (5.0,)}
    # c is above a here and below it there; that c and b differ is not shown here.
    found = beside({"a": 100.0, "b": 200.0, "c": 200.0}, bare)
    assert found.same_side is not None
    assert found.same_side.startswith("Of 2 differences that are shown here, 1 is on the side on which")
    assert beside({"a": 100.0, "b": 200.0}, {"a": (10.0, 9.0, 11.0), "b": (20.0, 18.0, 22.0)}).same_side is None
    assert beside({"a": 100.0, "b": 100.0}, {"a": (10.0,), "b": (20.0,)}).same_side is None


def test_a_study_without_published_figures_has_none_in_its_findings() -> None:
    plan = study({"store": ["a", "b"]}, compare="store")
    found = analyse(plan, Runs(plan).add_cells({0: [1.0], 1: [2.0]}), ended=None)
    assert (found.targets, found.published, found.claims) == ((), (), ())


def test_a_rate_that_was_given_is_shown_and_judges_nothing() -> None:
    plan = study({"store": list(SIX)}, compare="store", min=6, max=6)
    figures = [{"levels": {"store": level}, "value": mean, "interval": (mean, mean)} for level, mean in SIX.items()]
    table = PublishedTable.model_validate(
        {"file": "f.csv", "response": "throughput", "figures": figures, "same_within": 0.1}
    )
    plan = plan.model_copy(update={"published": Published(tables=(table,))})
    runs = Runs(plan).add_cells({i: [mean * noise for noise in NOISE] for i, mean in enumerate(SIX.values())})
    (closed,) = analyse(plan, runs, ended=None).published
    assert (closed.ranks.verdict, closed.ratios[0].by_how_much) == ("agrees", "agrees")
    (given,) = analyse(plan, [run.model_copy(update={"loop": "open"}) for run in runs], ended=None).published
    assert given.ranks.verdict == "cannot tell"
    assert {(ratio.which_is_higher, ratio.by_how_much) for ratio in given.ratios} == {("cannot tell", "cannot tell")}
    assert "of a rate that was given: cannot tell" in given.ratios[0].sentence
