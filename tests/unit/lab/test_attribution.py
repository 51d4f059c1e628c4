"""Whose instructions they were: chains of calls, the component that each belongs to, and the call that it was in."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from dyno.lab.attribution import DEPTH, attribute
from dyno.lab.callgrind import COMPRESSED, Chains, chains, self_costs
from dyno.model.base import RunError
from dyno.systems.base import NoParts
from dyno.systems.glass import GlassParts

# As callgrind writes it with separate callers: 20 is memcpy as called by the log, 21 as called by nobody that is known.
EXAMPLE = """\
# callgrind format
desc: Timerange: Basic block 0 - 1
desc: Trigger: Client Request: payment
events: Ir
fn=(1) dyno_tpcc::transactions::payment
5 7
cfn=(2) dyno_glass::engine::boundary::update
cfn=(12) (2)'(1)
calls=3 0
5 160
fn=(12)
6 30
cfn=(3) <dyno_glass::assembly::outlined::Outlined<G> as dyno_glass::log::Log<L>>::append
cfn=(13) (3)'(2)'(1)
calls=3 0
6 130
fn=(13)
7 80
cfn=(4) memcpy
cfn=(20) (4)'(3)'(2)'(1)
calls=6 0
7 50
fn=(20)
8 50
fn=(21) (4)'2'(1)
8 3
totals: 170
"""


def example() -> Chains:
    return chains(EXAMPLE.splitlines(), "example")


def test_a_librarys_instructions_are_those_of_the_component_that_called_it() -> None:
    found = attribute(example(), GlassParts())
    assert found.instructions == {
        ("", "transaction"): 7 + 3,
        ("update", "engine"): 30,
        ("update", "log"): 80 + 50,
    }
    assert found.calls == {"update": 3}


def test_the_sum_over_components_is_what_was_counted() -> None:
    found = example()
    assert attribute(found, GlassParts()).instructions.total() == found.costs.total() == 170
    assert attribute(found, NoParts()).instructions == {("", ""): 170}


def test_what_the_program_said_as_it_asked_is_told() -> None:
    assert example().word == "payment"
    without = chains(EXAMPLE.replace("Client Request: payment", "Program termination").splitlines(), "example")
    assert without.word is None


def test_a_chain_that_is_cut_off_before_the_call_it_is_of_is_refused() -> None:
    short = Chains(None, example().costs, example().calls)
    long = ("memcpy", *(["recursion"] * DEPTH))
    short.costs[long] = 1
    with pytest.raises(RunError, match=f"memcpy was called through more than {DEPTH} others"):
        attribute(short, GlassParts())


def test_a_profile_whose_functions_are_not_all_there_is_refused() -> None:
    with pytest.raises(RunError, match="not whole"):
        chains(EXAMPLE.replace("8 50", "8 49").splitlines(), "example")


def test_callgrind_writes_chains_as_they_are_read(tmp_path: Path) -> None:
    out = tmp_path / "out"
    words = ["valgrind", "--tool=callgrind", "--separate-callers=5", COMPRESSED, f"--callgrind-out-file={out}"]
    subprocess.run([*words, f"--log-file={tmp_path / 'log'}", "/bin/true"], check=True)
    with out.open() as lines:
        found = chains(lines, "out")
    with out.open() as lines:
        assert found.costs.total() == self_costs(lines, "out").total() > 0
    assert max(map(len, found.costs)) == 1 + 5
    assert any(chain[-1].startswith("0x") and len(chain) > 1 for chain in found.costs)
    assert not any("'" in name and "(" in name.split("'")[-1] for chain in found.costs for name in chain)
