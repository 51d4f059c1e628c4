"""A tree -> the `Study` it describes, with every problem found on the way."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path as FilePath
from typing import Any

from pydantic import BaseModel

from dyno.model import faults, responses
from dyno.model.base import Scalar
from dyno.model.hot_spots import rules_in
from dyno.model.interventions import FACTOR
from dyno.model.pairs import pairs
from dyno.model.study import Cell, Factor, HostSpec, Kinds, KindSpec, Level, Mismatch, Study
from dyno.model.table_options import TableOptions
from dyno.study import staged
from dyno.study.designs import Chosen, Combination, NamedFactor, read_design
from dyno.study.document import (
    DEFAULT_SCALE,
    FACTOR_NAME,
    SCALE_NAME,
    VARIED_SECTIONS,
    Document,
    SystemSection,
    WorkloadSection,
)
from dyno.study.errors import Place, Problem, StudyError, not_found, raise_first, shown
from dyno.study.expectations import Known, read_targets
from dyno.study.faults import read_faults, struck
from dyno.study.hosts import unlike_hosts, unused_engine
from dyno.study.interventions import intervene, read_interventions
from dyno.study.published import read_published
from dyno.study.tables import TABLES, tables_of, tables_put
from dyno.study.tree import (
    Branch,
    Entry,
    Items,
    Leaf,
    Node,
    Path,
    deepest,
    dotted,
    interpolate,
    keys,
    leaves,
    plain,
    put,
    references,
    references_in,
    split_key,
    strings,
)
from dyno.study.validate import validate

_MAX_LEVEL_NAME = 100
_NOT_WRITTEN = (FACTOR, faults.FACTOR)
"""Factors that the file's `factors` have not."""


@dataclass(frozen=True, slots=True)
class _Setting:
    """One `dotted key: value` of a level: where it acts and what it sets there."""

    key: str
    steps: tuple[str, ...]
    entry: Entry


@dataclass(frozen=True, slots=True)
class _Level:
    """A level and, for a named group, its settings."""

    leaf: Leaf
    model: Level
    settings: tuple[_Setting, ...] | None = None


@dataclass(frozen=True, slots=True)
class _Factor:
    name: str
    place: Place
    levels: tuple[_Level, ...]

    @property
    def is_group(self) -> bool:
        return any(level.settings is not None for level in self.levels)

    @property
    def settings(self) -> Iterator[_Setting]:
        return (setting for level in self.levels for setting in level.settings or ())


def build(
    root: Branch, kinds: Kinds, *, scale: str, source_sha256: str, folder: FilePath, declared: Branch | None = None
) -> Study:
    """The study of a tree to which scale and `--set` have been applied. Raises StudyError for its first problem.

    `folder` is where the files lie that it names; `declared` is the tree as it stands in the file, whose levels may be
    named even where a scale has others.
    """
    problems: list[Problem] = []
    factors = _factors(root, problems)
    chosen = None if factors is None else read_design(root, [_named(factor) for factor in factors], problems)
    if factors is not None and _references_hold(root, factors, problems) and chosen is not None:
        before = len(problems)
        stages = staged.read(root, [_model(factor) for factor in factors], problems)
        problems.extend(_both_designs(root, chosen, stages))
        if len(problems) == before:
            cells = _cells(root, factors, _combinations(factors, chosen.cells, stages), kinds, problems, folder)
    document = validate(Document, root, (), root, problems)
    scale_names(root, problems)
    observe = _observe(root, kinds, problems)
    if document is not None and factors is not None:
        compare = _compare(document, factors)
        _check_compared(document, root, compare, factors, problems)
    known = Known(_known_levels(factors or (), declared or root))
    targets = read_targets(root, known, problems)
    doses = read_interventions(root, kinds.interventions, known, document, problems)
    kinds_of_faults = read_faults(root, known, document, problems)
    groups = [rule.group for rule in rules_in(observe)]
    compared = _compared(known, document)
    strict = declared is None or declared is root
    published = read_published(root, compared, known, folder, groups, problems, strict=strict)
    raise_first(problems)
    assert document is not None  # otherwise there were problems
    assert factors is not None
    assert chosen is not None
    # Last, since a factor may be unused only because the key with its `${...}` was itself wrong.
    raise_first(_unused(root, factors))
    study = Study(
        study=document.study,
        question=document.question,
        scale=scale,
        design=chosen.spec,
        factors=tuple(_measured(factor, levels) for factor, levels in zip(factors, chosen.levels, strict=True)),
        compare=compare.name if compare else None,
        stages=document.stages,
        cells=tuple(cells),
        replicates=document.replicates,
        observe=observe,
        limits=document.limits,
        order=document.order,
        prepare=document.prepare,
        restore=document.restore,
        seed=document.seed,
        source_sha256=source_sha256,
        targets=targets,
        published=published,
    )
    study = struck(intervene(study, doses), kinds_of_faults)
    raise_first(_nothing_to_compare(root, study))
    raise_first(_mismatches(root, factors, chain(unlike_hosts(study), unused_engine(study), kinds.mismatches(study))))
    return study


