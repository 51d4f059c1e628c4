"""The command line: a line a stage. The only room that knows all others."""

from __future__ import annotations

import json
import math
import sys
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import wraps
from pathlib import Path
from typing import Any, ParamSpec

import click
from rich.console import Console

from dyno import __version__
from dyno.analysis import (
    Session,
    agreement,
    analyse,
    cannot_tell,
    compare_folders,
    flames_of,
    forecast_throughput,
    gate_blocks,
    gate_sessions,
    instructions,
    refuse_unlike,
    timing,
    usages,
    why_unmeasured,
)
from dyno.design import FEWEST_BLOCKS, Forecast, forecast, of_pilot
from dyno.hosts import LocalHost, UndoJournal, tools, undo
from dyno.hosts.doctor import examine
from dyno.hosts.environment import capture, differences
from dyno.hosts.flames import draw
from dyno.hosts.leftovers import UndoError
from dyno.hosts.local import core_binary
from dyno.lab import Ending, Interrupt, Lab, Rooms, refuse_full_disk
from dyno.lab.counting import INSTRUCTIONS, LENGTH, counting, shortened
from dyno.lab.expected import expected, too_late_to_be_seen
from dyno.model.base import RunError, UserError
from dyno.model.disturbances import disturbances
from dyno.model.findings import Findings
from dyno.model.flames import DrawnFlame
from dyno.model.gate import Gate
from dyno.model.hot_spots import Rule, parse_rules, rules_in
from dyno.model.responses import lookup
from dyno.model.responses import names as response_names
from dyno.model.run import Outcome, RunRecord
from dyno.model.selfcheck import Scale, Selfcheck
from dyno.model.study import Study
from dyno.model.units import counted, parse_duration, parse_share
from dyno.model.usage import Usage
from dyno.planning import (
    ORDER_IS_FIXED,
    cells_without_spread,
    prospect_as_json,
    show_plan,
    show_prospect,
    why_too_short,
)
from dyno.probing import build_probe, told
from dyno.progress import listener
from dyno.report import to_csv, to_json
from dyno.report import write as write_report
from dyno.report.instructions import Configured, instructions_as_csv, instructions_as_json, show_instructions
from dyno.report.selfcheck import block, block_of
from dyno.report.terminal import show as show_findings
from dyno.report.terminal import show_folders, show_forecasts, show_selfcheck, show_timing
from dyno.selfcheck.kept import UnreadableSelfcheck, keep, kept
from dyno.store import Results, StoreFull, list_results, new_results
from dyno.study import attached, interleave, json_schema, load
from dyno.study import check as check_study
from dyno.study.errors import not_found

DONE, NOT_OK, BAD_INPUT, CANNOT_TELL, INTERRUPTED = 0, 1, 2, 3, 130

_RESULTS = Path("results")
_MOST_CHANGES, _MOST_OF_CHANGE = 3, 100  # of an ended session, and characters of each, that a command begins with
_SEED = 1  # of the simulation; that of `benchmarks/coverage.py`

P = ParamSpec("P")


def _answers_for_errors(command: Callable[P, int]) -> Callable[P, None]:
    """Exit with what the command returns; an error the user can mend is one line and status 2."""

    @wraps(command)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            # Whatever command comes next, what a killed session left is undone first; `clean` itself says more.
            if command.__name__ != "clean":
                _undo_leftovers()
            status = command(*args, **kwargs)
        except StoreFull as error:
            click.echo(f"dyno: {error}; free some, and go on with `--resume`", err=True)
            status = NOT_OK
        except UserError as error:
            click.echo(f"dyno: {error}", err=True)
            status = BAD_INPUT
        except (UndoError, RunError) as error:
            click.echo(f"dyno: {error}", err=True)
            status = NOT_OK
        except BrokenPipeError:
            # Whoever read our output has had enough, as `head` does.
            sys.stdout = None  # nothing more is to be flushed into it
            status = DONE
        except OSError as error:
            # Standard output on a full device, a report folder that cannot be written.
            click.echo(f"dyno: {error.filename or 'output'}: {error.strerror or error}", err=True)
            sys.stdout = None
            status = BAD_INPUT
        except KeyboardInterrupt:
            click.echo("dyno: interrupted", err=True)
            status = INTERRUPTED
        raise SystemExit(status)

    return wrapped


def _study_options(command: Callable[P, Any]) -> Callable[P, Any]:
    command = click.option(
        "--set",
        "overrides",
        multiple=True,
        metavar="KEY=VALUE",
        help="Override a key of the study; a mapping adds to the one there, key by key.",
    )(command)
    return click.argument("file", type=click.Path(path_type=Path))(command)


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="dyno")
def main() -> None:
    """A dynamometer for data stores: which is faster, by how much, how sure, and why."""


