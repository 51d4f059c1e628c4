"""The report: one page that needs nothing but itself, and its figures as files."""

from __future__ import annotations

import base64
import hashlib
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import resources
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from dyno import __version__
from dyno.model import responses
from dyno.model.findings import (
    CellSummary,
    Comparison,
    Drift,
    FactorEffect,
    Findings,
    Interval,
    OverallRatio,
    Variation,
    format_estimate,
    format_p,
    format_quantity,
    format_ratio,
    format_reached,
    format_share,
)
from dyno.model.flames import DrawnFlame
from dyno.model.run import RunRecord
from dyno.model.stages import comparing
from dyno.model.study import Study
from dyno.model.units import format_percent, format_size
from dyno.report import failover, figures, interventions, queries, removal, switches
from dyno.report.database import groups
from dyno.report.decisions import decisions_to_csv, shown
from dyno.report.figures import Figure, Palette
from dyno.report.figures.style import capital, label, varied
from dyno.report.hot_spots import about, hot_spots_part, symbol_name
from dyno.report.laws import reached, runs_observed
from dyno.report.observations import ABOUT, observed_parts
from dyno.report.per_op import costs
from dyno.report.runs import notable
from dyno.report.selfcheck import block_of
from dyno.report.source import Source
from dyno.report.text import MOST_SENTENCES, foremost, of_device, to_csv
from dyno.report.verdicts import verdict_groups

_OfResponse = TypeVar("_OfResponse", Variation, Drift)

MOST_VALUES = 3  # of a confounder at one level
MOST_FAILURES = 200  # in the page; run.json has them all


@dataclass(frozen=True)
class Shown:
    """A figure as the page holds it: the drawing, and links to its files."""

    name: str
    title: str
    svg: Markup
    links: tuple[tuple[str, str, str], ...]  # what the link says, the file's name, its address or its content as one


@dataclass(frozen=True)
class Part:
    """One response: its cells, comparisons and effects."""

    title: str
    note: str
    cells: tuple[CellSummary, ...]
    comparisons: tuple[Comparison, ...]
    others: tuple[Comparison, ...]  # folded away
    effects: tuple[FactorEffect, ...]
    overall: tuple[tuple[str, tuple[OverallRatio | None, ...]], ...]  # which combinations, and a ratio a level
    overall_levels: tuple[str, ...]


@dataclass(frozen=True)
class _Causes:
    """The figures of what explains the variation, of shapes and of drift, which stand beside their words."""

    residuals: list[Figure]
    shapes: list[Figure]
    drift: list[Figure]
    doses: list[Figure]

    @classmethod
    def drawn(cls, study: Study, findings: Findings) -> _Causes:
        residuals, drift = figures.residuals(findings), figures.drift(findings)
        shapes = figures.shapes(study, findings, Palette(study))
        doses = figures.doses(findings)
        return cls([residuals] if residuals else [], shapes, [drift] if drift else [], [doses] if doses else [])

    def all(self) -> list[Figure]:
        return [*self.residuals, *self.shapes, *self.drift, *self.doses]


@dataclass(frozen=True)
class _Drawn:
    """What is drawn of a study: all figures of a report, by the part of the page that they stand in."""

    study: Study
    pooled: list[Figure]
    charts: list[Figure]
    causes: _Causes
    bounds: list[Figure]
    failed_over: list[Figure]
    removed: list[Figure]
    switched: list[Figure]
    timelines: list[Figure]

    @classmethod
    def of(cls, results: Source, findings: Findings) -> _Drawn:
        study = _compared(results.study, findings)
        return cls(
            study=study,
            pooled=[figure] if (figure := figures.overall(study, findings, Palette(study))) else [],
            charts=_charts(study, findings),
            causes=_Causes.drawn(study, findings),
            bounds=[figure] if (figure := figures.bounds(study, findings, Palette(study))) else [],
            failed_over=_failovers(results, findings),
            removed=figures.removal(findings),
            switched=figures.switches(findings),
            timelines=_timelines(results, findings),
        )

    def all(self) -> list[Figure]:
        first = [*self.pooled, *self.charts, *self.causes.all(), *self.bounds, *self.failed_over]
        return [*first, *self.removed, *self.switched, *self.timelines]


