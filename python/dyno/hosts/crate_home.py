"""A distribution of CrateDB on this machine: a folder with `bin/crate`, `lib` and, of its makers' own, a `jdk`.

It is in no registry of packages, so dyno is told where one was unpacked.
"""

from __future__ import annotations

import re
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from dyno.hosts import java

VARIABLE: Final = "CRATE_HOME"
"""Of the environment: the folder, where a study names none."""

_JAR = "crate-server-*.jar"
_FIRST_FEATURE = 44  # a class file's major version is that of the feature release and this
_LEAST = 11


def missing_in(folder: Path) -> list[str]:
    """What a folder has not, of what a distribution has."""
    missing = [] if (folder / "bin" / "crate").is_file() else ["bin/crate"]
    return missing if list(folder.glob(f"lib/{_JAR}")) else [*missing, f"lib/{_JAR}"]


@dataclass(frozen=True)
class CrateHome:
    """A folder in which nothing is missing."""

    folder: Path

    @property
    def version(self) -> str:
        """As its library is named."""
        found = re.search(r"crate-server-(.+)\.jar$", self._jar.name)
        return found[1] if found else "not told"

    @property
    def least_java(self) -> int:
        """The feature release of Java that its classes are for."""
        with zipfile.ZipFile(self._jar) as archive:
            name = next(
                (each for each in archive.namelist() if each.startswith("io/crate/") and each.endswith(".class")), None
            )
            if name is None:
                return _LEAST
            with archive.open(name) as file:
                return int.from_bytes(file.read(8)[6:8], "big") - _FIRST_FEATURE

    def java(self) -> Path | None:
        """The `java` that it brings, else one of this machine that is new enough; None where there is none."""
        return java.find(self.least_java, self.folder / "jdk")

    @property
    def _jar(self) -> Path:
        return sorted(self.folder.glob(f"lib/{_JAR}"))[-1]