def _known_levels(factors: Sequence[_Factor], declared: Branch) -> dict[str, list[str]]:
    """The levels that each factor has, and those that it has in the file."""
    levels = {factor.name: [level.model.name for level in factor.levels] for factor in factors}
    # What is wrong with the file's own factors is told where they are used.
    for factor in _factors(declared, []) or ():
        mine = levels.setdefault(factor.name, [])
        mine += [level.model.name for level in factor.levels if level.model.name not in mine]
    return levels


def _compared(known: Known, document: Document | None) -> Known:
    """The factors of the cells that are compared: of a study of two stages without the one that is picked first."""
    if document is None or document.stages is None:
        return known
    return Known({name: levels for name, levels in known.levels.items() if name != document.stages.best})


def _mismatches(root: Branch, factors: Sequence[_Factor], found: Iterable[Mismatch]) -> Iterator[Problem]:
    """What does not go together, each where the key was written for its cell."""
    for each in found:
        tree, path = root, split_key(each.key, root.place)
        if each.cell is not None:
            tree = _section_of(root, path[0], _levels_of(each.cell, factors))
        _, node, _ = deepest(tree, path)
        yield Problem(node.place, each.key, each.text)


def _levels_of(cell: Cell, factors: Sequence[_Factor]) -> dict[str, _Level]:
    named = {(factor.name, level.model.name): level for factor in factors for level in factor.levels}
    return {name: named[name, level] for name, level in cell.levels.items() if name not in _NOT_WRITTEN}


def _named(factor: _Factor) -> NamedFactor:
    return NamedFactor(factor.name, factor.place, tuple(level.model.name for level in factor.levels))


def _model(factor: _Factor) -> Factor:
    return Factor(name=factor.name, levels=tuple(level.model for level in factor.levels))


def _measured(factor: _Factor, levels: Sequence[int]) -> Factor:
    return Factor(name=factor.name, levels=tuple(factor.levels[level].model for level in levels))


# Scales


def scale_names(root: Branch, problems: list[Problem]) -> list[str]:
    """The scales of a file: `default`, which always exists, and those declared."""
    names = [DEFAULT_SCALE]
    scales = root.get("scales")
    if scales is None:
        return names
    if not isinstance(scales, Branch):
        problems.append(Problem(scales.place, "scales", "should be a mapping of scale names to {study key: value}"))
        return names
    for name, entry in scales.entries.items():
        if re.fullmatch(SCALE_NAME, name) is None:
            text = "a scale's name should be lower-case letters, digits and hyphens"
            problems.append(Problem(entry.key_place, dotted(("scales", name)), text))
        elif not isinstance(entry.node, Branch):
            text = "should be a mapping of study keys to values, such as {workload.records: 1000}"
            problems.append(Problem(entry.node.place, dotted(("scales", name)), text))
        elif name not in names:
            names.append(name)
    return names


def at_scale(root: Branch, scale: str) -> Branch:
    """The tree with a scale's values put in. Raises StudyError, for a scale that is not declared too."""
    problems: list[Problem] = []
    names = scale_names(root, problems)
    raise_first(problems)
    if scale not in names:
        _, _, place = deepest(root, ("scales",))
        raise StudyError(Problem(place, "scales", not_found("scale", scale, names, "scales")))
    scales = root.get("scales")
    overlay = scales.get(scale) if isinstance(scales, Branch) else None
    if not isinstance(overlay, Branch):
        return root
    for setting in _settings(overlay, ("scales", scale)):
        if setting.steps[0] == "scales":
            text = "a scale cannot change the scales; set the study's own keys"
            raise StudyError(Problem(setting.entry.key_place, dotted(("scales", scale, setting.key)), text))
        root = put(root, setting.steps, setting.entry)
    return root


