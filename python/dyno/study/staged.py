"""`stages`: what is picked before it is compared, and which levels of it go with which level of the compared factor."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from dyno.model.study import Factor, Level, Stages
from dyno.study.errors import Problem, not_found, shown
from dyno.study.tree import Branch, Items, Path, deepest, dotted, plain
from dyno.study.validate import validate


@dataclass(frozen=True)
class Staged:
    """The stages, and which combinations of levels they leave."""

    stages: Stages
    compare: str

    def allows(self, levels: Mapping[str, str]) -> bool:
        """Whether the compared level has this level of what is tuned."""
        own = self.stages.levels.get(levels[self.compare])
        return own is None or levels[self.stages.best] in map(_name, own)


def read(root: Branch, factors: Sequence[Factor], problems: list[Problem]) -> Staged | None:
    """None where a study has no stages, or they have a problem."""
    node = root.get("stages")
    if node is None or plain(node) is None:
        return None
    stages = validate(Stages, root, ("stages",), node, problems)
    if stages is None:
        return None
    by_name = {factor.name: factor for factor in factors}
    compare = plain(root.entries["compare"].node) if "compare" in root.entries else next(iter(by_name), None)
    found = list(_wrong(root, stages, by_name, compare))
    problems.extend(found)
    return None if found else Staged(stages, str(compare))


def _wrong(root: Branch, stages: Stages, factors: Mapping[str, Factor], compare: object) -> Iterator[Problem]:
    if stages.best not in factors:
        yield _problem(root, ("stages", "best"), not_found("factor", stages.best, factors, "factors"))
    elif compare is None:
        text = "what is picked is then compared, and compare names no factor; name the one whose levels are compared"
        yield _problem(root, ("stages", "best"), text)
    elif compare == stages.best:
        text = f"{compare} is the factor that is compared; name the one that is tuned, or another under compare"
        yield _problem(root, ("stages", "best"), text)
    elif compare in factors:
        yield from _wrong_levels(root, stages, factors[str(compare)], factors[stages.best])


def _wrong_levels(root: Branch, stages: Stages, compare: Factor, tuned: Factor) -> Iterator[Problem]:
    path: Path = ("stages", "levels")
    compared, known = ([level.name for level in factor.levels] for factor in (compare, tuned))
    for name, own in stages.levels.items():
        here = (*path, name)
        names = [_name(value) for value in own]
        if name not in compared:
            yield _problem(root, here, not_found(f"level of {compare.name}", name, compared, "levels"), at_key=True)
        if not names:
            yield _problem(root, here, f"has no level of {tuned.name}; list at least one, or leave {name} out for all")
        for place, level in enumerate(names):
            if level not in known:
                text = not_found(f"level of {tuned.name}", level, known, "levels")
                yield _problem(root, (*here, place), text)
            elif level in names[:place]:
                yield _problem(root, (*here, place), f"{shown(level)} is listed twice; keep one")
    named = {_name(value) for own in stages.levels.values() for value in own}
    unused = [level for level in known if level not in named]
    if unused and set(stages.levels) >= set(compared):
        text = f"no level of {compare.name} has {tuned.name} {shown(unused[0])}; list it here, or drop it there"
        yield _problem(root, path, text)
    elif all(len(stages.levels.get(name, known)) < 2 for name in compared):
        text = f"there is nothing to pick: every level of {compare.name} has a single level of {tuned.name}"
        yield _problem(root, ("stages", "best"), text)


def _problem(root: Branch, path: Path, text: str, *, at_key: bool = False) -> Problem:
    reached, node, key_place = deepest(root, path)
    within_text = not at_key and not isinstance(node, (Branch, Items))
    return Problem(node.place if within_text else key_place, dotted(reached), text)


def _name(value: str | float | bool) -> str:
    return Level(value=value).name
