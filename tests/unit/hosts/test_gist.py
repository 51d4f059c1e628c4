"""What is shown of the output of a program that failed: its first error, which says why, and its last line."""

from __future__ import annotations

import pytest

from dyno.hosts.gist import gist


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("", ""),
        ("one line\n", "one line"),
        ("starting\nstill starting\n", "still starting"),
        # What was wrong, and what came of it.
        ("Bad option <foo=1>\nDid you mean flow?\nfio: job a dropped\n", "Bad option <foo=1> / fio: job a dropped"),
        (
            "mount: /mnt: wrong fs type, bad option.\n   dmesg(1) may  have more information.\n",
            "mount: /mnt: wrong fs type, bad option. / dmesg(1) may have more information.",
        ),
        # How a program is used tells nobody why it failed.
        ("log is too large\nUsage: mkfs.xfs\n/* size */ [-b size=num]\n", "log is too large"),
        ("Usage: mkfs.ext4 [-c]\n[-i bytes]\n", "[-i bytes]"),
    ],
)
def test_the_first_error_and_the_last_line_are_shown(text: str, shown: str) -> None:
    assert gist(text) == shown


def test_it_is_one_line_of_bounded_length() -> None:
    shown = gist(f"error: {'x' * 5000}\n{'y' * 5000}\n")
    assert "\n" not in shown
    assert len(shown) < 610
    assert shown.startswith("error: xxx")
    assert shown.endswith("yyy...")