@main.command()
@_study_options
@click.option("--scale", help="Check this scale alone; without it, all that the file has.")
@_answers_for_errors
def check(file: Path, scale: str | None, overrides: tuple[str, ...]) -> int:
    """Validate a study file without running it."""
    study = check_file(file, scale, overrides)
    _warn(Rooms.open(), study)
    cells = counted(len(study.cells), "cell")
    click.echo(f"{file}: good ({cells} of {counted(len(study.factors), 'factor')} at scale {study.scale})")
    return DONE


def check_file(file: Path, scale: str | None = None, overrides: tuple[str, ...] = ()) -> Study:
    """What `dyno check` does. Raises UserError."""
    return check_study(file, Rooms.open().kinds(), scale=scale, overrides=overrides)


def _places(command: Callable[P, Any]) -> Callable[P, Any]:
    command = click.option(
        "--work", type=click.Path(path_type=Path, file_okay=False), help="Where the data under test live."
    )(command)
    return click.option(
        "--results", type=click.Path(path_type=Path, file_okay=False), default=_RESULTS, show_default=True
    )(command)


@main.command()
@_study_options
@click.option("--scale", default="default", show_default=True)
@click.option("--format", "form", type=click.Choice(["table", "json"]), default="table", show_default=True)
@click.option(
    "--blocks", type=click.IntRange(min=1), default=3, show_default=True, help="Show the order of so many blocks."
)
@click.option(
    "--pilot",
    "pilot_blocks",
    type=click.IntRange(min=FEWEST_BLOCKS, max=10_000),
    metavar="N",
    help=f"Run N blocks ({FEWEST_BLOCKS} or more), and say how many runs the study will take.",
)
@click.option("--effect", metavar="SHARE", help="With --pilot: an effect, such as 5%, that is to be found.")
@_places
@_answers_for_errors
def plan(
    file: Path,
    scale: str,
    overrides: tuple[str, ...],
    form: str,
    blocks: int,
    pilot_blocks: int | None,
    effect: str | None,
    results: Path,
    work: Path | None,
) -> int:
    """Show a study's design: its cells, blocks and runs, when it stops, and the time it would take."""
    wanted = _effect(effect, pilot_blocks)
    rooms = Rooms.open()
    study = load(file, rooms.kinds(), scale=scale, overrides=overrides)
    if pilot_blocks is not None and study.stages is not None:
        raise UserError("stages: what a study of two stages compares is known only once it is picked; it has no pilot")
    _warn(rooms, study)
    console = Console(highlight=False)
    if form == "table":
        show_plan(study, *_time_of(rooms, study, results), blocks, console)
    elif pilot_blocks is None:
        click.echo(study.model_dump_json(indent=1))
    if pilot_blocks is None:
        # Of a pilot the lab itself says what is missing. JSON is for programs, which would have to tell it apart.
        for each in rooms.lacking(study, results):
            click.echo(f"this machine lacks {each.name}: {each.found} - {each.remedy}", err=form != "table")
    return DONE if pilot_blocks is None else _pilot(rooms, study, file, pilot_blocks, wanted, form, results, work)


def _effect(text: str | None, pilot_blocks: int | None) -> float | None:
    if text is None:
        return None
    if pilot_blocks is None:
        raise UserError("--effect goes with --pilot N: only runs show how much they vary")
    try:
        effect = parse_share(text)
    except ValueError as error:
        raise UserError(f"--effect {text}: {error}") from error
    if effect <= 0:
        raise UserError(f"--effect {text}: should be above 0")
    return effect


def _time_of(rooms: Rooms, study: Study, root: Path) -> tuple[Forecast, str]:
    """How long it takes, and what that rests on."""
    found = expected(rooms, study, list_results(root, study.study))
    return forecast(study, found.seconds), found.basis


def _warn(rooms: Rooms, study: Study) -> None:
    """Of what the study is allowed to ask for, and may not have meant."""
    _warn_of_order(study)
    for hint in too_late_to_be_seen(rooms, study):
        click.echo(f"dyno: {hint}", err=True)


def _warn_of_order(study: Study) -> None:
    if study.order == "fixed" and len(study.cells) > 1:
        click.echo(f"dyno: {ORDER_IS_FIXED}", err=True)


def _pilot(
    rooms: Rooms, study: Study, file: Path, blocks: int, effect: float | None, form: str, root: Path, work: Path | None
) -> int:
    """Run a few blocks, and say what they foretell."""
    rule = study.replicates.model_copy(update={"min": blocks, "max": blocks, "budget": None})
    pilot = study.model_copy(update={"pilot": True, "replicates": rule})
    results, ending = _carry_out(rooms, pilot, file, core_binary(), root, work)
    if ending is None or not ending.completed:
        return INTERRUPTED if ending and ending.interrupted else NOT_OK
    prospect = of_pilot(study, results.runs, effect)
    if form == "json":
        click.echo(json.dumps(prospect_as_json(study, prospect, str(results.folder)), indent=1))
    else:
        show_prospect(study, prospect, effect, Console(highlight=False))
    silent = cells_without_spread(prospect)
    for name in silent:
        click.echo(f"dyno: {name}: fewer than two ok runs in the pilot; see {results.folder}", err=True)
    return NOT_OK if silent else DONE