def write(results: Source, findings: Findings, out_dir: Path, flames: Sequence[DrawnFlame] = ()) -> Path:
    """Write report.html and figures/*.{svg,png,csv}; gives the path of report.html. Raises OSError."""
    drawn = _Drawn.of(results, findings)
    folder = out_dir / "figures"
    folder.mkdir(parents=True, exist_ok=True)
    files = {f"{flame.name}.svg": flame.file.encode() for flame in flames}
    for figure in drawn.all():
        files[f"{figure.name}.svg"] = figure.svg.encode()
        files[f"{figure.name}.png"] = figure.png
        files[f"{figure.name}.csv"] = figure.csv.encode()
    page = _page(results, findings, drawn, flames)
    # Nothing of an earlier report is replaced before all of the new one is made.
    for name, content in files.items():
        _replace(folder / name, content)
    target = out_dir / "report.html"
    _replace(target, page.encode())
    return target


def render(results: Source, findings: Findings, flames: Sequence[DrawnFlame] = ()) -> str:
    """The page that `write` writes, without the files beside it."""
    return _page(results, findings, _Drawn.of(results, findings), flames)


def _compared(study: Study, findings: Findings) -> Study:
    """Of a staged study the second stage, whose cells and factors are those of the findings."""
    return study if study.stages is None else comparing(study, [choice.cell for choice in findings.choices])


def _replace(path: Path, content: bytes) -> None:
    """Put a file in its place at once: a reader sees the old one or the new one."""
    staged = path.with_name(f".{path.name}.tmp")
    staged.write_bytes(content)
    staged.replace(path)


def _charts(study: Study, findings: Findings) -> list[Figure]:
    palette = Palette(study)
    # Most combinations of a fraction are not there to be drawn, and no two of the others are alike but for a factor.
    whole = study.design.kind != "screening" or not study.design.generators
    drawn = (
        figures.half_normal(findings),
        figures.heat_map(study, findings) if whole else None,
        figures.lines(study, findings, palette) if whole else None,
        figures.bars(study, findings, palette),
        figures.forest(study, findings, palette),
    )
    return [figure for figure in drawn if figure]


def _timelines(results: Source, findings: Findings) -> list[Figure]:
    cells = {cell.index: cell for cell in results.study.cells}
    deciding = [cell for cell in findings.cells if cell.response == findings.response]
    drawn = (
        figures.timeline(cells[run.slot.cell], run, results.samples(run.run), results.intervals(run.run))
        for run in notable(deciding, results.runs)
    )
    return [figure for figure in drawn if figure]


def _failovers(results: Source, findings: Findings) -> list[Figure]:
    drawn = figures.outages(findings)
    return [*([drawn] if drawn else []), *figures.around_faults(findings, results.runs, results.intervals)]


