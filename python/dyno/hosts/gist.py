"""What of a program's output says why it failed, in one line of bounded length; the log keeps all."""

from __future__ import annotations

import re

_LONGEST = 600
_TELLING = re.compile(
    r"\b(errors?|fail(ed|s|ure)?|fatal|panic|exception|cannot|can't|could not|couldn't|unable|not an?"
    r"|(is|does)( not|n't)|invalid|illegal|bad|wrong|unknown|unrecogni[sz]ed|no such|not (found|supported|permitted)"
    r"|denied|refus(ed|es|ing)|missing|must|too (large|big|small|many|few|long|short)|corrupt(ed)?)\b",
    re.IGNORECASE,
)


def gist(text: str) -> str:
    """The first line that looks like an error, which tells what was wrong, and the last, which tells what came of it.

    Of how a program is used, which some print after what was wrong, nothing. Empty where there are no lines.
    """
    lines = [" ".join(line.split()) for line in text.splitlines() if line.strip()]
    usage = next((number for number, line in enumerate(lines) if line.lower().startswith("usage:")), 0)
    lines = lines[:usage] or lines
    first = next((line for line in lines if _TELLING.search(line)), None)
    shown = list(dict.fromkeys(line for line in (first, *lines[-1:]) if line is not None))
    return " / ".join(_shortened(line, _LONGEST // len(shown)) for line in shown)


def _shortened(line: str, most: int) -> str:
    return line if len(line) <= most else f"{line[: most - 3]}..."