def _rules(file: Path | None) -> tuple[Rule, ...]:
    if file is None:
        return ()
    try:
        return parse_rules(file.read_text(encoding="utf-8"), str(file))
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"--hot-spots {file}: {getattr(error, 'strerror', None) or error}") from error


_hot_spots = click.option(
    "--hot-spots",
    "rules",
    type=click.Path(path_type=Path, dir_okay=False),
    help="More rules of what functions do (TOML), asked before dyno's own.",
)


@main.command("instructions")
@_study_options
@click.option("--scale", default="default", show_default=True)
@click.option(
    "--operations",
    type=click.IntRange(min=1),
    default=10_000,
    show_default=True,
    help="Count so many, and twice as many: the difference is that of operations alone.",
)
@_hot_spots
@_places
@click.option("--format", "form", type=click.Choice(["table", "json", "csv"]), default="table", show_default=True)
@_answers_for_errors
def count_instructions(
    file: Path,
    scale: str,
    overrides: tuple[str, ...],
    operations: int,
    rules: Path | None,
    results: Path,
    work: Path | None,
    form: str,
) -> int:
    """Count the instructions per operation of each cell's server under valgrind, where no hardware counter does.

    And tell what they were spent on, by the functions that took them. Each cell is run twice at two lengths, natively
    and without limits, some fifty times slower than it is. The runs are kept as those of a pilot, and count in nothing
    else.
    """
    rooms = counting(Rooms.open())
    whole = load(file, Rooms.open().kinds(), scale=scale, overrides=overrides)
    known = (*_rules(rules), *rules_in(whole.observe))
    study = shortened(whole, operations)
    configured = _configured_to_be_counted(rooms, study)
    done, ending = _carry_out(rooms, study, file, core_binary(), results, work)
    if ending is None or not ending.completed:
        return INTERRUPTED if ending and ending.interrupted else NOT_OK
    found = list(instructions(done.runs, LENGTH, INSTRUCTIONS, done.all_functions().collect(), known))
    if form == "json":
        click.echo(instructions_as_json(found, configured))
    elif form == "csv":
        click.echo(instructions_as_csv(found), nl=False)
    else:
        show_instructions(found, configured, Console(highlight=False))
    lost = [each for each in found if each.mean is None]
    for each in lost:
        click.echo(f"dyno: {each.name}: was not counted at both lengths; see {done.folder}", err=True)
    return NOT_OK if lost else DONE


def _configured_to_be_counted(rooms: Rooms, study: Study) -> list[Configured]:
    """What each cell's server is told besides. Raises UserError where a cell cannot be counted."""
    found = []
    for cell in study.cells:
        system, workload = rooms.systems[cell.system.kind], rooms.workloads[cell.workload.kind]
        options = system.Options.model_validate(cell.system.options)
        if system.reached_by(options) is None:
            raise UserError(
                f"{cell.system.kind} lives in the driver's process: there is no server to count; the observer "
                "`counted` has its transactions counted by `dyno run`"
            )
        if why := system.why_not_valgrind(options):
            raise UserError(f"{cell.system.kind} cannot be counted as the study has it: {why}")
        try:
            workload.Options.model_validate(cell.workload.options)
        except ValueError as error:
            raise UserError(
                f"workload {cell.workload.kind} cannot be cut to a number of operations: {' '.join(str(error).split())}"
            ) from None
        found.append(
            ({name: level for name, level in cell.levels.items() if name != LENGTH}, system.for_valgrind(options))
        )
    return found


@main.command()
@_answers_for_errors
def schema() -> int:
    """Print the JSON Schema of study files, for editors."""
    click.echo(json.dumps(json_schema(Rooms.open().kinds()), indent=1))
    return DONE


@main.command()
@_study_options
@click.option("--scale", default="default", show_default=True)
@_places
@click.option("--resume", is_flag=True, help="Go on with this study's latest results, if they were cut off.")
@_answers_for_errors
def run(file: Path, scale: str, overrides: tuple[str, ...], results: Path, work: Path | None, resume: bool) -> int:
    """Run a study, and write its report."""
    rooms = Rooms.open()
    study = load(file, rooms.kinds(), scale=scale, overrides=overrides)
    _warn(rooms, study)
    if (why := why_too_short(study, _time_of(rooms, study, results)[0])) is not None:
        click.echo(f"dyno: {why}", err=True)
    done, ending = _carry_out(rooms, study, file, core_binary(), results, work, resume=resume)
    return _conclude(done.folder, ending)


