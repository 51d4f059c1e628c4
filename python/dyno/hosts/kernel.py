"""Settings of the kernel and of the CPUs: each one small object, and what keeps them as a study wants them.

Mitigations of the processor's faults are not among them: they are chosen when a machine starts, and only recorded.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from dyno.hosts.leftovers import UndoError
from dyno.hosts.undo import Change, UndoJournal
from dyno.model.base import RunError, UserError
from dyno.model.study import Kernel

# Once they are set, the kernel takes no way back before the machine starts anew.
_ONE_WAY = frozenset({"kernel.kexec_load_disabled", "kernel.modules_disabled"})

# Of each pair one counts and the other reads 0, which cannot be written: writing the one that counted puts both back.
_PAIRS = (("vm.dirty_bytes", "vm.dirty_ratio"), ("vm.dirty_background_bytes", "vm.dirty_background_ratio"))
_PARTNER = {a: b for pair in _PAIRS for a, b in (pair, pair[::-1])}


@dataclass(frozen=True)
class Setting:
    """Something that can be set while the machine runs. `places` are patterns below `root`; the first found counts.

    It may have several files, as one a CPU: they are written alike, and `show` lists what differs.
    """

    name: str
    places: tuple[str, ...]
    absent: str
    root: Path = Path("/")

    def files(self) -> list[Path]:
        """Its files; none where this machine does not have it."""
        return next((found for place in self.places if (found := sorted(self.root.glob(place)))), [])

    def available(self) -> str | None:
        """Why it cannot be set here and put back, whoever asks; None where it can."""
        if not self.files():
            return self.absent
        if self.name in _ONE_WAY:
            return "it could not be put back without starting the machine anew"
        try:
            self.show()
        except RunError as error:
            return f"it could not be put back ({error})"
        return None

    def show(self) -> str:
        """Its value now, blanks made one; several with commas where its files differ. Raises RunError."""
        values = [self.value_of(_text(path)) for path in self.files()]
        if not values:
            raise RunError(f"{self.name}: {self.absent}")
        return ", ".join(dict.fromkeys(values))

    def write(self, value: str) -> None:
        """Set it. Whether that took effect, `show` says. Raises RunError."""
        for path in self.files():
            try:
                path.write_text(self.text_for(value))
            except OSError as error:
                raise RunError(f"cannot set {self.name} to {value}: {error.strerror}{self._advice()}") from error

    def as_found(self) -> list[tuple[Path, str]]:
        """What has to be written to which files so that it is again as it is now. Raises RunError."""
        return [(path, self.text_for(self.value_of(_text(path)))) for path in self.files()]

    def value_of(self, text: str) -> str:
        """The value that a file's text says."""
        return " ".join(text.split())

    def text_for(self, value: str) -> str:
        """What is written to a file for a value."""
        return " ".join(value.split())

    def choices(self) -> list[str]:
        """The values that it takes, where the kernel lists them."""
        return []

    def _advice(self) -> str:
        if os.geteuid() != 0:
            return " (needs root)"
        choices = self.choices()
        return f"; there are {', '.join(choices)}" if choices else ""


class _Sysctl(Setting):
    def as_found(self) -> list[tuple[Path, str]]:
        partner = _PARTNER.get(self.name)
        if partner is not None and self.show() == "0":
            return sysctl(partner, self.root).as_found()
        return super().as_found()


class _Governor(Setting):
    def choices(self) -> list[str]:
        lists = [path.with_name("scaling_available_governors") for path in self.files()]
        return list(dict.fromkeys(word for path in lists if path.exists() for word in _text(path).split()))


class _Turbo(Setting):
    """`on` or `off`. One driver of the kernel has it the other way round: a file `no_turbo`."""

    def value_of(self, text: str) -> str:
        return "on" if (text.strip() == "1") != self._is_no_turbo() else "off"

    def text_for(self, value: str) -> str:
        return "1" if (value == "on") != self._is_no_turbo() else "0"

    def _is_no_turbo(self) -> bool:
        return any(path.name == "no_turbo" for path in self.files())


class _HugePages(Setting):
    """Its file lists the choices, with the one that holds in brackets."""

    def value_of(self, text: str) -> str:
        return text.partition("[")[2].partition("]")[0]

    def choices(self) -> list[str]:
        return [word.strip("[]") for path in self.files() for word in _text(path).split()]


def sysctl(name: str, root: Path = Path("/")) -> Setting:
    """The setting of that name below /proc/sys, such as vm.dirty_expire_centisecs."""
    return _Sysctl(name, (f"proc/sys/{name.replace('.', '/')}",), "this kernel has no setting of that name", root)


