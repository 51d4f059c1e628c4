"""Which line of an InnoDB server's log says why it ended."""

from __future__ import annotations

import re

import pytest

from dyno.systems.innodb import InnodbSystem


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (
            "1 0 [Warning] io_uring is not there\n2 0 [ERROR] Plugin 'Aria' registration failed.\n3 0 [ERROR] Aborting",
            "[ERROR] Plugin 'Aria' registration failed.",
        ),
        (
            'ERROR: 1030  Got error 28 "No space left on device" from storage engine Aria\n2 0 [ERROR] Aborting',
            'ERROR: 1030  Got error 28 "No space left on device" from storage engine Aria',
        ),
        (
            "1 0 [ERROR] [MY-012574] [InnoDB] Unable to lock ./ibdata1\n2 0 [ERROR] [MY-010119] [Server] Aborting",
            "[ERROR] [MY-012574] [InnoDB] Unable to lock ./ibdata1",
        ),
        ("2 0 [ERROR] Aborting", None),
    ],
)
def test_that_it_aborts_is_not_why(said: str, told: str | None) -> None:
    found = re.search(f"(?:{InnodbSystem.telling}).*", said)
    assert (found[0] if found else None) == told
