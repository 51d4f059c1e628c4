"""What each switch takes, on the page, as figures and on a terminal."""

from __future__ import annotations

import csv
import io
import re
from pathlib import Path

import fake_results
from rich.console import Console

from dyno.analysis import analyse
from dyno.model.findings import Findings, Switches, SwitchStep
from dyno.report import write
from dyno.report.html import render
from dyno.report.terminal import show


def switches() -> Switches:
    return Switches(
        transaction="payment",
        system="sqlite",
        steps=(
            SwitchStep(level="durable", cell=0, instructions=1000, throughput=50),
            SwitchStep(
                level="loose", switched="synchronous: full → <off>", cell=1, instructions=890, saved=110, least=100,
                most=120, share=0.11, throughput=5000,
            ),
            SwitchStep(
                level="bare", switched="in_memory: false → true", cell=2, instructions=900, saved=-10, share=-0.01
            ),
        ),
        sentence="payment on sqlite: 1,000 instructions.",
    )  # fmt: skip


def with_switches(*found: Switches) -> tuple[fake_results.FakeResults, Findings]:
    results = fake_results.eight_cells()
    findings = analyse(results.study, results.runs, ended=results.ended)
    return results, findings.model_copy(update={"switches": found})


def test_the_page_has_each_step_with_what_it_saved_and_its_figure() -> None:
    results, findings = with_switches(switches())
    page = render(results, findings)
    (section,) = re.findall(r'<section id="switches">.*?</section>', page, re.DOTALL)
    for told in (
        "synchronous: full → &lt;off&gt;",
        "100 to 120",
        "11.0%",
        "-1.0%",
        "figure-switches-sqlite-payment",
    ):
        assert told in section, told


def test_the_waterfall_has_what_is_left_and_what_was_saved_or_added(tmp_path: Path) -> None:
    results, findings = with_switches(switches())
    write(results, findings, tmp_path)
    rows = list(csv.DictReader(io.StringIO((tmp_path / "figures" / "switches-sqlite-payment.csv").read_text())))
    assert [(row["step"], row["what"], float(row["from"]), float(row["to"])) for row in rows] == [
        ("durable", "left", 0, 1000),
        ("loose", "left", 0, 890),
        ("loose", "saved against the step before", 890, 1000),
        ("bare", "left", 0, 890),
        ("bare", "added to the step before", 890, 900),
    ]


def test_a_page_of_a_study_that_counts_nothing_says_nothing_of_switches() -> None:
    results, findings = with_switches()
    assert 'id="switches"' not in render(results, findings)


def test_a_terminal_has_the_steps() -> None:
    _, findings = with_switches(switches())
    console = Console(file=io.StringIO(), width=160)
    show(findings, console)
    said = console.file.getvalue()
    for told in ("What each switch takes: payment on sqlite", "in_memory: false → true", "100 to 120", "-1.0%"):
        assert told in said, told
