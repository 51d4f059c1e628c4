"""`stages` in a study file: the cells it leaves, and what each mistake in it is answered with."""

from __future__ import annotations

from pathlib import Path

import jsonschema
import pytest
from study_example import KINDS, written

import dyno.study
from dyno.model.study import Stages, Study
from dyno.study import StudyError
from dyno.study.loader import parse_file
from dyno.study.tree import plain

STAGED = """\
study: best-case
question: Which is faster at its best?
factors:
  store:
    lite: {system.kind: sqlite}
    none: {system.kind: "null"}
  tuning:
    as-is: {}
    big: {system.config.cache_size: 1 GiB}
    wal: {system.config.journal_mode: wal}
  threads: [1, 4]
stages:
  best: tuning
  levels:
    none: [as-is]
  share: 40%
system: {}
workload: {kind: ycsb, mix: a, threads: "${threads}"}
replicates: {precision_of: ratio}
scales:
  smoke:
    factors.threads: [1]
"""


def changed(lines: dict[int, str]) -> str:
    return "".join(f"{line}\n" for n, old in enumerate(STAGED.splitlines(), 1) for line in [lines.get(n, old)] if line)


def load(text: str, folder: Path, **how: str) -> Study:
    return dyno.study.load(written(folder, text), KINDS, **how)  # type: ignore[arg-type]  # passed on


def test_levels_that_another_solution_has_not_make_no_cell(tmp_path: Path) -> None:
    study = load(STAGED, tmp_path)
    assert [cell.name for cell in study.cells] == [
        "store=lite tuning=as-is threads=1", "store=lite tuning=as-is threads=4",
        "store=lite tuning=big threads=1", "store=lite tuning=big threads=4",
        "store=lite tuning=wal threads=1", "store=lite tuning=wal threads=4",
        "store=none tuning=as-is threads=1", "store=none tuning=as-is threads=4",
    ]  # fmt: skip
    assert [cell.index for cell in study.cells] == list(range(8))
    assert study.stages == Stages.model_validate({"best": "tuning", "levels": {"none": ["as-is"]}, "share": "40%"})


def test_a_setting_that_only_one_solution_knows_is_right_where_it_goes_with_that_one_alone(tmp_path: Path) -> None:
    with pytest.raises(StudyError, match=r":9: system.config.cache_size: unknown key"):
        load(changed({15: "    none: [as-is, big]"}), tmp_path)


def test_without_levels_every_combination_is_there(tmp_path: Path) -> None:
    text = changed({5: "    lite: {system.kind: sqlite}", 6: "    more: {system.kind: sqlite}", 14: "", 15: ""})
    assert len(load(text, tmp_path).cells) == 2 * 3 * 2


def test_null_stages_are_none(tmp_path: Path) -> None:
    text = changed({6: "", 12: "stages: null", 13: "", 14: "", 15: "", 16: "", 19: "replicates: {}"})
    assert load(text, tmp_path).stages is None


def test_levels_that_are_no_text_are_named_as_they_are_written(tmp_path: Path) -> None:
    text = changed(
        {7: "  tuning: [5, 6.5, true]", 8: "", 9: "", 10: "", 15: "    none: [6.5, true]",
         18: 'workload: {kind: ycsb, mix: a, threads: "${threads}", name: "t${tuning}"}'}
    )  # fmt: skip
    names = [cell.levels["tuning"] for cell in load(text, tmp_path, scale="smoke").cells]
    assert names == ["5", "6.5", "true", "6.5", "true"]


def test_the_schema_takes_it(tmp_path: Path) -> None:
    path = written(tmp_path, STAGED)
    jsonschema.validate(plain(parse_file(path.read_bytes(), str(path))), dyno.study.json_schema(KINDS))


