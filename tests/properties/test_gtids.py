"""Sets of transactions: read as they were written, whatever is in them; and who has the most of them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from dyno.systems.mysql_member import gtid_count, gtids, most_advanced

SOURCES = ("3e11fa47-71ca-11e1-9e33-c80aa9429562", "4f22fa47-71ca-11e1-9e33-c80aa9429562")
NUMBERS = st.sets(st.integers(1, 40), max_size=15)
SETS = st.dictionaries(st.tuples(st.sampled_from(SOURCES), st.sampled_from(["", "tag", "_t2"])), NUMBERS)


def written(found: dict[tuple[str, str], set[int]]) -> str:
    """As MySQL does: each source once, first what has no tag, runs of numbers as one interval."""
    parts = []
    for source in sorted({source for (source, _), numbers in found.items() if numbers}):
        words = [source]
        for tag in sorted(tag for of, tag in found if of == source and found[of, tag]):
            words += [tag] if tag else []
            words += intervals(found[source, tag])
        parts.append(":".join(words))
    return ",\n".join(parts)


def intervals(numbers: set[int]) -> list[str]:
    firsts = [number for number in sorted(numbers) if number - 1 not in numbers]
    lasts = [number for number in sorted(numbers) if number + 1 not in numbers]
    return [f"{a}-{b}" if a < b else str(a) for a, b in zip(firsts, lasts, strict=True)]


def numbers_of(text: str) -> dict[str, set[int]]:
    return {source: {n for a, b in spans for n in range(a, b + 1)} for source, spans in gtids(text).items()}


@given(SETS)
def test_a_set_is_read_as_it_was_written(found: dict[tuple[str, str], set[int]]) -> None:
    expected = {f"{source}:{tag}" if tag else source: numbers for (source, tag), numbers in found.items() if numbers}
    assert numbers_of(written(found)) == expected
    assert gtid_count(written(found)) == sum(map(len, expected.values()))


@given(st.lists(SETS, min_size=1, max_size=4))
def test_nobody_is_the_most_advanced_of_whom_another_has_all_and_more(
    found: list[dict[tuple[str, str], set[int]]],
) -> None:
    sets = {f"n{number}": written(each) for number, each in enumerate(found, 1)}
    transactions = {
        name: {(source, number) for source, numbers in numbers_of(text).items() for number in numbers}
        for name, text in sets.items()
    }
    best = transactions[most_advanced(sets)]
    assert not any(best < other for other in transactions.values())
