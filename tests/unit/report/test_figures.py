"""What the figures show, and what they must not."""

from __future__ import annotations

import csv
import io
import re
from itertools import pairwise

import fake_results
import polars as pl
import pytest

from dyno.analysis import analyse
from dyno.model.run import Outcome
from dyno.report import figures
from dyno.report.figures import style
from dyno.report.figures.forest import _ticks
from dyno.report.runs import MOST_RUNS, notable


def findings_of(results):
    return analyse(results.study, results.runs, ended=results.ended)


@pytest.fixture(scope="module")
def eight():
    results = fake_results.sampled(fake_results.eight_cells())
    return results, findings_of(results)


@pytest.fixture(scope="module")
def twenty_seven():
    results = fake_results.twenty_seven_cells()
    return results, findings_of(results)


def rows(figure):
    return list(csv.DictReader(io.StringIO(figure.csv)))


def texts(figure):
    return re.findall(r">([^<>]+)</t(?:ext|span)>", figure.svg)


def test_the_map_has_every_cell_with_its_mean_half_width_and_n(eight) -> None:
    results, findings = eight
    drawn = figures.heat_map(results.study, findings)
    assert len(rows(drawn)) == 8
    assert "385.5" in texts(drawn)
    assert "± 31.75, n = 6" in texts(drawn)
    assert any("95% interval" in text and "ops/s" in text for text in texts(drawn))


def test_a_name_with_characters_that_no_drawing_may_hold_is_drawn_without_them() -> None:
    # No study file has such a level, but a results folder that something else wrote may.
    study = fake_results.make_study({"mode": ["a\x07b", "c\x1b"], "size": [1, 2]}, "mode")
    results = fake_results.FakeResults(study, fake_results.make_runs(study, 2, trouble=False))
    findings, palette = findings_of(results), style.Palette(study)
    for drawn in (figures.heat_map(study, findings), figures.bars(study, findings, palette)):
        assert drawn.png.startswith(b"\x89PNG")
        assert not re.search("[\x00-\x08\x0b\x0c\x0e-\x1f]", drawn.svg)
        assert any("a\ufffdb" in text for text in texts(drawn))


def test_the_map_says_where_there_is_no_ok_run_and_why(twenty_seven) -> None:
    results, findings = twenty_seven
    drawn = figures.heat_map(results.study, findings)
    assert "no ok run" in texts(drawn)
    assert "5 failed" in texts(drawn)


def test_the_ordered_factor_runs_across_the_map(twenty_seven) -> None:
    results, findings = twenty_seven
    assert {row["across"] for row in rows(figures.heat_map(results.study, findings))} == {"1", "4", "8"}


@pytest.mark.parametrize(
    ("low", "high"), [(1518, 91_666), (0.02, 9), (1, 21), (1e6, 3e8), (1e-3, 1e9), (900, 19_000), (1e-4, 3), (21, 999)]
)
def test_the_labels_of_a_log_scale_stand_apart_along_all_of_its_legend(low, high) -> None:
    study = fake_results.make_study({"mode": ["a", "b"], "size": [1, 2]}, "mode")
    runs = fake_results.make_runs(study, 2, trouble=False)
    values = (low, low * 1.01, high * 0.99, high)
    runs = [run.model_copy(update={"responses": {"throughput": values[run.slot.cell]}}) for run in runs]
    svg = figures.heat_map(study, findings_of(fake_results.FakeResults(study, runs))).svg
    legend = re.search(r'role-legend-label"[^>]*>(.*?)</g>', svg)[1]
    assert 'opacity="0"' not in legend, "the renderer took one away"
    found = re.findall(r'text-anchor="(\w+)" transform="translate\(([\d.]+),[^>]*textLength="([\d.]+)"', legend)
    begins = {"start": 0.0, "middle": 0.5, "end": 1.0}
    spans = [(float(x) - begins[anchor] * float(wide), float(wide)) for anchor, x, wide in found]
    assert len(spans) >= 2
    assert all(before + wide + 10 <= after for (before, wide), (after, _) in pairwise(spans))
    # Round numbers come twice within a tenfold, and a label takes some room beside them.
    assert spans[0][0] < 90
    assert sum(spans[-1]) > 130


