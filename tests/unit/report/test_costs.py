"""What an operation costs and what the machine did, as the page, the terminal and the tables have it."""

from __future__ import annotations

import csv
import io
import re
from types import SimpleNamespace

import fake_results
import polars as pl
import pytest
from rich.console import Console
from test_figures import rows, texts, timeline_of
from test_page import Page

from dyno.analysis import analyse
from dyno.model.run import Outcome
from dyno.model.usage import FOREMOST, Usage
from dyno.report import figures, terminal, to_csv
from dyno.report.html import render
from dyno.report.per_op import _without

COST = {"server.cpu": 60e-6, "driver.cpu": 9e-6, "server.switches": 1.2, "disk.written": 900.0, "net.sent": 300.0}


def uses(results) -> dict[int, Usage]:
    """Of each ok run: containers take a twentieth more CPU time, and no run reads from the disk."""
    found = {}
    for run in results.runs:
        if run.outcome is Outcome.OK:
            more = 1.05 if any("container" in level for level in run.levels.values()) else 1.0
            noise = 1 + 0.001 * (run.run % 7)
            per_op = {name: value * more * noise for name, value in COST.items()} | {"disk.read": 0.0}
            per_s = {name: value * 1000 for name, value in per_op.items()}
            found[run.run] = Usage(seconds=30, operations=30_000, samples=30, cpus=2, per_op=per_op, per_s=per_s)
    return found


def findings_of(results):
    return analyse(results.study, results.runs, ended=results.ended, used=uses(results))


def page_of(results) -> Page:
    return Page(render(results, findings_of(results)))


def part(page: Page) -> str:
    return page.html[page.html.index('id="per-operation"') : page.html.index('id="figures"')]


@pytest.fixture(scope="module")
def fifty_four():
    return page_of(fake_results.fifty_four_cells())


def told_of(used: dict[str, float]) -> str:
    results = fake_results.eight_cells()
    found = {
        run.run: Usage(seconds=30, operations=30_000, samples=30, cpus=2, per_op=used, per_s=used)
        for run in results.runs
        if run.outcome is Outcome.OK
    }
    return part(Page(render(results, analyse(results.study, results.runs, ended=results.ended, used=found))))


def test_a_system_is_said_to_work_within_the_driver_only_where_the_driver_was_seen_and_no_process_of_a_system() -> None:
    within = "The system works within the driver's calls"
    assert within in told_of({"driver.cpu": 9e-6, "disk.written": 900.0})
    assert within not in told_of({"driver.cpu": 9e-6, "server.cpu": 60e-6})
    unseen = told_of({"disk.written": 900.0})
    assert within not in unseen, "the runs may have been too short for any sample of processes"
    assert "The one resource that is known of each cell" in unseen


def test_each_cell_has_its_foremost_resources_and_its_ratio_to_the_first_level(fifty_four) -> None:
    html = part(fifty_four)
    html = html[html.index("<h3>Each cell</h3>") :]
    table = html[html.index("<table>") : html.index("</table>")]
    assert table.count("<tr>") == 1 + 54
    heads = re.findall(r'title="[^"]+">([\w.]+)<br>', table)
    assert heads == [name for name in FOREMOST if name in COST]
    assert "disk.read" not in heads, "never used, it stands with the others"
    assert table.count("1.05x [") == 36 * len(heads)


def test_each_level_over_all_combinations_stands_below(fifty_four) -> None:
    html = part(fifty_four)
    assert "Each deployment over native, over many combinations together" in html
    assert "1.050x" in html or "1.05x" in html


def test_every_resource_of_every_cell_is_there_with_interval_or_reason(fifty_four) -> None:
    html = part(fifty_four)
    folded = html[html.index("All 7 resources and shares of each cell") :].split("</section>")[0]
    assert folded.count("<table>") == 7
    assert "it is 0 on both sides" in folded
    assert "Share that the system used of the CPU time that it may use" in folded


def test_where_nothing_was_observed_the_page_says_why() -> None:
    results = fake_results.eight_cells()
    findings = analyse(results.study, results.runs, ended=results.ended)
    page = Page(render(results, findings))
    assert "Not known: the runs left no samples of their measured parts." in page.text


def test_one_cell_has_its_costs_and_no_ratios() -> None:
    html = part(page_of(fake_results.one_cell()))
    assert "the only cell" in html
    assert "ratio to" not in html.lower()


def test_a_study_without_runs_has_no_such_part() -> None:
    results = fake_results.eight_cells()
    results.runs = []
    findings = analyse(results.study, [], ended=None)
    assert 'id="per-operation"' not in render(results, findings)


# The terminal and the tables


def shown(findings, width: int | None = None) -> str:
    out = io.StringIO()
    terminal.show(findings, Console(file=out, width=width, force_terminal=width is not None, color_system=None))
    return out.getvalue()


