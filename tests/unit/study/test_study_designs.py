"""Which cells a study's design makes, and what mistakes in it are answered with."""

from __future__ import annotations

from pathlib import Path

import pytest
from study_example import KINDS, changed, written

import dyno.study
from dyno.model.pairs import gaps, pairs
from dyno.model.study import Study
from dyno.study import StudyError

FACTORS = """\
factors:
  journal: [delete, wal]
  threads: [1, 2, 4]
  records: [10, 20]
  size: {small: {}, large: {system.config.cache_size: 1 GiB}}
  exclusive: [false, true]
"""


def text(design: str, factors: str = FACTORS, rest: str = "") -> str:
    """The example with these factors from line 3 on and the design after them."""
    lines = {3: factors.rstrip("\n"), 4: "", 5: design, 10: "    exclusive: ${exclusive}"}
    return changed({**lines, 13: "  mix: a\n  records: ${records}"}) + rest


def load(source: str, folder: Path, **options: object) -> Study:
    return dyno.study.load(written(folder, source), KINDS, **options)  # type: ignore[arg-type]


def message(source: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(folder)
    (folder / "study.yaml").write_text(source)
    with pytest.raises(StudyError) as error:
        dyno.study.load(Path("study.yaml"), KINDS)
    return str(error.value)


THREADS = "levels: {threads: {low: 1, high: 4}}"


def test_without_a_design_there_is_a_cell_for_each_combination(tmp_path: Path) -> None:
    study = load(changed({}), tmp_path)
    assert study.design.kind == "factorial"
    assert [cell.name for cell in study.cells] == [
        "journal=delete threads=1", "journal=delete threads=4", "journal=wal threads=1", "journal=wal threads=4",
    ]  # fmt: skip
    assert load(changed({6: "design: {kind: factorial}\nsystem:"}), tmp_path).cells == study.cells


def test_combinations_that_are_named_are_left_out_of_all(tmp_path: Path) -> None:
    study = load(changed({6: "design: {without: [{journal: wal, threads: 4}]}\nsystem:"}), tmp_path)
    assert [cell.name for cell in study.cells] == [
        "journal=delete threads=1", "journal=delete threads=4", "journal=wal threads=1",
    ]  # fmt: skip
    whole = load(changed({6: "design: {without: [{threads: 4}]}\nsystem:"}), tmp_path)
    assert [cell.name for cell in whole.cells] == ["journal=delete threads=1", "journal=wal threads=1"]
    assert [level.name for level in whole.factor("threads").levels] == ["1"]


def test_what_a_study_of_two_stages_leaves_out_is_not_picked_from_either(tmp_path: Path) -> None:
    lines = {
        3: "factors:\n  mix: {a: {}, b: {}, c: {}}",
        6: "design: {without: [{mix: c}, {mix: a, threads: 4}]}\ncompare: journal\nstages: {best: mix}\nsystem:",
        15: "replicates: {min: 3, max: 5, precision_of: ratio}",
    }
    study = load(changed(lines), tmp_path)
    assert study.stages is not None
    assert {(cell.levels["mix"], cell.levels["threads"]) for cell in study.cells} == {
        ("a", "1"),
        ("b", "1"),
        ("b", "4"),
    }


def test_a_fraction_has_its_cells_in_the_order_of_all(tmp_path: Path) -> None:
    study = load(text(f"design: {{kind: screening, fraction: 1/4, {THREADS}}}"), tmp_path)
    assert study.design.generators == ("D=AB", "E=AC")
    assert len(study.cells) == 8
    assert [factor.name for factor in study.factors] == ["journal", "threads", "records", "size", "exclusive"]
    assert [level.name for level in study.factor("threads").levels] == ["1", "4"]
    # By D=AB, a large size where journal and threads are both low or both high.
    sizes = " ".join(cell.levels["size"] for cell in study.cells)
    assert sizes == "large large small small small small large large"
    large = next(cell for cell in study.cells if cell.levels["size"] == "large")
    assert large.system.options["cache_size"] == "1073741824 B"


def test_runs_and_fraction_and_generators_say_the_same(tmp_path: Path) -> None:
    quarter = load(text(f"design: {{kind: screening, fraction: 1/4, {THREADS}}}"), tmp_path)
    for asked in ("runs: 8", "generators: [D=AB, E=AC]", "runs: 8, generators: [D = AB, E = CA]"):
        study = load(text(f"design: {{kind: screening, {asked}, {THREADS}}}"), tmp_path)
        assert (study.design, study.cells) == (quarter.design, quarter.cells)


def test_all_combinations_of_two_levels_are_screened_where_nothing_else_is_asked(tmp_path: Path) -> None:
    study = load(text(f"design: {{kind: screening, {THREADS}}}"), tmp_path)
    assert study.design.generators == ()
    assert len(study.cells) == 32
    assert len(pairs(study)) == 16
    assert gaps(study) == []


def test_low_and_high_may_be_named_the_other_way_round(tmp_path: Path) -> None:
    levels = "levels: {threads: {low: 4, high: 1}, exclusive: {low: true, high: false}}"
    study = load(text(f"design: {{kind: screening, runs: 16, {levels}}}"), tmp_path)
    assert [level.name for level in study.factor("threads").levels] == ["4", "1"]
    assert [level.name for level in study.factor("exclusive").levels] == ["true", "false"]


def test_no_two_cells_of_a_fraction_differ_in_one_factor_alone(tmp_path: Path) -> None:
    study = load(text(f"design: {{kind: screening, runs: 16, {THREADS}}}"), tmp_path)
    assert study.compare == "journal"
    assert pairs(study) == []
    assert len(gaps(study)) == 16


CELLS = """\
design:
  kind: cells
  cells:
    - {journal: wal, threads: 4}
    - {threads: 1, journal: delete}
    - {journal: delete, threads: 4}"""


def test_named_cells_are_those_and_in_that_order(tmp_path: Path) -> None:
    study = load(changed({5: f"  threads: [1, 4, 8]\n{CELLS}"}), tmp_path)
    assert [cell.name for cell in study.cells] == [
        "journal=wal threads=4", "journal=delete threads=1", "journal=delete threads=4",
    ]  # fmt: skip
    assert [cell.index for cell in study.cells] == [0, 1, 2]
    assert [level.name for level in study.factor("threads").levels] == ["1", "4"]


def test_only_cells_that_are_there_are_compared_and_what_is_not_is_known(tmp_path: Path) -> None:
    study = load(changed({5: f"  threads: [1, 4]\n{CELLS}"}), tmp_path)
    assert [(pair.a.name, pair.b.name) for pair in pairs(study)] == [
        ("journal=delete threads=4", "journal=wal threads=4")
    ]
    (gap,) = gaps(study)
    assert (gap.within, gap.there, gap.missing) == ({"threads": "1"}, ("delete",), ("wal",))


def test_a_scale_may_choose_a_smaller_fraction(tmp_path: Path) -> None:
    source = text(f"design: {{kind: screening, runs: 16, {THREADS}}}")
    smaller = source + "  tiny: {design.runs: 8}\n"
    assert len(load(smaller, tmp_path).cells) == 16
    assert len(load(smaller, tmp_path, scale="tiny").cells) == 8


WAL = "{journal: wal, threads: 1}"

MISTAKES: dict[str, tuple[str, str]] = {
    "an unknown kind": (
        text("design: {kind: fractional}"),
        "9: design.kind: should be one of factorial, screening, cells; not 'fractional'; did you mean 'factorial'?",
    ),
    "an unknown key": (
        text("design: {kind: screening, generator: [E=ABCD]}"),
        (
            "9: design.generator: unknown key; did you mean 'generators'? (keys: kind, without, runs, fraction, "
            "generators, levels, cells)"
        ),
    ),
    "a factor of more than two levels": (
        text("design: {kind: screening, runs: 8}"),
        (
            "5: factors.threads: screening takes two levels of a factor, and here are 3; name them: design.levels: "
            "{threads: {low: 1, high: 4}}"
        ),
    ),
    "a factor of one level": (
        text("design: {kind: screening}", FACTORS.replace("[1, 2, 4]", "[1]")),
        "5: factors.threads: screening takes two levels of a factor, and here is one; add another, or vary something "
        "else",
    ),
    "a factor that is not there": (
        text("design: {kind: screening, levels: {thread: {low: 1, high: 4}}}"),
        (
            "9: design.levels.thread: unknown factor 'thread'; did you mean 'threads'? (factors: journal, threads, "
            "records, size, exclusive)"
        ),
    ),
    "a level that is not there": (
        text("design: {kind: screening, levels: {threads: {low: 1, high: 8}}}"),
        "9: design.levels.threads.high: unknown level '8' (levels: 1, 2, 4)",
    ),
    "the same level twice": (
        text("design: {kind: screening, levels: {threads: {low: 1, high: 1}}}"),
        "9: design.levels.threads: low and high are the same level; a factor has to vary",
    ),
    "a number of runs that is no power of two": (
        text(f"design: {{kind: screening, runs: 12, {THREADS}}}"),
        "9: design.runs: should be a power of two, 8 to 32 for 5 factors of two levels, not 12",
    ),
    "more runs than there are combinations": (
        text(f"design: {{kind: screening, runs: 64, {THREADS}}}"),
        "9: design.runs: should be a power of two, 8 to 32 for 5 factors of two levels, not 64",
    ),
    "too few runs to tell the factors apart": (
        text(f"design: {{kind: screening, fraction: 1/8, {THREADS}}}"),
        "9: design.fraction: 5 factors cannot be told apart in so few cells; 1/4 (8 cells) is the least",
    ),
    "a share that is no fraction": (
        text(f"design: {{kind: screening, fraction: 1/3, {THREADS}}}"),
        "9: design.fraction: should be 1/2, 1/4, 1/8 ...; leave it out for all combinations",
    ),
    "runs and fraction": (
        text(f"design: {{kind: screening, fraction: 1/2, runs: 8, {THREADS}}}"),
        "9: design.fraction: says the same as runs; keep one of them",
    ),
    "generators of another number of runs": (
        text(f"design: {{kind: screening, runs: 8, generators: [E=ABCD], {THREADS}}}"),
        "9: design.runs: 1 generators make 1/2 of all combinations, which is not what is asked for here",
    ),
    "a generator of a factor that is not there": (
        text(f"design: {{kind: screening, generators: [E=ABCX], {THREADS}}}"),
        (
            "9: design.generators[0]: E=ABCX: there is no factor X (A: journal, B: threads, C: records, D: size, E: "
            "exclusive)"
        ),
    ),
    "a generator that is made of another": (
        text(f"design: {{kind: screening, generators: [D=AB, E=AD], {THREADS}}}"),
        (
            "9: design.generators[1]: E=AD: D has itself a generator; write its letters in place of D"
        ),
    ),
    "a key of another kind": (
        text("design: {cells: [{journal: wal}]}"),
        "9: design.cells: belongs to a design of kind cells, and this one's is factorial",
    ),
    "no cells": (
        changed({6: "design: {kind: cells}\nsystem:"}),
        "6: design.cells: has no cell; list them as {factor: level}",
    ),
    "a combination left out of a factor that there is not": (
        changed({6: "design: {without: [{jurnal: wal}]}\nsystem:"}),
        "6: design.without[0].jurnal: unknown factor 'jurnal'; did you mean 'journal'? (factors: journal, threads)",
    ),
    "a combination left out twice": (
        changed({6: "design: {without: [{journal: wal}, {journal: wal, threads: 1}]}\nsystem:"}),
        "6: design.without[1]: leaves out nothing that is not left out before; drop it",
    ),
    "every combination left out": (
        changed({6: "design: {without: [{threads: 1}, {threads: 4}]}\nsystem:"}),
        "6: design.without: leaves out every combination; keep some of them",
    ),
    "a combination without a level": (
        changed({6: "design: {without: [{}]}\nsystem:"}),
        "6: design.without[0]: names no level; write {factor: level}",
    ),
    "combinations left out of named cells": (
        changed({6: f"design: {{kind: cells, cells: [{WAL}], without: [{{threads: 4}}]}}\nsystem:"}),
        "6: design.without: belongs to a design of kind factorial, and this one's is cells",
    ),
    "a cell without a level of a factor": (
        changed({6: "design: {kind: cells, cells: [{journal: wal}]}\nsystem:"}),
        "6: design.cells[0]: names no level of factor 'threads'; a cell has one of every factor",
    ),
    "a cell with an unknown factor": (
        changed({6: "design:\n  kind: cells\n  cells:\n  - {jurnal: wal, threads: 1}\nsystem:"}),
        "9: design.cells[0].jurnal: unknown factor 'jurnal'; did you mean 'journal'? (factors: journal, threads)",
    ),
    "a cell with an unknown level": (
        changed({6: "design:\n  kind: cells\n  cells:\n  - journal: wal\n    threads: 3\nsystem:"}),
        "10: design.cells[0].threads: unknown level '3' (levels: 1, 4)",
    ),
    "a cell twice": (
        changed({6: f"design:\n  kind: cells\n  cells:\n  - {WAL}\n  - {WAL}\nsystem:"}),
        "10: design.cells[1]: is the same cell as on line 9; keep one of them",
    ),
    "a factor within the design": (
        changed({6: "design: {kind: '${journal}'}\nsystem:"}),
        "6: design.kind: should be one of factorial, screening, cells; not '${journal}'",
    ),
    "a ratio of cells that are not there": (
        text(f"design: {{kind: screening, runs: 8, {THREADS}}}", rest="").replace(
            "{min: 3, max: 5}", "{max: 5, precision_of: ratio}"
        ),
        (
            "20: replicates.precision_of: ratio needs two cells that differ in journal alone, and this design has none"
            "; write mean"
        ),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", MISTAKES)
def test_the_message_names_line_key_and_remedy_for(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source, expected = MISTAKES[name]
    assert message(source, tmp_path, monkeypatch) == f"study.yaml:{expected}"


def test_a_fraction_of_more_factors_than_have_known_generators_asks_for_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    groups = "".join(f"  f{place}: {{low: {{}}, high: {{}}}}\n" for place in range(12))
    asked = "design: {kind: screening, fraction: 1/256}"
    found = message(changed({5: f"  threads: [1, 4]\n{groups}{asked}"}), tmp_path, monkeypatch)
    assert found == (
        "study.yaml:18: design.fraction: generators of a fraction are known for up to 11 factors, and here are 14; "
        "name them"
    )


def test_of_many_factors_only_the_cells_of_the_fraction_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    groups = "".join(f"  f{place}: {{low: {{}}, high: {{}}}}\n" for place in range(13))  # with two more: 2^15
    words = "F=ABC, G=ABD, H=ABE, J=ACD, K=ACE, L=ADE, M=BCD, N=BCE, O=BDE, P=CDE"
    good = changed({5: f"  threads: [1, 4]\n{groups}design: {{kind: screening, generators: [{words}]}}"})
    assert len(load(good, tmp_path).cells) == 32
    every = message(good.replace(f", generators: [{words}]", ""), tmp_path, monkeypatch)
    assert every.endswith(
        "design: the levels make 32,768 cells, and 10,000 are the most; vary less, or split the study"
    )
