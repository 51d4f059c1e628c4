"""Where instructions go, on the page, as figures and on a terminal."""

from __future__ import annotations

import csv
import io
import re

import fake_results
from rich.console import Console

from dyno.analysis import analyse
from dyno.model.findings import (
    CallCost,
    ComponentCost,
    ComponentShare,
    Contributed,
    Findings,
    Removal,
    RemovalStep,
)
from dyno.report import write
from dyno.report.html import render
from dyno.report.terminal import show


def removal(**rest: object) -> Removal:
    full, less = (
        "keys+log+locks+latches+buffer+transactions+catalogue",
        "log+locks+latches+buffer+transactions+catalogue",
    )
    return Removal.model_validate(
        {
            "transaction": "payment",
            "steps": (
                RemovalStep(assembly=full, removed="", cell=0, instructions=24000, outlined=26000, throughput=60000),
                RemovalStep(
                    assembly=less, removed="keys", cell=1, instructions=20000, saved=4000, share=1 / 6, throughput=70000
                ),
            ),
            "kernel": RemovalStep(assembly="kernel", removed="", cell=2, instructions=1500, throughput=400000),
            "shares": (
                ComponentShare(
                    component="keys",
                    published=0.16,
                    note="about",
                    removed=1 / 6,
                    attributed=0.29,
                    since=0.0067,
                    apart=-0.125,
                    agree=False,
                ),
                ComponentShare(component="pages", published=0.14),
                ComponentShare(component="left", removed=0.83),
            ),
            "agreement": "(a) and (b) do not <agree>.",
            "repeatability": "Counts differ by at most 0.012%.",
            "components": (ComponentCost(component="keys", removed=4000, attributed=7000, apart=-0.125, agree=False),),
            "calls": (
                CallCost(call="lookup", calls=3, instructions=9000, components={"keys": 4000, "trees": 5000}),
                CallCost(call="", instructions=2000, components={"transaction": 2000}),
            ),
            "contributions": (Contributed(component="keys", mean=3900, least=3500, most=4100, share=0.16),),
            "sentence": "payment: 24,000 instructions <of all>.",
            **rest,
        }
    )


def with_removal(*found: Removal) -> tuple[fake_results.FakeResults, Findings]:
    results = fake_results.eight_cells()
    findings = analyse(results.study, results.runs, ended=results.ended)
    return results, findings.model_copy(update={"removal": found})


def test_counters_of_calls_have_columns_where_there_are_some(tmp_path) -> None:
    calls = (
        CallCost(call="lookup", calls=3, instructions=9000, components={"keys": 9000}, retired=9100, cycles=14321),
    )
    for found, told in ((removal(calls=calls), True), (removal(), False)):
        page = write(*with_removal(found), tmp_path / str(told)).read_text()
        assert ("14,321" in page, "by the machine’s counters</th>" in page) == (told, told)


def test_the_page_has_steps_components_calls_and_their_figures(tmp_path) -> None:
    results, findings = with_removal(removal())
    page = write(results, findings, tmp_path).read_text()
    (section,) = re.findall(r'<section id="removal">.*?</section>', page, re.DOTALL)
    for told in (
        "without key comparison", "16.7%", "16.0%", "+0.7", "-12.5", "of which larger pages", "what is left", "83.0%",
        "3,500", "&lt;of all&gt;", "&lt;agree&gt;", "at most 0.012%", "3,000", "in no call", "Cycles are not known",
    ):  # fmt: skip
        assert told in section, told
    for name in ("removal-payment", "calls-payment", "orders-payment"):
        assert f"figure-{name}" in section
        assert (tmp_path / "figures" / f"{name}.svg").exists()


def test_the_waterfall_has_what_is_left_and_what_was_removed(tmp_path) -> None:
    results, findings = with_removal(removal())
    write(results, findings, tmp_path)
    rows = list(csv.DictReader(io.StringIO((tmp_path / "figures" / "removal-payment.csv").read_text())))
    assert [(row["step"], row["what"], float(row["from"]), float(row["to"])) for row in rows] == [
        ("all components", "left", 0, 24000),
        ("without key comparison", "left", 0, 20000),
        ("without key comparison", "removed, as published", 20000, 24000),
        ("kernel", "kernel", 0, 1500),
    ]


def test_a_removal_that_costs_something_is_shown_as_more_than_before(tmp_path) -> None:
    steps = [*removal().steps]
    steps[1] = steps[1].model_copy(update={"instructions": 25000, "saved": -1000, "share": -1 / 24})
    results, findings = with_removal(removal(steps=tuple(steps), kernel=None))
    write(results, findings, tmp_path)
    rows = list(csv.DictReader(io.StringIO((tmp_path / "figures" / "removal-payment.csv").read_text())))
    assert [(row["what"], float(row["from"]), float(row["to"])) for row in rows] == [
        ("left", 0, 24000),
        ("left", 0, 24000),
        ("more than before", 24000, 25000),
    ]


def test_where_cycles_are_known_they_stand_beside_instructions(tmp_path) -> None:
    first, less = removal().steps
    steps = (first.model_copy(update={"cycles": 20000.0}), less.model_copy(update={"cycles": 18000.0}))
    results, findings = with_removal(removal(steps=steps, cycles=True))
    page = write(results, findings, tmp_path).read_text()
    assert "figure-cycles-payment" in page
    assert "Cycles are not known" not in page
    rows = list(csv.DictReader(io.StringIO((tmp_path / "figures" / "cycles-payment.csv").read_text())))
    assert [(row["step"], row["event"], round(float(row["share"]), 3)) for row in rows] == [
        ("without key comparison", "instructions", 0.167),
        ("without key comparison", "cycles", 0.1),
        ("what is left", "instructions", 0.833),
        ("what is left", "cycles", 0.9),
    ]


def test_throughput_of_each_step_is_drawn_once_for_all_transactions(tmp_path) -> None:
    results, findings = with_removal(removal(), removal(transaction="new_order"))
    write(results, findings, tmp_path)
    assert [path.name for path in sorted((tmp_path / "figures").glob("throughput-*.csv"))] == ["throughput-payment.csv"]
    rows = list(csv.DictReader(io.StringIO((tmp_path / "figures" / "throughput-payment.csv").read_text())))
    assert [float(row["throughput"]) for row in rows] == [60000, 70000, 400000]


def test_what_is_not_known_of_orders_is_told() -> None:
    told = "72 of the 80 assemblies that there are were not counted"
    results, findings = with_removal(removal(contributions=(), contributions_reason=told))
    page = render(results, findings)
    assert told in page
    assert "figure-orders-payment" not in page


def test_a_page_of_another_engine_says_nothing_of_it() -> None:
    results, findings = with_removal()
    assert 'id="removal"' not in render(results, findings)


def test_a_terminal_has_the_steps_and_both_ways_of_counting() -> None:
    _, findings = with_removal(removal())
    console = Console(file=io.StringIO(), width=140)
    show(findings, console)
    said = console.file.getvalue()
    for told in (
        "Where the instructions go: payment",
        "without key comparison",
        "24,000",
        "-12.5",
        "16.0%",
        "key comparison",
    ):
        assert told in said, told