def _settings(branch: Branch, path: Path) -> list[_Setting]:
    """`{dotted key: value}` as settings. Raises StudyError if two of them set the same thing."""
    settings: list[_Setting] = []
    seen: dict[Path, tuple[str, Place]] = {}
    for key, entry in branch.entries.items():
        setting = _Setting(key, split_key(key, entry.key_place), entry)
        for leaf_path in _leaf_paths(setting):
            other = seen.get(leaf_path)
            if other is not None:
                text = f"{dotted(leaf_path)} is set here and by {shown(other[0])}; keep one of them"
                raise StudyError(Problem(entry.key_place, dotted((*path, key)), text))
            seen[leaf_path] = (key, entry.key_place)
        settings.append(setting)
    return settings


def _leaf_paths(setting: _Setting) -> Iterator[Path]:
    return ((*setting.steps, *below) for below, _ in leaves(setting.entry.node))


# Factors


def _factors(root: Branch, problems: list[Problem]) -> list[_Factor] | None:
    """The factors, or None if one of them has a problem."""
    node = root.get("factors")
    if node is None:
        return []
    before = len(problems)
    if not isinstance(node, Branch):
        problems.append(Problem(node.place, "factors", "should map names to levels, such as {threads: [1, 4]}"))
        return None
    if not node.entries:
        problems.append(Problem(node.place, "factors", "has no factor; leave the key out if nothing is varied"))
        return None
    factors = []
    for name, entry in node.entries.items():
        try:
            factors.append(_factor(name, entry))
        except StudyError as error:
            problems.append(error.problem)
    _set_by_one_factor_only(factors, problems)
    return factors if len(problems) == before else None


def _factor(name: str, entry: Entry) -> _Factor:
    path = ("factors", name)
    if re.fullmatch(FACTOR_NAME, name) is None:
        text = "a factor's name should be letters, digits, '_' and '-', so that ${name} can be written"
        raise StudyError(Problem(entry.key_place, dotted(path), text))
    node = entry.node
    if isinstance(node, Leaf):
        text = f"should be a list of levels, not {shown(node.value)}; write [{shown(node.value)}]"
        raise StudyError(Problem(node.place, dotted(path), text))
    levels = _listed_levels(node, path) if isinstance(node, Items) else _grouped_levels(node, path)
    if not levels:
        raise StudyError(Problem(node.place, dotted(path), "has no levels; list at least one"))
    names: dict[str, Place] = {}
    for level in levels:
        _check_level_name(level, path)
        if level.model.name in names:
            text = f"the level {shown(level.model.name)} is listed twice; levels differ by how they are written"
            raise StudyError(Problem(level.leaf.place, dotted(path), text))
        names[level.model.name] = level.leaf.place
    return _Factor(name, entry.key_place, tuple(levels))


def _listed_levels(node: Items, path: Path) -> list[_Level]:
    return [_listed_level(item, (*path, index)) for index, item in enumerate(node.items)]


def _listed_level(item: Node, path: Path) -> _Level:
    if not isinstance(item, Leaf):
        remedy = "a group of settings needs a name: {name: {key: value}}"
        text = f"a level should be a single value, not {shown(plain(item))}; {remedy}"
        raise StudyError(Problem(item.place, dotted(path), text))
    if item.value is None:
        text = "a level cannot be null; quote it if it is text, or name a group of settings"
        raise StudyError(Problem(item.place, dotted(path), text))
    if isinstance(item.value, str) and "${" in item.value:
        raise StudyError(Problem(item.place, dotted(path), "a level cannot refer to a factor; write its value"))
    return _Level(item, Level(value=item.value))


def _grouped_levels(node: Branch, path: Path) -> list[_Level]:
    return [_grouped_level(name, entry, (*path, name)) for name, entry in node.entries.items()]