class _ProbeCommand(click.Command):
    """Its help lists the kinds, which no file does."""

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - click's
        try:
            kinds = Rooms.open().interventions
        except UserError as error:  # another package's kind that cannot be loaded; no command but help works then
            formatter.write_text(f"dyno: {error}")
            return
        with formatter.section("Kinds (docs/probes.md)"):
            formatter.write_dl([(name, kinds[name].about()) for name in sorted(kinds)])


@main.command(cls=_ProbeCommand)
@_study_options
@click.option("--cell", metavar="FACTOR=LEVEL,...", help="Which cell; may be left out where the study has one.")
@click.option("--only", multiple=True, metavar="KIND,...", help="These interventions alone; default: all that can be.")
@click.option("--doses", multiple=True, metavar="KIND=DOSE,...", help="Of a kind, such as sync-delay='1 ms,2 ms,4 ms'.")
@click.option("--budget", default="10 min", show_default=True, help="No new block is begun that would pass this time.")
@click.option("--blocks", type=click.IntRange(min=2, max=10_000), help="So many blocks, whatever time they take.")
@click.option("--scale", default="default", show_default=True)
@_places
@click.option("--resume", is_flag=True, help="Go on with this probe's latest results, if they were cut off.")
@_answers_for_errors
def probe(
    file: Path,
    overrides: tuple[str, ...],
    cell: str | None,
    only: tuple[str, ...],
    doses: tuple[str, ...],
    budget: str,
    blocks: int | None,
    scale: str,
    results: Path,
    work: Path | None,
    resume: bool,
) -> int:
    """Slow resources on purpose while one cell of a study is driven, and say what its throughput hangs on."""
    try:
        seconds = parse_duration(budget)
    except ValueError as error:
        raise UserError(f"--budget {budget}: {error}") from error
    if seconds <= 0:
        raise UserError(f"--budget {budget}: should be above 0")
    for given in doses:
        if "=" not in given:
            raise UserError(f"--doses {given}: write a kind and its doses, such as sync-delay='1 ms,2 ms,4 ms'")
    rooms = Rooms.open()
    study = load(file, rooms.kinds(), scale=scale, overrides=overrides)
    found = build_probe(
        study,
        rooms,
        cell=cell,
        only=[name.strip() for names in only for name in names.split(",")],
        doses={kind.strip(): text for kind, _, text in (given.partition("=") for given in doses)},
        budget=seconds,
        blocks=blocks,
    )
    for line in told(found):
        click.echo(f"dyno: {line}", err=True)
    done, ending = _carry_out(rooms, found.study, file, core_binary(), results, work, resume=resume)
    return _conclude(done.folder, ending)


def _carry_out(
    rooms: Rooms, study: Study, file: Path, core: str, root: Path, work: Path | None, *, resume: bool = False
) -> tuple[Results, Ending | None]:
    """Run it into a results folder; without an ending where what is to be resumed had come to its own."""
    rooms.refuse_missing(study)
    with _nothing_half_begun() as new, _data_folder(work), Interrupt() as interrupt, _journal() as journal:
        host = LocalHost(journal)
        if resume:
            _refuse_nothing_to_resume(root, study)
        _make_folder(root)
        for folder in (root, work or root):
            refuse_full_disk(study, host, folder)
        if undo.living() > 1:
            click.echo("dyno: another dyno runs on this machine: each will disturb the other's figures", err=True)
        environment = capture(core, {"results": root, "data": work or root})
        if resume:
            results = _resumed(root, study, environment)
            if results.ended is not None:
                return results, None
        else:
            scratch = host.temporary_folder(root / f".dyno-{journal.token}-new")
            published = attached(file, study)
            results = new_results(root, study, file.read_bytes(), environment, scratch, published, _kept_selfcheck())
            new.append(results)
        results.lock()
        shown = listener(study)
        try:
            workspace = (work or results.folder).absolute() / f".dyno-{journal.token}"
            lab = Lab(results, host, rooms, core=core, workspace=workspace, interrupt=interrupt, listener=shown)
            # Not before all is there: a study that cannot begin leaves no folder.
            ending = lab.run(on_ready=lambda: click.echo(f"results: {results.folder}", err=True))
        finally:
            shown.close()
            results.unlock()
    return Results(results.folder), ending


@contextmanager
def _nothing_half_begun() -> Iterator[list[Results]]:
    """A study that could not begin leaves nothing that `--resume` would take for one that did.

    Its folder goes when the journal is closed: before, file systems may still be mounted in it.
    """
    new: list[Results] = []
    try:
        yield new
    except UserError:
        for results in new:
            if not Results(results.folder).runs:
                results.discard()
        raise


def _journal() -> UndoJournal:
    try:
        return UndoJournal()
    except OSError as error:
        raise UserError(
            f"cannot write the undo journal in {undo.state_folder()}: {error.strerror or error}; "
            "set DYNO_STATE to a folder that you may write"
        ) from error


