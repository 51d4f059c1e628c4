"""Findings on a terminal: the answer first, then what it rests on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from dyno.model import responses
from dyno.model.findings import (
    CellSummary,
    Choice,
    ClaimResult,
    Comparison,
    FactorEffect,
    Failure,
    Findings,
    FolderAgreement,
    FolderComparison,
    Forecast,
    OverallRatio,
    PublishedResult,
    StepTiming,
    TargetResult,
    Timing,
    Variation,
    format_estimate,
    format_p,
    format_quantity,
    format_ratio,
    format_reached,
    format_share,
)
from dyno.model.run import Step
from dyno.model.units import counted, format_percent
from dyno.report.database import on_terminal as of_database
from dyno.report.decisions import on_terminal as decided_on_terminal
from dyno.report.failover import of_failovers
from dyno.report.hot_spots import show_hot_spots
from dyno.report.interventions import show_interventions
from dyno.report.laws import forecasts_in_words, laws_in_words
from dyno.report.observations import on_terminal as observed_on_terminal
from dyno.report.per_op import on_terminal as per_operation
from dyno.report.queries import of_queries
from dyno.report.removal import of_removal
from dyno.report.selfcheck import Block
from dyno.report.switches import of_switches
from dyno.report.tables import columns as _columns
from dyno.report.tables import heading as _heading
from dyno.report.tables import plain as _plain
from dyno.report.tables import row as _row
from dyno.report.tables import table as _table
from dyno.report.text import MOST_SENTENCES, foremost, of_device, part_of
from dyno.report.verdicts import verdict_lines

NARROW = 100  # columns; a narrower terminal gets the narrower table
WIDTH_OF_FILES = 1000
MOST_FAILURES = 20
MOST_CELLS = 10  # of a target; JSON and the page have them all
MOST_CURVES = 12
_VERDICTS = {"ok": "green", "warn": "red", "cannot tell": "yellow"}


def show(findings: Findings, console: Console, chosen: Sequence[str] | None = None) -> None:
    """Print the findings. `chosen` names the responses to show; None shows the one that decides."""
    shown = list(chosen) if chosen is not None else [findings.response]
    narrow = console.is_terminal and console.width < NARROW
    parts: list[RenderableType] = [_head(findings), *of_failovers(findings)]
    parts += decided_on_terminal(findings, shown)
    # Of a single level there was nothing to pick.
    if tuned := [choice for choice in findings.choices if len(choice.candidates) > 1]:
        parts += [Text(), _heading(_title_of_choices(findings)), *([] if narrow else [_choices(tuned)])]
        parts += [Text(_plain(choice.sentence)) for choice in tuned]
    if findings.confounders:
        parts += [Text(), _heading(_plain(f"What differs besides {findings.compare}"))]
        parts += [Text(f"- {_plain(each.sentence)}", style="yellow") for each in findings.confounders]
    for response in shown:
        cells = [cell for cell in findings.cells if cell.response == response]
        parts += [
            Text(),
            _heading(_title(response)),
            (_narrow_cells if narrow else _cells)(cells, findings),
        ]
        if pooled := [each for each in findings.overall if each.response == response]:
            title = f"Each {_plain(pooled[0].factor)} over {_plain(pooled[0].a)}, many combinations together"
            parts += [Text(), _heading(title), _overall(pooled)]
        found = [each for each in findings.comparisons if each.response == response]
        if found:
            read, others = foremost(found)
            parts += [Text(), *_sentences(read)]
            if others:
                parts.append(Text(f"and {len(others):,} more between the other levels (--format json)", style="dim"))
        if of_factors := [each for each in findings.effects if each.response == response]:
            parts += [Text(), _heading("Effects, high to low"), _effects(of_factors)]
        parts += _causes(findings, response)
    more = [name for name in dict.fromkeys(cell.response for cell in findings.cells) if name not in shown]
    if more:
        parts += [Text(), Text(f"Also measured: {', '.join(more)}", style="dim")]
    if findings.targets:
        parts += [Text(), _heading("Targets"), *_targets(findings.targets)]
    for table in findings.published:
        parts += [Text(), _heading(f"Beside what was published: {_title(table.response)}"), *_published(table)]
    parts += observed_on_terminal(findings, narrow=narrow)
    if findings.claims:
        parts += [Text(), _heading("What was published, held against these runs"), *_claims(findings.claims)]
    if findings.failures:
        parts += [Text(), _heading("Runs that are not ok"), _failures(findings.failures)]
    if findings.notes:
        parts += [
            Text(),
            _heading("Before believing the figures"),
            *(Text(f"- {_plain(note)}") for note in findings.notes),
        ]
    parts += per_operation(findings, narrow=narrow)
    parts += laws_in_words(findings.laws)
    parts += of_database(findings)
    if findings.verdicts:
        parts += [
            Text(),
            _heading("What held each cell back"),
            *(Text(_plain(line)) for line in verdict_lines(findings)),
        ]
    parts += show_hot_spots(findings)
    parts += of_queries(findings)
    parts += of_removal(findings)
    parts += of_switches(findings)
    _print(console, Group(*parts))
    show_interventions(findings.interventions, console)


def show_forecasts(forecasts: Sequence[Forecast], console: Console) -> None:
    """Print throughputs that were not measured, with the error made on those that were."""
    _print(console, Group(*forecasts_in_words(forecasts)))


def show_timing(found: Sequence[Timing], compared: str | None, console: Console) -> None:
    """Print where the time of runs goes: a column a level, a row a step."""
    if not found:
        _print(console, Text("No ok run: nothing to time."))
        return
    steps = {each.step for of in found for each in of.steps}
    order = [step.value for step in Step if step.value in steps]
    table = _table()
    _columns(table, "step")
    _columns(table, *(each.level or "seconds" for each in found), justify="right")
    for step in order:
        of_levels = [next((each for each in of.steps if each.step == step), None) for of in found]
        _row(table, step, *(_seconds(each) for each in of_levels))
    table.add_section()
    _row(table, Text("around the run", style="bold"), *(_seconds(each.around) for each in found))
    runs = ", ".join(f"{each.level}: {each.runs:,}" if each.level else f"{each.runs:,}" for each in found)
    by = f" by {_plain(compared)}" if compared else ""
    about = (
        f"Median and 95th percentile of ok runs ({runs}). Around the run is all but drive and prepare; "
        "data are prepared once for many runs."
    )
    _print(console, Group(_heading(f"Seconds of each step{by}"), table, Text(), Text(_plain(about), style="dim")))


def _seconds(found: StepTiming | None) -> str:
    return "-" if found is None else f"{found.median_s:.2f} / {found.p95_s:.2f}"


def show_selfcheck(found: Block, console: Console) -> None:
    """Print what the instrument found out about itself."""
    parts: list[RenderableType] = [_heading("Self-check of the instrument"), Text(_plain(found.heading))]
    parts += [Text(_plain(caution), style="yellow") for caution in found.cautions]
    if found.parts:
        table = Table(box=None, pad_edge=False, show_header=False)
        for name, judged in found.parts:
            _row(table, Text(judged.verdict, style=_VERDICTS[judged.verdict]), name, judged.sentence)
        parts.append(table)
    _print(console, Group(*parts))


def show_folders(
    comparisons: Sequence[FolderComparison],
    console: Console,
    first_name: str,
    second_name: str,
    together: FolderAgreement | None = None,
) -> None:
    """Print two results folders side by side, and how they agree over all cells together."""
    if not comparisons:
        _print(console, Text("Neither folder has a cell."))
        return
    first = comparisons[0]
    table = _table()
    _columns(table, "cell")
    _columns(table, "n", f"first ({first.unit})", f"second ({first.unit})", "second / first", justify="right")
    _columns(table, "verdict", *_remark_column(comparisons))
    for each in comparisons:
        _row(
            table,
            _name(each.levels),
            f"{each.n_a} / {each.n_b}",
            _or_dash(each.mean_a),
            _or_dash(each.mean_b),
            format_ratio(each.ratio, each.ci) if each.ratio is not None and each.ci else "-",
            each.verdict,
            *(Text(each.remark, style="yellow") for _ in _remark_column(comparisons)),
        )
    names = Text(_plain(f"first: {first_name}\nsecond: {second_name}"), style="dim")
    warnings = ["The folders' runs were not interleaved: a difference may be the machine's drift."]
    differs = sorted({key for each in comparisons for key in each.differs})
    if differs:
        warnings.append(f"The two were not asked for the same: they differ in {', '.join(differs)}.")
    notes = [Text(_plain(warning), style="yellow") for warning in warnings]
    over_all = [] if together is None else [Text(_plain(each)) for each in (together.sentence, together.ranks.sentence)]
    _print(console, Group(names, _heading(_title(first.response)), table, Text(), *over_all, *notes))


def _print(console: Console, what: RenderableType) -> None:
    """Print as wide as the terminal is; where there is none, a line of the table is a line of the file."""
    out = console if console.is_terminal else Console(file=console.file, width=WIDTH_OF_FILES, color_system=None)
    out.print(what)


def _title(response: str) -> str:
    known = responses.lookup(response)
    return f"{known.title} ({known.unit}, {known.better} is better)"


def _name(levels: dict[str, str]) -> str:
    return " ".join(f"{factor}={level}" for factor, level in levels.items()) or "the only cell"


def _or_dash(value: float | None) -> str:
    return "-" if value is None else format_quantity(value)


def _share(value: float | None) -> str:
    return "-" if value is None else format_share(value)


def _head(findings: Findings) -> Group:
    asked = f"{format_percent(findings.precision)} of the {findings.precision_of} of {findings.response}"
    confidence = f"{format_percent(findings.confidence)} confidence"
    facts = f"{counted(findings.runs, 'run')}; {findings.ended}; precision asked for: {asked}, at {confidence}"
    return Group(
        *(Text(_plain(line), style="bold green") for line in findings.answer.split("\n")),
        Text(),
        Text(_plain(f"{findings.study} ({findings.scale}): {findings.question}")),
        Text(_plain(facts), style="dim"),
    )


def _cells(cells: Sequence[CellSummary], findings: Findings) -> Table:
    table = _table()
    levels = {factor: {cell.levels.get(factor) for cell in cells} for cell in cells for factor in cell.levels}
    # What all cells have is told once, in a note.
    factors = [factor for factor, names in levels.items() if len(names) > 1] or list(levels)
    _columns(table, *(factors or ["cell"]))
    device = of_device(findings)
    _columns(table, "n", "not ok", "mean", "sd", "cov", "interval", "+-", *device, justify="right")
    _columns(table, "ratio within" if findings.precision_of == "ratio" else "precise", *_remark_column(cells))
    for cell in cells:
        _row(
            table,
            *([cell.levels.get(factor, "") for factor in factors] or [_name({})]),
            str(cell.n),
            _not_ok(cell),
            _or_dash(cell.mean),
            _or_dash(cell.sd),
            _share(cell.cov),
            f"[{format_quantity(cell.ci[0])}, {format_quantity(cell.ci[1])}]" if cell.ci else "-",
            _reached(cell.precision, findings.precision),
            *(_or_dash(column.get(cell.cell)) for column in device.values()),
            _precise(cell, findings),
            *(Text(cell.remark, style="yellow") for _ in _remark_column(cells)),
        )
    return table


def _title_of_choices(findings: Findings) -> str:
    known = responses.lookup(findings.response)
    return f"stage one: the best {findings.choices[0].factor} by {known.title} ({known.unit}, geometric means)"


def _choices(choices: Sequence[Choice]) -> Table:
    table = _table()
    factors = list(choices[0].within)
    _columns(table, *(factors or ["cell"]), "best")
    _columns(table, "mean", justify="right")
    _columns(table, "runner-up", "best / runner-up", "shown")
    _columns(table, "in stage two", "looked better by", justify="right")
    for choice in choices:
        runner = next((each for each in choice.candidates if each.level == choice.runner_up), None)
        _row(
            table,
            *([choice.within[factor] for factor in factors] or [_name({})]),
            choice.chosen or "-",
            _or_dash(choice.mean),
            choice.runner_up or "-",
            format_ratio(runner.ratio, runner.ci) if runner and runner.ratio is not None and runner.ci else "-",
            _shown(choice),
            _or_dash(choice.mean_compared),
            format_ratio(choice.optimism, choice.optimism_ci) if choice.optimism and choice.optimism_ci else "-",
        )
    return table


def _shown(choice: Choice) -> Text:
    if choice.shown:
        return Text("yes", style="green")
    return Text(f"no, one of {choice.could_be}" if choice.could_be > 1 else "-", style="yellow")


def _narrow_cells(cells: Sequence[CellSummary], findings: Findings) -> Table:
    """The same in half the width: the interval as mean and half-width, runs that are not ok as their number."""
    table = _table()
    _columns(table, "cell")
    device = of_device(findings)
    _columns(table, "n", "not ok", "mean", "+-", *device, justify="right")
    _columns(table, "ratio within" if findings.precision_of == "ratio" else "precise", *_remark_column(cells))
    for cell in cells:
        not_ok = str(cell.failed + cell.invalid + cell.partial)
        _row(
            table,
            _name(cell.levels),
            str(cell.n),
            not_ok if not_ok != "0" else "-",
            _or_dash(cell.mean),
            _reached(cell.precision, findings.precision),
            *(_or_dash(column.get(cell.cell)) for column in device.values()),
            _precise(cell, findings),
            *(Text(cell.remark, style="yellow") for _ in _remark_column(cells)),
        )
    return table


def _remark_column(rows: Sequence[CellSummary] | Sequence[FolderComparison]) -> list[str]:
    """Only where there is something to remark."""
    return ["remark"] if any(row.remark for row in rows) else []


def _reached(value: float | None, asked: float) -> str:
    return "-" if value is None else format_reached(value, asked)


def _precise(cell: CellSummary, findings: Findings) -> Text:
    """By what decides: "+-" is of the mean, which a study of ratios does not go by."""
    reached = f"{_reached(cell.reached, findings.precision)} " if findings.precision_of == "ratio" else ""
    return Text(f"{reached}yes", style="green") if cell.converged else Text(f"{reached}no", style="yellow")


def _not_ok(cell: CellSummary) -> Text:
    counts = {"failed": cell.failed, "invalid": cell.invalid, "partial": cell.partial}
    text = ", ".join(f"{count} {kind}" for kind, count in counts.items() if count)
    return Text(text or "-", style="red" if text else "")


def _sentences(found: Sequence[Comparison]) -> Iterator[Text]:
    """All of a few; of more than a reader takes in, those that show something."""
    told = [each for each in found if len(found) <= MOST_SENTENCES or each.verdict in ("higher", "lower", "equivalent")]
    yield from (_sentence(each) for each in told)
    if untold := len(found) - len(told):
        which = "other comparisons" if told else "comparisons"
        yield Text(f"none of the {untold:,} {which} shows a difference (--format json)", style="dim")


def _sentence(found: Comparison) -> Text:
    return Text(_plain(found.sentence), style="dim" if found.ci is None else "")


def _overall(pooled: Sequence[OverallRatio]) -> Table:
    table = _table()
    _columns(table, "combinations", "ratio to the first", "verdict", "blocks")
    for each in pooled:
        verdict = Text(each.verdict, style="bold" if each.verdict in ("higher", "lower") else "dim")
        _row(table, f"{each.b}, {part_of(each)}", format_ratio(each.ratio, each.ci), verdict, str(each.n))
    return table


def _effects(effects: Sequence[FactorEffect]) -> Table:
    table = _table()
    _columns(table, "effect")
    _columns(table, "high / low", "of the variation", justify="right")
    _columns(table, "verdict", "cannot be told from")
    for each in effects:
        _row(
            table,
            " x ".join(each.factors),
            format_ratio(each.ratio, each.ci) if each.ci else "-",
            _share(each.share),
            Text(each.verdict, style="bold" if each.verdict in ("higher", "lower") else "dim"),
            ", ".join(each.aliases) or "-",
        )
    return table


def _causes(findings: Findings, response: str) -> Iterator[RenderableType]:
    """What explains the variation, the shapes and the drift of a response, where they were looked for."""
    for explained in (each for each in findings.variation if each.response == response):
        yield from (Text(), _heading("What explains the variation"), _words(explained.sentence, explained.reason))
        if explained.sources:
            yield _sources(explained)
        if explained.far_from_normal:
            yield Text("Residuals are far from normal: p is not to be trusted.", style="yellow")
    for shape in (each for each in findings.shapes if each.response == response):
        told = [*(each.sentence for each in shape.crossings if each.ci), *(each.sentence for each in shape.curves)]
        told = [sentence for sentence in told if sentence]
        yield from (Text(), _heading(f"Shape over {_plain(shape.factor)}"))
        yield from (Text(_plain(sentence)) for sentence in told[:MOST_CURVES])
        if len(told) > MOST_CURVES:
            yield Text(f"and {len(told) - MOST_CURVES:,} more", style="dim")
        if shape.sentence:
            yield Text(_plain(shape.sentence))
        if shape.left_out:
            yield Text(_plain(f"Not computed: {'; '.join(shape.left_out)}."), style="dim")
    for drifted in (each for each in findings.drift if each.response == response):
        yield from (Text(), _heading("Drift and outliers"), _words(drifted.sentence, drifted.reason))


def _words(sentence: str, reason: str | None) -> Text:
    return Text(_plain(sentence), style="dim" if reason else "")


def _sources(explained: Variation) -> Table:
    table = _table()
    _columns(table, "source")
    _columns(table, "share", "sum of squares", "df", "F", "p", justify="right")
    for each in explained.sources:
        p = "-" if each.p is None else format_p(each.p)
        squares = format_quantity(each.sum_of_squares)
        _row(table, each.source, _share(each.share), squares, str(each.degrees), _or_dash(each.f), p)
    return table


_STYLES = {
    **dict.fromkeys(("met", "agrees", "confirmed"), "green"),
    **dict.fromkeys(("missed", "differs", "contradicted"), "red"),
    **dict.fromkeys(("cannot tell", "open"), "yellow"),
}


def _verdict(word: str) -> Text:
    return Text(word, style=_STYLES[word])


def _targets(targets: Sequence[TargetResult]) -> Iterator[RenderableType]:
    """Each in a sentence, and the cells that do not meet it where some do."""
    for target in targets:
        yield Text(_plain(target.sentence), style=_STYLES[target.verdict])
        short = [cell for cell in target.cells if cell.verdict != "met"]
        if len({cell.verdict for cell in target.cells}) < 2:
            continue
        table = _table()
        _columns(table, "cell", f"mean ({target.unit})", "verdict")
        for cell in short[:MOST_CELLS]:
            mean = "-" if cell.mean is None else format_estimate(cell.mean, cell.ci)
            _row(table, _name(cell.levels), mean, _verdict(cell.verdict))
        yield table
        if len(short) > MOST_CELLS:
            yield Text(f"and {len(short) - MOST_CELLS:,} more", style="dim")


def _published(found: PublishedResult) -> Iterator[RenderableType]:
    """The figures side by side, then what can be said of them."""
    if found.cells:
        table = _table()
        _columns(table, "cell", "here", "published")
        for cell in found.cells:
            here = "-" if cell.mean is None else format_estimate(cell.mean, cell.ci)
            _row(table, _name(cell.levels), here, format_estimate(cell.published, cell.published_ci))
        yield table
    yield Text(_plain(found.ranks.sentence))
    if found.same_side is not None:
        yield Text(_plain(found.same_side))
    for ratio in found.ratios:
        yield Text(_plain(ratio.sentence))
    yield from (Text(_plain(each), style="yellow") for each in found.unlike)
    yield Text(_plain(f"Published figures: {found.file}"), style="dim")


def _claims(claims: Sequence[ClaimResult]) -> Iterator[RenderableType]:
    table = _table()
    _columns(table, "finding", "verdict")
    for claim in claims:
        said = Text(_plain(f"{claim.id}: {claim.says}"))
        for more in (claim.needs and f"said for: {claim.needs}", claim.note):
            said.append(_plain(f" ({more})") if more else "", style="dim")
        said.append("\n").append(_plain(claim.reason), style="dim")
        _row(table, said, _verdict(claim.verdict))
    yield table


def _failures(failures: Sequence[Failure]) -> RenderableType:
    table = _table()
    _columns(table, "run", justify="right")
    _columns(table, "cell", "outcome", "step", "cause")
    for failure in failures[:MOST_FAILURES]:
        cause = failure.cause or "-"
        _row(table, str(failure.run), _name(failure.levels), failure.outcome, failure.step or "-", cause)
    if len(failures) <= MOST_FAILURES:
        return table
    return Group(table, Text(f"and {len(failures) - MOST_FAILURES:,} more", style="dim"))