MISTAKES: dict[str, tuple[dict[int, str], str]] = {
    "a factor that is not there": (
        {13: "  best: tunning"},
        "13: stages.best: unknown factor 'tunning'; did you mean 'tuning'? (factors: store, tuning, threads)",
    ),
    "the factor that is compared": (
        {13: "  best: store"},
        "13: stages.best: store is the factor that is compared; name the one that is tuned, or another under compare",
    ),
    "nothing to compare": (
        {12: "compare: null\nstages:"},
        "14: stages.best: what is picked is then compared, and compare names no factor; name the one whose levels are "
        "compared",
    ),
    "nothing is picked": ({13: ""}, "12: stages.best: this required key is missing"),
    "an unknown key": (
        {13: "  best: tuning\n  within: store"},
        "14: stages.within: unknown key (keys: best, levels, min, max, share)",
    ),
    "a compared level that is not there": (
        {15: "    non: [as-is]"},
        "15: stages.levels.non: unknown level of store 'non'; did you mean 'none'? (levels: lite, none)",
    ),
    "a tuned level that is not there": (
        {15: "    none: [asis]"},
        "15: stages.levels.none[0]: unknown level of tuning 'asis'; did you mean 'as-is'? (levels: as-is, big, wal)",
    ),
    "a level listed twice": (
        {15: "    none: [as-is, as-is]"},
        "15: stages.levels.none[1]: 'as-is' is listed twice; keep one",
    ),
    "a solution without any": (
        {15: "    none: []"},
        "15: stages.levels.none: has no level of tuning; list at least one, or leave none out for all",
    ),
    "a level that no solution has": (
        {15: "    none: [as-is]\n    lite: [as-is, big]"},
        "14: stages.levels: no level of store has tuning 'wal'; list it here, or drop it there",
    ),
    "nothing to pick from": (
        {8: "", 10: "", 9: "    as-is: {}"},
        "11: stages.best: there is nothing to pick: every level of store has a single level of tuning",
    ),
    "a mean that is to be precise": (
        {19: "replicates: {precision_of: mean}"},
        "19: replicates.precision_of: stage two compares, so what has to be precise is the ratio; write "
        "precision_of: ratio",
    ),
    "a precision that is left to its default": (
        {19: ""},
        "12: replicates.precision_of: stage two compares, so what has to be precise is the ratio; write "
        "precision_of: ratio",
    ),
    "a design of its own": (
        {12: "design: {kind: cells, cells: [{store: lite, tuning: big, threads: 1}]}\nstages:"},
        "13: stages: what is picked is picked among all combinations, not those of cells; drop one of them",
    ),
    "a share of more than all": ({16: "  share: 120%"}, "16: stages.share: should be below 100%, not '120%'"),
    "a share without its unit": (
        {16: "  share: 0.4"},
        "16: stages.share: 0.4 has no unit: write it as 40.0% (units: %)",
    ),
    "no blocks": ({16: "  max: 1"}, "16: stages.max: should be at least 2, not 1"),
    "levels that are no lists": ({15: "    none: as-is"}, "15: stages.levels.none: should be a list, not 'as-is'"),
    "stages that are no mapping": (
        {12: "stages: tuning", 13: "", 14: "", 15: "", 16: ""},
        "12: stages: should be a mapping of keys, not 'tuning'",
    ),
    "a reference": (
        {13: "  best: ${threads}"},
        "13: stages.best: '${threads}' cannot stand here: a factor acts only under host, system and workload; this is "
        "the same for all cells",
    ),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_the_message_names_line_key_and_remedy_for(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines, expected = MISTAKES[name]
    monkeypatch.chdir(tmp_path)
    with pytest.raises(StudyError) as caught:
        dyno.study.check(Path(written(tmp_path, changed(lines)).name), KINDS)
    assert str(caught.value).partition(" (and ")[0] == f"study.yaml:{expected}"


def test_a_scale_that_leaves_one_tuning_is_told_with_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    text = changed({22: "    stages.levels.lite: [big]\n    stages.levels.none: [as-is]"})
    with pytest.raises(StudyError, match=r"stages.levels: no level of store has tuning 'wal'.*at scale 'smoke'"):
        dyno.study.check(written(tmp_path, text), KINDS)


PUBLISHED = """\
published:
  tables:
    - {file: figures.csv, response: throughput, value: rate, map: {store: store, threads: threads}}
"""


def test_published_figures_are_of_cells_that_have_no_tuning_any_more(tmp_path: Path) -> None:
    (tmp_path / "figures.csv").write_text("store,threads,rate\nlite,1,10\nlite,4,20\nnone,1,30\n")
    study = load(f"{STAGED}{PUBLISHED}", tmp_path)
    assert study.published is not None
    (table,) = study.published.tables
    assert [(figure.levels, figure.value) for figure in table.figures] == [
        ({"store": "lite", "threads": "1"}, 10.0),
        ({"store": "lite", "threads": "4"}, 20.0),
        ({"store": "none", "threads": "1"}, 30.0),
    ]


def test_a_published_figure_cannot_be_of_a_tuning(tmp_path: Path) -> None:
    (tmp_path / "figures.csv").write_text("store,tuning,threads,rate\nlite,big,1,10\n")
    text = f"{STAGED}{PUBLISHED}".replace("map: {store", "map: {tuning: tuning, store")
    with pytest.raises(StudyError, match=r"map\.tuning: unknown factor 'tuning'"):
        load(text, tmp_path)
