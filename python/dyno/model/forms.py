"""Words that a study hands on to the kernel, to mkfs and to mount: what can be told to be wrong by its form alone.

Whether a machine has that CPU, setting or option is seen on the machine.
"""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, WithJsonSchema

_CPUS = r"[0-9]{1,5}(-[0-9]{1,5})?(,[0-9]{1,5}(-[0-9]{1,5})?)*"
_SETTING = r"[a-z0-9_-]+(\.[a-z0-9_-]+)+"
_NOT_FOR_DATA = ("bind", "rbind", "move", "remount", "loop", "ro")
_OF_A_DEVICE = re.compile(r"(?:logdev|rtdev|device|name|journal_path|journal_dev)=")
"""Of mkfs and mount: what follows names a device, by a path, a number or an identity."""


def _cpu_list(text: str) -> str:
    if re.fullmatch(_CPUS, text) is None:
        raise ValueError(f"{text!r} is no list of CPUs; write their numbers, such as '0' or '0-1,3'")
    for part in text.split(","):
        first, _, last = part.partition("-")
        if last and int(last) < int(first):
            raise ValueError(f"{part!r} ends before it begins; write {last}-{first}")
    return text


def cpus_named(cpus: str) -> frozenset[int]:
    """The numbers in a list of CPUs that is well formed; which of them there are is seen on the machine."""
    ends = (part.partition("-") for part in cpus.split(","))
    return frozenset(cpu for first, _, last in ends for cpu in range(int(first), int(last or first) + 1))


def _setting_name(name: str) -> str:
    if re.fullmatch(_SETTING, name) is None:
        raise ValueError(f"{name!r} is no kernel setting's name; write it as `sysctl -a` does, such as vm.swappiness")
    return name


def _setting_value(value: int | str) -> int | str:
    if isinstance(value, str) and (not value.strip() or not value.isprintable()):
        raise ValueError(f"{value!r} is no kernel setting's value; write it as `sysctl -a` does")
    return value


def _governor(name: str) -> str:
    if re.fullmatch(r"[a-z_]+", name) is None:
        raise ValueError(f"{name!r} is no governor's name; write one such as performance")
    return name


def _is_word(text: str) -> bool:
    return text.isascii() and text.isprintable() and text != "" and " " not in text


def _refuse_device(word: str) -> None:
    """A study names one device, with what it has to be; any other that mkfs or mount is told of is written over too."""
    if "/" in word:
        raise ValueError(f"{word!r} has a '/': what names a device or a file is not handed on; leave it out")
    if found := _OF_A_DEVICE.search(word):
        raise ValueError(f"{word!r} names another device ({found[0]}), which would be written over; leave it out")


def _mkfs_words(words: tuple[str, ...]) -> tuple[str, ...]:
    for word in words:
        if not _is_word(word):
            raise ValueError(f"{word!r} is not one word; list each by itself, such as [-m, '1']")
        _refuse_device(word)
    # Any other word would stand where mkfs looks for the device.
    if words and not words[0].startswith("-"):
        raise ValueError(f"{words[0]!r} is no option; begin with one, such as [-m, '1']")
    return words


def _mount_options(options: tuple[str, ...]) -> tuple[str, ...]:
    for option in options:
        if not _is_word(option) or "," in option:
            raise ValueError(f"{option!r} is not one mount option; list each by itself, such as [noatime, commit=5]")
        _refuse_device(option)
        if option in _NOT_FOR_DATA:
            raise ValueError(f"{option!r} is not for a file system that is made for data and written to; leave it out")
    return options


def _as_text(given: object) -> object:
    """A single CPU is a number to YAML."""
    return str(given) if type(given) is int else given


CpuList = Annotated[
    str,
    BeforeValidator(_as_text),
    AfterValidator(_cpu_list),
    WithJsonSchema({"anyOf": [{"type": "string", "pattern": f"^{_CPUS}$"}, {"type": "integer", "minimum": 0}]}),
]
KernelSetting = Annotated[str, AfterValidator(_setting_name)]
KernelValue = Annotated[int | str, AfterValidator(_setting_value)]
Governor = Annotated[str, AfterValidator(_governor)]
MkfsWords = Annotated[tuple[str, ...], AfterValidator(_mkfs_words)]
MountOptions = Annotated[tuple[str, ...], AfterValidator(_mount_options)]