def test_lines_have_a_panel_for_each_combination_of_the_other_factors(twenty_seven) -> None:
    results, findings = twenty_seven
    drawn = figures.lines(results.study, findings, style.Palette(results.study))
    assert {row["facet"] for row in rows(drawn)} == {"workload=a", "workload=b", "workload=c"}
    assert {row["series"] for row in rows(drawn)} == {"native", "container-layered", "container-volume"}
    assert all(row["ci_low"] and row["ci_high"] for row in rows(drawn))


def test_a_level_has_one_colour_in_all_figures(twenty_seven) -> None:
    results, findings = twenty_seven
    palette = style.Palette(results.study)
    colours = {palette.of("deployment", level) for level in ("native", "container-layered", "container-volume")}
    assert len(colours) == 3
    for draw in (figures.lines, figures.bars, figures.forest):
        svg = draw(results.study, findings, palette).svg
        assert palette.of("deployment", "container-volume") in svg


def test_a_study_without_factors_has_bars_and_no_other_figure() -> None:
    results = fake_results.one_cell()
    findings, palette = findings_of(results), style.Palette(results.study)
    assert figures.heat_map(results.study, findings) is None
    assert figures.lines(results.study, findings, palette) is None
    assert figures.forest(results.study, findings, palette) is None
    assert len(rows(figures.bars(results.study, findings, palette))) == 1


def test_a_study_without_runs_has_no_figure() -> None:
    results = fake_results.nothing()
    findings, palette = findings_of(results), style.Palette(results.study)
    assert figures.heat_map(results.study, findings) is None
    assert figures.lines(results.study, findings, palette) is None
    assert figures.bars(results.study, findings, palette) is None
    assert figures.forest(results.study, findings, palette) is None


def test_marks_stand_where_they_did_to_a_tenth_of_a_pixel_and_a_scale_keeps_its_digits() -> None:
    svg = '<path transform="translate(217.41454,307.33) scale(0.12345)" d="M0.123,4.56L7,8" opacity="0.755"/>'
    short = '<path transform="translate(217.4,307.3) scale(0.12345)" d="M0.1,4.6L7,8" opacity="0.755"/>'
    assert style._shorter(svg) == short


def test_no_figure_has_more_digits_than_a_pixel_shows(eight) -> None:
    results, findings = eight
    drawn = figures.bars(results.study, findings, figures.Palette(results.study)).svg
    assert drawn.count("translate(") > 40
    assert not re.findall(r"translate\([^)]*\.\d{2}", drawn)


def test_runs_are_thinned_where_they_would_be_a_smear_and_it_is_said() -> None:
    study = fake_results.make_study({}, None)
    results = fake_results.FakeResults(study, fake_results.make_runs(study, 130, trouble=False))
    drawn = figures.bars(study, findings_of(results), style.Palette(study))
    assert "One in 3 runs is shown as a ring." in " ".join(texts(drawn))


def test_the_forest_gives_each_comparison_in_figures_and_in_words(eight) -> None:
    results, findings = eight
    drawn = figures.forest(results.study, findings, style.Palette(results.study))
    assert rows(drawn)[0]["name"] == "threads=1: wal / delete"
    assert any("2.16x [2.09, 2.24]" in text for text in texts(drawn))


def test_the_forest_leaves_it_to_the_text_to_call_an_interval_without_one_a_difference() -> None:
    """Each of its intervals stands for itself, while what the text calls a difference is corrected for their number."""
    study = fake_results.make_study({"mode": ["a", "b"], "size": ["1", "2", "3", "4"]}, "mode")
    noise, effect = (97.0, 99.0, 100.0, 101.0, 103.0), {"a": 1.0, "b": 1.035}
    runs = [
        run.model_copy(update={"responses": {"throughput": effect[run.levels["mode"]] * noise[place % 5]}})
        for run in fake_results.make_runs(study, 5, trouble=False)
        for place in [run.slot.block * (1 + run.slot.cell)]
    ]
    found = findings_of(fake_results.FakeResults(study, runs))
    without_one = [each for each in found.comparisons if not each.ci[0] <= 1 <= each.ci[1]]
    assert "no difference shown" in {each.verdict for each in without_one}
    said = " ".join(texts(figures.forest(study, found, style.Palette(study))))
    assert "An interval without 1 is a difference only if the text calls it one." in said