def governor(root: Path = Path("/")) -> Setting:
    """What chooses the frequency of each CPU."""
    places = (
        "sys/devices/system/cpu/cpufreq/policy*/scaling_governor",
        "sys/devices/system/cpu/cpu*/cpufreq/scaling_governor",
    )
    return _Governor("governor", places, "the frequency of the CPUs is not in the hands of this machine", root)


def turbo(root: Path = Path("/")) -> Setting:
    """Whether CPUs may exceed their nominal frequency: `on` or `off`."""
    cpu = "sys/devices/system/cpu"
    places = f"{cpu}/intel_pstate/no_turbo", f"{cpu}/cpufreq/boost", f"{cpu}/cpufreq/policy*/boost"
    return _Turbo("turbo", places, "the frequency of the CPUs is not in the hands of this machine", root)


def transparent_hugepages(root: Path = Path("/")) -> Setting:
    """Which memory is in large pages without being asked for: `always`, `madvise` or `never`."""
    places = ("sys/kernel/mm/transparent_hugepage/enabled",)
    return _HugePages("transparent_hugepages", places, "this kernel has no transparent huge pages", root)


GOVERNOR = governor()
TURBO = turbo()
TRANSPARENT_HUGEPAGES = transparent_hugepages()
ASLR = sysctl("kernel.randomize_va_space")


def settings_of(sysctl_values: Mapping[str, int | str], kernel: Kernel) -> dict[Setting, str]:
    """What a study asks for, by setting. Raises UserError where it asks for two values of one."""
    wanted = {sysctl(name): " ".join(str(value).split()) for name, value in sysctl_values.items()}
    turbo_wanted = None if kernel.turbo is None else "on" if kernel.turbo else "off"
    for setting, value in (
        (GOVERNOR, kernel.governor),
        (TURBO, turbo_wanted),
        (TRANSPARENT_HUGEPAGES, kernel.transparent_hugepages),
        (ASLR, None if kernel.aslr is None else str(kernel.aslr)),
    ):
        if value is not None and wanted.setdefault(setting, value) != value:
            raise UserError(f"{setting.name} is asked to be {wanted[setting]} by host.sysctl, {value} by host.kernel")
    return wanted


class KernelSettings:
    """The settings that a session has changed: in the journal before they are, and put back when no longer wanted."""

    def __init__(self, undo: UndoJournal) -> None:
        self._undo = undo
        self._made: dict[Setting, list[Change]] = {}

    def set(self, wanted: Mapping[Setting, str]) -> None:
        """Have these, and no others of an earlier call. Raises RunError naming the setting."""
        for setting in [made for made in reversed(self._made) if made not in wanted]:
            self._put_back(setting)
        for setting, value in wanted.items():
            if (why := setting.available()) is not None:
                raise RunError(f"cannot set {setting.name} to {value}: {why}")
            if setting.show() != value:
                self._change(setting, value)
        # Only now: one may have changed another.
        for setting, value in wanted.items():
            if (found := setting.show()) != value:
                raise RunError(f"cannot set {setting.name} to {value}: it is {found} after that was written")

    def _change(self, setting: Setting, value: str) -> None:
        # Before the journal has it: what may not be written could not be written back either.
        for path in setting.files():
            if not os.access(path, os.W_OK):
                why = "needs root" if os.geteuid() != 0 else f"{path} may not be written here"
                raise RunError(f"cannot set {setting.name} to {value}: {why}")
        if setting not in self._made:
            self._made[setting] = [
                self._undo.will(Change("kernel-setting", {"path": str(path), "value": text}))
                for path, text in setting.as_found()
            ]
        setting.write(value)

    def _put_back(self, setting: Setting) -> None:
        changes = self._made[setting]
        try:
            while changes:
                self._undo.undo(changes[-1])
                changes.pop()
        except UndoError as error:
            raise RunError(f"cannot put {setting.name} back: {error}") from error
        del self._made[setting]


def drop_caches() -> None:
    """Write back what is dirty, then drop page cache, dentries and inodes of the whole machine. Raises RunError."""
    if os.geteuid() != 0:
        raise RunError("dropping the caches of the machine needs root")
    os.sync()
    try:
        Path("/proc/sys/vm/drop_caches").write_text("3")
    except OSError as error:
        raise RunError(f"cannot drop the caches of the machine: {error.strerror}") from error


def _text(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError as error:
        raise RunError(f"{path} cannot be read: {error.strerror}") from error