def _grouped_level(name: str, entry: Entry, path: Path) -> _Level:
    if not isinstance(entry.node, Branch):
        remedy = "write {} for a level that sets nothing"
        text = f"should be a mapping of settings, not {shown(plain(entry.node))}; {remedy}"
        raise StudyError(Problem(entry.node.place, dotted(path), text))
    settings = _settings(entry.node, path)
    for setting in settings:
        if setting.steps[0] not in VARIED_SECTIONS:
            text = "a level can set only what is under host, system or workload; all else is the same for all cells"
            raise StudyError(Problem(setting.entry.key_place, dotted((*path, setting.key)), text))
    model = Level(value=name, settings={setting.key: plain(setting.entry.node) for setting in settings})
    return _Level(Leaf(name, entry.key_place), model, tuple(settings))


def _check_level_name(level: _Level, path: Path) -> None:
    name = level.model.name
    if not name.strip() or not name.isprintable() or len(name) > _MAX_LEVEL_NAME:
        text = f"a level should be 1 to {_MAX_LEVEL_NAME} printable characters, not {shown(name)}; it stands in tables"
        raise StudyError(Problem(level.leaf.place, dotted(path), text))


def _set_by_one_factor_only(factors: Sequence[_Factor], problems: list[Problem]) -> None:
    """The effects of two factors that set the same key could not be told apart."""
    owner: dict[Path, str] = {}
    for factor in factors:
        mine: dict[Path, Place] = {}
        for setting in factor.settings:
            mine.update((path, setting.entry.key_place) for path in _leaf_paths(setting))
        for path, place in mine.items():
            above = (path[:length] for length in range(1, len(path) + 1))
            other = next((owner[step] for step in above if step in owner), None)
            if other is not None:
                text = f"{dotted(path)} is also set by factor {shown(other)}; one key, one factor"
                problems.append(Problem(place, f"factors.{factor.name}", text))
        for path in mine:
            owner.setdefault(path, factor.name)


def _references_hold(root: Branch, factors: Sequence[_Factor], problems: list[Problem]) -> bool:
    """Whether each `${...}` names a factor and stands where it acts."""
    before = len(problems)
    names = [factor.name for factor in factors]
    for key, entry in root.entries.items():
        if key in VARIED_SECTIONS:
            problems.extend(_bad_references(entry.node, (key,), names))
        elif key in Document.model_fields and key not in ("question", "factors", "scales"):
            problems.extend(_misplaced_references(entry.node, (key,)))
    for factor in factors:
        for setting in factor.settings:
            path: Path = ("factors", factor.name, setting.key)
            problems.extend(_bad_references(setting.entry.node, path, names))
            problems.extend(_hidden_references(root, factor, setting))
    return len(problems) == before


def _unused(root: Branch, factors: Sequence[_Factor]) -> Iterator[Problem]:
    """A list of levels that no `${...}` takes would vary nothing. Named groups may be empty: the same system twice."""
    used = references_in(Branch({k: e for k, e in root.entries.items() if k in VARIED_SECTIONS}, root.place))
    for factor in factors:
        for setting in factor.settings:
            used |= references_in(setting.entry.node)
    for factor in factors:
        if factor.name not in used and not factor.is_group:
            text = f"factor {factor.name} is never used; write ${{{factor.name}}} where it should act"
            yield Problem(factor.place, f"factors.{factor.name}", text)


def _bad_references(node: Node, path: Path, names: Sequence[str]) -> Iterator[Problem]:
    for below, leaf, text in strings(node, path):
        for name in references(text):
            if name is None:
                yield Problem(leaf.place, dotted(below), "'${' is not closed by '}'; write $${ for a literal ${")
            elif name not in names:
                yield Problem(leaf.place, dotted(below), not_found("factor", name, names, "factors"))
    for below, place in keys(node, path):
        if "${" in str(below[-1]):
            yield Problem(place, dotted(below), "a key cannot be varied; vary values, or name a group of settings")


def _misplaced_references(node: Node, path: Path) -> Iterator[Problem]:
    for below, leaf, text in strings(node, path):
        if any(name is not None for name in references(text)):
            remedy = "a factor acts only under host, system and workload; this is the same for all cells"
            yield Problem(leaf.place, dotted(below), f"{shown(text)} cannot stand here: {remedy}")


def _hidden_references(root: Branch, factor: _Factor, setting: _Setting) -> Iterator[Problem]:
    """A setting that replaces a `${...}` would keep that factor from acting in some of the cells."""
    for path in _leaf_paths(setting):
        reached, node, _ = deepest(root, path)
        if reached == path:
            hidden = references_in(node) - references_in(setting.entry.node) - {factor.name}
            for name in sorted(hidden):
                text = f"this replaces ${{{name}}}, so factor {name} would not act in these cells; vary another key"
                yield Problem(setting.entry.key_place, f"factors.{factor.name}: {setting.key}", text)


