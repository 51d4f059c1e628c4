"""`targets` and the levels and responses that a study refers to outside its cells."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from dyno.model import bounds, measures, responses
from dyno.model.targets import Target
from dyno.study.errors import Place, Problem, not_found, shown
from dyno.study.tree import Branch, Items, Leaf, Path, deepest, dotted, plain
from dyno.study.validate import validate


@dataclass(frozen=True)
class Known:
    """What may be named: the levels of each factor, at this scale or in the file as it stands."""

    levels: Mapping[str, Sequence[str]]

    def factor(self, name: str, root: Branch, path: Path, problems: list[Problem]) -> bool:
        """Whether there is such a factor; a problem where not."""
        if name in self.levels:
            return True
        _, _, place = deepest(root, path)
        problems.append(Problem(place, dotted(path), not_found("factor", name, self.levels, "factors")))
        return False

    def level(self, factor: str, level: str, root: Branch, path: Path, problems: list[Problem]) -> None:
        """Add a problem where the factor has no such level."""
        if level not in self.levels[factor]:
            # A level may stand alone where a list of them may stand.
            reached, node, _ = deepest(root, path)
            text = not_found("level", level, self.levels[factor], f"levels of {factor}")
            problems.append(Problem(node.place, dotted(reached), text))

    def chosen(
        self, chosen: Mapping[str, str | Sequence[str]], root: Branch, path: Path, problems: list[Problem]
    ) -> None:
        """Add a problem for each factor or level that is not there."""
        for factor, levels in chosen.items():
            here = (*path, factor)
            if self.factor(factor, root, here, problems):
                for index, level in enumerate([levels] if isinstance(levels, str) else levels):
                    self.level(factor, level, root, (*here, index), problems)


def known_response(name: str, root: Branch, path: Path, problems: list[Problem]) -> bool:
    """Whether there is such a response; a problem where not."""
    try:
        responses.lookup(name)
    except KeyError:
        _, node, _ = deepest(root, path)
        text = not_found("response", name, responses.names(), "responses, each also as read.latency_p99")
        problems.append(Problem(node.place, dotted(path), text))
        return False
    return True


def known_measure(name: str, root: Branch, path: Path, problems: list[Problem], at_key: bool = False) -> bool:
    """Whether there is such a response, resource or share; a problem where not."""
    try:
        measures.lookup(name)
    except KeyError:
        _, node, key_place = deepest(root, path)
        kinds = "responses, each also as read.latency_p99, and what was used"
        text = not_found("response", name, measures.names(), kinds)
        problems.append(Problem(key_place if at_key else node.place, dotted(path), text))
        return False
    return True


def read_targets(root: Branch, known: Known, problems: list[Problem]) -> tuple[Target, ...]:
    """`{response: bound}`, or a list of `{response: , bound: , where: }`."""
    node = root.get("targets")
    if node is None or (isinstance(node, Leaf) and node.value is None):
        return ()
    path: Path = ("targets",)
    targets = []
    if isinstance(node, Branch):
        for name, entry in node.entries.items():
            here = (*path, name)
            if not known_measure(name, root, here, problems, at_key=True):
                continue
            given = plain(entry.node)
            if _bound_holds(given, name, entry.node.place, here, problems):
                targets.append(Target(response=name, bound=str(given)))
    elif isinstance(node, Items):
        for index, item in enumerate(node.items):
            here = (*path, index)
            target = validate(Target, root, here, item, problems)
            if target is None:
                continue
            known.chosen(target.where, root, (*here, "where"), problems)
            if known_measure(target.response, root, (*here, "response"), problems):
                _, bound, _ = deepest(root, (*here, "bound"))
                if _bound_holds(target.bound, target.response, bound.place, (*here, "bound"), problems):
                    targets.append(target)
    else:
        text = f"should map responses to bounds, such as {{latency_p99: < 5 ms}}, not {shown(plain(node))}"
        problems.append(Problem(node.place, "targets", text))
    return tuple(targets)


def _bound_holds(given: object, response: str, place: Place, path: Path, problems: list[Problem]) -> bool:
    return said(lambda: bounds.parse(given, measures.lookup(response).unit), place, path, problems)


def said(parse: Callable[[], object], place: Place, path: Path, problems: list[Problem]) -> bool:
    """Whether it can be parsed; where not, what the ValueError says becomes a problem."""
    try:
        parse()
    except ValueError as error:
        problems.append(Problem(place, dotted(path), str(error)))
        return False
    return True
