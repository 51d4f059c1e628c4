"""What looked after clusters did in the runs is summed up: a study of sixty failovers had a line for each of them."""

from __future__ import annotations

from tests.making import make_record, make_study

from dyno.analysis import analyse
from dyno.model.run import Event, Faulted, Outcome, RunRecord, Slot

STRUCK_NS = 10 * 10**9


def run(number: int, cell: int, *events: tuple[float, str], struck: bool = True, ok: bool = True) -> RunRecord:
    """With events at seconds since 0, where a fault is struck at 10."""
    faulted = Faulted(kind="kill", role="primary", nodes=("n1",), at_ns=STRUCK_NS) if struck else None
    told = tuple(Event(at_ns=round(at * 1e9), text=text) for at, text in events)
    outcome = Outcome.OK if ok else Outcome.FAILED
    return make_record(number, Slot(cell=cell, block=number), outcome, 1.0, events=told, faulted=faulted)


def told(*runs: RunRecord) -> list[str]:
    study = make_study({"mode": ("async", "semi-sync")}, max=100)
    return [
        note for note in analyse(study, runs, ended="done").notes if "cluster's manager" in note or "It did" in note
    ]


def test_what_differs_in_nodes_and_seconds_alone_is_told_once_with_its_median() -> None:
    assert told(
        run(1, 0, (11.2, "n1 was silent for 3 s; n2 was promoted within 0.085 s"), (9.0, "n3 joined")),
        run(2, 0, (11.4, "n1 was silent for 3 s; n3 was promoted within 0.2 s")),
        run(3, 0, (11.9, "n2 was silent for 3 s; n1 was promoted within 1 s"), ok=False),
        run(4, 1),
    ) == [
        "The cluster's manager in 2 of 2 runs, 1.3 s after the fault (median): a node was silent for 3 s; "
        "a node was promoted within 0.143 s (median; 0.085 to 0.2 s) (mode=async).",
        "The cluster's manager in 1 of 2 runs: a node joined (mode=async).",
    ]


def test_without_a_fault_there_is_no_time_since_one() -> None:
    assert told(run(1, 1, (5.0, "clients write to n1"), struck=False)) == [
        "The cluster's manager in 1 of 1 run: clients write to a node (mode=semi-sync)."
    ]


def test_where_it_did_many_kinds_of_things_the_rest_is_counted() -> None:
    found = told(run(1, 0, *((11.0, f"it did what is called {letter}") for letter in "abcdefgh")))
    assert len(found) == 7
    assert found[-1] == "It did 2 other kinds of things (mode=async): see `events` of run.json."