def _page(results: Source, findings: Findings, drawn: _Drawn, flames: Sequence[DrawnFlame]) -> str:
    study = drawn.study
    script = _text("report.js")
    template = _environment().get_template("report.html.j2")
    return template.render(
        findings=findings,
        study=study,
        telling=varied(study) or study.factors,
        parts=_parts(findings),
        device=of_device(findings),
        most_sentences=MOST_SENTENCES,
        decisions=[(each, _table(decisions_to_csv(each.table))) for each in shown(findings)],
        overall_figures=[_shown(figure) for figure in drawn.pooled],
        charts=[_shown(figure) for figure in drawn.charts],
        variation=_of(findings.variation, findings.response),
        residuals=[_shown(figure) for figure in drawn.causes.residuals],
        shapes=[shape for shape in findings.shapes if shape.response == findings.response],
        shape_figures=[_shown(figure) for figure in drawn.causes.shapes],
        drift=_of(findings.drift, findings.response),
        drift_figures=[_shown(figure) for figure in drawn.causes.drift],
        bounds_figures=[_shown(figure) for figure in drawn.bounds],
        laws_faults=findings.laws.faults[:MOST_FAILURES],
        laws_reached=reached,
        runs_observed=runs_observed(findings),
        intervention_figures=[_shown(figure) for figure in drawn.causes.doses],
        told_of=interventions,
        failover_figures=[_shown(figure) for figure in drawn.failed_over],
        failover=failover,
        queries=queries,
        removal_figures=[_shown(figure) for figure in drawn.removed],
        removal=removal,
        switches_figures=[_shown(figure) for figure in drawn.switched],
        switches=switches,
        timelines=[_shown(figure) for figure in drawn.timelines],
        database=groups(findings),
        hot_spots=hot_spots_part(findings, flames),
        failures=findings.failures[:MOST_FAILURES],
        verdict_groups=list(verdict_groups(findings)),
        environment=results.environment,
        selfcheck=block_of(results),
        costs=costs(findings),
        observed=observed_parts(findings),
        about_observed=ABOUT,
        study_yaml=results.study_yaml,
        versions=_versions(results.runs),
        measured=_measured(results.runs),
        machine=_machine(results.environment),
        repeat=_repeat(results.study),
        commands=list(_commands(results.runs)),
        cells_csv=_table(to_csv(findings)),
        version=__version__,
        style=Markup(_text("report.css")),
        script=Markup(script),
        script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
    )


def _of(found: Sequence[_OfResponse], response: str) -> _OfResponse | None:
    return next((each for each in found if each.response == response), None)


def _measured(runs: Sequence[RunRecord]) -> str:
    """The day and time of the first run, UTC."""
    return f"{datetime.fromtimestamp(runs[0].started_ns / 1e9, UTC):%Y-%m-%d %H:%M} UTC" if runs else ""


def _machine(environment: Mapping[str, Any]) -> str:
    """In a line; empty where it was not captured."""
    cpu, memory = environment.get("cpu", {}), environment.get("memory", {})
    parts = [cpu.get("model"), f"{cpu['usable']} CPUs" if "usable" in cpu else None]
    if "total_bytes" in memory:
        parts.append(format_size(memory["total_bytes"]))
    return ", ".join(part for part in parts if part)


def _repeat(study: Study) -> str:
    """The command that runs this study again, from the file that the page shows."""
    words = ["dyno", "run", "study.yaml", "--scale", study.scale]
    return shlex.join(words + [word for override in study.overrides for word in ("--set", override)])


def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("dyno.report", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        capital=capital,
        quantity=lambda value: "–" if value is None else format_quantity(value),
        reached=lambda value, asked: "–" if value is None else format_reached(value, asked),
        share=lambda value: "–" if value is None else format_share(value),
        probability=lambda value: "–" if value is None else format_p(value),
        estimate=lambda figure: format_estimate(*figure),
        interval=lambda ci: f"{format_quantity(ci[0])} to {format_quantity(ci[1])}" if ci else "–",
        percent=format_percent,
        label=label,
        ratio=_ratio,
        several=_several,
        title_of=_title,
        unbroken=_unbroken,
        about_samples=about,
        symbol_name=symbol_name,
    )
    environment.tests["mapping"] = lambda value: isinstance(value, Mapping)
    environment.tests["table"] = _is_table
    return environment


def _ratio(found: tuple[float | None, Interval | None]) -> str:
    """A ratio with its interval; its bare figure where it has none."""
    ratio, interval = found
    if ratio is None:
        return "–"
    return format_ratio(ratio, interval) if interval else f"{ratio:.3g}x"


def _several(values: Sequence[str]) -> str:
    """`io_uring or libaio`; of more than a reader wants, how many there are."""
    shown = " or ".join(values[:MOST_VALUES])
    return f"{shown} or {len(values) - MOST_VALUES:,} more" if len(values) > MOST_VALUES else shown


def _title(response: str) -> str:
    known = responses.lookup(response)
    return f"{capital(known.title)} ({known.unit})"


_WHOLE = re.compile(r"\S+ \[[^\]]*\]|n = [\d,]+ \w+")


