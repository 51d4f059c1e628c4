"""`published`: the files that a study names are read here, once, and become part of its plan."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path as FilePath
from pathlib import PurePosixPath
from typing import Annotated, Any

from pydantic import BaseModel, Field

from dyno.model import bounds, measures, responses
from dyno.model.assemblies import ORDER
from dyno.model.base import Frozen
from dyno.model.hot_spots import built_in
from dyno.model.published import (
    LARGEST,
    AllOf,
    AnyOf,
    CallsAre,
    Claim,
    ClaimSource,
    Here,
    MeanIs,
    ObservedTable,
    Peak,
    Predicate,
    Published,
    PublishedFile,
    PublishedRemoval,
    PublishedTable,
    RatioIs,
    RatioOf,
    RemovalIs,
    TrendIs,
    WithinIs,
)
from dyno.model.study import Study
from dyno.study import figures, shorthand
from dyno.study.errors import Place, Problem, StudyError, listed, not_found, shown
from dyno.study.expectations import Known, known_measure, known_response, said
from dyno.study.figures import TableSpec
from dyno.study.loader import parse_file, read
from dyno.study.observations import Observations, ObservedSpec
from dyno.study.removed import Removals, RemovalSpec
from dyno.study.tree import Branch, Items, Leaf, Node, Path, deepest, dotted, plain
from dyno.study.validate import validate

PREDICATES: dict[str, type[Frozen]] = {
    "ratio": RatioIs,
    "within": WithinIs,
    "mean": MeanIs,
    "trend": TrendIs,
    "removal": RemovalIs,
    "calls": CallsAre,
}
GROUPS: dict[str, type[AllOf | AnyOf]] = {"all": AllOf, "any": AnyOf}


class FindingsIn(Frozen):
    """Where the findings stand in the words of the publication."""

    file: Annotated[str, Field(description="a YAML file: section to a list of {id, says, here, needs, note}")]
    section: Annotated[str, Field(description="which of its sections")]


class FindingSpec(Frozen):
    """A finding of the publication, and what of it can be checked."""

    id: Annotated[str, Field(description="a name for it; that of the file where it stands in one")]
    says: Annotated[str | None, Field(description="the finding in a sentence; the file's if left out")] = None
    here: Annotated[
        Here | None,
        Field(description="yes, or what a machine must have to judge it that this one has not: the finding stays open"),
    ] = None
    needs: Annotated[str | None, Field(description="under which condition it is said")] = None
    note: Annotated[str | None, Field(description="what a reader should know of it")] = None
    predicate: Annotated[Any, Field(description="what it says of means and ratios, see below")] = None


class PublishedSpec(Frozen):
    """The section as it is written; tables, findings and predicates are read one by one."""

    tables: Annotated[
        tuple[TableSpec, ...], Field(description="CSV files of figures, and what their columns hold")
    ] = ()
    observed: Annotated[
        tuple[ObservedSpec, ...],
        Field(
            description="CSV files of what was observed of the machine, or of hot spots, and what their columns hold"
        ),
    ] = ()
    removal: Annotated[
        RemovalSpec | None, Field(description="a CSV file of what removing components saved, see docs/looking-glass.md")
    ] = None
    findings_in: Annotated[
        FindingsIn | None, Field(description="where the findings stand in the words of the publication")
    ] = None
    findings: Annotated[tuple[FindingSpec, ...], Field(description="findings, and what of them can be checked")] = ()


@dataclass
class _Reader:
    root: Branch
    known: Known
    of_findings: Known
    folder: FilePath
    problems: list[Problem]
    strict: bool
    files: dict[str, PublishedFile]

    def text(self, file: str, path: Path) -> str | None:
        """What stands in a file that the study names; None with a problem where it cannot be read."""
        where = PurePosixPath(file)
        wrong, data = "", b""
        if where.is_absolute() or not where.name:
            wrong = f"{shown(file)} should be a path from the study file, such as published/figures.csv"
        elif any(PurePosixPath(other).name == where.name and other != file for other in self.files):
            wrong = f"another file is called {shown(where.name)} too; the results keep them in one folder: rename one"
        else:
            try:
                data = read(self.folder / file)
                data.decode("utf-8")
            except StudyError as error:
                wrong = f"{shown(file)}: {error.problem.text}"
            except UnicodeDecodeError as error:
                wrong = f"{shown(file)}: byte {error.start + 1} is not UTF-8; save the file as UTF-8"
        if wrong:
            _, node, _ = deepest(self.root, path)
            self.problems.append(Problem(node.place, dotted(path), wrong))
            return None
        self.files[file] = PublishedFile(file=file, sha256=hashlib.sha256(data).hexdigest())
        return data.decode("utf-8")

    def table(self, spec: TableSpec, path: Path) -> PublishedTable | None:
        before = len(self.problems)
        text = self.text(spec.file, (*path, "file"))
        if not known_response(spec.response, self.root, (*path, "response"), self.problems):
            return None
        unit = responses.lookup(spec.response).unit
        self._check(spec, unit, path)
        source = str(self.folder / spec.file)
        table = None if text is None else figures.parse(text, source, self.problems)
        if table is None:
            return None
        for where, column in figures.columns_of(spec):
            if column not in table.columns:
                _, node, place = deepest(self.root, (*path, *where))
                at = place if where[0] == "rows" else node.place
                name = not_found("column", column, table.columns, f"columns of {spec.file}")
                self.problems.append(Problem(at, dotted((*path, *where)), name))
        if len(self.problems) > before:
            return None
        for factor, names in spec.levels.items():
            for level in names:
                wrong = figures.missing_level(table, spec, factor, level)
                if wrong:
                    _, node, _ = deepest(self.root, (*path, "levels", factor, level))
                    self.problems.append(Problem(node.place, dotted((*path, "levels", factor, level)), wrong))
        levels = {factor: tuple(known) for factor, known in self.known.levels.items()}
        found = figures.figures(table, spec, levels, unit, self.problems)
        if not found and self.strict and len(self.problems) == before:
            _, node, _ = deepest(self.root, path)
            text = f"no row of {spec.file} is of a cell of this study; say how it spells the levels, with levels"
            self.problems.append(Problem(node.place, dotted(path), text))
        name = PurePosixPath(spec.file).name
        return PublishedTable(
            file=name, response=spec.response, figures=found, unlike=spec.unlike, same_within=spec.same_within
        )

    def observed(self, spec: ObservedSpec, path: Path, groups: Sequence[str]) -> ObservedTable | None:
        text = self.text(spec.file, (*path, "file"))
        table = None if text is None else figures.parse(text, str(self.folder / spec.file), self.problems)
        if table is None:
            return None
        reading = Observations(self.root, self.known, tuple(groups), self.problems, self.strict)
        return reading.table(spec, PurePosixPath(spec.file).name, table, path)

    def removal(self, spec: RemovalSpec, path: Path) -> PublishedRemoval | None:
        text = self.text(spec.file, (*path, "file"))
        table = None if text is None else figures.parse(text, str(self.folder / spec.file), self.problems)
        return None if table is None else Removals(self.root, self.problems).table(spec, table, path)

    def _levels(self, factor: str, names: Iterable[str], path: Path) -> bool:
        """Whether there is such a factor; a problem for each of its levels, which are keys here, that is not there."""
        if not self.known.factor(factor, self.root, path, self.problems):
            return False
        for level in names:
            if level not in self.known.levels[factor]:
                _, _, place = deepest(self.root, (*path, level))
                text = not_found("level", level, self.known.levels[factor], f"levels of {factor}")
                self.problems.append(Problem(place, dotted((*path, level)), text))
        return True

    def _check(self, spec: TableSpec, unit: str, path: Path) -> None:
        """That each factor has its column or its level, and that what is said of the figures fits together."""
        _, node, _ = deepest(self.root, path)
        named = [self.known.factor(factor, self.root, (*path, "map", factor), self.problems) for factor in spec.map]
        self.known.chosen(spec.at, self.root, (*path, "at"), self.problems)
        for factor, names in spec.levels.items():
            if self._levels(factor, names, (*path, "levels", factor)) and factor not in spec.map:
                here = (*path, "levels", factor)
                _, _, place = deepest(self.root, here)
                self.problems.append(Problem(place, dotted(here), f"no column holds {factor}; name it under map"))
        for factor, names in spec.unlike.items():
            self._levels(factor, names, (*path, "unlike", factor))
        both = sorted(set(spec.map) & set(spec.at))
        neither = [factor for factor in self.known.levels if factor not in spec.map and factor not in spec.at]
        if both:
            text = f"{listed(both)} stands under map and under at; keep one of them"
            self.problems.append(Problem(node.place, dotted(path), text))
        if neither and all(named):  # else one of them is what was misspelt
            text = f"says nothing of {listed(neither)}; name a column under map, or a level under at"
            self.problems.append(Problem(node.place, dotted(path), text))
        if spec.interval is not None and spec.precision is not None:
            text = "give interval or precision, not both"
            self.problems.append(Problem(node.place, dotted(path), text))
        if spec.unit is not None:
            given = spec.unit
            _, unit_node, _ = deepest(self.root, (*path, "unit"))
            said(lambda: bounds.convert(1.0, given, unit), unit_node.place, (*path, "unit"), self.problems)

    def listed_files(self, node: Items) -> Published | None:
        """Tables whose columns say themselves what they hold, and findings in a section that is named as the study."""
        tables: list[PublishedTable | None] = []
        sources: dict[str, ClaimSource] | None = None
        before = len(self.problems)
        for index, item in enumerate(node.items):
            path: Path = ("published", index)
            file = plain(item)
            suffix = PurePosixPath(file).suffix.lower() if isinstance(file, str) else ""
            if suffix == shorthand.TABLE_SUFFIX:
                tables.append(self._listed_table(file, path))
            elif suffix in shorthand.FINDINGS_SUFFIXES and sources is None:
                section = str(plain(self.root.get("study") or item))
                remedy = "; name the section under published.findings_in"
                sources = self.sources(FindingsIn(file=file, section=section), path, remedy) or {}
            else:
                text = f"should be a CSV file of figures or a YAML file of findings, not {shown(file)}"
                if suffix in shorthand.FINDINGS_SUFFIXES:
                    text = f"{shown(file)} is a second file of findings; put them into one"
                self.problems.append(Problem(item.place, dotted(path), text))
        if len(self.problems) > before:
            return None
        return Published(
            tables=tuple(table for table in tables if table is not None),
            findings=tuple(self.findings((), sources or {}, ("published",)).values()),
            files=tuple(self.files.values()),
        )

    def _listed_table(self, file: str, path: Path) -> PublishedTable | None:
        text = self.text(file, path)
        table = None if text is None else figures.parse(text, str(self.folder / file), self.problems)
        if table is None:
            return None
        spec = shorthand.table_spec(file, table, self.known.levels, self.problems, strict=self.strict)
        return None if spec is None else self.table(spec, path)

    def sources(self, spec: FindingsIn, path: Path, remedy: str = "") -> dict[str, ClaimSource] | None:
        text = self.text(spec.file, (*path, "file"))
        if text is None:
            return None
        try:
            tree = parse_file(text.encode(), str(self.folder / spec.file))
        except StudyError as error:
            self.problems.append(error.problem)
            return None
        node = tree.get(spec.section)
        if not isinstance(node, Items):
            at, here, _ = deepest(self.root, (*path, "section"))
            wrong = not_found("section", spec.section, tree.entries, f"sections of {spec.file}") + remedy
            if node is not None:
                wrong = f"{shown(spec.section)} should be a list of findings in {spec.file}"
            self.problems.append(Problem(here.place, dotted(at), wrong))
            return None
        found: dict[str, ClaimSource] = {}
        for index, item in enumerate(node.items):
            source = validate(ClaimSource, tree, (spec.section, index), item, self.problems)
            if source is not None:
                self._once(source.id, found, item, (spec.section, index))
                found[source.id] = source
        return found

    def _once(self, name: str, known: Mapping[str, object], node: Node, path: Path) -> None:
        if name in known:
            text = f"{shown(name)} stands here a second time; a finding has a name of its own"
            self.problems.append(Problem(node.place, dotted((*path, "id")), text))

    def findings(self, specs: tuple[FindingSpec, ...], sources: dict[str, ClaimSource], path: Path) -> dict[str, Claim]:
        """Those of the file in its order, with what the study says of them; then the study's own."""
        claims = {name: Claim(**source.model_dump()) for name, source in sources.items()}
        mine: set[str] = set()
        for index, spec in enumerate(specs):
            here = (*path, index)
            _, node, _ = deepest(self.root, here)
            self._once(spec.id, dict.fromkeys(mine), node, here)
            mine.add(spec.id)
            if spec.id not in sources and spec.says is None:
                _, name, _ = deepest(self.root, (*here, "id"))
                text = not_found("finding", spec.id, sources, "findings in the file") + ", or give says"
                self.problems.append(Problem(name.place, dotted((*here, "id")), text))
                continue
            predicate = None
            if spec.predicate is not None:
                _, below, _ = deepest(self.root, (*here, "predicate"))
                predicate = self.predicate(below, (*here, "predicate"))
            given = spec.model_dump(exclude_none=True, exclude={"predicate"})
            before = claims[spec.id].model_dump(exclude={"predicate"}) if spec.id in claims else {}
            claims[spec.id] = Claim(**{**before, **given}, predicate=predicate)
        return claims

    def predicate(self, node: Node, path: Path) -> Predicate | None:
        """A predicate, by the one key that says of which kind it is; None with problems where it is none."""
        kinds = [*PREDICATES, *GROUPS]
        named = [kind for kind in kinds if isinstance(node, Branch) and kind in node.entries]
        if not isinstance(node, Branch) or len(named) != 1:
            text = f"should have one of {listed(kinds)}, not {shown(plain(node))}"
            if isinstance(node, Branch):
                text = f"should have one of {listed(kinds)} as a key; it has {listed(node.entries)}"
            self.problems.append(Problem(node.place, dotted(path), text))
            return None
        (kind,) = named
        if kind in GROUPS:
            return self._group(GROUPS[kind], kind, node, path)
        found = validate(PREDICATES[kind], self.root, path, node, self.problems)
        if found is None:
            return None
        before = len(self.problems)
        self._sound(found, path)
        return found if len(self.problems) == before else None  # type: ignore[return-value]  # PREDICATES has no other

    def _group(self, model: type[AllOf | AnyOf], kind: str, node: Branch, path: Path) -> Predicate | None:
        below = node.entries[kind].node
        for key, entry in node.entries.items():
            if key != kind:
                text = f"cannot stand beside {kind}; put it into the predicates below"
                self.problems.append(Problem(entry.key_place, dotted((*path, key)), text))
                return None
        if isinstance(below, Items) and not below.items:
            text = "should have a predicate or more; an empty list says nothing"
            self.problems.append(Problem(below.place, dotted((*path, kind)), text))
            return None
        if not isinstance(below, Items):
            text = f"should be a list of predicates, not {shown(plain(below))}"
            self.problems.append(Problem(below.place, dotted((*path, kind)), text))
            return None
        parts = [self.predicate(item, (*path, kind, index)) for index, item in enumerate(below.items)]
        return None if None in parts else model.model_validate({kind: parts})

    def _sound(self, found: BaseModel, path: Path) -> None:
        """That what a predicate names is there."""
        match found:
            case RatioIs():
                self._ratio(found.ratio, (*path, "ratio"))
                self._bound(found.wanted, "1", path)
            case WithinIs():
                self._ratio(found.within, (*path, "within"))
            case MeanIs():
                of = (*path, "mean", "of")
                self.of_findings.chosen(found.mean.where, self.root, (*path, "mean", "where"), self.problems)
                known = self._over(found.mean.over, (*path, "mean", "over"))
                if known_measure(found.mean.of, self.root, of, self.problems) and known:
                    self._bound(found.wanted, measures.unit_over(found.mean.of, found.mean.over), path)
            case TrendIs():
                trend = found.trend
                known_measure(trend.of, self.root, (*path, "trend", "of"), self.problems)
                self.of_findings.chosen(trend.where, self.root, (*path, "trend", "where"), self.problems)
                over = (*path, "trend", "over")
                if not self.of_findings.factor(trend.over, self.root, over, self.problems):
                    return
                if isinstance(found.wanted, Peak):
                    at = (*path, "is", "peaks-at")
                    self.of_findings.level(trend.over, found.wanted.at, self.root, at, self.problems)

            case RemovalIs():
                for name in found.removal.component:
                    if name not in ORDER:
                        text = not_found("component", name, ORDER, "components of glass")
                        reached, node, _ = deepest(self.root, (*path, "removal", "component"))
                        self.problems.append(Problem(node.place, dotted(reached), text))
                if found.wanted != LARGEST:
                    self._bound(found.wanted, "1" if found.removal.over else "%", path)
            case CallsAre():
                self.of_findings.chosen(found.calls.where, self.root, (*path, "calls", "where"), self.problems)

    def _over(self, name: str | None, path: Path) -> bool:
        return name is None or known_measure(name, self.root, path, self.problems)

    def _bound(self, text: str, unit: str, path: Path) -> None:
        _, node, _ = deepest(self.root, (*path, "is"))
        said(lambda: bounds.parse(text, unit), node.place, (*path, "is"), self.problems)

    def _ratio(self, ratio: RatioOf, path: Path) -> None:
        known_measure(ratio.of, self.root, (*path, "of"), self.problems)
        self._over(ratio.over, (*path, "over"))
        for side in ("a", "b"):
            self.of_findings.chosen(getattr(ratio, side), self.root, (*path, side), self.problems)
        self.of_findings.chosen(ratio.where, self.root, (*path, "where"), self.problems)
        _, node, _ = deepest(self.root, path)
        if ratio.a.keys() != ratio.b.keys() or not ratio.a:
            text = "a and b should give levels of the same factors, such as {threads: 1} and {threads: 4}"
            self.problems.append(Problem(node.place, dotted(path), text))
        elif ratio.a == ratio.b:
            self.problems.append(Problem(node.place, dotted(path), "a and b are the same; a ratio is of two cells"))
        for factor in sorted(ratio.where.keys() & ratio.a.keys()):
            _, _, place = deepest(self.root, (*path, "where", factor))
            text = f"a and b have their {factor} already; leave it out here"
            self.problems.append(Problem(place, dotted((*path, "where", factor)), text))


