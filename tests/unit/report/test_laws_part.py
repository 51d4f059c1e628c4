"""What resources allow, on the page, in its figure and on a terminal."""

from __future__ import annotations

import csv
import io
import re
from pathlib import Path

import fake_results
import pytest
from rich.console import Console
from tests.laws_study import Network

from dyno.analysis import analyse, forecast_throughput
from dyno.model.findings import Findings
from dyno.report import figures, html, terminal
from dyno.report.laws import reached


def findings_of(made: Network) -> Findings:
    return analyse(made.study, made.runs, ended="done", used=made.used)


def page(made: Network) -> str:
    results = fake_results.FakeResults(made.study, made.runs)
    return html.render(results, findings_of(made))


def shown(findings: Findings) -> str:
    out = io.StringIO()
    terminal.show(findings, Console(file=out, color_system=None))
    return out.getvalue()


@pytest.fixture(scope="module")
def network() -> Network:
    return Network([1, 2, 4, 8])


def test_the_page_has_the_demands_the_bounds_the_forecasts_and_the_checks(network: Network, tmp_path: Path) -> None:
    results = fake_results.FakeResults(network.study, network.runs)
    text = html.write(results, findings_of(network), tmp_path).read_text()
    part = text[text.index('<section id="laws">') :]
    part = part[: part.index("</section>")]
    for wanted in ("2 CPUs", "the disk", "N*", "Throughput over threads, and what its demands allow", "0 broken"):
        assert wanted in part
    assert "demands that depend on load forecast threads 2 to 4" in part
    assert (tmp_path / "figures" / "bounds.svg").exists()
    assert "contradict" not in part


def test_faults_stand_first_and_name_their_runs() -> None:
    made = Network([1, 2, 4, 8], blocks=2)
    made.replace_run(3, latency_mean=100.0)
    text = page(made)
    assert text.index("Run 3 (threads=4) contradicts itself") < text.index("Each in a sentence")
    assert "The figures of 1 ok run contradict each other" in text
    told = shown(findings_of(made))
    assert told.index("Measuring faults") < told.index("What the resources allow")
    assert "9 laws" not in told
    assert "1 times broken" in told


def test_a_bound_that_is_not_told_is_no_figure_on_the_page() -> None:
    made = Network([8, 16], blocks=2, delay=0.0)
    for number, used in made.used.items():
        whole = 4 * used.per_op["machine.cpu"]
        made.replace_usage(number, per_op={"machine.cpu": whole, "rest.cpu": 0.75 * whole})
    del made.used[1]
    part = page(made).partition('<section id="laws">')[2].partition("</section>")[0]
    assert '<td class="number strong">not told</td>' in part
    assert '<td class="number nowrap">1 of 2</td>' in part
    assert "runs with<br>samples" not in page(Network([8, 16], blocks=2)), "where samples tell of all of them"
    drawn = figures.bounds(made.study, findings_of(made), figures.Palette(made.study))
    assert drawn is not None
    kinds = {row["kind"] for row in csv.DictReader(io.StringIO(drawn.csv))}
    assert kinds == {"measured", "clients"}


def test_of_a_bound_no_share_above_all_of_it_is_shown(network: Network) -> None:
    found = findings_of(network).laws.cells[0]
    for figures_of, said in (
        ({"reached": 0.5, "reached_ci": None}, "50%"),
        ({"reached": 1.02, "reached_ci": (0.9, 1.2)}, "not below"),
        ({"reached": 1.93, "reached_ci": None}, "no bound"),
        ({"reached": None, "reached_ci": None}, "not told"),
    ):
        assert reached(found.model_copy(update=figures_of)) == said


def test_a_page_without_observed_runs_has_no_such_part() -> None:
    results = fake_results.eight_cells()
    findings = analyse(results.study, results.runs, ended=results.ended)
    assert 'id="laws"' not in html.render(results, findings)
    assert figures.bounds(results.study, findings, figures.Palette(results.study)) is None


def test_the_figure_has_each_level_under_both_asymptotes(network: Network) -> None:
    findings = findings_of(network)
    drawn = figures.bounds(network.study, findings, figures.Palette(network.study))
    assert drawn is not None
    rows = list(csv.DictReader(io.StringIO(drawn.csv)))
    kinds = {(row["kind"], row["x"]): float(row["value"]) for row in rows}
    assert {kind for kind, _ in kinds} == {"measured", "demand", "clients"}
    for cell in findings.laws.cells:
        x = str(float(cell.levels["threads"]))
        assert kinds["measured", x] == cell.throughput
        assert min(kinds["demand", x], kinds["clients", x]) == pytest.approx(cell.bound, rel=0.01)
    assert not re.search(r"NaN|undefined", drawn.svg)


def test_of_one_number_of_clients_there_is_no_figure() -> None:
    made = Network([4], blocks=2)
    assert figures.bounds(made.study, findings_of(made), figures.Palette(made.study)) is None


def test_names_that_a_user_wrote_stay_text() -> None:
    made = Network([1, 2], blocks=2, others={"<script>alert(1)</script>": ("<b>", "b&b")})
    text = page(made)
    part = text[text.index('<section id="laws">') :]
    assert "<script>alert(1)" not in part
    made = Network([1, 2], blocks=2, others={"colour": ("\x1b[31m", "[red]")})
    told = shown(findings_of(made))
    assert "\x1b" not in told
    assert "With threads=1 colour=[red]" in told


def test_a_forecast_is_told_on_a_terminal(network: Network) -> None:
    out = io.StringIO()
    found = forecast_throughput(network.study, network.runs, network.used, "threads", 3)
    terminal.show_forecasts(found, Console(file=out, color_system=None))
    assert "threads 3 is forecast to have" in out.getvalue()