def _kept_selfcheck() -> Selfcheck | None:
    """The last one; one that cannot be read keeps no study from running."""
    try:
        return kept()
    except UnreadableSelfcheck as error:
        click.echo(f"dyno: {error}", err=True)
        return None


def _show_block(results: Results) -> None:
    click.echo()
    show_selfcheck(block_of(results), Console(highlight=False))


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"cannot make the folder {folder}: {error.strerror or error}") from error


@contextmanager
def _data_folder(folder: Path | None) -> Iterator[None]:
    """Have the folder where data live while they do; one that was made for them goes with them."""
    made = folder is not None and not folder.exists()
    if folder is not None and made:
        try:
            folder.mkdir()
        except OSError as error:
            raise UserError(f"--work: cannot make the folder {folder}: {error.strerror or error}") from error
    try:
        yield
    finally:
        if folder is not None and made:
            with suppress(OSError):
                folder.rmdir()


def _refuse_nothing_to_resume(root: Path, study: Study) -> None:
    if not list_results(root, study.study):
        raise UserError(f"nothing to resume: {root / study.study} has no results; run without --resume")


def _resumed(root: Path, study: Study, environment: dict[str, Any]) -> Results:
    latest = list_results(root, study.study)[-1]
    if latest.study != study:
        raise UserError(
            f"cannot resume {latest.folder}: it was begun with another study file, scale or --set; run without --resume"
        )
    # A study whose report was cut off has that still to come.
    if latest.ended is not None and (latest.folder / "report.html").exists():
        raise UserError(f"nothing to resume: {latest.folder} is done ({latest.ended})")
    changed = differences(latest.environment, environment)
    if changed:
        raise UserError(f"cannot resume {latest.folder}: the machine is not as it was: {'; '.join(changed)}")
    return latest


def _conclude(folder: Path, ending: Ending | None, *, shows: bool = True) -> int:
    """Report what there is, name what is not as it should be, and choose the exit status."""
    results = Results(folder)
    findings = _findings(results)
    click.echo(f"report: {write_report(results, findings, folder, _flames(results))}", err=True)
    if shows:
        show_findings(findings, Console(highlight=False))
        _show_block(results)
    if ending and ending.interrupted:
        return INTERRUPTED
    wrong = _what_is_wrong(results.study, results.runs, findings)
    for line in wrong:
        click.echo(f"dyno: {line}", err=True)
    return NOT_OK if wrong or (ending and not ending.completed) else DONE


def _findings(results: Results, explained: Sequence[str] = (), rules: Sequence[Rule] = ()) -> Findings:
    disturbed = tuple(disturbances(results.environment))
    return analyse(
        results.study,
        results.runs,
        ended=results.ended,
        explained=explained,
        disturbed=disturbed,
        used=_used(results),
        stacks=results.all_stacks().collect(),
        rules=rules,
        counts=results.all_counts().collect(),
        answers=results.all_answers().collect(),
    )


def _used(results: Results) -> dict[int, Usage]:
    """What the observed runs used, by run."""
    cpus = results.environment.get("cpu", {}).get("online")
    return usages(results.runs, results.all_samples(), results.all_intervals(), cpus if isinstance(cpus, int) else None)


def _flames(results: Results) -> list[DrawnFlame]:
    """The flame graphs of a report; none where no call stacks were taken."""
    flames = list(flames_of(results.study, results.runs, results.all_stacks().collect()))
    return draw(core_binary(), flames) if flames else []


def _what_is_wrong(study: Study, runs: Sequence[RunRecord], findings: Findings) -> list[str]:
    """The cells that missed a block altogether, and where the study is strict those that missed their precision."""
    done: dict[tuple[int, int], bool] = {}
    for each in runs:
        if each.outcome is not Outcome.PARTIAL and not each.halted:
            slot = (each.slot.cell, each.slot.block)
            done[slot] = done.get(slot, False) or each.outcome is Outcome.OK
    lost = Counter(cell for (cell, _), ok in done.items() if not ok)
    wrong = [f"{study.cells[cell].name}: no ok run in {count} of its blocks" for cell, count in sorted(lost.items())]
    if study.replicates.strict:
        wrong += [
            f"{study.cells[cell.cell].name}: did not reach the precision asked for (strict)"
            for cell in findings.cells
            if cell.response == findings.response and not cell.converged
        ]
    return wrong


