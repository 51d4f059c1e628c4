"""Ctrl-C is a question that the lab is asked where it may stop; the second one is an answer."""

from __future__ import annotations

import os
import signal

import pytest

from dyno.lab import Interrupt


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_first_signal_asks_and_the_second_ends_at_once(number: int) -> None:
    with Interrupt() as interrupt:
        assert not interrupt.requested
        os.kill(os.getpid(), number)
        assert interrupt.requested
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), number)


def test_the_first_signal_is_answered_at_once(capfd: pytest.CaptureFixture[str]) -> None:
    with Interrupt():
        os.kill(os.getpid(), signal.SIGINT)
        assert capfd.readouterr().err.startswith("dyno: interrupted; putting things back ...")


def test_who_waits_hears_of_the_first_signal_at_once_and_of_none_afterwards() -> None:
    heard: list[str] = []
    with Interrupt() as interrupt, interrupt.telling(lambda: heard.append("now")):
        os.kill(os.getpid(), signal.SIGTERM)
        assert (heard, interrupt.requested) == (["now"], True)
    with Interrupt() as interrupt:
        with interrupt.telling(lambda: heard.append("meanwhile")):
            pass
        os.kill(os.getpid(), signal.SIGTERM)
        assert heard == ["now"]


def test_the_handlers_from_before_are_there_again_afterwards() -> None:
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    with Interrupt():
        assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] != before
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before
