"""Every fraction of two-level factors is balanced, orthogonal, and as its defining relation says."""

from __future__ import annotations

from math import prod

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dyno.model.fractions import LETTERS, Fraction


@st.composite
def fractions(draw: st.DrawFn) -> Fraction:
    base = draw(st.integers(2, 5))
    words = st.integers(1, 2**base - 1).filter(lambda mask: mask.bit_count() > 1)
    most = 2**base - base - 1
    masks = draw(st.lists(words, unique=True, max_size=min(most, 5)))
    letters = draw(st.permutations(LETTERS[: base + len(masks)]))
    generators = [
        f"{made}={draw(st.sampled_from(['', '-', '+']))}"
        + "".join(letter for place, letter in enumerate(letters[:base]) if mask >> place & 1)
        for made, mask in zip(letters[base:], masks, strict=True)
    ]
    return Fraction([f"factor-{letter}" for letter in sorted(letters)], generators)


def as_array(fraction: Fraction) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
    return np.array(fraction.signs(), dtype=np.int64)


@given(fractions())
def test_each_factor_is_low_and_high_as_often_and_any_two_are_independent(fraction: Fraction) -> None:
    signs = as_array(fraction)
    assert len({tuple(row) for row in signs}) == fraction.cells
    assert (signs.sum(axis=0) == 0).all()
    assert (signs.T @ signs == fraction.cells * np.eye(len(fraction.names), dtype=np.int64)).all()


@given(fractions())
def test_each_word_of_the_defining_relation_has_one_sign_in_all_cells(fraction: Fraction) -> None:
    words = fraction.defining_relation()
    assert len(words) == 2 ** len(fraction.generators) - 1
    for word in words:
        places = [LETTERS.index(letter) for letter in word.lstrip("-")]
        expected = -1 if word.startswith("-") else 1
        assert {prod(row[place] for place in places) for row in fraction.signs()} == {expected}
    lengths = [len(word.lstrip("-")) for word in words]
    assert fraction.resolution == (min(lengths) if lengths else None)


@given(fractions())
def test_aliases_have_the_same_columns_and_others_have_not(fraction: Fraction) -> None:
    signs = as_array(fraction)

    def column(effect: tuple[str, ...]) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
        return signs[:, [fraction.names.index(name) for name in effect]].prod(axis=1)

    groups = fraction.aliases()
    for alias in groups:
        for other, sign in zip(alias.others, alias.signs, strict=True):
            assert (column(alias.effect) == sign * column(other)).all()
    for one, alias in enumerate(groups):
        for other in groups[one + 1 :]:
            assert column(alias.effect) @ column(other.effect) == 0
    count = len(fraction.names)
    assert sum(1 + len(alias.others) for alias in groups) == count + count * (count - 1) // 2