# Cells


def _cells(
    root: Branch,
    factors: Sequence[_Factor],
    combinations: Iterable[Mapping[str, _Level]],
    kinds: Kinds,
    problems: list[Problem],
    folder: FilePath,
) -> list[Cell]:
    host = _Section("host", root, factors)
    system = _Section("system", root, factors)
    workload = _Section("workload", root, factors)
    cells = []
    for index, levels in enumerate(combinations):
        parts = (
            host.at(levels, _host, kinds, problems),
            system.at(levels, _system, kinds, problems),
            workload.at(levels, partial(_workload, folder=folder), kinds, problems),
        )
        if all(part is not None for part in parts):
            (cell_host, (cell_system, deployment), cell_workload) = parts
            cells.append(
                Cell(
                    index=index,
                    levels={name: level.model.name for name, level in levels.items()},
                    host=cell_host,
                    system=cell_system,
                    workload=cell_workload,
                    deployment=deployment,
                )
            )
    return cells


def _combinations(
    factors: Sequence[_Factor], chosen: Sequence[Combination], stages: staged.Staged | None
) -> Iterator[dict[str, _Level]]:
    """Those of the design, without the tunings that are another solution's."""
    for combination in chosen:
        levels = {factor.name: factor.levels[level] for factor, level in zip(factors, combination, strict=True)}
        if stages is None or stages.allows({name: level.model.name for name, level in levels.items()}):
            yield levels


def _both_designs(root: Branch, chosen: Chosen, stages: staged.Staged | None) -> Iterator[Problem]:
    if stages is not None and chosen.spec.kind != "factorial":
        text = f"what is picked is picked among all combinations, not those of {chosen.spec.kind}; drop one of them"
        yield Problem(root.entries["stages"].key_place, "stages", text)


class _Section:
    """A section that varies, read once for each combination of those factors that act in it."""

    def __init__(self, name: str, root: Branch, factors: Sequence[_Factor]) -> None:
        self._name = name
        self._root = root
        self._read: dict[tuple[str, ...], Any] = {}
        entry = root.entries.get(name)
        used = set() if entry is None else references_in(entry.node)
        for factor in factors:
            for setting in factor.settings:
                if setting.steps[0] == name:
                    used |= {factor.name} | references_in(setting.entry.node)
        self._factors = [factor.name for factor in factors if factor.name in used]

    def at(self, levels: Mapping[str, _Level], read: Any, kinds: Kinds, problems: list[Problem]) -> Any:
        """What `read` makes of the section with these levels."""
        key = tuple(levels[name].model.name for name in self._factors)
        if key not in self._read:
            try:
                self._read[key] = read(_section_of(self._root, self._name, levels), kinds, problems)
            except StudyError as error:
                problems.append(error.problem)
                self._read[key] = None
        return self._read[key]


def _section_of(root: Branch, name: str, levels: Mapping[str, _Level]) -> Branch:
    """A tree with that section alone, as it is with these levels. Raises StudyError."""
    tree = Branch({key: entry for key, entry in root.entries.items() if key == name}, root.place)
    for level in levels.values():
        for setting in level.settings or ():
            if setting.steps[0] == name:
                tree = put(tree, setting.steps, setting.entry)
    values = {name: (level.leaf, level.model.name) for name, level in levels.items()}
    whole = interpolate(tree, values)
    assert isinstance(whole, Branch)
    return whole


def _host(tree: Branch, _: Kinds, problems: list[Problem]) -> HostSpec | None:
    node = tree.get("host")
    return HostSpec() if node is None else validate(HostSpec, tree, ("host",), node, problems)


