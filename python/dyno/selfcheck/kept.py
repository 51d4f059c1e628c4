"""The last self-check of this user on this machine, in the state folder beside the undo journals."""

from __future__ import annotations

import os
from pathlib import Path

from pydantic import ValidationError

from dyno.hosts import LocalHost
from dyno.hosts.files import sync_folder
from dyno.hosts.undo import state_folder
from dyno.model.base import UserError
from dyno.model.selfcheck import SELFCHECK_FORMAT, Selfcheck


class UnreadableSelfcheck(UserError):
    """What is kept is not a self-check that this dyno reads."""


def path_of_kept() -> Path:
    """Where it is, if it was ever made."""
    return state_folder() / "selfcheck.json"


def kept() -> Selfcheck | None:
    """The last one; None where there is none. Raises UnreadableSelfcheck."""
    path = path_of_kept()
    try:
        found = Selfcheck.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValidationError) as error:
        raise UnreadableSelfcheck(f"{path}: cannot be read; make it anew by `dyno selfcheck --quick`") from error
    if found.format != SELFCHECK_FORMAT:
        raise UnreadableSelfcheck(f"{path}: format {found.format}; make it anew by `dyno selfcheck --quick`")
    return found


def keep(found: Selfcheck, host: LocalHost, token: str) -> Path:
    """Put it in the place of the one before, wholly or not at all. Raises OSError."""
    path = path_of_kept()
    scratch = host.temporary_folder(path.parent / f".selfcheck-{token}")
    staged = scratch / path.name
    with staged.open("xb") as file:
        file.write(found.model_dump_json(indent=1).encode() + b"\n")
        file.flush()
        os.fsync(file.fileno())
    staged.replace(path)
    sync_folder(path.parent)
    host.remove_temporary_folder(scratch)
    return path