def test_the_terminal_has_means_and_the_ratios_over_all_combinations() -> None:
    text = shown(findings_of(fake_results.fifty_four_cells()))
    below = text[text.index("What an operation costs") :]
    assert "server.cpu (us)" in below
    assert below.count(" higher") == 12, "five resources and a share at two levels"
    assert "Each deployment over native, many combinations together" in below


def test_few_cells_have_their_ratios_in_words() -> None:
    study = fake_results.make_study({"deployment": ["native", "container"]}, "deployment")
    results = fake_results.FakeResults(study, fake_results.make_runs(study, 5, trouble=False))
    text = shown(findings_of(results))
    assert "CPU time of the system per operation, deployment container against native: 1.05" in text


@pytest.mark.parametrize("width", [60, 80, 120])
def test_no_line_is_wider_than_the_terminal(width: int) -> None:
    study = fake_results.make_study({"deployment": ["native", "container"], "threads": [1, 8]}, "deployment")
    results = fake_results.FakeResults(study, fake_results.make_runs(study, 5, trouble=False))
    below = shown(findings_of(results), width)
    below = below[below.index("What an operation costs") :]
    assert max(map(len, below.splitlines())) <= width


def test_the_csv_has_a_line_for_each_resource_of_each_cell() -> None:
    findings = findings_of(fake_results.eight_cells())
    lines = [line for line in csv.DictReader(io.StringIO(to_csv(findings))) if line["response"] == "server.cpu"]
    assert len(lines) == 8
    assert {line["unit"] for line in lines} == {"us"}
    assert all(float(line["ci_low"]) < float(line["mean"]) < float(line["ci_high"]) for line in lines)
    assert len(findings.resources) == 8 * 7


# Time lines


def sampled(results, run, **values: float) -> pl.DataFrame:
    """The samples of a run, and with each of them more of the machine's and of its processes' metrics."""
    samples = results.samples(run.run)
    times = samples.select("time_ns", "host").unique()
    more = [
        times.with_columns(
            source=pl.lit("machine" if metric.startswith("stat") else "process"),
            subject=pl.lit(subject),
            metric=pl.lit(metric),
            value=pl.lit(value),
        )
        for name, value in values.items()
        for subject, metric in [name.split("/")]
    ]
    return pl.concat([samples, *more], how="diagonal")


def drawn(results, run, samples: pl.DataFrame):
    return figures.timeline(results.study.cells[run.slot.cell], run, samples, results.intervals(run.run))


def test_cpu_time_is_shown_by_whom_and_what_is_left_is_of_the_rest_of_the_machine() -> None:
    results = fake_results.sampled(fake_results.eight_cells())
    run = results.runs[0]
    samples = sampled(results, run, **{"machine/stat.ticks": 200.0})
    found = [row for row in rows(drawn(results, run, samples)) if row["panel"] == "CPU by whom"]
    assert {row["series"] for row in found} == {"system, user", "system, kernel", "driver", "rest of the machine"}
    assert {row["unit"] for row in found} == {"% of one"}
    at = found[0]["t"]
    values = {row["series"]: float(row["value"]) for row in found if row["t"] == at}
    first = samples.filter(pl.col("time_ns") == samples["time_ns"].min())

    def of(subject: str, *metrics: str) -> float:
        return float(first.filter(pl.col("subject") == subject, pl.col("metric").is_in(metrics))["value"].sum())

    assert values["system, user"] == pytest.approx(of("sqlite", "proc.usr"), abs=0.001)
    assert values["system, kernel"] == pytest.approx(of("sqlite", "proc.sys"), abs=0.001)
    assert values["driver"] == pytest.approx(of("driver", "proc.usr", "proc.sys"), abs=0.001)
    busy = 2 * of("machine", "cpu.usr", "cpu.nice", "cpu.sys", "cpu.irq", "cpu.soft")
    rest = busy - of("sqlite", "proc.usr", "proc.sys") - of("driver", "proc.usr", "proc.sys")
    assert values["rest of the machine"] == pytest.approx(max(rest, 0.0), abs=0.01)


def test_what_is_left_is_not_told_where_the_clock_ticks_are_not_known() -> None:
    results = fake_results.sampled(fake_results.eight_cells())
    found = [row for row in rows(timeline_of(results, results.runs[0])) if row["panel"] == "CPU by whom"]
    assert {row["series"] for row in found} == {"system, user", "system, kernel", "driver"}


def test_before_the_processes_are_told_of_their_time_is_not_called_the_rest() -> None:
    results = fake_results.sampled(fake_results.eight_cells())
    run = results.runs[0]
    samples = sampled(results, run, **{"machine/stat.ticks": 200.0})
    times = sorted(samples["time_ns"].unique())
    met = pl.when(pl.col("subject") == "driver").then(times[3]).when(pl.col("subject") == "sqlite").then(times[2])
    later = samples.filter(pl.col("time_ns") >= met.otherwise(0))
    panels = rows(drawn(results, run, later))
    assert min(float(row["t"]) for row in panels if row["panel"] == "CPU") == 3.0
    assert {row["t"] for row in panels if row["panel"] == "CPU by whom"} == {str(3.0 + at) for at in range(3, 40)}