def _system(tree: Branch, kinds: Kinds, problems: list[Problem]) -> tuple[KindSpec, Any] | None:
    node = tree.get("system")
    if node is None:
        return None  # said already: the key is required
    options = _options_of(tree, "system", kinds.systems)
    misplaced = _misplaced_options(node, options, SystemSection) or _misplaced_tables(tree, options)
    if misplaced is not None:
        problems.append(misplaced)
        return None
    section = validate(SystemSection, tree, ("system",), node, problems)
    if section is None:
        return None
    kind = _kind(tree, "system", kinds.systems, problems)
    if not _deployment_is_known(tree, section.deployment, kinds, problems) or kind is None:
        return None
    config = node.get("config") if isinstance(node, Branch) else None
    values = _options(kind, kinds.systems[kind], tree, ("system", "config"), config or Branch({}, node.place), problems)
    if values is None or not isinstance(node, Branch) or node.get("tables") is None:
        return None if values is None else (values, section.deployment)
    tables = _tables(tree, kind, kinds, problems)
    return None if tables is None else (tables_put(values, tables), section.deployment)


def _tables(tree: Branch, kind: str, kinds: Kinds, problems: list[Problem]) -> TableOptions | None:
    """What stands beside the options of a system that has tables to lay out."""
    path = ("system", TABLES)
    _, node, key_place = deepest(tree, path)
    if (model := tables_of(kinds.systems[kind])) is None:
        able = ", ".join(sorted(name for name, options in kinds.systems.items() if tables_of(options))) or "none here"
        text = f"{kind} has no tables that could be laid out; {able} have: leave tables out"
        problems.append(Problem(key_place, dotted(path), text))
        return None
    return validate(model, tree, path, node, problems)


def _deployment_is_known(tree: Branch, name: str, kinds: Kinds, problems: list[Problem]) -> bool:
    if name in kinds.deployments:
        return True
    _, node, _ = deepest(tree, ("system", "deployment"))
    via = f" (from {shown(node.via)})" if isinstance(node, Leaf) and node.via else ""
    text = not_found("deployment", name, kinds.deployments, "deployments")
    problems.append(Problem(node.place, "system.deployment", text + via))
    return False


def _workload(tree: Branch, kinds: Kinds, problems: list[Problem], folder: FilePath) -> KindSpec | None:
    node = tree.get("workload")
    if node is None:
        return None
    only_kind = node
    if isinstance(node, Branch):
        only_kind = Branch({key: entry for key, entry in node.entries.items() if key == "kind"}, node.place)
    if validate(WorkloadSection, tree, ("workload",), only_kind, problems) is None:
        return None
    kind = _kind(tree, "workload", kinds.workloads, problems)
    if kind is None or not isinstance(node, Branch):
        return None
    return _options(
        kind,
        kinds.workloads[kind],
        tree,
        ("workload",),
        node.without("kind"),
        problems,
        also=("kind",),
        # A workload may be made of a file that lies beside the study's (`dyno.workloads.beside`).
        context={"folder": folder},
    )


def _kind(
    tree: Branch,
    section: str,
    known: Mapping[str, type[BaseModel]],
    problems: list[Problem],
) -> str | None:
    _, node, _ = deepest(tree, (section, "kind"))
    name = plain(node)
    if name in known:
        return str(name)
    via = f" (from {shown(node.via)})" if isinstance(node, Leaf) and node.via else ""
    text = not_found("kind", name, sorted(known), "kinds")
    problems.append(Problem(node.place, f"{section}.kind", text + via))
    return None


def _options(
    kind: str,
    model: type[BaseModel],
    tree: Branch,
    path: Path,
    node: Node,
    problems: list[Problem],
    also: Sequence[str] = (),
    context: Mapping[str, Any] | None = None,
) -> KindSpec | None:
    """The options as the kind itself writes them, every default filled in."""
    options = validate(model, tree, path, node, problems, also, context)
    return None if options is None else KindSpec(kind=kind, options=options.model_dump(mode="json"))


def _options_of(tree: Branch, section: str, known: Mapping[str, type[BaseModel]]) -> type[BaseModel] | None:
    reached, node, _ = deepest(tree, (section, "kind"))
    name = plain(node) if len(reached) == 2 else None
    return known.get(name) if isinstance(name, str) else None


def _misplaced_options(node: Node, options: type[BaseModel] | None, section: type[BaseModel]) -> Problem | None:
    """An option of the system that stands beside `kind` instead of under `config`: the likeliest slip of all."""
    if not isinstance(node, Branch) or options is None:
        return None
    for key, entry in node.entries.items():
        if key not in section.model_fields and key in options.model_fields:
            text = "an option of the system stands under config; write it as system.config." + key
            return Problem(entry.key_place, f"system.{key}", text)
    return None


