"""What Berkeley DB can be asked for, and how it is reached."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import ValidationError

from dyno.hosts import LocalHost
from dyno.systems.base import Place
from dyno.systems.berkeleydb import BerkeleyOptions, BerkeleySystem


def system(host: LocalHost, folder: Path, **options: object) -> BerkeleySystem:
    place = Place(host=host, data=folder / "data", logs=folder / "logs", core="dyno-core")
    return BerkeleySystem(BerkeleyOptions.model_validate(options), place)


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"product": "data-store", "log": "memory"}, "log is of product transactional, and this is data-store"),
        ({"product": "concurrent", "locks": False}, "locks is of product transactional, and this is concurrent"),
        ({"page_size": "5000 B"}, "page_size is one of 512, 1024"),
    ],
)
def test_what_a_product_has_no_use_for_is_refused(options: dict[str, object], why: str) -> None:
    with pytest.raises(ValidationError, match=why):
        BerkeleyOptions.model_validate(options)


def test_only_transactions_with_locks_and_mutexes_let_several_clients_in() -> None:
    def most(**options: object) -> int | None:
        return BerkeleySystem.most_clients(BerkeleyOptions.model_validate(options))

    assert most() is None
    assert [most(locks=False), most(mutexes=False), most(product="concurrent"), most(product="data-store")] == [1] * 4


def test_products_share_data_that_differ_in_pages_alone(host: LocalHost, tmp_path: Path) -> None:
    durable = system(host, tmp_path)
    assert durable.data_key() == system(host, tmp_path, product="data-store", mutexes=False).data_key()
    assert durable.data_key() != system(host, tmp_path, checksums=True).data_key()
    assert durable.ready(1.0).settings["log"] == "synced"
    assert "log" not in system(host, tmp_path, product="concurrent").ready(1.0).settings


def test_a_page_that_moved_is_told_where_none_may(host: LocalHost, tmp_path: Path) -> None:
    moved = {"berkeleydb.pages_read_bytes": 8192.0, "berkeleydb.pages_written_bytes": 0.0}
    assert system(host, tmp_path).refutes(moved) is None
    resident = system(host, tmp_path, resident=True)
    assert resident.refutes(moved) == (
        "bytes of pages read while it was driven: is 8,192, and resident: true allows none"
    )
    assert resident.refutes(dict.fromkeys(moved, 0.0)) is None
    assert "is not known" in (resident.refutes({}) or "")