def read_published(
    root: Branch,
    known: Known,
    of_findings: Known,
    folder: FilePath,
    groups: Sequence[str],
    problems: list[Problem],
    *,
    strict: bool,
) -> Published | None:
    """The section with its files read. `groups` are those of hot spots that the study's own rules know besides.

    Figures are of what is `known`; findings may be of a factor besides that is picked before anything is compared.
    `strict` refuses a table without a figure of any cell.
    """
    node = root.get("published")
    if node is None or (isinstance(node, Leaf) and node.value is None):
        return None
    reader = _Reader(root, known, of_findings, folder, problems, strict, {})
    if isinstance(node, Items):
        return reader.listed_files(node)
    spec = validate(PublishedSpec, root, ("published",), node, problems)
    if spec is None:
        return None
    tables = [reader.table(table, ("published", "tables", index)) for index, table in enumerate(spec.tables)]
    known_groups = list(dict.fromkeys([*groups, *(rule.group for rule in built_in())]))
    observed = [
        reader.observed(table, ("published", "observed", index), known_groups)
        for index, table in enumerate(spec.observed)
    ]
    removal = None if spec.removal is None else reader.removal(spec.removal, ("published", "removal"))
    sources: dict[str, ClaimSource] | None = {}
    if spec.findings_in is not None:
        sources = reader.sources(spec.findings_in, ("published", "findings_in"))
    if sources is None:
        return None
    claims = reader.findings(spec.findings, sources, ("published", "findings"))
    return Published(
        tables=tuple(table for table in tables if table is not None),
        observed=tuple(table for table in observed if table is not None),
        removal=removal,
        findings=tuple(claims.values()),
        files=tuple(reader.files.values()),
    )


def attached(path: FilePath, study: Study) -> dict[str, bytes]:
    """The files that a study file names, each under its name in the results. Raises StudyError.

    They are read a second time, to be kept; one that changed in between would not be what the plan was made from.
    """
    kept = {}
    for each in study.published.files if study.published else ():
        source = path.parent / each.file
        data = read(source)
        if hashlib.sha256(data).hexdigest() != each.sha256:
            raise StudyError(Problem(Place(str(source)), "", "was changed while it was read; begin again"))
        kept[PurePosixPath(each.file).name] = data
    return kept
