"""What TSBS's programs write: read as they wrote it, and refused in one line where it was damaged."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dyno.model.base import RunError
from dyno.workloads import tsbs_output
from tests.unit.workloads.making import TOOLS

LOAD = (TOOLS / "tsbs-load.txt").read_text()
QUERIES = (TOOLS / "tsbs-queries.txt").read_text()
RESULTS = TOOLS / "tsbs-queries.json"


def test_a_loader_says_rows_metrics_and_its_own_time() -> None:
    said = tsbs_output.loaded(LOAD)
    assert (said.rows, said.metrics, said.seconds, said.workers) == (300_000, 3_366_260, 2.162, 2)
    assert said.reports == ((1795729681, 90_000), (1795729682, 260_000))


def test_a_loader_that_was_done_before_its_first_report_has_none() -> None:
    head, _, rest = LOAD.partition("\n")
    short = f"{head}\n\n{rest.partition(chr(10) * 2)[2]}"
    assert tsbs_output.loaded(short).reports == ()


def test_a_report_before_the_first_row_is_none() -> None:
    early = LOAD.replace("\n1795729681", "\n1795729680,0.00,0.000000E+00,0.00,-,-,-\n1795729681", 1)
    assert tsbs_output.loaded(early).reports == tsbs_output.loaded(LOAD).reports


def test_a_query_runner_says_count_times_and_quantiles() -> None:
    said = tsbs_output.queried(QUERIES, RESULTS)
    assert (said.count, said.seconds) == (10, 0.899975)
    assert said.latency == {
        "p50": 48.627,
        "p95": 297.807,
        "p99": 297.807,
        "p999": 297.807,
        "max": 297.807,
        "mean": 103.46,
    }
    assert tsbs_output.seconds_of_results(RESULTS) == 0.899


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("300000 rows", "x rows", "does not say how many"),
        ("loaded 3366260 metrics", "", "does not say how many"),
        ("2.162sec with 2 workers (mean rate 138776.23", "NaNsec with 2 workers (mean rate 138776.23", "'NaN'"),
        ("2.600000E+05", "+Inf", "where a figure belongs"),
        ("1795729682,", "soon,", "where a figure belongs"),
    ],
)
def test_damaged_output_of_a_loader_is_one_error(old: str, new: str, told: str) -> None:
    assert old in LOAD
    with pytest.raises(RunError, match=told) as caught:
        tsbs_output.loaded(LOAD.replace(old, new))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("wall clock time: 0.899975sec", "", "how long it took"),
        ("mean:   103.46ms", "mean:   -1ms", "'-1'"),
        ("min:", "mix:", "how long its queries took"),
        ("count: 10", "count: ", "how long its queries took"),
    ],
)
def test_damaged_output_of_a_query_runner_is_one_error(old: str, new: str, told: str) -> None:
    assert old in QUERIES
    with pytest.raises(RunError, match=told):
        tsbs_output.queried(QUERIES.replace(old, new), RESULTS)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "no results that can be read"),
        ("[]", "is no object"),
        ("{}", "no quantiles of all queries"),
        ('{"Totals": 5}', "no quantiles of all queries"),
        ('{"Totals": {"overallQuantiles": {"all_queries": {"q50": "x"}}}}', "has 'x' as q50"),
        ('{"Totals": {"overallQuantiles": {"all_queries": {"q50": -1}}}}', "has -1 as q50"),
    ],
)
def test_damaged_results_are_one_error(tmp_path: Path, text: str, told: str) -> None:
    path = tmp_path / "r.json"
    path.write_text(text)
    with pytest.raises(RunError, match=told):
        tsbs_output.of_results(path)


def test_results_that_are_missing_or_have_no_duration_are_one_error(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="no results that can be read"):
        tsbs_output.of_results(tmp_path / "none.json")
    path = tmp_path / "r.json"
    path.write_text(json.dumps({"DurationMillis": 0}))
    with pytest.raises(RunError, match="has 0 as its duration"):
        tsbs_output.seconds_of_results(path)


@given(st.data())
def test_output_that_was_cut_or_written_over_is_read_or_refused_and_nothing_else(data: st.DataObject) -> None:
    text = data.draw(st.sampled_from([LOAD, QUERIES]))
    begin = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(begin, len(text)))
    damaged = text[:begin] + data.draw(st.text(max_size=8)) + text[end:]
    for read in (tsbs_output.loaded, lambda said: tsbs_output.queried(said, RESULTS)):
        with contextlib.suppress(RunError):
            read(damaged)
