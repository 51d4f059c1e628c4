"""How a message names what was meant, and stays a line that can be read."""

from __future__ import annotations

from dyno.study.errors import Place, Problem, nearest, not_found


def test_the_same_words_in_another_order_are_what_was_meant() -> None:
    assert nearest("lost_rows", ["rows_lost", "rows_altered", "outage"]) == "rows_lost"
    assert nearest("p99_latency", ["throughput", "latency_p99"]) == "latency_p99"
    assert "did you mean 'rows_lost'?" in not_found("response", "lost_rows", ["outage", "rows_lost"], "responses")
    assert nearest("...", ["rows_lost"]) is None


def test_a_line_that_is_cut_is_cut_between_names() -> None:
    """The middle of a list had read `rows_alte...dundancy`."""
    names = [f"name_{number:03}" for number in range(100)]
    line = str(Problem(Place("study.yaml", 1), "key", f"there are {', '.join(names)}"))
    assert len(line) < 330
    shown = line.partition("there are ")[2].replace(" ... ", " ").split(", ")
    assert all(word in names for words in shown for word in words.split())
