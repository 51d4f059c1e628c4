"""Whether stores that were asked the same answered the same: before that is known, their times are not compared.

Rows are held against each other within a tolerance, their order only where the question asks for one. A question is the
same where data and parameters are; on two levels of a form (`verbatim`, `determinate`) a query is still the same query,
so that what a text asks for besides is found. See docs/queries.md.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import polars as pl

from dyno.analysis import sentences
from dyno.model.alike import EQUAL, Difference, at, compare_rows, first_unlike
from dyno.model.answers import IN_BATCH, SINGLY, QueryAnswer, QueryFinding, Rows
from dyno.model.study import Cell, Study
from dyno.model.units import counted

Question = tuple[str, int, str, str]
"""A query, the number of its draw, the data and its parameters."""


@dataclass(frozen=True)
class Given:
    """One answer of one run."""

    run: int
    query: str
    title: str
    form: str
    dialect: str
    part: str
    question: Question
    statement: str
    plan: str
    comment: str
    ordered: bool
    keys: tuple[int, ...]
    relative: float
    absolute: float
    error: str | None
    varies: str
    columns: tuple[str, ...]
    rows: int
    digest: str
    digest_of_set: str
    first: Rows
    whole: Rows | None
    client_share: float | None


_NOTHING_COMMON = "no question was asked of both"


def read(answers: pl.DataFrame | None) -> dict[int, list[Given]]:
    """The answers of each run, by its number; `answers` has the columns of `answers.parquet` and `run`."""
    found: dict[int, list[Given]] = defaultdict(list)
    if answers is None or not answers.height:
        return found
    for row in answers.iter_rows(named=True):
        warm = row["warm_ms"] or []
        spent = sorted(warm)[len(warm) // 2] if warm else row["cold_ms"]
        client = row["client_ms"]
        found[row["run"]].append(
            Given(
                run=row["run"],
                query=row["query"],
                title=row["title"],
                form=row["form"],
                dialect=row["dialect"],
                part=row["part"],
                question=(row["query"], row["number"], row["data"], row["parameters"]),
                statement=row["statement"],
                plan=row["plan"] or "",
                comment=row["comment"] or "",
                ordered=row["ordered"],
                keys=tuple(row["keys"] or ()),
                relative=row["relative"],
                absolute=row["absolute"],
                error=row["error"],
                varies=row.get("varies") or "",  # folders of an earlier dyno have no such column
                columns=tuple(row["columns"] or ()),
                rows=row["rows"] or 0,
                digest=row["digest"] or "",
                digest_of_set=row["digest_of_set"] or "",
                first=json.loads(row["first"]) if row["first"] else [],
                whole=json.loads(row["whole"]) if row["whole"] else None,
                client_share=round(client / spent, 3) if client is not None and spent else None,
            )
        )
    return found


def difference(a: Given, b: Given) -> Difference:
    """What is found between two answers to one question; the same either way round."""
    if a.error is not None or b.error is not None:
        if a.error == b.error:
            return Difference("error", f"both answered with an error: {a.error}")
        told = [f"an error ({each.error})" if each.error is not None else _size(each) for each in (a, b)]
        return Difference("error", f"{told[0]} against {told[1]}")
    if len(a.columns) != len(b.columns):
        return Difference("columns", f"{len(a.columns)} columns against {len(b.columns)}")
    # What one text leaves open cannot be held against the other.
    ordered = a.ordered and b.ordered
    if a.rows == b.rows and (a.digest == b.digest or (not ordered and a.digest_of_set == b.digest_of_set)):
        return EQUAL
    tolerance = max(a.relative, b.relative), max(a.absolute, b.absolute)
    keys = a.keys if a.keys == b.keys else ()
    if a.whole is not None and b.whole is not None:
        return compare_rows(a.whole, b.whole, *tolerance, ordered=ordered, keys=keys)
    if a.rows != b.rows:
        return Difference("rows", f"{_size(a)} against {_size(b)}{_first_of(a, b, *tolerance, ordered=ordered)}")
    if a.digest_of_set == b.digest_of_set:
        return Difference("order", f"the same {_size(a)} in another order")
    if first := _first_of(a, b, *tolerance, ordered=ordered):
        return Difference("values", first.removeprefix("; "))
    if [name.lower() for name in a.columns] != [name.lower() for name in b.columns]:
        return Difference("columns", f"columns {', '.join(a.columns)} against {', '.join(b.columns)}")
    return Difference(
        "unknown", f"{_size(a)} on both sides, too many to be kept whole, whose sums differ: not known to be the same"
    )


def _first_of(a: Given, b: Given, relative: float, absolute: float, *, ordered: bool) -> str:
    """The first rows that differ, of those that are kept; empty where those do not tell."""
    if not ordered:
        return ""
    place = first_unlike(a.first, b.first, (relative, absolute))
    if place is None or place >= min(len(a.first), len(b.first)):
        return ""
    return f"; {at(a.first, b.first, place)}"


def _queries(count: int) -> str:
    return "1 query" if count == 1 else f"{count} queries"


def _size(of: Given) -> str:
    return counted(of.rows, "row")


@dataclass
class Answers:
    """What the ok runs of a study answered, by cell: the first answer to each question, and where others differ."""

    of_cell: dict[int, dict[str, dict[Question, Given]]] = field(default_factory=dict)
    """Cell -> part and query -> question -> answer."""
    varying: dict[tuple[int, str], str] = field(default_factory=dict)
    """Cell and part and query -> how the answer of one of its own runs differs from that of another, or from what the
    same run was answered when it asked again.
    """
    _found: dict[tuple[int, int, str], str] = field(default_factory=dict)

    def queries(self, cell: int) -> tuple[str, ...]:
        """What it was asked, as `q.point` or `b.point`."""
        return tuple(self.of_cell.get(cell, {}))

    def why_unlike(self, response: str, a: int, other: Answers, b: int) -> str:
        """Why a response of two cells is of unlike answers; empty where every answer that it is of is the same."""
        asked, of_other = self.queries(a), other.queries(b)
        if not asked and not of_other:
            return ""
        name, _, _ = response.rpartition(".")
        if name.startswith((f"{SINGLY}.", f"{IN_BATCH}.")):
            names: Iterable[str] = [name]
        else:
            names = dict.fromkeys((*asked, *of_other))
        wrong = [(each, told) for each in names if (told := self.unlike(each, a, other, b))]
        if not wrong:
            return ""
        first, told = wrong[0]
        more = f" (and {_queries(len(wrong) - 1)} more)" if wrong[1:] else ""
        return f"they answer {first.partition('.')[2]} otherwise: {told}{more}"

    def unlike(self, query: str, a: int, other: Answers, b: int) -> str:
        """How the answers of two cells to a query (`q.point`) differ; empty where they do not."""
        if other is not self:
            return self._compared(query, a, other, b)
        key = (a, b, query)
        if key not in self._found:
            self._found[key] = self._compared(query, a, other, b)
        return self._found[key]

    def _compared(self, query: str, a: int, other: Answers, b: int) -> str:
        for answers, cell in ((self, a), (other, b)):
            if varies := answers.varying.get((cell, query)):
                return f"one side does not answer the same each time: {varies}"
        of_a = self.of_cell.get(a, {}).get(query, {})
        of_b = other.of_cell.get(b, {}).get(query, {})
        if not of_a or not of_b:
            return "one side was not asked it"
        common = [question for question in of_a if question in of_b]
        if not common:
            return _NOTHING_COMMON
        for question in common:
            found = difference(of_a[question], of_b[question])
            if found.kind != "equal":
                return found.told
        return ""


def of_unlike(answers: Answers, cells: Sequence[int], response: str) -> str:
    """Why a response of some cells is of unlike answers, between the first and any other; empty where it is not."""
    found = (answers.why_unlike(response, cells[0], answers, other) for other in cells[1:])
    return next((why for why in found if why), "")


def gather(cell_of: Mapping[int, int], given: Mapping[int, Sequence[Given]]) -> Answers:
    """The answers of each cell; `cell_of` has the cell of each ok run."""
    answers = Answers()
    for run, cell in sorted(cell_of.items()):
        for each in given.get(run, ()):
            name = f"{each.part}.{each.query}"
            if each.varies:
                answers.varying.setdefault((cell, name), f"run {each.run}, asked again: {each.varies}")
            known = answers.of_cell.setdefault(cell, {}).setdefault(name, {})
            first = known.setdefault(each.question, each)
            if first is each or (cell, name) in answers.varying:
                continue
            found = difference(first, each)
            both_failed = first.error is not None and each.error is not None
            if found.kind != "equal" and not (found.kind == "error" and both_failed):
                answers.varying[cell, name] = f"run {first.run} and run {each.run}: {found.told}"
    return answers


def findings(study: Study, answers: Answers) -> Iterator[QueryFinding]:
    """Each query in each form, by which cells answered the same; those that are asked by themselves come first."""
    asked: dict[tuple[str, str], list[Cell]] = {}
    for cell in study.cells:
        for name in answers.queries(cell.index):
            for form in dict.fromkeys(each.form for each in answers.of_cell[cell.index][name].values()):
                asked.setdefault((name, form), []).append(cell)
    for name, form in sorted(asked, key=lambda each: (not each[0].startswith(f"{SINGLY}."), each)):
        yield _finding(study, answers, name, form, asked[name, form])


def _finding(study: Study, answers: Answers, name: str, form: str, cells: Sequence[Cell]) -> QueryFinding:
    groups: list[int] = []  # the first cell of each group
    found: list[QueryAnswer] = []
    told: list[str] = []
    for cell in cells:
        group, why = _group(study, answers, name, groups, cell.index)
        if group == len(groups):
            groups.append(cell.index)
            if why:
                told.append(why)
        found.append(_answer(answers, name, cell.index, cell.levels, group))
    questions = {question for cell in cells for question in answers.of_cell[cell.index][name]}
    return QueryFinding(
        query=name,
        form=form,
        title=next(iter(answers.of_cell[cells[0].index][name].values())).title,
        questions=len(questions),
        equal=not told and not any(each.varies for each in found),
        answers=tuple(found),
        differences=tuple(told),
        sentence=_sentence(_in_words(name, form), found, told),
    )


def _group(study: Study, answers: Answers, name: str, groups: Sequence[int], cell: int) -> tuple[int, str]:
    """Which of the groups a cell answers like; how it differs from the first that was asked the same, if any was."""
    first = ""
    for number, other in enumerate(groups):
        why = answers.unlike(name, other, answers, cell)
        if not why:
            return number, ""
        if why != _NOTHING_COMMON:
            first = first or f"{_named(study, other)} against {_named(study, cell)}: {why}"
    return len(groups), first


def _answer(answers: Answers, name: str, cell: int, levels: Mapping[str, str], group: int) -> QueryAnswer:
    one = next(iter(answers.of_cell[cell][name].values()))
    return QueryAnswer(
        cell=cell,
        levels=dict(levels),
        group=group,
        form=one.form,
        dialect=one.dialect,
        rows=None if one.error is not None else one.rows,
        columns=one.columns,
        error=one.error,
        statement=one.statement,
        plan=one.plan,
        comment=one.comment,
        client_share=one.client_share,
        varies=answers.varying.get((cell, name), ""),
    )


def _sentence(query: str, found: Sequence[QueryAnswer], told: Sequence[str]) -> str:
    varying = [each for each in found if each.varies]
    if varying:
        return f"{query} is not answered the same each time, so its times are not compared: {varying[0].varies}."
    if not told:
        same_ = "the only cell that was asked" if len(found) == 1 else f"all {len(found)} cells answer the same"
        return f"{query}: {same_}."
    return (
        f"{query} is not answered the same, and its times are compared only where it is: {sentences.listed(told, 3)}."
    )


def _in_words(name: str, form: str) -> str:
    """`point (determinate)`; `point (determinate, in batches)`, since who asked it in both ways is told of both."""
    part, _, query = name.partition(".")
    return f"{query} ({form}, in batches)" if part == IN_BATCH else f"{query} ({form})"


def _named(study: Study, cell: int) -> str:
    levels = next(each.levels for each in study.cells if each.index == cell)
    return sentences.levels(study.telling(levels)) or sentences.levels(levels) or "the only cell"


def notes(found: Sequence[QueryFinding]) -> Iterator[str]:
    """What a reader must know before all figures of queries."""
    unlike = [each for each in found if not each.equal]
    if unlike:
        names = sentences.listed([_in_words(each.query, each.form) for each in unlike], 52)
        yield (
            f"{len(unlike)} of {_queries(len(found))} are not answered the same by all cells, so that their times, and "
            f"figures over several queries with them, are not compared: {names}."
        )
    mostly = {
        each.query.partition(".")[2]
        for each in found
        for one in each.answers
        if one.client_share is not None and one.client_share > 0.5
    }
    if mostly:
        yield (
            "More than half of the time of some answers was the driver's own, which reads and decodes them: "
            f"{sentences.listed(sorted(mostly), 13)}."
        )
