"""What every value of the model has in common, and the one error that a user is shown."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

Scalar = str | int | float | bool


def level_name(value: Scalar) -> str:
    """A level as it is written in tables, in `${...}` and on axes."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


class Frozen(BaseModel):
    """A value: immutable, and with no key that was not declared."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=False)


class KeyProblem(ValueError):
    """Of the validator of a whole value: which of its keys is to be changed, and what is wrong with that."""

    def __init__(self, key: str, text: str) -> None:
        super().__init__(text)
        self.key = key


class UserError(Exception):
    """Something the user can put right: shown as one line, exit status 2, no traceback."""


class RunError(Exception):
    """A step of a run went wrong: the run is failed, and the message is its cause, in one line."""


class Refused(RunError):
    """A server does not take a setting that it was given: to try again would end in the same way."""


class Killed(RunError):
    """The system was killed by SIGKILL, and not by dyno. By whom and why is not in the message."""


class InvalidRun(Exception):
    """A run was carried out, but it is not what was asked: the message says in what."""


class NeverValid(InvalidRun):
    """And it would be so again: a setting was not effective, or the store refuses a statement as it is written."""
