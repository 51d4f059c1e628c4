"""`dyno plan` and its pilots, on studies of known noise, with mistakes."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

from tests.end_to_end.conftest import SIMULATED, STAGED, Dyno

Write = Callable[..., Path]

SCREENING = """
study: settings
question: Which settings matter?
factors:
  mean: [1000, 1300]
  b: {low: {}, high: {}}
  c: {low: {}, high: {}}
  d: {low: {}, high: {}}
  e: {low: {}, high: {}}
design: {kind: screening, fraction: 1/4}
system:
  kind: simulated
  config: {mean: "${mean}", cov: 3%}
workload: {kind: simulated}
replicates: {max: 12, precision: 10%}
observe: []
"""

CELLS = """
study: chosen
question: Which is faster?
factors:
  mean: [1000, 1500, 2000]
  group: {a: {}, b: {}}
design:
  kind: cells
  cells:
    - {mean: 1000, group: a}
    - {mean: 2000, group: a}
    - {mean: 1500, group: b}
system:
  kind: simulated
  config: {mean: "${mean}", cov: 5%}
workload: {kind: simulated}
replicates: {max: 40, precision: 5%, precision_of: ratio}
observe: []
"""


def folders(folder: Path, study: str) -> list[Path]:
    return sorted((folder / "results" / study).iterdir())


def only(lines: list[str], start: str) -> str:
    (found,) = [line for line in lines if line.startswith(start)]
    return found


def refused(answer: subprocess.CompletedProcess[str], *fragments: str) -> None:
    assert (answer.returncode, answer.stdout) == (2, ""), answer.stderr
    (line,) = answer.stderr.strip().splitlines()
    for fragment in fragments:
        assert fragment in line


def test_plan_shows_a_fraction_with_what_it_cannot_tell_apart(dyno: Dyno, study: Write) -> None:
    answer = dyno("plan", study(SCREENING))
    assert (answer.returncode, answer.stderr) == (0, "")
    lines = [line.rstrip() for line in answer.stdout.splitlines()]
    assert "design: screening, 2^(5-2): 8 of 32 combinations of two levels a factor" in lines
    assert "generators: D=AB, E=AC; defining relation: I = ABD = ACE = BCDE" in lines
    assert only(lines, "resolution III: ")
    assert re.fullmatch(r"A +mean +1000 +1300", only(lines, "A  "))
    assert re.fullmatch(r"mean +b x d, c x e", only(lines, "mean  "))
    assert re.fullmatch(r"b x c +d x e", only(lines, "b x c"))
    assert only(lines, "compared: nothing, since no two cells differ in mean alone")
    assert "looked at after block 4" in answer.stdout
    assert "1.07 times as wide" in answer.stdout


def test_plan_says_what_becomes_of_too_early_a_look_and_counts_as_people_do(dyno: Dyno, study: Write) -> None:
    early = dyno("plan", study(), "--set", "replicates={min: 3, max: 8, precision_of: mean}").stdout
    assert "blocks: 4 to 8 of " in early
    assert "(min: 3 is too early to call a mean precise)" in early
    assert "because of these repeated looks, the intervals are made 1.07 times as wide" in early
    once = dyno("plan", study(), "--set", "replicates={min: 5, max: 5}").stdout
    assert "blocks: 5 of " in once
    assert "too early" not in once


def test_plan_shows_what_named_cells_leave_uncompared(dyno: Dyno, study: Write) -> None:
    lines = dyno("plan", study(CELLS)).stdout.splitlines()
    assert only(lines, "design: cells, 3 named of 6 combinations")
    assert only(lines, "compared: the levels of mean, all else equal: 1 comparison")
    assert [line for line in lines if line.startswith("not compared")] == [
        "not compared: mean 1500 with 1000, 2000 at group=a: no such cell",
        "not compared: mean 1000, 2000 with 1500 at group=b: no such cell",
    ]


def test_plan_tells_a_factor_from_the_kind_that_it_is_called_as(dyno: Dyno, study: Write) -> None:
    def head(text: str) -> list[str]:
        return re.split(r"  +", only(dyno("plan", study(text)).stdout.splitlines(), "cell  ").strip())

    assert head(CELLS) == ["cell", "mean", "group", "system", "workload"]
    assert head(CELLS.replace("group", "system")) == [
        "cell", "mean", "system", "kind of system", "workload",
    ]  # fmt: skip


def test_plan_ends_with_what_this_machine_lacks(dyno: Dyno, home: dict[str, str], study: Write) -> None:
    shards = Path(__file__).parents[2] / "studies" / "time-series-shards.yaml"
    home.pop("CRATE_HOME", None)
    answer = dyno("plan", shards)
    assert answer.returncode == 0
    assert answer.stdout.splitlines()[-1] == (
        "this machine lacks CrateDB: CRATE_HOME is not set - for systems of kind cratedb: unpack CrateDB's "
        "distribution, and set CRATE_HOME to its folder"
    )
    assert json.loads(dyno("plan", shards, "--format", "json").stdout)["study"] == "time-series-shards"
    assert "this machine lacks" not in dyno("plan", study()).stdout


def test_plan_shows_the_order_of_as_many_blocks_as_asked_for_and_it_is_that_of_the_run(
    dyno: Dyno, study: Write, tmp_path: Path
) -> None:
    path = study(CELLS.replace("max: 40", "min: 5, max: 5"))
    lines = dyno("plan", path, "--blocks", "5").stdout.splitlines()
    planned = [line.partition(": ")[2].split(", ") for line in lines if line.startswith("order of block")]
    assert len(planned) == 5
    assert dyno("run", path).returncode == 0
    (folder,) = folders(tmp_path, "chosen")
    runs = [json.loads(file.read_text()) for file in sorted(folder.glob("runs/*/run.json"))]
    assert [str(run["slot"]["cell"]) for run in runs] == [cell for block in planned for cell in block]


def test_a_fixed_order_is_done_as_asked_and_warned_of_by_plan_and_run(dyno: Dyno, study: Write, tmp_path: Path) -> None:
    path = study(SIMULATED + "order: fixed\n")
    for command in ("plan", "run"):
        answer = dyno(command, path)
        assert answer.returncode == 0, answer.stderr
        assert answer.stderr.startswith("dyno: order: fixed: a drift of the machine can pose as a difference")
    (folder,) = folders(tmp_path, "simulated")
    cells = [json.loads(file.read_text())["slot"]["cell"] for file in sorted(folder.glob("runs/*/run.json"))]
    assert cells == [0, 1] * (len(cells) // 2)
    assert dyno("plan", study()).stderr == ""


def test_a_pilot_foretells_runs_time_and_effects_and_is_not_the_study(dyno: Dyno, study: Write, tmp_path: Path) -> None:
    path = study(CELLS)
    answer = dyno("plan", path, "--pilot", "4", "--effect", "5%")
    assert answer.returncode == 0, answer.stderr
    lines = answer.stdout.splitlines()
    assert len([line for line in lines if re.match(r"mean=\d+ group=[ab] +4 +\d", line)]) == 3
    number = r"[\d.]+%? \[[\d.]+%?, [\d.]+%?\]"
    assert re.fullmatch(rf"2000 / 1000 at group=a +4 +{number} +{number} +[\d.]+% +{number} *", only(lines, "2000 /"))
    assert re.match(rf"blocks until every ratio is precise: {number}, of 3 runs each", only(lines, "blocks until"))
    assert only(lines, "expected time: ")
    row = only(lines, "2000 / 1000 at group=a").split()
    assert only(lines, "runs until an effect of 5% is found are so many that 90% of such studies find it")
    assert only(lines, f"to have them, set min and max to {row[-3]}: ")
    (pilots,) = folders(tmp_path, "chosen")
    assert pilots.name == "pilots"
    (folder,) = pilots.iterdir()
    assert json.loads((folder / "plan.json").read_text())["pilot"] is True
    records = [json.loads(file.read_text()) for file in sorted(folder.glob("runs/*/run.json"))]
    assert len(records) == 12
    assert all(record["pilot"] for record in records)
    assert not (folder / "report.html").exists()
    assert dyno("show", folder).stdout.startswith("No answer: this is a pilot")


def test_a_run_does_not_count_the_runs_of_a_pilot(dyno: Dyno, study: Write, tmp_path: Path) -> None:
    path = study(CELLS)
    assert dyno("plan", path, "--pilot", "3").returncode == 0
    refused(dyno("run", path, "--resume"), "nothing to resume")
    assert dyno("run", path).returncode == 0
    *of_study, pilots = folders(tmp_path, "chosen")
    (folder,) = of_study
    assert json.loads((folder / "plan.json").read_text())["pilot"] is False
    shown = json.loads(dyno("show", folder, "--format", "json").stdout)
    assert shown["runs"] == len(list(folder.glob("runs/*")))
    refused(dyno("show", "results/chosen"), f"did you mean results/chosen/{folder.name}?")
    stray = next(next(pilots.iterdir()).glob("runs/*"))
    (folder / "runs" / stray.name / "run.json").write_bytes((stray / "run.json").read_bytes())
    refused(dyno("show", folder), "a pilot's runs and a study's are not of one folder")


def test_a_pilot_as_json_has_the_same_figures(dyno: Dyno, study: Write) -> None:
    answer = dyno("plan", study(CELLS), "--pilot", "3", "--format", "json")
    assert answer.returncode == 0, answer.stderr
    told = json.loads(answer.stdout)
    assert [cell["n"] for cell in told["cells"]] == [3, 3, 3]
    assert told["cells"][0]["cov"]["low"] < told["cells"][0]["cov"]["value"] < told["cells"][0]["cov"]["high"]
    assert told["blocks"]["low"] <= told["blocks"]["expected"] <= told["blocks"]["high"]
    assert told["plan"]["pilot"] is False
    assert told["plan"]["replicates"]["max"] == 40


def test_a_pilot_of_a_screening_tells_the_effect_of_a_factor_that_it_will_find(dyno: Dyno, study: Write) -> None:
    lines = dyno("plan", study(SCREENING), "--pilot", "3", "--effect", "5%").stdout.splitlines()
    assert re.search(r"found with 90% power by then: [\d.]+% \(high to low\)", only(lines, "least effect of a factor"))
    assert only(lines, "blocks until one of 5% is: ")
    assert only(lines, "found means: its p is below 0.00714, which provides for 7 effects")


def test_a_screening_study_tells_the_effect_that_was_planted(dyno: Dyno, study: Write, tmp_path: Path) -> None:
    answer = dyno("run", study(SCREENING))
    assert answer.returncode == 0, answer.stderr
    assert answer.stdout.startswith("Largest effects on throughput (high level / low level): mean, ")
    (folder,) = folders(tmp_path, "settings")
    effects = json.loads(dyno("show", folder, "--format", "json").stdout)["effects"]
    (mean,) = [each for each in effects if each["factors"] == ["mean"] and each["response"] == "throughput"]
    assert mean["ci"][0] < 1.3 < mean["ci"][1]
    assert (folder / "figures" / "half-normal.svg").exists()


def test_a_cell_that_fails_in_a_pilot_is_told_and_the_status_says_so(dyno: Dyno, study: Write) -> None:
    path = study(CELLS.replace("cov: 5%}", "cov: 5%, failing: 100%}"))
    answer = dyno("plan", path, "--pilot", "3")
    assert answer.returncode == 1
    assert "runs expected: not known" in answer.stdout
    assert "mean=1000 group=a: fewer than two ok runs in the pilot" in answer.stderr


def test_a_study_of_two_stages_has_no_pilot(dyno: Dyno, study: Write) -> None:
    refused(dyno("plan", study(STAGED), "--pilot", "3"), "stages: ", "has no pilot")


def test_mistakes_are_one_line(dyno: Dyno, study: Write) -> None:
    path = study(SCREENING)
    refused(dyno("plan", path, "--effect", "5%"), "--effect goes with --pilot N")
    refused(dyno("plan", path, "--pilot", "3", "--effect", "five"), "--effect five")
    refused(dyno("plan", path, "--pilot", "3", "--effect", "0%"), "should be above 0")
    refused(dyno("plan", study(SCREENING.replace("1/4", "1/8"))), "study.yaml:10: design.fraction", "1/4 (8 cells)")
    refused(dyno("plan", study(SCREENING.replace("[1000, 1300]", "[1, 2, 3]"))), "study.yaml:5: factors.mean", "low: 1")
    refused(dyno("plan", study(CELLS.replace("mean: 2000, group: a", "mean: 2001, group: a"))), ":11:", "'2001'")
    two = dyno("plan", path, "--pilot", "2")
    assert two.returncode == 2
    assert "3<=x" in two.stderr