@main.command()
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--format", "form", type=click.Choice(["table", "json", "csv"]), default="table", show_default=True)
@click.option("--response", "chosen", multiple=True, help="Show this response; may be given several times.")
@click.option("--timing", "timed", is_flag=True, help="Show where the time of runs went instead, step by step.")
@_hot_spots
@_answers_for_errors
def show(folder: Path, form: str, chosen: tuple[str, ...], timed: bool, rules: Path | None) -> int:
    """Show what a results folder says."""
    results = Results(folder)
    if timed:
        return _show_timing(results, form, chosen)
    findings = _findings(results, chosen, _rules(rules))
    known = list(dict.fromkeys(cell.response for cell in findings.cells))
    for name in chosen:
        if name not in known:
            raise UserError(_no_response(results, name, known, {each.resource for each in findings.resources}))
    if form == "json":
        click.echo(to_json(findings))
    elif form == "csv":
        click.echo(to_csv(findings), nl=False)
    else:
        show_findings(findings, Console(highlight=False), chosen or None)
        _show_block(results)
    return DONE


def _no_response(results: Results, name: str, measured: Sequence[str], used: Collection[str]) -> str:
    """A word that is no response, or a response that these runs have no figure of, and why where that is known."""
    if name in used:
        where = "in the table of what an operation costs, and with all others in `resources` of --format json"
        return f"--response {name}: is a resource, and no response: the foremost stand {where}"
    try:
        lookup(name)
    except KeyError:
        return f"--response: {not_found('response', name, dict.fromkeys([*measured, *response_names()]), 'responses')}"
    why = why_unmeasured(results.study, results.runs, name)
    return f"--response {name}: not measured here{f', since {why}' if why else ''}; there are {', '.join(measured)}"


def _show_timing(results: Results, form: str, chosen: Sequence[str]) -> int:
    if form == "csv" or chosen:
        raise UserError("--timing goes with --format table or json, and with no --response")
    found = timing(results.study, results.runs)
    if form == "json":
        click.echo(json.dumps([each.model_dump(mode="json") for each in found], indent=1))
    else:
        show_timing(found, results.study.compare, Console(highlight=False))
    return DONE


@main.command("forecast")
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--at", required=True, metavar="FACTOR=N", help="The number of clients, such as threads=6.")
@click.option("--format", "form", type=click.Choice(["table", "json"]), default="table", show_default=True)
@_answers_for_errors
def forecast_clients(folder: Path, at: str, form: str) -> int:
    """Forecast the throughput of a number of clients between those measured, with the error made on held-out ones."""
    factor, _, text = at.partition("=")
    try:
        clients = float(text)
    except ValueError:
        clients = math.nan
    if not factor or not math.isfinite(clients):
        raise UserError(f"--at {at}: should be a factor and a number, such as threads=6")
    results = Results(folder)
    found = forecast_throughput(results.study, results.runs, _used(results), factor, clients)
    if form == "json":
        click.echo(json.dumps([each.model_dump(mode="json") for each in found], indent=1))
    else:
        show_forecasts(found, Console(highlight=False))
    return DONE


@main.command()
@click.argument("folder", type=click.Path(path_type=Path))
@click.option(
    "--out", type=click.Path(path_type=Path, file_okay=False), help="Where to write; default: the folder itself."
)
@_hot_spots
@_answers_for_errors
def report(folder: Path, out: Path | None, rules: Path | None) -> int:
    """Write a results folder's report: one HTML page, and each figure as SVG, PNG and CSV."""
    results = Results(folder)
    findings = _findings(results, rules=_rules(rules))
    try:
        click.echo(write_report(results, findings, out or folder, _flames(results)))
    except OSError as error:
        raise UserError(f"cannot write the report: {error}; choose another place with --out") from error
    return DONE


@main.command()
@click.argument("first", type=click.Path(path_type=Path))
@click.argument("second", type=click.Path(path_type=Path))
@click.option("--format", "form", type=click.Choice(["table", "json"]), default="table", show_default=True)
@_answers_for_errors
def compare(first: Path, second: Path, form: str) -> int:
    """Set two results folders side by side, cell by cell."""
    a, b = Results(first), Results(second)
    if first.resolve() == second.resolve():
        raise UserError(f"{first} and {second} are the same results folder")
    levels_a, levels_b = ([cell.levels for cell in each.study.cells] for each in (a, b))
    if not any(levels in levels_b for levels in levels_a):
        raise UserError(f"{first} and {second} have no cell in common: {a.study.study} and {b.study.study}")
    for each in (a, b):
        if each.study.pilot:
            click.echo(f"dyno: {each.folder} is a pilot: a few blocks to plan by", err=True)
    answers = a.all_answers().collect(), b.all_answers().collect()
    found = compare_folders(a.study, a.runs, b.study, b.runs, answers)
    together = agreement(a.study, a.runs, b.study, b.runs, answers)
    if form == "json":
        cells = [each.model_dump(mode="json") for each in found]
        click.echo(json.dumps({"cells": cells, "together": together.model_dump(mode="json")}, indent=1))
    else:
        show_folders(found, Console(highlight=False), str(first), str(second), together)
    return DONE


