"""When frames arrive at the other end of a slow line."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dyno.hosts.relay import Line

sizes_and_gaps = st.lists(
    st.tuples(st.integers(60, 66_000), st.floats(0, 0.5, allow_subnormal=False)), min_size=1, max_size=60
)


def test_a_frame_on_an_idle_line_takes_its_length_and_the_delay() -> None:
    assert Line(delay=0.25, rate=1000).due(500, 10.0) == pytest.approx(10.75)


def test_frames_that_come_together_take_turns() -> None:
    line = Line(delay=1.0, rate=1000)
    assert [line.due(100, 0.0) for _ in range(3)] == [pytest.approx(1.1), pytest.approx(1.2), pytest.approx(1.3)]


def test_a_line_without_a_rate_only_delays() -> None:
    line = Line(delay=0.5)
    assert [line.due(10**6, now) for now in (0.0, 0.0, 0.1)] == [0.5, 0.5, 0.6]


def test_a_frame_that_would_wait_too_long_is_dropped_and_takes_no_turn() -> None:
    line = Line(delay=0.0, rate=1000, longest_wait=0.4)
    assert line.due(500, 0.0) == pytest.approx(0.5)
    assert line.due(500, 0.0) is None
    assert line.due(500, 0.1) == pytest.approx(1.0)


@given(sizes_and_gaps, st.floats(1e3, 1e8), st.floats(0, 1))
def test_no_frame_overtakes_another_and_none_is_faster_than_rate_and_delay(
    frames: list[tuple[int, float]], rate: float, delay: float
) -> None:
    line, now = Line(delay=delay, rate=rate), 0.0
    passed: list[tuple[float, float, int]] = []
    for size, gap in frames:
        now += gap
        due = line.due(size, now)
        if due is not None:
            assert due >= now + delay + size / rate - 1e-9
            assert due <= now + delay + line.longest_wait + size / rate + 1e-9
            passed.append((now, due, size))
    for (_, earlier, _), (_, later, size) in itertools.pairwise(passed):
        assert later - earlier >= size / rate - 1e-9
    assert passed, "the first one finds the line idle"
