"""Profiles of callgrind: what is a function's own, what it is called, and what is no profile."""

from __future__ import annotations

from pathlib import Path

import pytest

from dyno.lab.callgrind import Function, as_perf_names_it, self_costs
from dyno.lab.counting import INSTRUCTIONS, read_counts
from dyno.model.base import RunError

# The extended example of valgrind's manual ("Name Compression"), with objects and totals added.
EXAMPLE = """\
# callgrind format
events: Ir
ob=(1) /usr/bin/example
fl=(1) file1.c
fn=(1) main
16 20
cfn=(2) func1
calls=1 50
16 400
cfi=(2) file2.c
cfn=(3) func2
calls=3 20
16 400
fn=(2)
51 100
cob=(2) /lib/two.so
cfi=(2)
cfn=(3)
calls=2 20
51 300
ob=(2)
fl=(2)
fn=(3)
20 700
totals: 820
"""


def test_what_a_function_called_is_not_its_own() -> None:
    found = self_costs(EXAMPLE.splitlines(), "example")
    assert found == {
        Function("main", "example"): 20, Function("func1", "example"): 100, Function("func2", "two.so"): 700,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "p is empty: valgrind was ended before it wrote what it had counted"),
        (EXAMPLE[: EXAMPLE.index("totals")], "p is cut short: it has no totals"),
        (EXAMPLE.replace("820", "82"), "p is not whole: its functions took 820 instructions, its totals are 82"),
        (EXAMPLE.replace("(1) main", "(1)"), "p:5: not a profile of callgrind's: (1) was given no name"),
        (EXAMPLE.replace("events: Ir", ""), "p:6: not a profile of callgrind's: it does not say what was counted"),
        (EXAMPLE.replace("Ir", "Dr"), "p:2: not a profile of callgrind's: 'Ir' is not in list"),
        (EXAMPLE.replace("fn=(1) main", ""), "p:6: not a profile of callgrind's: a cost of no function"),
        (EXAMPLE.replace("16 20", "16 many"), "p:6: not a profile of callgrind's: invalid literal for int()"),
        ("Segmentation fault\n", "p:1: not a profile of callgrind's: 'Segmentation fault' is no line of its format"),
    ],
)
def test_what_is_no_whole_profile_is_refused_in_one_line(text: str, said: str) -> None:
    with pytest.raises(RunError) as error:
        self_costs(text.splitlines(), "p")
    assert str(error.value).startswith(said)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("name", "symbol"),
    [
        ("memcpy", "memcpy"),
        ("_dl_map_object'2", "_dl_map_object"),
        ("(below main)", "(below main)"),
        ("0x00000000001c2ab0", None),
        ("0x00000000001c2ab0'3", None),
        ("???", None),
        ("memcpy@@GLIBC_2.14", "memcpy"),
        ("row_search.part.0", "row_search.part.0"),
        ("btr_cur_t::search_leaf(dtuple_t const*, page_cur_mode_t, btr_latch_mode, mtr_t*)", "btr_cur_t::search_leaf"),
        ("THD::store_globals() [clone .cold]", "THD::store_globals"),
        ("Field::is_null(long) const", "Field::is_null"),
        ("handler::operator()(int) const", "handler::operator()"),
        ("void ssux_lock_impl<true>::wr_wait<(page)2>(unsigned int)", "ssux_lock_impl<true>::wr_wait<(page)2>"),
        ("(anonymous namespace)::turn(int)", "(anonymous namespace)::turn"),
        ("bool std::operator< <char>(std::string const&, std::string const&)", "std::operator< <char>"),
        ("f(void (*)(int))", "f"),
    ],
)
def test_a_function_is_called_what_perf_calls_it(name: str, symbol: str | None) -> None:
    assert as_perf_names_it(name) == symbol


def kept(folder: Path, collected: tuple[int, ...], **profiles: str) -> Path:
    """What a server under valgrind leaves."""
    log = folder / "callgrind"
    log.write_text("".join(f"=={pid}== Collected : {count}\n" for pid, count in enumerate(collected, 1)))
    for pid, text in profiles.items():
        (folder / f"callgrind.out.{pid}").write_text(text)
    return log


def test_the_processes_of_a_server_are_counted_together(tmp_path: Path) -> None:
    counts, functions = read_counts(kept(tmp_path, (820, 820), p1=EXAMPLE, p2=EXAMPLE.replace("func1", "other")))
    assert counts == {INSTRUCTIONS: 1640.0}
    assert functions.rows() == [
        ("func2", "two.so", 1400), ("func1", "example", 100), ("other", "example", 100), ("main", "example", 40),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("collected", "profiles", "said"),
    [
        ((), {}, "valgrind told nothing of what it counted"),
        ((820,), {}, r"valgrind counted 820 instructions, and its profiles \(callgrind\.out\.\*\) have 0: "),
        ((820, 820), {"p1": EXAMPLE}, r"valgrind counted 1640 instructions, and its profiles .* have 820: "),
        ((820,), {"p1": EXAMPLE[:-20]}, "callgrind.out.p1 is cut short"),
        ((820, 0), {"p1": EXAMPLE, "p2": ""}, "callgrind.out.p2 is empty"),
    ],
)
def test_a_profile_that_is_missing_is_one_line(
    tmp_path: Path, collected: tuple[int, ...], profiles: dict[str, str], said: str
) -> None:
    with pytest.raises(RunError, match=said) as error:
        read_counts(kept(tmp_path, collected, **profiles))
    assert "\n" not in str(error.value)


def test_without_a_log_valgrind_told_nothing(tmp_path: Path) -> None:
    with pytest.raises(RunError, match=r"valgrind told nothing: .*No such file"):
        read_counts(tmp_path / "callgrind")