def test_a_phone_shows_the_points_of_the_forest_however_long_their_names_are() -> None:
    """With the names beside the plot, 400 px were names alone."""
    study = fake_results.make_study({"store": ["a store with a long name " * 2, "b " * 30], "size": [1, 2]}, "store")
    found = findings_of(fake_results.FakeResults(study, fake_results.make_runs(study, 4, trouble=False)))
    drawn = figures.forest(study, found, style.Palette(study))
    left = float(re.search(r'<g transform="translate\(([\d.]+),', drawn.svg)[1])
    points = re.findall(r'<path transform="translate\(([\d.]+),[\d.]+\)" d="M[^"]*A', drawn.svg)
    assert len(points) == len(rows(drawn)) == 2
    assert all(left + float(x) < 400 for x in points)


def test_an_interval_wider_than_any_axis_is_cut_in_the_drawing_alone() -> None:
    study = fake_results.make_study({"mode": ["a", "b"]}, "mode")
    runs = fake_results.make_runs(study, 2, trouble=False)
    wild = {(0, 0): 1.0, (1, 0): 1e6, (0, 1): 1e6, (1, 1): 1.0}
    runs = [run.model_copy(update={"responses": {"throughput": wild[run.slot.cell, run.slot.block]}}) for run in runs]
    found = findings_of(fake_results.FakeResults(study, runs))
    drawn = figures.forest(study, found, style.Palette(study))
    assert found.comparisons[0].ci[1] > 1e6
    assert float(rows(drawn)[0]["ci_high"]) == found.comparisons[0].ci[1]
    assert "1000" in texts(drawn) or "1,000" in texts(drawn)


def one_wild(values: list[float]):
    study = fake_results.make_study({}, None)
    runs = fake_results.make_runs(study, len(values), trouble=False)
    runs = [run.model_copy(update={"responses": {"throughput": values[run.slot.block]}}) for run in runs]
    found = findings_of(fake_results.FakeResults(study, runs))
    return found, figures.bars(study, found, style.Palette(study))


def test_bars_do_not_go_below_zero_where_an_interval_does(eight) -> None:
    """Student's interval of two runs far apart is mostly below 0, where no throughput is."""
    found, drawn = one_wild([1.0, 100.0])
    assert found.cells[0].ci[0] == 0
    assert float(rows(drawn)[0]["ci_low"]) == found.cells[0].ci[0], "the figures stay as they are"
    assert not [text for text in texts(drawn) if text.startswith(("-", "\N{MINUS SIGN}"))]


def test_small_values_on_an_axis_are_written_out() -> None:
    study = fake_results.make_study({"mode": ["a", "b"]}, "mode")
    runs = fake_results.make_runs(study, 3, trouble=False)
    runs = [run.model_copy(update={"responses": {"throughput": (0.05, 9.0)[run.slot.cell]}}) for run in runs]
    drawn = figures.bars(study, findings_of(fake_results.FakeResults(study, runs)), style.Palette(study))
    assert "0.1" in texts(drawn)
    assert not [text for text in texts(drawn) if re.fullmatch(r"\d+m", text)]


def test_a_series_of_a_single_point_is_no_panel(eight) -> None:
    results, _ = eight
    run = results.runs[0]
    samples = results.samples(run.run).clear()
    at = run.started_ns + 10**9
    single = pl.DataFrame(
        [{"time_ns": at, "host": "local", "source": "proc", "subject": "driver", "metric": "proc.usr", "value": 5.0}]
    )
    single = single.select(samples.columns).cast(dict(samples.schema))
    drawn = figures.timeline(results.study.cells[run.slot.cell], run, single, results.intervals(run.run))
    assert {row["panel"] for row in rows(drawn)} == {"throughput"}


@pytest.mark.parametrize(("low", "high"), [(-0.01, 0.01), (-0.1, 0.4), (-7.0, 7.0), (-0.0002, 1.2)])
def test_the_ratio_axis_always_has_its_line_at_one_and_a_few_labels_apart(low, high) -> None:
    ticks = _ticks(low, high)
    assert 1.0 in ticks
    assert 2 <= len(ticks) <= 12
    assert ticks == sorted(set(ticks))


