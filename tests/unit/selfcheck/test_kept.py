"""The last self-check is kept wholly or not at all, and a copy of it goes with results."""

from __future__ import annotations

from pathlib import Path

import pytest

from dyno.hosts import LocalHost, UndoJournal
from dyno.model.selfcheck import Selfcheck
from dyno.selfcheck.kept import UnreadableSelfcheck, keep, kept, path_of_kept
from dyno.store import StoreError, new_results
from tests.making import make_study, scratch_in
from tests.unit.selfcheck.planted import planted


def keep_in_a_session(found: Selfcheck) -> Path:
    with UndoJournal() as journal:
        return keep(found, LocalHost(journal), journal.token)


def test_there_is_none_before_one_is_kept_and_then_it_is_the_same() -> None:
    assert kept() is None
    path = keep_in_a_session(planted())
    assert kept() == planted()
    assert sorted(each.name for each in path.parent.iterdir()) == ["selfcheck.json", "undo"]


def test_a_new_one_takes_the_place_of_the_old_one() -> None:
    keep_in_a_session(planted(scale="full"))
    keep_in_a_session(planted(seconds=1.0))
    found = kept()
    assert found is not None
    assert (found.scale, found.seconds) == ("quick", 1.0)


@pytest.mark.parametrize(
    "text", ["", "{}", '{"format": 99}', planted().model_dump_json().replace('"format":1', '"format":2')]
)
def test_one_that_cannot_be_read_is_said_with_its_path_and_the_remedy(text: str) -> None:
    path_of_kept().parent.mkdir(parents=True, exist_ok=True)
    path_of_kept().write_text(text)
    with pytest.raises(UnreadableSelfcheck, match=r"selfcheck\.json: .*make it anew by `dyno selfcheck --quick`"):
        kept()


def test_results_have_a_copy_from_their_start(tmp_path: Path) -> None:
    made = new_results(tmp_path, make_study(), b"", {}, scratch_in(tmp_path), selfcheck=planted())
    assert made.selfcheck == planted()
    without = new_results(tmp_path, make_study(), b"", {}, scratch_in(tmp_path))
    assert without.selfcheck is None
    assert not (without.folder / "selfcheck.json").exists()


def test_a_damaged_copy_is_said_with_its_path(tmp_path: Path) -> None:
    made = new_results(tmp_path, make_study(), b"", {}, scratch_in(tmp_path), selfcheck=planted())
    (made.folder / "selfcheck.json").write_text('{"format": 1}')
    with pytest.raises(StoreError, match=r"selfcheck\.json: made_ns"):
        _ = made.selfcheck