def test_a_last_sample_of_a_short_time_is_in_the_table_and_not_drawn() -> None:
    results = fake_results.sampled(fake_results.eight_cells())
    run = results.runs[0]
    samples = results.samples(run.run)
    last = samples.filter(pl.col("time_ns") == samples["time_ns"].max())
    more = last.with_columns(pl.col("time_ns") + 50_000_000, pl.lit(123_456.0).alias("value"))
    figure = drawn(results, run, pl.concat([samples, more]))
    assert "The last sample is of a far shorter time than the others and not drawn." in " ".join(texts(figure))
    assert rows(figure)[-1]["value"] == "123456.0"
    assert "120,000" not in texts(figure)
    assert "far shorter" not in " ".join(texts(timeline_of(results, run)))


def test_context_switches_are_of_the_machine_the_system_and_the_driver() -> None:
    results = fake_results.sampled(fake_results.eight_cells())
    run = results.runs[0]
    samples = sampled(
        results, run, **{"sqlite/proc.cswch": 70.0, "sqlite/proc.nvcswch": 5.0, "driver/proc.cswch": 30.0}
    )
    found = [row for row in rows(drawn(results, run, samples)) if row["panel"] == "context switches"]
    assert {row["value"] for row in found if row["series"] == "system"} == {"75.0"}
    assert {row["value"] for row in found if row["series"] == "driver"} == {"30.0"}
    assert min(float(row["value"]) for row in found if row["series"] == "machine") > 8000


def test_the_disk_of_the_data_is_named_as_such() -> None:
    results = fake_results.sampled(fake_results.eight_cells())
    run = results.runs[0].model_copy(update={"disk": "vda"})
    assert "disk busy: vda (data)" in texts(drawn(results, run, results.samples(run.run)))


def with_watch(results, run, missed: dict[int, float], lag_ms: dict[int, float]) -> pl.DataFrame:
    """What the sampler says of its own samples, of those in that place."""
    samples = results.samples(run.run)
    times = sorted(samples["time_ns"].unique())
    told = [
        (at, "local", "watch", "watch", metric, values.get(place, 0.0))
        for place, at in enumerate(times)
        for metric, values in (("watch.missed", missed), ("watch.lag", lag_ms))
    ]
    return pl.concat([samples, pl.DataFrame(told, samples.schema, orient="row")])


def test_gaps_and_late_samples_are_shaded_and_told() -> None:
    results = fake_results.sampled(fake_results.eight_cells())
    run = results.runs[0]
    figure = drawn(results, run, with_watch(results, run, {10: 3.0}, {20: 700.0}))
    told = (
        "Shaded grey: 3 samples were not taken and 1 came late, by 0.7 s; the next point is the mean over all of that"
    )
    assert told in " ".join(texts(figure))
    plain = timeline_of(results, run)
    grey = '"#8c8c8c"'
    panels = len({row["panel"] for row in rows(figure)})
    assert figure.svg.count(f"fill={grey}") - plain.svg.count(f"fill={grey}") == 2 * (panels - 1), "not upon throughput"


def test_samples_in_time_are_not_talked_about() -> None:
    results = fake_results.sampled(fake_results.eight_cells())
    run = results.runs[0]
    figure = drawn(results, run, with_watch(results, run, {}, dict.fromkeys(range(40), 400.0)))
    assert "Shaded grey" not in " ".join(texts(figure))


def test_gaps_that_touch_are_one_and_many_stay_drawable() -> None:
    results = fake_results.sampled(fake_results.eight_cells())
    run = results.runs[0]
    figure = drawn(results, run, with_watch(results, run, dict.fromkeys(range(5, 15), 1.0), {}))
    panels = len({row["panel"] for row in rows(figure)})
    assert figure.svg.count('fill="#8c8c8c"') == panels - 1
    assert "10 samples were not taken" in " ".join(texts(figure))


def test_ratios_that_are_missing_for_one_reason_are_one_line() -> None:
    """Of a study of sixty comparisons the terminal had sixty lines of `no ratio`."""
    some = [
        SimpleNamespace(resource=name, sentence=f"{name}: alone.") for name in ("disk.read", "disk.read", "net.sent")
    ]
    told = _without("it is 0 on both sides", some)  # type: ignore[arg-type]
    assert told == "No ratio in 3 comparisons (disk.read, net.sent), since it is 0 on both sides."
    assert _without("it is 0 on both sides", some[:1]) == "disk.read: alone."  # type: ignore[arg-type]
