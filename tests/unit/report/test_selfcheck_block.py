"""The block of the self-check: of this machine, of another, too old, or none."""

from __future__ import annotations

import io

import fake_results
import pytest
from rich.console import Console
from tests.unit.selfcheck.planted import DAY_NS, ENVIRONMENT, MACHINE, MADE_NS, planted

from dyno.analysis import analyse
from dyno.model.selfcheck import Machine
from dyno.report.html import render
from dyno.report.selfcheck import block, block_of
from dyno.report.terminal import show_selfcheck


def test_of_the_same_machine_and_fresh_nothing_is_to_be_known_besides() -> None:
    found = block(planted(), Machine.of(ENVIRONMENT), MADE_NS + 90 * DAY_NS)
    assert found.heading == "Made 2024-10-04, quick, of this machine."
    assert found.cautions == ()
    names = ["false alarms", "run to run", "driver ceiling", "freeze test", "observer cost", "smallest slow-down"]
    assert [name for name, _ in found.parts] == names


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"cpu": "another"}, "CPU a processor then, another in these results"),
        ({"cpus": 4}, "CPUs 2 then, 4 in these results"),
        ({"kernel": "6.8"}, "kernel 6.1.0 then, 6.8 in these results"),
        ({"dyno": "0.2.0"}, "dyno 0.1.0 then, 0.2.0 in these results"),
        ({"memory_bytes": 2**34}, "8.0 GiB of memory then, 16.0 GiB in these results"),
        ({"memory_bytes": None}, "8.0 GiB of memory then, 0.0 GiB in these results"),
    ],
)
def test_of_another_machine_it_is_said_in_what_it_differs(change: dict[str, object], said: str) -> None:
    found = block(planted(), MACHINE.model_copy(update=change))
    assert "of another machine" in found.heading
    assert found.cautions == (f"It says nothing of these results: {said}.",)


def test_memory_that_the_kernel_keeps_for_itself_makes_no_other_machine() -> None:
    assert not block(planted(), MACHINE.model_copy(update={"memory_bytes": round(2**33 * 0.99)})).cautions


def test_one_that_was_older_than_90_days_is_said_to_be_so() -> None:
    assert block(planted(), MACHINE, MADE_NS + 91 * DAY_NS).cautions[0].startswith("It was 91 days old when")


def test_one_that_was_made_under_load_says_so() -> None:
    busy = planted().model_copy(update={"disturbances": ("The load average was 7.",)})
    assert block(busy, MACHINE, MADE_NS).cautions == ("The load average was 7.",)


def test_one_of_scale_smoke_is_said_to_say_nothing() -> None:
    assert "says nothing of a machine" in block(planted(scale="smoke"), MACHINE).cautions[0]


def test_where_there_is_none_the_remedy_is_said() -> None:
    assert "`dyno selfcheck --quick`" in block_of(fake_results.one_cell()).heading


def test_page_and_terminal_have_the_block() -> None:
    results = fake_results.one_cell()
    results.selfcheck = planted()
    page = render(results, analyse(results.study, results.runs, ended=results.ended))
    out = io.StringIO()
    show_selfcheck(block_of(results), Console(file=out))
    for name, judged in planted().parts():
        line = next(line for line in out.getvalue().splitlines() if f" {name} " in line)
        assert line.startswith(judged.verdict)
        assert judged.sentence in line
        assert f'<th class="nowrap">{name}</th>' in page
    assert "of another machine" in page
    assert page.index('id="selfcheck"') < page.index('id="environment"')
