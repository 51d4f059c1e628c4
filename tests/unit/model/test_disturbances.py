"""What else went on on the machine is told from its environment."""

from __future__ import annotations

import pytest

from dyno.model.disturbances import disturbances


def told(load: dict[str, float], cpus: int = 2) -> str:
    return " ".join(disturbances({"load": load, "cpu": {"usable": cpus}}))


def test_another_dyno_is_told() -> None:
    assert "Another dyno ran on this machine" in told({"one_minute": 0.0, "other_dyno_sessions": 1})
    assert "2 others of dyno ran" in told({"one_minute": 0.0, "other_dyno_sessions": 2})


@pytest.mark.parametrize(("average", "cpus", "busy"), [(7.0, 2, True), (0.9, 2, False), (7.0, 64, False)])
def test_a_load_is_held_against_the_cpus_there_are(average: float, cpus: int, busy: bool) -> None:
    text = told({"one_minute": average, "other_dyno_sessions": 0}, cpus)
    assert (f"The load average was {average:.3g} on {cpus} CPUs" in text) is busy


def test_a_quiet_machine_and_an_earlier_environment_tell_nothing() -> None:
    assert told({"one_minute": 0.1, "other_dyno_sessions": 0}) == ""
    assert list(disturbances({})) == []
