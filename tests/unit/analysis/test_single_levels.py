"""A factor with a single level, which was once said in each of 54 cells."""

from __future__ import annotations

from small_studies import Runs, study

from dyno.analysis import analyse


def test_the_level_that_all_cells_have_is_said_once_and_not_in_each_sentence() -> None:
    plan = study({"journal": ["delete", "wal"], "flush": ["fsync"], "threads": [1, 4]}, compare="journal")
    found = analyse(plan, Runs(plan).add_cells({cell: [1.0, 2.0, 3.0] for cell in range(4)}), ended="done")
    assert found.comparisons[0].within == {"flush": "fsync", "threads": "1"}
    assert [each.sentence for each in found.comparisons if "flush" in each.sentence] == []
    assert [note for note in found.notes if "flush" in note] == [
        "All cells are with flush=fsync, which their names leave out."
    ]


def test_a_factor_that_is_the_only_one_keeps_its_name() -> None:
    plan = study({"journal": ["wal"]})
    assert (plan.telling({"journal": "wal"}), plan.shared()) == ({"journal": "wal"}, {})
