"""Verdicts in few lines, and on the page with what they rest on."""

from __future__ import annotations

import io
from itertools import product

import fake_results
import pytest
from rich.console import Console

from dyno.analysis import analyse
from dyno.model.findings import Bottleneck, BottleneckVerdict, Findings, VerdictEvidence
from dyno.report import terminal
from dyno.report.html import render, write
from dyno.report.verdicts import verdict_lines


def verdict(cell: int, levels: dict[str, str], kind: Bottleneck, sentence: str) -> BottleneckVerdict:
    evidence = VerdictEvidence(name="threads that waited for a sync", value=0.953, threshold=0.7, unit="1")
    return BottleneckVerdict(
        cell=cell,
        levels=levels,
        kind=kind,
        sentence=sentence,
        evidence=(evidence,),
        agree=4,
        runs=5,
        against=("The device was busy 97% of the time.",),
        next="Next: the CPU, which was used 41%.",
    )


def with_verdicts(found: list[BottleneckVerdict]) -> Findings:
    results = fake_results.eight_cells()
    findings = analyse(results.study, results.runs, ended=results.ended)
    return findings.model_copy(update={"verdicts": tuple(found)})


def fifty_four() -> list[BottleneckVerdict]:
    """One of four clients and more waits for syncs, fewer are on the CPU; a single cell is otherwise."""
    combinations = list(product(("native", "layered", "volume"), ("fsync", "direct"), "abc", ("1", "4", "8")))
    found = []
    for number, levels in enumerate(combinations):
        named = dict(zip(("deployment", "flush", "workload", "threads"), levels, strict=True))
        kind: Bottleneck = "cpu-path" if named["threads"] == "1" else "disk-sync"
        kind = "locks" if number == 1 else kind
        found.append(verdict(number, named, kind, f"Of {kind}."))
    return found


def test_a_few_cells_have_a_line_each_with_all_that_is_said_of_them() -> None:
    (line,) = verdict_lines(with_verdicts([verdict(0, {"size": "1"}, "disk-sync", "Disk-bound.")]))
    assert line == (
        "size=1: Disk-bound. (4 of 5 runs) The device was busy 97% of the time. Next: the CPU, which was used 41%."
    )
    (line,) = verdict_lines(with_verdicts([verdict(0, {}, "locks", "Lock-bound.")]))
    assert line.startswith("Lock-bound. (4 of 5 runs)")


def test_many_cells_are_told_by_what_they_have_in_common() -> None:
    lines = list(verdict_lines(with_verdicts(fifty_four())))
    assert len(lines) == 3
    assert lines[0].startswith("Disk-bound (sync latency): 35 of 54 cells, deployment=native flush=fsync workload=a")
    assert " and 31 more. Such as " in lines[0]
    assert lines[1].startswith("Bound by CPU time on the way of each operation: 18 of 54 cells, threads=1. Such as ")
    assert lines[2].startswith("Lock-bound: 1 of 54 cells, deployment=native flush=fsync workload=a threads=4. Such as")
    every = [found.model_copy(update={"kind": "locks"}) for found in fifty_four()]
    assert next(verdict_lines(with_verdicts(every))).startswith("Lock-bound: 54 of 54 cells, all.")


@pytest.mark.parametrize("width", [80, 120])
def test_they_are_the_last_thing_on_a_terminal_and_cannot_steer_it(width: int) -> None:
    out = io.StringIO()
    findings = with_verdicts([verdict(0, {"size": "\x1b[2J"}, "disk-sync", "[red]Disk-bound.")])
    terminal.show(findings, Console(file=out, width=width, force_terminal=True, color_system=None))
    head, _, told = out.getvalue().partition("What held each cell back\n")
    assert head
    assert " ".join(told.split()).startswith("size= [2J: [red]Disk-bound. (4 of 5 runs)")
    assert "\x1b[2J" not in told


def test_the_page_has_a_line_a_cell_and_its_evidence_folded(tmp_path) -> None:
    results = fake_results.eight_cells()
    html = write(results, with_verdicts(fifty_four()), tmp_path).read_text()
    section = html.partition('<section id="verdicts">')[2].partition("</section>")[0]
    assert section.count("<details>") == 54
    assert "18 of 54 cells, threads=1." in section
    assert section.count("threads that waited for a sync") == 54
    assert ">0.9530<" in section
    assert ">0.7000<" in section
    assert html.index('id="verdicts"') < html.index('id="figures"')
    assert 'id="verdicts"' not in render(results, with_verdicts([]))