def test_ids_are_the_figure_s_own_and_the_same_on_every_call(eight) -> None:
    results, findings = eight
    palette = style.Palette(results.study)
    first, again = (figures.bars(results.study, findings, palette) for _ in range(2))
    assert first == again
    assert all(name.startswith("bars-") for name in re.findall(r'\bid="([^"]+)"', first.svg))
    assert all(name.startswith("bars-") for name in re.findall(r"url\(#([^)]+)\)", first.svg))


def timeline_of(results, run):
    cells = {cell.index: cell for cell in results.study.cells}
    return figures.timeline(cells[run.slot.cell], run, results.samples(run.run), results.intervals(run.run))


def test_a_timeline_puts_throughput_and_resources_on_one_axis(eight) -> None:
    results, _ = eight
    drawn = timeline_of(results, results.runs[0])
    panels = {row["panel"] for row in rows(drawn)}
    assert panels == {
        "throughput",
        "CPU",
        "disk busy",
        "disk traffic",
        "context switches",
        "waiting for (pressure)",
        "CPU by whom",
    }
    assert {row["series"] for row in rows(drawn) if row["panel"] == "CPU"} == {"usr", "sys", "iowait", "steal"}
    assert texts(drawn).count("seconds") == 1
    assert "disk busy: vda" in texts(drawn)  # vdb did nothing and is left out


def test_all_operations_of_an_interval_make_its_throughput(eight) -> None:
    results, _ = eight
    run = results.runs[0]
    first = next(row for row in rows(timeline_of(results, run)) if row["panel"] == "throughput")
    table = results.intervals(run.run)
    start = table["start_ns"].min()
    assert float(first["value"]) == table.filter(pl.col("start_ns") == start)["count"].sum()
    assert float(first["t"]) == 3.5


def test_a_long_run_is_drawn_by_the_means_of_neighbours_and_it_is_said() -> None:
    results = fake_results.sampled(fake_results.one_cell(), 3600)
    drawn = timeline_of(results, results.runs[0])
    assert any("Each point is the mean of 24 s" in text for text in texts(drawn))
    assert len(drawn.svg) < 150_000


def cut_short(results, run, seconds):
    """Its intervals, of a second each, and a last one of so many seconds in which nine thousand operations ended."""
    table = results.intervals(run.run)
    last = table.filter(pl.col("start_ns") == pl.col("start_ns").max()).head(1)
    start = last["end_ns"].item()
    end = start + round(seconds * fake_results.SECOND)
    more = last.with_columns(start_ns=pl.lit(start), end_ns=pl.lit(end), count=pl.lit(9000))
    return pl.concat([table, more.cast(dict(table.schema))])


@pytest.mark.parametrize(("seconds", "drawn_to"), [(0.02, False), (0.49, False), (0.51, True)])
def test_an_interval_cut_short_is_in_the_table_and_sets_no_axis(eight, seconds, drawn_to) -> None:
    """A run that ends a few milliseconds into an interval had a rate there that no other was near."""
    results, _ = eight
    run = results.runs[0]
    intervals = cut_short(results, run, seconds)
    drawn = figures.timeline(results.study.cells[run.slot.cell], run, pl.DataFrame(), intervals)
    assert float(rows(drawn)[-1]["value"]) == pytest.approx(9000 / seconds, abs=0.001)
    assert (highest_tick(drawn) > 5000) == drawn_to
    assert ("The last interval is far shorter than the others and not drawn." in " ".join(texts(drawn))) != drawn_to


def highest_tick(drawn):
    return max(float(text.replace(",", "")) for text in texts(drawn) if re.fullmatch(r"[\d,]+", text))


def test_a_panel_whose_curves_would_be_dots_is_left_out_and_it_is_said(eight) -> None:
    """A run of a second has its two samples at its end: six panels with nothing to be seen."""
    results, _ = eight
    run = results.runs[0]
    samples, intervals = results.samples(run.run), results.intervals(run.run)
    times = sorted(samples["time_ns"].unique())
    two = samples.filter(pl.col("time_ns").is_in(times[-2:]))
    drawn = figures.timeline(results.study.cells[run.slot.cell], run, two, intervals)
    assert {row["panel"] for row in rows(drawn)} == {"throughput"}
    assert "Too few samples for a curve: CPU, CPU by whom, disk busy," in " ".join(texts(drawn))
    alone = figures.timeline(results.study.cells[run.slot.cell], run, two, pl.DataFrame())
    assert "CPU" in {row["panel"] for row in rows(alone)}, "there is nothing longer beside them"


