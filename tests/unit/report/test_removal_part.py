"""Where instructions go, on the page, as figures and on a terminal."""

from __future__ import annotations

import csv
import io
import re

import fake_results
from rich.console import Console

from dyno.analysis import analyse
from dyno.model.findings import CallCost, ComponentCost, Contributed, Findings, Removal, RemovalStep
from dyno.report import write
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


def test_the_page_has_steps_components_calls_and_their_figures(tmp_path) -> None:
    results, findings = with_removal(removal())
    page = write(results, findings, tmp_path).read_text()
    (section,) = re.findall(r'<section id="removal">.*?</section>', page, re.DOTALL)
    for told in ("without key comparison", "16.7%", "-12.5%", "3,900", "&lt;of all&gt;", "3,000", "in no call"):
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
        ("without key comparison", "removed, as published", 20000, 24000),
        ("without key comparison", "left", 0, 20000),
        ("kernel", "kernel", 0, 1500),
    ]


def test_what_is_not_known_of_orders_is_told(tmp_path) -> None:
    told = "72 of the 80 assemblies that there are were not counted"
    results, findings = with_removal(removal(contributions=(), contributions_reason=told))
    assert told in write(results, findings, tmp_path).read_text()
    assert not (tmp_path / "figures" / "orders-payment.svg").exists()


def test_a_page_of_another_engine_says_nothing_of_it(tmp_path) -> None:
    results, findings = with_removal()
    assert 'id="removal"' not in write(results, findings, tmp_path).read_text()


def test_a_terminal_has_the_steps_and_both_ways_of_counting() -> None:
    _, findings = with_removal(removal())
    console = Console(file=io.StringIO(), width=140)
    show(findings, console)
    said = console.file.getvalue()
    for told in ("Where the instructions go: payment", "without key comparison", "24,000", "-12.5%", "key comparison"):
        assert told in said, told