def _misplaced_tables(tree: Branch, options: type[BaseModel] | None) -> Problem | None:
    """The other way round: to a kind they are an option, to a study they are not."""
    reached, _, place = deepest(tree, ("system", "config", TABLES))
    if options is None or tables_of(options) is None or len(reached) < 3:
        return None
    return Problem(place, dotted(reached), f"tables are laid out beside config; write it as system.{TABLES}")


# Observers, comparison, replication


def _observe(root: Branch, kinds: Kinds, problems: list[Problem]) -> tuple[KindSpec, ...]:
    node = root.get("observe")
    if node is None:
        node = Items((Leaf("machine", root.place),) if "machine" in kinds.observers else (), root.place)
    if not isinstance(node, Items):
        problems.append(Problem(node.place, "observe", "should be a list of observers, such as [machine]; [] for none"))
        return ()
    specs: list[KindSpec] = []
    for index, item in enumerate(node.items):
        spec = _observer(root, ("observe", index), item, kinds, problems)
        if spec is None:
            continue
        if spec.kind in (other.kind for other in specs):
            problems.append(Problem(item.place, f"observe[{index}]", f"{shown(spec.kind)} is listed twice; keep one"))
        specs.append(spec)
    return tuple(specs)


def _observer(root: Branch, path: Path, item: Node, kinds: Kinds, problems: list[Problem]) -> KindSpec | None:
    options: Node = Branch({}, item.place)
    place = item.place
    name: Scalar | None = None
    if isinstance(item, Leaf):
        name = item.value
    elif isinstance(item, Branch) and len(item.entries) == 1:
        ((name, entry),) = item.entries.items()
        path, place = (*path, name), entry.key_place
        if plain(entry.node) is not None:  # `- perf:` with nothing below is an observer without options
            options = entry.node
    if not isinstance(name, str):
        text = "should be the name of an observer or one {name: {options}}, not " + shown(plain(item))
        problems.append(Problem(item.place, dotted(path), text))
        return None
    if "${" in name:
        return None  # `_references_hold` says why that cannot be
    if name not in kinds.observers:
        text = not_found("observer", name, sorted(kinds.observers), "observers")
        problems.append(Problem(place, dotted(path), text))
        return None
    return _options(name, kinds.observers[name], root, path, options, problems)


def _compare(document: Document, factors: Sequence[_Factor]) -> _Factor | None:
    if "compare" not in document.model_fields_set:
        return factors[0] if factors else None
    return next((factor for factor in factors if factor.name == document.compare), None)


def _check_compared(
    document: Document, root: Branch, compare: _Factor | None, factors: Sequence[_Factor], problems: list[Problem]
) -> None:
    """What is compared, and in which response, must exist."""
    replicates = document.replicates
    try:
        known = responses.lookup(replicates.of).name == replicates.of
    except KeyError:
        known = False
    if not known:
        _, node, _ = deepest(root, ("replicates", "of"))
        text = not_found("response", replicates.of, responses.names(), "responses, each also as read.latency_p99")
        problems.append(Problem(node.place, "replicates.of", text))
    if document.compare is not None and compare is None:
        _, node, _ = deepest(root, ("compare",))
        names = [factor.name for factor in factors]
        problems.append(Problem(node.place, "compare", not_found("factor", document.compare, names, "factors")))
    elif replicates.precision_of == "ratio" and (compare is None or len(compare.levels) < 2):
        _, node, _ = deepest(root, ("replicates", "precision_of"))
        text = "ratio needs a compared factor of at least two levels; name one with compare, or write mean"
        problems.append(Problem(node.place, "replicates.precision_of", text))
    elif replicates.precision_of != "ratio" and document.stages is not None:
        reached, node, place = deepest(root, ("replicates", "precision_of"))
        place = node.place if len(reached) == 2 else root.entries["stages"].key_place
        text = "stage two compares, so what has to be precise is the ratio; write precision_of: ratio"
        problems.append(Problem(place, "replicates.precision_of", text))


def _nothing_to_compare(root: Branch, study: Study) -> Iterator[Problem]:
    """A ratio is asked for, and the design has no two cells to make one of."""
    if study.replicates.precision_of == "ratio" and not pairs(study):
        _, node, _ = deepest(root, ("replicates", "precision_of"))
        text = f"ratio needs two cells that differ in {study.compare} alone, and this design has none; write mean"
        yield Problem(node.place, "replicates.precision_of", text)
