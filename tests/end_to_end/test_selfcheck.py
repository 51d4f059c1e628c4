"""`dyno selfcheck` as a user runs it, at a scale that takes seconds."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.end_to_end.conftest import DYNO, Dyno
from tests.end_to_end.test_commands import refused, results_of
from tests.making import until

DONE_OR_DISTURBED = (0, 1)  # others use the machine, and smoke gives a stall so little time that they may hide it


def test_what_it_found_is_kept_and_nothing_else_is_left(dyno: Dyno, tmp_path: Path) -> None:
    answer = dyno("selfcheck", "--scale", "smoke", "--format", "json")
    assert answer.returncode in DONE_OR_DISTURBED, answer.stderr
    found = json.loads(answer.stdout)
    assert found == json.loads((tmp_path / "state" / "selfcheck.json").read_text())
    assert {path.name for path in (tmp_path / "state").iterdir()} == {"undo", "selfcheck.json"}
    assert list((tmp_path / "state" / "undo").iterdir()) == []
    assert [path.name for path in tmp_path.iterdir()] == ["state"]
    assert (found["scale"], found["variation"]["runs"], found["variation"]["not_ok"]) == ("smoke", 12, 0)
    assert found["ceiling"]["one_client"] > 10_000
    assert [each["name"] for each in found["freeze"]["quantiles"]] == ["p99", "p99.9", "longest"]
    assert [len(each["open"]) for each in found["freeze"]["quantiles"]] == [2, 2, 2]
    # Each closed loop met the stall; what it says of the longest is right, and of nothing else.
    assert all(longest > 390 for longest in found["freeze"]["quantiles"][2]["closed"])
    assert found["freeze"]["closed_is_blind"] is True
    assert found["observer"]["pairs"] == 3
    for part in ("false_alarms", "variation", "sensitivity"):
        assert found[part]["verdict"] == "cannot tell", "three blocks tell nothing"


def test_the_block_stands_in_every_report_of_the_machine_from_then_on(
    dyno: Dyno, study: Callable[..., Path], tmp_path: Path
) -> None:
    ran = dyno("run", study())
    none = "None was made on this machine before these runs: `dyno selfcheck --quick` makes one."
    assert none in ran.stdout
    assert none in (results_of(tmp_path, "simulated") / "report.html").read_text()
    answer = dyno("selfcheck", "--scale", "smoke")
    assert answer.returncode in DONE_OR_DISTURBED, answer.stderr
    assert "smoke, of this machine." in answer.stdout
    for part in ("false alarms", "run to run", "driver ceiling", "freeze test", "observer cost", "smallest slow-down"):
        assert part in answer.stdout
    assert dyno("run", study()).returncode == 0
    folder = results_of(tmp_path, "simulated")
    assert (folder / "selfcheck.json").read_text() == (tmp_path / "state" / "selfcheck.json").read_text()
    (tmp_path / "state" / "selfcheck.json").unlink()  # as on another machine
    for text in (dyno("show", folder).stdout, (folder / "report.html").read_text()):
        assert "smoke, of this machine." in text
        assert "says nothing of a machine" in text


def test_one_that_cannot_be_read_is_said_and_keeps_no_study_from_running(
    dyno: Dyno, study: Callable[..., Path], tmp_path: Path
) -> None:
    (tmp_path / "state").mkdir()
    (tmp_path / "state" / "selfcheck.json").write_text("torn")
    answer = dyno("run", study())
    assert answer.returncode == 0
    assert f"dyno: {tmp_path}/state/selfcheck.json: cannot be read" in answer.stderr


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_cut_short_it_keeps_nothing_and_leaves_nothing(
    dyno: Dyno, home: dict[str, str], tmp_path: Path, how: signal.Signals
) -> None:
    with subprocess.Popen(
        [DYNO, "selfcheck", "--quick"], cwd=tmp_path, env=home, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        until(lambda: bool(list(tmp_path.glob(".dyno-*-selfcheck/results/twins/*/runs/0001"))))
        process.send_signal(how)
        errors = process.communicate(timeout=60)[1].decode()
    assert "Traceback" not in errors
    assert process.returncode == (130 if how is signal.SIGINT else -signal.SIGKILL)
    cleaned = dyno("clean")
    assert ("nothing was left" in cleaned.stdout) == (how is signal.SIGINT)
    assert [path.name for path in tmp_path.iterdir()] == ["state"]
    assert [path.name for path in (tmp_path / "state").rglob("*")] == ["undo"]


def test_the_statistics_are_checked_by_simulation(dyno: Dyno) -> None:
    answer = dyno("selfcheck", "--statistics", "--studies", "10", limit=280)
    assert answer.returncode in (0, 1), answer.stderr  # of ten studies a bar may be missed by chance
    lines = answer.stdout.splitlines()
    assert "10 studies a row, seed 1" in lines[0]
    assert sum("AR 0.7, 10%" in line for line in lines) == 5 + 1  # of as many numbers of cells, and in two stages
    assert sum("40%" in line for line in lines) == 5 * 2  # plans that look for an effect of that size in two noises
    assert "bars missed" in lines[-1]


def test_mistakes_are_one_line(dyno: Dyno) -> None:
    refused(dyno("selfcheck", "--studies", "5"), "--studies belongs to --statistics")
    refused(dyno("selfcheck", "--statistics", "--quick"), "--statistics goes with --studies alone")
    refused(dyno("selfcheck", "--quick", "--scale", "full"), "--quick and --scale full: choose one")
