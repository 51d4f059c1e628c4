"""Java on this machine: which one is new enough for a program, and programs of its world by Maven."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from dyno.model.base import UserError

ASKED_TO_END = 128 + signal.SIGTERM
"""The exit status of a Java that was asked to end, once it has done what it had to."""

_ASK_LIMIT_S = 60.0
_GET_LIMIT_S = 1800.0
_PLUGIN = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy"
_INSTALLED = Path("/usr/lib/jvm")


def find(least: int, home: Path | None = None) -> Path | None:
    """A `java` of that version or a newer one; that of `home`, JAVA_HOME, the PATH or Debian's folder of them.

    None where there is none.
    """
    return next((java for java in _candidates(home) if (version_of(java) or 0) >= least), None)


def leaving_nothing_but(folder: Path) -> tuple[str, str]:
    """Options of a Java that may be killed: libraries that it unpacks go to that folder, and to no other place.

    Nor does it keep counters for other programs, in a file below /tmp that stays until the next Java of its account.
    """
    return f"-Djava.io.tmpdir={folder}", "-XX:-UsePerfData"


def _candidates(home: Path | None) -> Iterator[Path]:
    named = [home, Path(os.environ["JAVA_HOME"]) if os.environ.get("JAVA_HOME") else None]
    folders = [folder for folder in named if folder is not None]
    yield from (folder / "bin" / "java" for folder in folders)
    if on_path := shutil.which("java"):
        yield Path(on_path)
    yield from sorted(_INSTALLED.glob("*/bin/java"))


def version_of(java: Path) -> int | None:
    """The feature release of a `java`, such as 17; None where it is none, or does not say."""
    try:
        said = subprocess.run(
            [str(java), "-version"], capture_output=True, text=True, timeout=_ASK_LIMIT_S, check=False
        ).stderr
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = re.search(r'version "(?:1\.)?(\d+)', said)
    return int(found[1]) if found else None


@dataclass(frozen=True)
class Jar:
    """One artifact of Maven's central repository, as a tool that `dyno get` gets."""

    name: str
    group: str
    artifact: str
    version: str
    sha256: str
    what: str

    def path(self) -> Path:
        """In the user's cache."""
        cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
        return Path(cache) / "dyno" / "tools" / f"{self.artifact}-{self.version}.jar"

    def installed(self) -> str | None:
        """That very version; it was looked into when it was put there."""
        return self.version if self.path().is_file() else None

    def get(self) -> Path:
        """Have Maven fetch it, as it is set up here, and see that it is the one that is known. Raises UserError."""
        target = self.path()
        if target.is_file():
            return target
        maven = shutil.which("mvn")
        if maven is None:
            raise UserError(f"cannot get {self.name}: Maven is missing (Debian's maven)")
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="dyno-get-", dir=target.parent) as scratch:
            named = f"{self.group}:{self.artifact}:{self.version}:jar"
            words = [maven, "-B", "-q", "-ntp", _PLUGIN, f"-Dartifact={named}", f"-DoutputDirectory={scratch}"]
            _carry_out(words, Path(scratch))
            fetched = Path(scratch) / target.name
            if not fetched.is_file():
                raise UserError(f"cannot get {self.name}: Maven left no {target.name}")
            if (found := hashlib.sha256(fetched.read_bytes()).hexdigest()) != self.sha256:
                raise UserError(
                    f"cannot get {self.name}: what Maven fetched as {named} has the SHA-256 {found}, not {self.sha256}"
                )
            # Renamed into place, so that one that was cut off is never taken for a whole one.
            fetched.replace(target)
        return target


QUESTDB_NEEDS = 17
QUESTDB_JRE = "default-jre-headless"
QUESTDB = Jar(
    "questdb",
    "org.questdb",
    "questdb",
    "9.3.4",
    "939bc53ab22f93dbaa6545143a6e7c536d4904c07b7f2d381e8eef10436be062",
    "QuestDB: systems of kind questdb",
)


def _carry_out(words: list[str], folder: Path) -> None:
    command = " ".join(words)
    try:
        answer = subprocess.run(words, cwd=folder, capture_output=True, text=True, timeout=_GET_LIMIT_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise UserError(f"`{command}` could not be carried out: {error}") from error
    if answer.returncode != 0:
        # Maven complains by its standard output.
        told = [line.removeprefix("[ERROR]").strip() for line in answer.stdout.splitlines() if "ERROR" in line]
        raise UserError(f"`{command}` ended with status {answer.returncode}: {told[0] if told else 'it said nothing'}")