@main.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--base", "bases", multiple=True, required=True, metavar="KEY=VALUE|FOLDER", help="What it was.")
@click.option("--new", "news", multiple=True, required=True, metavar="KEY=VALUE|FOLDER", help="What it is now.")
@click.option("--slower", default="3%", show_default=True, help="The slow-down that matters.")
@click.option(
    "--set",
    "overrides",
    multiple=True,
    metavar="KEY=VALUE",
    help="Override a key of both; a mapping adds to the one there, key by key.",
)
@click.option("--scale", default="default", show_default=True)
@click.option("--results", type=click.Path(path_type=Path, file_okay=False), default=_RESULTS, show_default=True)
@click.option("--work", type=click.Path(path_type=Path, file_okay=False), help="Where the data under test live.")
@click.option("--format", "form", type=click.Choice(["table", "json"]), default="table", show_default=True)
@_answers_for_errors
def gate(
    file: Path,
    bases: tuple[str, ...],
    news: tuple[str, ...],
    slower: str,
    overrides: tuple[str, ...],
    scale: str,
    results: Path,
    work: Path | None,
    form: str,
) -> int:
    """Say whether something became slower: status 1 if it did, 0 if it did not, 3 if the data cannot tell.

    With KEY=VALUE the study is run with those settings as the base and as the new side, interleaved in one study. With
    results folders of the study nothing is run: the new one is held against five or more sessions of the base on the
    same machine. --base and --new may be given several times: for more settings, and --base for each folder.
    """
    try:
        limit = parse_share(slower)
    except ValueError as error:
        raise UserError(f"--slower: {error}") from None
    if not 0 < limit < 1:
        raise UserError(f"--slower {slower}: a share above 0% and below 100%")
    folders = [[Path(each) for each in side if Path(each).is_dir()] for side in (bases, news)]
    if folders[0] or folders[1]:
        if any(len(found) != len(side) for found, side in zip(folders, (bases, news), strict=True)):
            raise UserError("--base and --new are both settings (KEY=VALUE), or both results folders")
        asked = load(file, Rooms.open().kinds(), scale=scale, overrides=overrides)
        found = _gate_folders(asked, folders[0], folders[1], limit)
    else:
        for option, side in (("--base", bases), ("--new", news)):
            for given in side:
                if "=" not in given:
                    raise UserError(f"{option} {given}: neither a results folder nor a setting (KEY=VALUE)")
        found = _gate_run(file, scale, overrides, bases, news, limit, results, work)
    if form == "json":
        click.echo(found.model_dump_json(indent=1))
    else:
        click.echo(found.sentence)
    return {"slower": NOT_OK, "not slower": DONE, "cannot tell": CANNOT_TELL}[found.verdict]


def _gate_run(
    file: Path,
    scale: str,
    overrides: tuple[str, ...],
    bases: tuple[str, ...],
    news: tuple[str, ...],
    limit: float,
    results: Path,
    work: Path | None,
) -> Gate:
    rooms = Rooms.open()
    kinds = rooms.kinds()
    base, new = (load(file, kinds, scale=scale, overrides=(*overrides, *side)) for side in (bases, news))
    for side in (base, new):
        rooms.refuse_given(side)
    # Half of what matters: then a version that is as fast as the other is told from one that is just too slow.
    study = interleave(base, new, precision=f"{limit / 2 * 100:.6f}%")
    done, ending = _carry_out(rooms, study, file, core_binary(), results, work)
    if _conclude(done.folder, ending, shows=False) == INTERRUPTED:
        raise KeyboardInterrupt
    return gate_blocks(study, done.runs, slower=limit, answers=done.all_answers().collect())


def _gate_folders(asked: Study, bases: Sequence[Path], news: Sequence[Path], limit: float) -> Gate:
    if len(news) != 1:
        raise UserError(f"--new: one results folder is held against the base, got {len(news)}")
    new, earlier = Results(news[0]), [Results(folder) for folder in bases]
    if any(each.study.stages is not None for each in (new, *earlier)):
        raise UserError("a folder of a staged study cannot be gated: which cells it compares was picked there")
    *base, latest = (
        Session(str(each.folder), each.study, each.runs, each.all_answers().collect()) for each in (*earlier, new)
    )
    refuse_unlike(asked, base, latest)
    # The study file says what is judged: of folders too the gate may be on another response than they were run for.
    judged = new.study.model_copy(update={"replicates": asked.replicates})
    for each in earlier:
        if changed := differences(each.environment, new.environment, programs=False):
            why = f"{each.folder} is of another machine: {'; '.join(changed)}"
            return cannot_tell(judged, why, slower=limit)
    return gate_sessions(
        [(each.study, each.runs) for each in base],
        (judged, latest.runs),
        slower=limit,
        answers=[each.answers for each in (*base, latest)],
    )