def _unbroken(text: str) -> str:
    """Keep an estimate and its interval on one line, by spaces that do not break and a word joiner in 8.7e-05."""
    return _WHOLE.sub(lambda found: found[0].replace(" ", "\u00a0").replace("e-", "e-\u2060"), text)


def _is_table(value: Any) -> bool:
    """Whether a value of the environment is a list of things with the same plain properties (disks, say)."""
    if not isinstance(value, list) or not value or not all(isinstance(row, Mapping) and row for row in value):
        return False
    plain = all(not isinstance(field, (Mapping, list)) for row in value for field in row.values())
    return plain and all(row.keys() == value[0].keys() for row in value)


def _text(name: str) -> str:
    return resources.files("dyno.report").joinpath("templates", name).read_text(encoding="utf-8")


def _parts(findings: Findings) -> list[Part]:
    cells: dict[str, list[CellSummary]] = {}
    comparisons: dict[str, list[Comparison]] = {}
    for cell in findings.cells:
        cells.setdefault(cell.response, []).append(cell)
    for found in findings.comparisons:
        comparisons.setdefault(found.response, []).append(found)
    return [_part(name, of_response, comparisons.get(name, []), findings) for name, of_response in cells.items()]


def _part(name: str, cells: Sequence[CellSummary], comparisons: Sequence[Comparison], findings: Findings) -> Part:
    known = responses.lookup(name)
    shown, others = foremost(comparisons)
    effects = tuple(effect for effect in findings.effects if effect.response == name)
    note = f"{known.unit}, {known.better} is better"
    pooled = [each for each in findings.overall if each.response == name]
    levels = tuple(dict.fromkeys(each.b for each in pooled))
    return Part(
        capital(known.title),
        note,
        tuple(cells),
        tuple(shown),
        tuple(others),
        effects,
        tuple(_by_combinations(pooled, levels)),
        levels,
    )


def _by_combinations(
    pooled: Sequence[OverallRatio], levels: Sequence[str]
) -> Iterator[tuple[str, tuple[OverallRatio | None, ...]]]:
    """A row for all combinations and for those of each level of another factor."""
    rows: dict[tuple[tuple[str, str], ...], dict[str, OverallRatio]] = {}
    for each in pooled:
        rows.setdefault(tuple(each.where.items()), {})[each.b] = each
    for where, of_level in rows.items():
        number = max(each.of for each in of_level.values())
        name = f"{label(dict(where))} ({number})" if where else f"all {number}"
        yield name, tuple(of_level.get(level) for level in levels)


def _shown(figure: Figure) -> Shown:
    # Beside the page and not in it: the drawing is there already, from where the page's script takes it, and the pixels
    # depend on the fonts of the machine, which the page must not.
    files = [(end.upper(), f"{figure.name}.{end}", f"figures/{figure.name}.{end}") for end in ("svg", "png")]
    table = "CSV", f"{figure.name}.csv", _table(figure.csv)
    return Shown(figure.name, figure.title, Markup(figure.svg), (*files, table))


def _table(csv: str) -> str:
    """A table as an address: almost all of its letters stand for themselves, so this is shorter than base64."""
    return f"data:text/csv;charset=utf-8,{quote(csv, safe=',._-:=/ ')}"


def _versions(runs: Sequence[RunRecord]) -> list[tuple[str, str]]:
    """Each program with the versions that the runs used; more than one is worth seeing."""
    found: dict[str, dict[str, None]] = {}
    for run in runs:
        for program, version in run.versions.items():
            found.setdefault(program, {})[version] = None
    return [(program, ", ".join(versions)) for program, versions in sorted(found.items())]


def _commands(runs: Sequence[RunRecord]) -> Iterator[tuple[str, str]]:
    """The commands of the first run of each cell; those of its replicates differ in nothing that matters."""
    seen: set[int] = set()
    for run in runs:
        if run.commands and run.slot.cell not in seen:
            seen.add(run.slot.cell)
            yield (
                f"{label(run.levels) or 'the only cell'} (run {run.run})",
                "\n".join(shlex.join(words) for words in run.commands),
            )
