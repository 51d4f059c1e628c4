"""Fractions are those that are printed: their alias tables, and that none of the same size is better."""

from __future__ import annotations

from itertools import combinations

import pytest

from dyno.model.fractions import LETTERS, MOST_BY_DEFAULT, Fraction, default_generators, most_halvings


def fraction(factors: int, halvings: int) -> Fraction:
    generators = default_generators(factors, halvings)
    assert generators is not None
    return Fraction(LETTERS[:factors], generators)


def told(found: Fraction) -> list[str]:
    return [alias.told("") for alias in found.aliases()]


# D. C. Montgomery, Design and Analysis of Experiments, 5th edition: 2^(4-1) with I = ABCD in section 8.2, 2^(7-4) with
# D=AB, E=AC, F=BC and G=ABC in section 8.5 (saturated, as the Hadamard matrix of order 8 is).
PUBLISHED = {
    (4, 1): (4, ["A", "B", "C", "D", "AB = CD", "AC = BD", "AD = BC"]),
    (7, 4): (
        3,
        [
            "A = BD = CE = FG",
            "B = AD = CF = EG",
            "C = AE = BF = DG",
            "D = AB = CG = EF",
            "E = AC = BG = DF",
            "F = AG = BC = DE",
            "G = AF = BE = CD",
        ],
    ),
    (5, 2): (3, ["A = BD = CE", "B = AD", "C = AE", "D = AB", "E = AC", "BC = DE", "BE = CD"]),
}


@pytest.mark.parametrize("size", PUBLISHED, ids=str)
def test_what_a_fraction_cannot_tell_apart_is_what_is_printed(size: tuple[int, int]) -> None:
    resolution, aliases = PUBLISHED[size]
    found = fraction(*size)
    assert found.resolution == resolution
    assert told(found) == aliases


def test_the_quarter_of_seven_factors_leaves_eighteen_interactions_estimable() -> None:
    # SAS/QC User's Guide, example 7.11, of seven factors in 32 runs: FACTEX prints the alias structure below for what
    # it finds first, and says that Box, Hunter and Hunter's design permits estimation of 18 interactions, three more.
    printed = """A B C D E F G A*B=F*G A*C A*D A*E A*F=B*G A*G=B*F B*C B*D B*E C*D=E*G C*E=D*G C*F C*G=D*E D*F E*F"""
    first = Fraction("ABCDEFG", ["F=ABCDE", "G=CDE"])
    assert told(first) == [alias.replace("*", "").replace("=", " = ") for alias in printed.split()]
    assert sum(len(alias.effect) == 2 for alias in first.aliases()) == 15
    assert sum(len(alias.effect) == 2 for alias in fraction(7, 2).aliases()) == 18


# G. E. P. Box, J. S. Hunter, W. G. Hunter, Statistics for Experimenters, table 6.22: resolution by factors and cells.
RESOLUTIONS = {
    (3, 4): 3, (4, 8): 4, (5, 8): 3, (5, 16): 5, (6, 8): 3, (6, 16): 4, (6, 32): 6, (7, 8): 3, (7, 16): 4, (7, 32): 4,
    (7, 64): 7, (8, 16): 4, (8, 32): 4, (8, 64): 5, (8, 128): 8, (9, 16): 3, (9, 32): 4, (9, 64): 4, (9, 128): 6,
    (10, 16): 3, (10, 32): 4, (10, 64): 4, (10, 128): 5, (11, 16): 3, (11, 32): 4, (11, 64): 4, (11, 128): 5,
}  # fmt: skip


@pytest.mark.parametrize("size", RESOLUTIONS, ids=str)
def test_each_default_has_the_resolution_that_is_printed(size: tuple[int, int]) -> None:
    factors, cells = size
    found = fraction(factors, factors - cells.bit_length() + 1)
    assert found.cells == cells
    assert found.resolution == RESOLUTIONS[size]


def lengths(found: Fraction) -> list[int]:
    """How many words of the defining relation have 3, 4, 5 ... letters."""
    words = [len(word.lstrip("-")) for word in found.defining_relation()]
    return [words.count(length) for length in range(3, len(found.names) + 1)]


@pytest.mark.parametrize(
    ("factors", "halvings"),
    [(k, p) for k in range(3, MOST_BY_DEFAULT + 1) for p in range(1, most_halvings(k) + 1) if k - p <= 4],
)
def test_no_choice_of_generators_has_less_aberration(factors: int, halvings: int) -> None:
    base = LETTERS[: factors - halvings]
    words = ["".join(word) for length in range(2, len(base) + 1) for word in combinations(base, length)]
    made = LETTERS[factors - halvings : factors]
    best = min(
        lengths(Fraction(LETTERS[:factors], [f"{one}={word}" for one, word in zip(made, chosen, strict=True)]))
        for chosen in combinations(words, halvings)
    )
    assert lengths(fraction(factors, halvings)) == best


def test_the_other_half_has_the_cells_that_the_first_has_not() -> None:
    one, other = Fraction("ABCD", ["D=ABC"]), Fraction("ABCD", ["D = -ABC"])
    assert set(one.signs()).isdisjoint(other.signs())
    assert len({*one.signs(), *other.signs()}) == 16
    assert other.defining_relation() == ["-ABCD"]
    assert "AB = -CD" in told(other)


def test_all_combinations_are_in_the_order_of_a_factorial_design_and_clear_of_each_other() -> None:
    found = Fraction("ABC")
    assert found.signs()[:3] == [(-1, -1, -1), (-1, -1, 1), (-1, 1, -1)]
    assert found.resolution is None
    assert told(found) == ["A", "B", "C", "AB", "AC", "BC"]


@pytest.mark.parametrize(
    ("generators", "message"),
    [
        (["E=AX"], "there is no factor X"),
        (["e=ab"], "should be a factor's letter"),
        (["E=A"], "should be a factor's letter"),
        (["E=ABE"], "a letter stands there twice"),
        (["D=AB", "D=AC"], "D has a generator already"),
        (["D=AB", "E=CD"], "D has itself a generator"),
        (["D=AB", "E=BA"], "D and E could not be told apart"),
    ],
)
def test_what_is_no_generator_is_refused(generators: list[str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Fraction("ABCDE", generators)


def test_there_are_no_more_factors_than_letters() -> None:
    with pytest.raises(ValueError, match="more than there are letters"):
        Fraction([str(place) for place in range(26)])
