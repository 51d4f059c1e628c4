"""Published findings: confirmed where the truth is so, contradicted where it is not, open where runs cannot tell."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import scipy.stats
from small_studies import Runs, study

import dyno.study
from dyno import stats
from dyno.analysis import analyse
from dyno.design import Design, Stop
from dyno.lab import Rooms
from dyno.model.findings import Findings
from dyno.model.published import Claim, Published
from dyno.model.run import Outcome, RunRecord
from dyno.model.study import Study
from dyno.systems.simulated import SimulatedOptions, throughput

MARIADB = Path(__file__).with_name("mariadb_virtualization.yaml")

# What is planted: throughput by workload and threads, and what a container leaves of it.
TRUTH = {"a": (4000, 6500, 7898), "b": (9000, 11418, 12500), "c": (14116, 13000, 12000)}
LEFT = {"a": 0.945, "b": 0.91, "c": 0.913}


def planted(whole: Study) -> list[RunRecord]:
    """All runs of the study, by its own design, with that truth in each cell."""
    design, runs = Design(whole), []
    while not isinstance(slot := design.decide(), Stop):
        cell = whole.cells[slot.cell]
        levels, workload = cell.levels, cell.levels["workload"]
        mean = TRUTH[workload][("1", "4", "8").index(levels["threads"])]
        mean *= 1.0 if levels["deployment"] == "native" else LEFT[workload]
        options = SimulatedOptions.model_validate({**cell.system.options, "mean": mean})
        run = RunRecord(
            run=len(runs) + 1,
            slot=slot,
            levels=levels,
            outcome=Outcome.OK,
            started_ns=0,
            ended_ns=1,
            responses={"throughput": throughput(options, len(runs) + 1)},
        )
        design.record(run)
        runs.append(run)
    return runs


@pytest.fixture(scope="module")
def mariadb() -> Findings:
    whole = dyno.study.load(MARIADB, Rooms.open().kinds())
    return analyse(whole, planted(whole), ended="done")


def test_each_finding_of_the_publication_has_the_verdict_of_what_was_planted(mariadb: Findings) -> None:
    assert {claim.id: claim.verdict for claim in mariadb.claims} == {
        "native-fastest": "confirmed",
        "overhead-a": "confirmed",
        "overhead-b-c": "open",
        "layered-equals-volume": "confirmed",
        "layered-above-volume-b": "open",
        "a-scales": "confirmed",
        "b-peaks-at-4": "contradicted",
        "c-falls": "confirmed",
        "layered-more-instructions": "open",
        "native-most-misses-yet-fastest": "open",
        "more-system-time-in-containers": "open",
        "same-context-switches": "open",
        "cpu-or-disk": "open",
    }


def test_the_reason_of_each_verdict_is_said_with_its_figures(mariadb: Findings) -> None:
    reasons = {claim.id: claim.reason for claim in mariadb.claims}
    assert reasons["native-fastest"].startswith("All 18 intervals are as it says; the nearest to its bound: throughput")
    assert reasons["b-peaks-at-4"].startswith("3 of 6 intervals are not as it says; the clearest: throughput of 4 aga")
    assert "against 8 with deployment=" in reasons["b-peaks-at-4"]
    assert reasons["layered-above-volume-b"].startswith(
        "Of 3 intervals 1 is not as it says, 2 are too wide to tell: throughput of container-layered against container"
    )
    assert reasons["layered-above-volume-b"].endswith(
        "One of 3 counts alone only at 98.33% confidence, which it does not reach."
    )
    assert reasons["overhead-b-c"] == "The study does not say how it could be checked."
    assert reasons["cpu-or-disk"].startswith(
        "Not known: CPU utilisation was not measured, since the study has no observer `machine`, which measures it (and"
    )


def test_what_this_kind_of_machine_cannot_judge_stays_open_whatever_was_measured(mariadb: Findings) -> None:
    claim = next(claim for claim in mariadb.claims if claim.id == "layered-more-instructions")
    assert claim.here == "counters"
    assert claim.reason == "This kind of machine cannot judge it: it needs hardware counters."


def test_what_a_finding_needs_and_what_is_known_of_it_stand_beside_it(mariadb: Findings) -> None:
    claims = {claim.id: claim for claim in mariadb.claims}
    assert claims["a-scales"].needs == "one CPU"
    assert claims["cpu-or-disk"].note == "its own contradiction; a rerun must decide"
    assert claims["a-scales"].says == "A rises from 1 to 8 threads"


def test_the_ratios_are_those_of_the_comparisons(mariadb: Findings) -> None:
    evidence = next(claim for claim in mariadb.claims if claim.id == "overhead-a").evidence
    comparisons = {
        (found.b, tuple(found.within.items())): (found.ratio, found.ci)
        for found in mariadb.comparisons
        if found.a == "native"
    }
    for each in evidence:
        within = tuple((factor, level) for factor, level in each.b.items() if factor != "deployment")
        assert (each.value, each.ci) == comparisons[each.b["deployment"], within]
        assert each.holds is True


def test_the_findings_are_data_that_can_be_read_back(mariadb: Findings) -> None:
    assert Findings.model_validate(json.loads(mariadb.model_dump_json())) == mariadb


# One predicate at a time

LOW, HIGH = [100.0, 104.0, 96.0, 101.0, 99.0, 103.0], [301.0, 310.0, 290.0, 305.0, 297.0, 308.0]


def judged(values: dict[int, list[float]], predicate: object, factors: dict | None = None, **rule):
    claim = Claim.model_validate({"id": "x", "says": "y", "predicate": predicate})
    plan = study(factors or {"journal": ["delete", "wal"]}, compare="journal", min=6, max=6, **rule)
    plan = plan.model_copy(update={"published": Published(findings=(claim,))})
    (found,) = analyse(plan, Runs(plan).add_cells(values), ended=None).claims
    return found


def ratio(b: str, a: str, wanted: str, cells: str = "every cell") -> dict:
    return {"ratio": {"of": "throughput", "b": {"journal": b}, "a": {"journal": a}}, "is": wanted, "in": cells}


@pytest.mark.parametrize(
    ("predicate", "verdict"),
    [
        (ratio("wal", "delete", "> 1"), "confirmed"),
        (ratio("wal", "delete", "> 2.9"), "confirmed"),
        (ratio("wal", "delete", "> 3"), "open"),
        (ratio("wal", "delete", "> 3.5"), "contradicted"),
        (ratio("delete", "wal", "> 1"), "contradicted"),
        (ratio("delete", "wal", "0.3 to 0.4"), "confirmed"),
        ({"within": {"of": "throughput", "b": {"journal": "wal"}, "a": {"journal": "delete"}, "margin": "2%"}},
         "contradicted"),
        ({"within": {"of": "throughput", "b": {"journal": "wal"}, "a": {"journal": "delete"}, "margin": "300%"}},
         "confirmed"),
        ({"mean": {"of": "throughput"}, "is": "> 50 ops/s"}, "confirmed"),
        ({"mean": {"of": "throughput"}, "is": "> 200 ops/s"}, "contradicted"),
        ({"mean": {"of": "throughput"}, "is": "> 200 ops/s", "in": "some cell"}, "confirmed"),
        ({"mean": {"of": "throughput", "where": {"journal": ["wal"]}}, "is": "> 200 ops/s"}, "confirmed"),
        ({"mean": {"of": "throughput"}, "is": "> 12000 1/min", "in": "some cell"}, "confirmed"),
        ({"mean": {"of": "throughput"}, "is": "> 500 ops/s", "in": "some cell"}, "contradicted"),
        ({"mean": {"of": "latency_p99"}, "is": "> 1 ms"}, "open"),
        ({"all": [ratio("wal", "delete", "> 1"), ratio("wal", "delete", "> 3")]}, "open"),
        ({"all": [ratio("wal", "delete", "> 3.5"), ratio("wal", "delete", "> 3")]}, "contradicted"),
        ({"any": [ratio("wal", "delete", "> 1"), ratio("wal", "delete", "> 3")]}, "confirmed"),
        ({"any": [ratio("wal", "delete", "> 3.5"), ratio("wal", "delete", "> 3")]}, "open"),
        ({"any": [ratio("wal", "delete", "> 3.5"), ratio("delete", "wal", "> 1")]}, "contradicted"),
        ({"all": [{"any": [ratio("wal", "delete", "> 9"), ratio("wal", "delete", "> 1")]}]}, "confirmed"),
        ({"trend": {"of": "throughput", "over": "journal"}, "is": "rises"}, "confirmed"),
        ({"trend": {"of": "throughput", "over": "journal"}, "is": "falls"}, "contradicted"),
        ({"trend": {"of": "throughput", "over": "journal"}, "is": {"peaks-at": "wal"}}, "confirmed"),
        ({"trend": {"of": "throughput", "over": "journal"}, "is": {"peaks-at": "delete"}}, "contradicted"),
    ],
)  # fmt: skip
def test_a_predicate_has_its_verdict_by_whole_intervals(predicate, verdict) -> None:
    found = judged({0: LOW, 1: HIGH}, predicate)
    assert found.verdict == verdict, found.reason
    assert found.reason.endswith(".")


def test_a_rise_is_one_at_every_step() -> None:
    factors = {"journal": ["a", "b", "c"]}
    rises = {"trend": {"of": "throughput", "over": "journal"}, "is": "rises"}
    higher = [3 * value for value in HIGH]
    assert judged({0: LOW, 1: HIGH, 2: higher}, rises, factors).verdict == "confirmed"
    # From first to last it rises all the same.
    assert judged({0: LOW, 1: higher, 2: HIGH}, rises, factors).verdict == "contradicted"
    assert judged({0: LOW, 1: HIGH, 2: HIGH[::-1]}, rises, factors).verdict == "open"


def test_a_peak_is_above_every_other_level() -> None:
    factors = {"journal": ["a", "b", "c"]}
    peak = {"trend": {"of": "throughput", "over": "journal"}, "is": {"peaks-at": "b"}}
    assert judged({0: LOW, 1: HIGH, 2: LOW}, peak, factors).verdict == "confirmed"
    assert judged({0: LOW, 1: HIGH, 2: [2 * value for value in HIGH]}, peak, factors).verdict == "contradicted"
    assert judged({0: LOW, 1: HIGH, 2: HIGH[::-1]}, peak, factors).verdict == "open"


def test_one_interval_of_many_that_is_off_by_luck_contradicts_nothing() -> None:
    """Twenty ratios of no difference: at 95 % one of them is expected to be off, and says nothing of all of them."""
    random = np.random.default_rng(11)
    factors = {"journal": ["delete", "wal"], "seed": list(range(40))}
    same = {"within": {"of": "throughput", "b": {"journal": "wal"}, "a": {"journal": "delete"}, "margin": "0.0001%"}}
    contradicted = plain = 0
    for _ in range(20):
        values = {cell: list(1000 * (1 + 0.05 * random.standard_normal(6))) for cell in range(80)}
        found = judged(values, same, factors)
        plain += any(each.holds is False for each in found.evidence)
        contradicted += found.verdict == "contradicted"
    assert plain >= 10
    assert contradicted <= 4  # 5 % of 20 is 1; five and more have a chance of 0.3 %


def test_a_single_contradiction_that_is_beyond_luck_is_enough() -> None:
    values = {cell: LOW if cell < 5 else HIGH for cell in range(10)}
    values[7] = [value / 4 for value in LOW]
    factors = {"journal": ["delete", "wal"], "seed": [1, 2, 3, 4, 5]}
    found = judged(values, ratio("wal", "delete", "> 1"), factors)
    assert found.verdict == "contradicted"
    assert found.reason.startswith(
        "1 of 5 intervals are not as it says; the clearest: throughput of wal against delete"
    )
    assert "with seed=3: 0.25" in found.reason


def test_one_of_many_confirms_some_cell_only_beyond_luck() -> None:
    factors = {"journal": ["delete", "wal"], "seed": [1, 2, 3, 4, 5, 6, 7, 8]}
    values = dict.fromkeys(range(8), LOW) | dict.fromkeys(range(8, 16), LOW[::-1])
    claim = ratio("wal", "delete", "> 1", "some cell")
    assert judged(values, claim, factors).verdict == "open"
    differences = np.array([0.02, 0.03, -0.005, 0.025, 0.01, 0.005])
    values[9] = list(np.array(LOW) * np.exp(differences))
    alone = stats.paired_ratio(LOW, values[9], 0.95)
    assert alone.lo > 1
    found = judged(values, claim, factors)
    assert found.verdict == "open"
    assert found.reason.startswith("Of 8 intervals 1 is as it says, 7 are too wide to tell")
    values[9] = HIGH
    assert judged(values, claim, factors).verdict == "confirmed"


def test_what_is_said_in_general_is_asked_of_the_geometric_mean_over_all_combinations() -> None:
    factors = {"journal": ["delete", "wal"], "seed": [1, 2, 3, 4]}
    values = dict.fromkeys(range(4), LOW) | dict.fromkeys(range(4, 8), LOW[::-1])
    values[4] = [3 * value for value in LOW]
    for i, shift in ((5, 0.9), (6, 1.0), (7, 1.1)):
        values[i] = [
            shift * value * wobble for value, wobble in zip(LOW, [1.01, 0.99, 1.0, 1.02, 0.98, 1.0], strict=True)
        ]
    assert judged(values, ratio("wal", "delete", "> 1"), factors).verdict != "confirmed", "not of each"
    found = judged(values, ratio("wal", "delete", "> 1", "all together"), factors)
    assert found.verdict == "confirmed"
    (evidence,) = found.evidence
    logs = np.log([values[4 + i] for i in range(4)]) - np.log([values[i] for i in range(4)])
    by_block = logs.mean(axis=0)
    half = scipy.stats.t.ppf(0.975, len(by_block) - 1) * by_block.std(ddof=1) / np.sqrt(len(by_block))
    assert evidence.value == pytest.approx(np.exp(by_block.mean()))
    assert evidence.ci == pytest.approx((np.exp(by_block.mean() - half), np.exp(by_block.mean() + half)))
    assert (evidence.a, evidence.b) == ({"journal": "delete"}, {"journal": "wal"})
    assert found.reason.lower().startswith("throughput of wal against delete over 4 combinations together: ")
    values[6] = []
    found = judged(values, ratio("wal", "delete", "> 1", "all together"), factors)
    assert found.verdict == "open"
    assert found.reason.startswith("Not known: ")


def test_cells_without_enough_runs_leave_it_open() -> None:
    found = judged({0: LOW, 1: [300.0]}, ratio("wal", "delete", "> 1"))
    assert (found.verdict, found.reason) == (
        "open",
        "Not known: delete has 6 ok runs and wal has 1, and each needs 2.",
    )
    found = judged({0: LOW, 1: [300.0]}, {"mean": {"of": "throughput"}, "is": "> 1 ops/s"})
    assert found.reason == "Not known: journal=wal has 1 ok run with throughput, and needs 2."


def test_a_level_that_no_cell_has_at_this_scale_leaves_it_open() -> None:
    for predicate in (
        ratio("off", "delete", "> 1"),
        {"mean": {"of": "throughput", "where": {"journal": "off"}}, "is": "> 1 ops/s"},
        {"trend": {"of": "throughput", "over": "journal"}, "is": {"peaks-at": "off"}},
    ):
        found = judged({0: LOW, 1: HIGH}, predicate)
        assert (found.verdict, found.reason) == ("open", "Not known: no cell has journal=off at scale default.")
    alone = {"trend": {"of": "throughput", "over": "journal", "where": {"journal": "wal"}}, "is": "rises"}
    assert judged({0: LOW, 1: HIGH}, alone).reason == "Not known: journal has a single level at scale default."


def test_a_contradiction_counts_even_where_another_part_was_not_measured() -> None:
    both = {"all": [{"mean": {"of": "latency_p99"}, "is": "< 1 ms"}, ratio("wal", "delete", "< 1")]}
    assert judged({0: LOW, 1: HIGH}, both).verdict == "contradicted"


def test_a_rate_that_was_given_leaves_a_ratio_of_throughputs_open() -> None:
    claim = Claim.model_validate({"id": "x", "says": "y", "predicate": ratio("wal", "delete", "> 1")})
    plan = study({"journal": ["delete", "wal"]}, compare="journal", min=6, max=6)
    plan = plan.model_copy(update={"published": Published(findings=(claim,))})
    runs = Runs(plan).add_cells({0: LOW, 1: HIGH})
    (found,) = analyse(plan, [run.model_copy(update={"loop": "open"}) for run in runs], ended=None).claims
    assert found.verdict == "open"
    assert "the rate of delete or wal was given" in found.reason


@pytest.mark.parametrize("where", ["every cell", "all together"])
def test_one_pair_whose_rate_was_given_leaves_what_is_said_of_all_pairs_open(where: str) -> None:
    claim = Claim.model_validate({"id": "x", "says": "y", "predicate": ratio("wal", "delete", "> 1", where)})
    plan = study({"journal": ["delete", "wal"], "seed": [1, 2]}, compare="journal", min=6, max=6)
    plan = plan.model_copy(update={"published": Published(findings=(claim,))})
    runs = Runs(plan).add_cells({0: LOW, 1: LOW, 2: HIGH, 3: HIGH})
    (found,) = analyse(plan, runs, ended=None).claims
    assert found.verdict == "confirmed"
    last = [run.model_copy(update={"loop": "open"}) if run.slot.cell in {1, 3} else run for run in runs]
    (found,) = analyse(plan, last, ended=None).claims
    assert found.verdict == "open"
    assert "the rate of delete or wal was given" in found.reason
