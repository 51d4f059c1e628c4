"""What is built into dyno-core, asked of it. Shared by the systems that are inside it."""

from __future__ import annotations

import json

from dyno.model.base import RunError
from dyno.systems.base import Place


def built_in(place: Place, name: str, limit: float) -> str:
    """What it says of a part: a version, or which ones there are. Raises RunError where it says nothing of that."""
    answer = place.host.run([place.core, "version", "--json"], limit=limit, log=place.logs / "version")
    try:
        return str(json.loads(answer)[name])
    except (ValueError, KeyError, TypeError) as error:
        raise RunError(f"{place.core} does not say which {name} it has ({error!r})") from error
