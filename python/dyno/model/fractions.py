"""Designs of two levels a factor, all combinations or a fraction of them, and what a fraction cannot tell apart.

Factors have letters in the order in which they are declared: A, B, C ... without I, which stands for the mean. A
generator such as E=ABCD says that E is at its high level where the product of the signs of A, B, C and D is +. What
those two share, no analysis can take apart: E and ABCD are aliases (G. E. P. Box, J. S. Hunter, W. G. Hunter,
Statistics for Experimenters, 2nd edition 2005, chapter 6; NIST/SEMATECH e-Handbook of Statistical Methods, 5.3.3.4).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, product

from dyno.model.study import Study

LETTERS = "ABCDEFGHJKLMNOPQRSTUVWXYZ"
MOST_BY_DEFAULT = 11
"""Factors up to which generators are known here."""

# By factors and how often they are halved. Of minimum aberration (A. Fries, W. G. Hunter, Minimum aberration 2^(k-p)
# designs, Technometrics 22, 1980): no other choice has a longer shortest word or, that being equal, fewer such words.
# Those of Box, Hunter and Hunter's table 6.22 (12.15 of the first edition, 1978; NIST 5.3.3.4.7 has it too), and where
# it has none (8, 9, 10 and 11 factors halved once, 10 and 11 twice, 11 three times) found by trying every choice.
_GENERATORS = {
    (3, 1): "C=AB",
    (4, 1): "D=ABC",
    (5, 1): "E=ABCD",
    (5, 2): "D=AB E=AC",
    (6, 1): "F=ABCDE",
    (6, 2): "E=ABC F=BCD",
    (6, 3): "D=AB E=AC F=BC",
    (7, 1): "G=ABCDEF",
    (7, 2): "F=ABCD G=ABDE",
    (7, 3): "E=ABC F=BCD G=ACD",
    (7, 4): "D=AB E=AC F=BC G=ABC",
    (8, 1): "H=ABCDEFG",
    (8, 2): "G=ABCD H=ABEF",
    (8, 3): "F=ABC G=ABD H=BCDE",
    (8, 4): "E=BCD F=ACD G=ABC H=ABD",
    (9, 1): "J=ABCDEFGH",
    (9, 2): "H=ACDFG J=BCEFG",
    (9, 3): "G=ABCD H=ACEF J=CDEF",
    (9, 4): "F=BCDE G=ACDE H=ABDE J=ABCE",
    (9, 5): "E=ABC F=BCD G=ACD H=ABD J=ABCD",
    (10, 1): "K=ABCDEFGHJ",
    (10, 2): "J=ABCDE K=ABCFGH",
    (10, 3): "H=ABCG J=BCDE K=ACDF",
    (10, 4): "G=BCDF H=ACDF J=ABDE K=ABCE",
    (10, 5): "F=ABCD G=ABCE H=ABDE J=ACDE K=BCDE",
    (10, 6): "E=ABC F=BCD G=ACD H=ABD J=ABCD K=AB",
    (11, 1): "L=ABCDEFGHJK",
    (11, 2): "K=ABCDEF L=ABCGHJ",
    (11, 3): "J=ABCDE K=ABCFG L=ABDFH",
    (11, 4): "H=ABCG J=BCDE K=ACDF L=ABCDEFG",
    (11, 5): "G=CDE H=ABCD J=ABF K=BDEF L=ADEF",
    (11, 6): "F=ABC G=BCD H=CDE J=ACD K=ADE L=BDE",
    (11, 7): "E=ABC F=BCD G=ACD H=ABD J=ABCD K=AB L=AC",
}
_GENERATOR = re.compile(r"\s*([A-Z])\s*=\s*([+-]?)\s*([A-Z]{2,})\s*")


def default_generators(factors: int, halvings: int) -> tuple[str, ...] | None:
    """The generators of 2^(factors - halvings) cells; None where none are known here."""
    if not halvings:
        return ()
    found = _GENERATORS.get((factors, halvings))
    return None if found is None else tuple(found.split())


def most_halvings(factors: int) -> int:
    """How often the combinations of so many factors can be halved with the generators known here."""
    return max((halvings for known, halvings in _GENERATORS if known == factors), default=0)


@dataclass(frozen=True)
class Column:
    """The signs of an effect over the cells: the product of those of the base factors in `mask`, times `sign`."""

    mask: int
    sign: int = 1

    def __mul__(self, other: Column) -> Column:
        return Column(self.mask ^ other.mask, self.sign * other.sign)


@dataclass(frozen=True)
class Alias:
    """An effect, and those of main effects and interactions of two that it is confounded with."""

    effect: tuple[str, ...]
    others: tuple[tuple[str, ...], ...]
    signs: tuple[int, ...]

    def told(self, joint: str = " x ") -> str:
        """`threads`, or `threads = mode x size = -cache x sync`."""
        names = [joint.join(other) for other in self.others]
        signed = [name if sign > 0 else f"-{name}" for name, sign in zip(names, self.signs, strict=True)]
        return " = ".join([joint.join(self.effect), *signed])


class Fraction:
    """2^(k - p) cells of k two-level factors, made by p generators; without any, all 2^k."""

    def __init__(self, names: Sequence[str], generators: Sequence[str] = ()) -> None:
        """`names` of the factors, `generators` such as `E=ABCD` or `E=-ABCD`.

        Raises ValueError for what is no generator of these factors, or makes two factors one.
        """
        if len(names) > len(LETTERS):
            raise ValueError(f"{len(names)} factors are more than there are letters for ({len(LETTERS)})")
        self.names = tuple(names)
        self.generators: tuple[str, ...] = ()
        letters = LETTERS[: len(names)]
        parsed = {}
        for text in generators:
            made, sign, word = _parsed(text, letters, self.names)
            if made in parsed:
                raise ValueError(f"{text}: {made} has a generator already")
            parsed[made] = sign, word
            self.generators += (f"{made}={'-' if sign < 0 else ''}{word}",)
        base = [letter for letter in letters if letter not in parsed]
        columns = {letter: Column(1 << place) for place, letter in enumerate(base)}
        for text, (made, (sign, word)) in zip(generators, parsed.items(), strict=True):
            if not_base := next((letter for letter in word if letter in parsed), None):
                raise ValueError(f"{text}: {not_base} has itself a generator; write its letters in place of {not_base}")
            column = Column(sum(columns[letter].mask for letter in word), sign)
            twin = next((letter for letter in parsed if columns.get(letter, Column(0)).mask == column.mask), None)
            if twin:
                raise ValueError(f"{text}: {twin} has the same word, so {twin} and {made} could not be told apart")
            columns[made] = column
        self._base = len(base)
        self.columns = tuple(columns[letter] for letter in letters)

    @property
    def cells(self) -> int:
        """How many cells there are."""
        return 1 << self._base

    def signs(self) -> list[tuple[int, ...]]:
        """A row of -1 (low) and 1 (high) for each cell; the last factor changes fastest, as far as cells are there."""
        rows = []
        for base in product((-1, 1), repeat=self._base):
            low = sum(1 << place for place, sign in enumerate(base) if sign < 0)
            rows.append(
                tuple(column.sign * (-1 if (column.mask & low).bit_count() % 2 else 1) for column in self.columns)
            )
        return sorted(rows)

    def column(self, effect: Sequence[int]) -> Column:
        """The column of an interaction, of factors by their places; of a main effect where it is one."""
        found = Column(0)
        for place in effect:
            found = found * self.columns[place]
        return found

    @property
    def resolution(self) -> int | None:
        """The length of the shortest word of the defining relation; None where all combinations are there.

        Of resolution III, main effects are confounded with interactions of two factors; of IV, such interactions with
        each other; of V, neither.
        """
        if not self.generators:
            return None
        return next(
            length
            for length in range(1, len(self.names) + 1)
            for effect in combinations(range(len(self.names)), length)
            if not self.column(effect).mask
        )

    def defining_relation(self) -> list[str]:
        """The words that are always + (with a -, always -): the generators and all their products, shortest first."""
        products = [(0, 1)]
        letters = LETTERS[: len(self.names)]
        for generator in self.generators:
            made, _, word = generator.partition("=")
            mask = sum(1 << letters.index(letter) for letter in made + word.lstrip("-"))
            sign = -1 if word.startswith("-") else 1
            products += [(mask ^ other, sign * others) for other, others in products]
        words = [
            ("".join(letter for place, letter in enumerate(letters) if mask >> place & 1), sign)
            for mask, sign in products[1:]
        ]
        return [
            word if sign > 0 else f"-{word}" for word, sign in sorted(words, key=lambda each: (len(each[0]), each[0]))
        ]

    def aliases(self) -> list[Alias]:
        """Every main effect and interaction of two, each once, with those of them that it is confounded with.

        Interactions of three and more factors are left out: they are taken to be next to nothing.
        """
        places = range(len(self.names))
        effects = [(place,) for place in places] + list(combinations(places, 2))
        groups: dict[int, list[tuple[tuple[int, ...], int]]] = {}
        for effect in effects:
            column = self.column(effect)
            groups.setdefault(column.mask, []).append((effect, column.sign))
        return [
            Alias(
                self._named(group[0][0]),
                tuple(self._named(effect) for effect, _ in group[1:]),
                tuple(sign * group[0][1] for _, sign in group[1:]),
            )
            for group in groups.values()
        ]

    def _named(self, effect: Sequence[int]) -> tuple[str, ...]:
        return tuple(self.names[place] for place in effect)


def fraction_of(study: Study) -> Fraction | None:
    """The two-level design of a screening study; None for another."""
    if study.design.kind != "screening":
        return None
    return Fraction([factor.name for factor in study.factors], study.design.generators)


def _parsed(text: str, letters: str, names: Sequence[str]) -> tuple[str, int, str]:
    match = _GENERATOR.fullmatch(text)
    if match is None:
        raise ValueError(f"{text}: should be a factor's letter, '=' and two letters or more, such as D=ABC")
    made, sign, word = match.groups()
    for letter in made + word:
        if letter not in letters:
            known = ", ".join(f"{each}: {name}" for each, name in zip(letters, names, strict=True))
            raise ValueError(f"{text}: there is no factor {letter} ({known})")
    if len(set(made + word)) < len(word) + 1:
        raise ValueError(f"{text}: a letter stands there twice")
    return made, -1 if sign == "-" else 1, "".join(sorted(word))
