"""`published: [figures.csv, findings.yaml]`: what the long form would say of a table, read off its own columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from dyno.model import bounds, responses
from dyno.study.errors import Place, Problem, listed, shown
from dyno.study.figures import Table, TableSpec

TABLE_SUFFIX = ".csv"
FINDINGS_SUFFIXES = (".yaml", ".yml")


def table_spec(
    file: str, table: Table, levels: Mapping[str, Sequence[str]], problems: list[Problem], *, strict: bool
) -> TableSpec | None:
    """A column for each factor, named as it is, and one named as a response, alone or with its unit behind.

    None with a problem where there is no such column or, if `strict`, where a row has a level that the study has not.
    """
    before = len(problems)
    columns = {factor: _column(factor, table, problems) for factor in levels}
    found = [(column, *named) for column in table.columns if (named := _response(column))]
    if len(found) != 1:
        what = "no column is" if not found else f"{listed(column for column, *_ in found)} are all"
        _add(problems, Place(table.source, 1), "", f"{what} named as a response (columns: {listed(table.columns)})")
    spelt = {}
    for factor, column in columns.items():
        if column is not None:
            spelt[factor] = _spelt(factor, levels[factor], column, table, problems, strict=strict)
    if len(problems) > before:
        return None
    ((value, response, unit),) = found
    return TableSpec(
        file=file,
        response=response,
        value=value,
        unit=unit,
        map={factor: column for factor, column in columns.items() if column is not None},
        levels={factor: names for factor, names in spelt.items() if names},
    )


def _add(problems: list[Problem], place: Place, key: str, text: str) -> None:
    problems.append(Problem(place, key, f"{text}; say what the columns hold under published.tables"))


def _column(factor: str, table: Table, problems: list[Problem]) -> str | None:
    alike = [column for column in table.columns if column.lower() == factor.lower()]
    if len(alike) == 1:
        return alike[0]
    what = f"{listed(alike)} are all" if alike else "no column is"
    _add(problems, Place(table.source, 1), factor, f"{what} named as this factor (columns: {listed(table.columns)})")
    return None


def _response(column: str) -> tuple[str, str] | None:
    """The response that a column is named as, and the unit that it says: `throughput_ops_s`, `latency_p99_us`."""
    for response in responses.names():
        unit = responses.lookup(response).unit
        if column == response:
            return response, unit
        if column.startswith(f"{response}_"):
            for given in _units(column.removeprefix(f"{response}_")):
                try:
                    bounds.convert(1.0, given, unit)
                except ValueError:
                    continue
                return response, given
    return None


def _units(behind: str) -> Iterator[str]:
    yield behind
    yield behind.replace("_per_", "/").replace("_", "/")
    if behind in ("pct", "percent"):
        yield "%"


def _spelt(
    factor: str, levels: Sequence[str], column: str, table: Table, problems: list[Problem], *, strict: bool
) -> dict[str, str]:
    """How the file spells those levels that it spells otherwise, whatever their case."""
    by_case: dict[str, list[str]] = {}
    for level in levels:
        by_case.setdefault(level.lower(), []).append(level)
    found: dict[str, str] = {}
    for line, row in table.rows:
        there = row[column]
        alike = [there] if there in levels else by_case.get(there.lower(), [])
        place = Place(table.source, line)
        if len(alike) == 1 and found.setdefault(alike[0], there) == there:
            continue
        if len(alike) == 1:
            _add(problems, place, column, f"{shown(there)} and {shown(found[alike[0]])} are both {factor}={alike[0]}")
        elif alike:
            _add(problems, place, column, f"{shown(there)} may be each of {listed(alike)}")
        elif strict:
            _add(problems, place, column, f"{shown(there)} is no level of {factor} (levels: {listed(levels)})")
        else:
            continue
        break
    return {level: there for level, there in found.items() if level != there}