def test_a_run_that_left_no_tables_has_no_timeline(eight) -> None:
    results, _ = eight
    run = next(run for run in results.runs if run.outcome is Outcome.FAILED)
    cell = results.study.cells[run.slot.cell]
    assert figures.timeline(cell, run, pl.DataFrame(), pl.DataFrame()) is None


def test_intervals_alone_make_a_timeline_of_throughput_alone(eight) -> None:
    results, _ = eight
    run = results.runs[0]
    drawn = figures.timeline(results.study.cells[run.slot.cell], run, pl.DataFrame(), results.intervals(run.run))
    assert {row["panel"] for row in rows(drawn)} == {"throughput"}


def test_hosts_are_told_apart_where_there_are_several(eight) -> None:
    results, _ = eight
    run = results.runs[0]
    one = results.samples(run.run)
    both = pl.concat([one, one.with_columns(pl.lit("client").alias("host"))])
    drawn = figures.timeline(results.study.cells[run.slot.cell], run, both, results.intervals(run.run))
    series = {row["series"] for row in rows(drawn) if row["panel"] == "CPU"}
    assert {"local usr", "client usr"} <= series


def test_of_each_cell_the_run_in_the_middle_is_shown(eight) -> None:
    results, findings = eight
    chosen = notable(findings.cells[:8], results.runs)
    first = chosen[0]
    of_cell = sorted(
        run.responses["throughput"]
        for run in results.runs
        if run.slot.cell == first.slot.cell and run.outcome is Outcome.OK
    )
    assert first.responses["throughput"] == of_cell[2]
    assert [run.slot.cell for run in chosen[:8]] == list(range(8))


def test_runs_that_are_not_ok_have_their_place_beside_many_cells(twenty_seven) -> None:
    results, findings = twenty_seven
    chosen = notable(findings.cells[:27], results.runs)
    assert len(chosen) == MOST_RUNS
    assert sum(run.outcome is not Outcome.OK for run in chosen) == 4
    assert len({run.run for run in chosen}) == MOST_RUNS


def test_runs_that_are_not_ok_fill_what_few_cells_leave() -> None:
    study = fake_results.make_study({}, None)
    runs = fake_results.make_runs(study, 1, trouble=False)
    runs += [runs[0].model_copy(update={"run": n, "outcome": Outcome.FAILED}) for n in range(2, 40)]
    findings = findings_of(fake_results.FakeResults(study, runs))
    assert [run.run for run in notable(findings.cells[:1], runs)] == list(range(1, 13))


@pytest.fixture(scope="module")
def drifting():
    results = fake_results.drifting()
    return results, findings_of(results)


def test_residuals_are_drawn_over_fitted_values_and_over_what_normal_noise_gives(drifting) -> None:
    _, findings = drifting
    drawn = figures.residuals(findings)
    assert len(rows(drawn)) == 96
    assert float(rows(drawn)[0]["residual"]) == pytest.approx(findings.variation[0].residuals[0], abs=1e-5)
    assert {"fitted throughput (ln ops/s)", "what normal noise would give (ln)"} <= set(texts(drawn))
    assert "They are far from normal: p is not to be trusted." in " ".join(texts(drawn))


def test_the_shape_has_means_the_law_and_the_band_of_the_crossing_that_is_shown(drifting) -> None:
    results, findings = drifting
    drawn = figures.shapes(results.study, findings, style.Palette(results.study))
    assert [figure.name for figure in drawn] == ["shape", "speed-up"]
    found = rows(drawn[0])
    assert sum(row["kind"] == "mean" and bool(row["ci_low"]) for row in found) == 12
    (band,) = [row for row in found if row["kind"] == "crossing"]
    assert (float(band["ci_low"]), float(band["ci_high"])) == findings.shapes[0].crossings[0].ci
    law = [row for row in found if row["kind"] == "law" and row["series"] == "mesh"]
    assert max(law, key=lambda row: float(row["value"]))["x"].startswith("22.4")
    assert drawn[0].svg.count("stroke-dasharray") >= 3  # two laws and the crossing