@main.command()
@click.option("--results", type=click.Path(path_type=Path, file_okay=False), default=_RESULTS, show_default=True)
@_answers_for_errors
def doctor(results: Path) -> int:
    """Say what this machine can and cannot do, and how to get the rest."""
    checks = examine(results)
    for each in checks:
        mark = "ok  " if each.holds else ("MISSING" if each.needed else "no  ")
        click.echo(f"{mark} {each.name}: {each.found}" + ("" if each.holds else f" - {each.remedy}"))
    return DONE if all(each.holds for each in checks if each.needed) else NOT_OK


@main.command()
@click.option("--quick", is_flag=True, help="In under three minutes instead of a quarter of an hour.")
@click.option("--scale", type=click.Choice(["smoke", "quick", "full"]), help="How much is measured; default: full.")
@click.option(
    "--work",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path(),
    show_default=True,
    help="Where the data under test live.",
)
@click.option("--statistics", is_flag=True, help="Check the statistics by simulation instead of the machine.")
@click.option("--studies", type=click.IntRange(min=1), help="With --statistics: so many of each row; default: 20000.")
@click.option("--format", "form", type=click.Choice(["table", "json"]), default="table", show_default=True)
@_answers_for_errors
def selfcheck(quick: bool, scale: Scale | None, work: Path, statistics: bool, studies: int | None, form: str) -> int:
    """Have the instrument prove itself on this machine: false alarms, ceiling, freeze test, observer cost.

    What it finds is kept, and stands in every report of a study that is run here. Status 1 where the instrument itself
    is at fault; a noisy machine is none.
    """
    if studies is not None and not statistics:
        raise UserError("--studies belongs to --statistics")
    if statistics:
        if quick or scale or form != "table":
            raise UserError("--statistics goes with --studies alone")
        from dyno.selfcheck import coverage  # of use here alone

        missed = coverage.table(studies or coverage.STUDIES, list(coverage.LEVELS), coverage.NAMES, _SEED, click.echo)
        return NOT_OK if missed else DONE
    if quick and scale not in (None, "quick"):
        raise UserError(f"--quick and --scale {scale}: choose one")
    found = _selfcheck_made("quick" if quick else scale or "full", work)
    if form == "json":
        click.echo(found.model_dump_json(indent=1))
    else:
        show_selfcheck(block(found), Console(highlight=False))
    return NOT_OK if "warn" in (found.false_alarms.verdict, found.freeze.verdict) else DONE


def _selfcheck_made(scale: Scale, work: Path) -> Selfcheck:
    from dyno.selfcheck.measure import Bench, measure  # of use here alone

    core = core_binary()
    with _data_folder(work), Interrupt() as interrupt, _journal() as journal:
        host = LocalHost(journal)
        if undo.living() > 1:
            click.echo("dyno: another dyno runs on this machine: each will disturb the other's figures", err=True)
        environment = capture(core, {"data": work})
        folder = host.temporary_folder(work.absolute() / f".dyno-{journal.token}-selfcheck")
        bench = Bench(Rooms.open(), host, core, folder, interrupt, lambda line: click.echo(f"dyno: {line}", err=True))
        found = measure(bench, scale, environment)
        click.echo(f"kept: {keep(found, host, journal.token)}", err=True)
    return found


@main.command()
@click.argument("tool", required=False)
@_answers_for_errors
def get(tool: str | None) -> int:
    """Build a tool of others into your cache; without a name, list those that can be got."""
    if tool is None:
        for each in tools.TOOLS.values():
            have = each.installed()
            state = f"{have} in {each.path()}" if have else "not there yet"
            click.echo(f"{each.name} {each.version} - {each.what}; {state}")
        return DONE
    if tool not in tools.TOOLS:
        raise UserError(f"get {tool}: unknown tool; there are {', '.join(tools.TOOLS)}")
    click.echo(f"{tool} {tools.TOOLS[tool].version}: {tools.TOOLS[tool].get()}")
    return DONE


@main.command()
@_answers_for_errors
def clean() -> int:
    """Undo everything that ended sessions left: processes, folders, settings."""
    cleaned = undo.clean()
    for each in cleaned:
        for change in each.undone:
            click.echo(f"undone: {change}")
        for change in each.stuck:
            click.echo(f"dyno: could not undo {change}", err=True)
    if not cleaned:
        click.echo("nothing was left")
    return NOT_OK if any(each.stuck for each in cleaned) else DONE


def _some(changes: Sequence[str]) -> str:
    """The first few of them, in a line of a reader's length."""
    shown = [each if len(each) <= _MOST_OF_CHANGE else f"{each[: _MOST_OF_CHANGE - 3]}..." for each in changes]
    more = len(shown) - _MOST_CHANGES
    return "; ".join(shown[:_MOST_CHANGES]) + (f"; and {more} more" if more > 0 else "")


def _undo_leftovers() -> None:
    for each in undo.clean():
        if each.undone:
            click.echo(f"dyno: undid what an ended session left: {_some(each.undone)}", err=True)
        for change in each.stuck:
            click.echo(f"dyno: an ended session left what cannot be undone: {change}; see `dyno clean`", err=True)
