"""Whether a node is there is seen by what it says, or by its saying that nobody listens."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator

import pytest

from dyno.hosts.replication import NBD_GREETING, greets, reaches


@contextlib.contextmanager
def speaking(first: bytes) -> Iterator[int]:
    """Somebody on a port of this machine who says that to whoever comes."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def speak() -> None:
            with contextlib.suppress(OSError):
                opened, _ = listener.accept()
                with opened:
                    opened.sendall(first)
                    opened.recv(1)

        threading.Thread(target=speak, daemon=True).start()
        yield listener.getsockname()[1]


@pytest.mark.parametrize(
    ("said", "wanted", "there"),
    [(b"NBDMAGICIHAVEOPT", NBD_GREETING, True), (b"HTTP/1.1 400", NBD_GREETING, False), (b"J\0\0\0\n9.7", b"", True)],
)
def test_who_is_there_is_told_by_what_it_says_first(said: bytes, wanted: bytes, there: bool) -> None:
    with speaking(said) as port:
        assert greets("127.0.0.1", port, 5.0, wanted) is there


def test_one_that_says_nothing_in_time_is_not_there() -> None:
    with speaking(b"") as port:
        assert not greets("127.0.0.1", port, 0.1, NBD_GREETING)


def test_a_machine_on_which_nobody_listens_is_reached_all_the_same() -> None:
    assert reaches("127.0.0.1", 5.0)