def test_speed_up_is_drawn_with_intervals_beside_what_the_levels_promise(drifting) -> None:
    results, findings = drifting
    found = rows(figures.shapes(results.study, findings, style.Palette(results.study))[1])
    assert sum(row["kind"] == "speed-up" and bool(row["ci_low"]) for row in found) == 12
    assert {float(row["value"]) for row in found if row["kind"] == "promise"} == {1, 2, 4, 8, 16, 32}
    assert [(row["series"], row["x"]) for row in found if row["kind"] == "saturation"] == [("mesh", "16.0")]


def test_each_combination_of_further_factors_has_a_panel_of_speed_up(twenty_seven) -> None:
    results, findings = twenty_seven
    (drawn,) = figures.shapes(results.study, findings, style.Palette(results.study))  # no law, no crossing
    assert drawn.name == "speed-up"
    assert {row["facet"] for row in rows(drawn)} == {"workload=a", "workload=b", "workload=c"}


def test_drift_is_drawn_with_changes_and_ringed_outliers_and_no_run_is_left_out(drifting) -> None:
    _, findings = drifting
    drawn = figures.drift(findings)
    assert [int(row["run"]) for row in rows(drawn)] == list(range(1, 97))
    assert [row["run"] for row in rows(drawn) if row["outlier"] == "True"] == ["28", "57"]
    assert {"28", "57"} <= set(texts(drawn))
    assert drawn.svg.count(f'stroke="{style.HUES[5]}"') == 2
    assert any("Rings are outliers" in text for text in texts(drawn))


def test_many_runs_are_thinned_in_the_plot_of_drift_but_outliers_are_kept() -> None:
    study = fake_results.make_study({}, None)
    made = fake_results.make_runs(study, 1203, trouble=False)
    made[700] = made[700].model_copy(update={"responses": {"throughput": 1.0}})
    drawn = figures.drift(findings_of(fake_results.FakeResults(study, made)))
    assert len(rows(drawn)) < 500
    assert "701" in [row["run"] for row in rows(drawn)]
    assert any("One in 3 runs is shown, and all outliers." in text for text in texts(drawn))


@pytest.mark.parametrize("make", [fake_results.nothing, fake_results.one_cell])
def test_where_nothing_was_looked_for_nothing_is_drawn(make) -> None:
    results = make()
    findings = findings_of(results)
    assert figures.residuals(findings) is None
    assert figures.drift(findings) is None
    assert figures.shapes(results.study, findings, style.Palette(results.study)) == []


@pytest.fixture(scope="module")
def fifty_four():
    results = fake_results.fifty_four_cells()
    return results, findings_of(results)


def test_of_many_comparisons_the_forest_has_a_row_for_each_combination_with_a_line_for_each_level(fifty_four) -> None:
    results, findings = fifty_four
    drawn = figures.forest(results.study, findings, style.Palette(results.study))
    assert len(rows(drawn)) == 36
    assert {row["a"] for row in rows(drawn)} == {"native"}
    assert len({row["name"] for row in rows(drawn)}) == 18
    assert "18 between the other levels are not shown." in texts(drawn)
    assert {"container-layered", "container-volume"} <= set(texts(drawn))  # which colour is which


def test_the_overall_ratios_are_drawn_with_all_combinations_first(fifty_four, eight) -> None:
    results, findings = fifty_four
    drawn = figures.overall(results.study, findings, style.Palette(results.study))
    assert [row["name"] for row in rows(drawn)[:3]] == ["all 18", "all 18", "flush_method=fsync (9)"]
    assert len(rows(drawn)) == 2 * (1 + 2 + 3 + 3)
    assert figures.overall(eight[0].study, eight[1], style.Palette(eight[0].study)) is None  # one ratio is no figure


def test_rows_with_long_names_are_named_by_levels_alone_and_the_factors_once(fifty_four) -> None:
    results, findings = fifty_four
    for drawn in (
        figures.heat_map(results.study, findings),
        figures.bars(results.study, findings, style.Palette(results.study)),
    ):
        assert any("flush_method · workload" in text for text in texts(drawn))
        assert any(text.startswith(("native · fsync · a", "fsync · a · 1")) for text in texts(drawn))
        assert not any("flush_method=fsync" in text for text in texts(drawn))
