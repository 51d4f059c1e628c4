"""File systems: one that is made anew for every run, on an image of its own or on a block device that is given.

It works within the calls of the driver, which is therefore what its machine holds. What is asked of it is read back
from the kernel and from its superblock; after a run it is unmounted and checked by its own program.
`docs/file-systems.md` says what is made, what is attested and what stays outside.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from pydantic import Field, field_validator, model_validator

from dyno.hosts import ageing, attested, files, filesystems
from dyno.hosts.blockdevices import Identity, claim, uses
from dyno.hosts.devices import Device, Mount, block_device, discards, mount_of
from dyno.hosts.leftovers import UndoError
from dyno.hosts.volumes import Until, below_of, image_of
from dyno.model.base import Frozen, InvalidRun, RunError, Scalar
from dyno.model.endpoint import Endpoint
from dyno.model.forms import MkfsWords, MountOptions
from dyno.model.study import LEAST_FILE_SYSTEM, FileSystem
from dyno.model.units import Duration, Share, Size, format_size
from dyno.systems.base import System, files_below

KEY: Final = "system.config"
_MIB = 2**20
_PAGE = 4096
_BLOCK_SIZES = {"ext4": (1024, 2048, 4096), "xfs": (1024, 2048, 4096), "btrfs": (4096,)}
_OF_THEIR_OWN = {"data": "data", "barrier": "barrier", "nobarrier": "barrier", "commit": "commit", "discard": "discard"}
_OF_THEIR_OWN |= {"nodiscard": "discard"}
_RESIDENT_AT_MOST = 0.01  # of an image: what a neighbour's open may bring back


class Aged(Frozen):
    """How much it was used before: see `dyno.hosts.ageing`."""

    fill: Annotated[Share, Field(gt=0, le=0.85, description="of the file system, what is used in the end")] = 0.7
    rounds: Annotated[
        int, Field(ge=1, le=1000, description="how often it was filled to nine tenths, and files deleted until `fill`")
    ] = 5


def _may_be_fresh(schema: dict[str, Any]) -> None:
    schema["anyOf"].append({"const": "fresh"})


class FilesystemOptions(Frozen):
    """What is made and how it is mounted. What is not given is as mkfs and the kernel have it, and is recorded."""

    type: Annotated[
        Literal["ext4", "xfs", "btrfs", "overlay"], Field(description="overlay: an empty lower layer and an upper one")
    ] = "ext4"
    below: Annotated[
        Literal["ext4", "xfs", "btrfs"] | None, Field(description="on what an overlay lies; ext4 if left out")
    ] = None
    size: Annotated[
        Size | None, Field(gt=0, description="of the image; of a `device` the whole is taken, and none is given")
    ] = None
    block_size: Annotated[Size | None, Field(description="1, 2 or 4 KiB; btrfs has 4 KiB")] = None
    data: Annotated[
        Literal["journal", "ordered", "writeback"] | None,
        Field(description="of ext4: what of files goes through its journal"),
    ] = None
    journal: Annotated[Literal["internal", "none"], Field(description="of ext4: none has no journal at all")] = (
        "internal"
    )
    journal_size: Annotated[Size | None, Field(ge=_MIB, description="of ext4's journal or xfs's log; whole MiB")] = None
    barrier: Annotated[
        bool | None, Field(description="whether the device is told to flush; xfs always does, and has no such option")
    ] = None
    discard: Annotated[
        bool | None, Field(description="whether the device is told at once of what was freed; on an image: given back")
    ] = None
    commit: Annotated[
        Duration | None, Field(ge=1, le=300, description="of ext4 and btrfs: how often it commits; whole seconds")
    ] = None
    aged: Annotated[
        Aged | None,
        Field(
            description="how it was used before: done once a study, and restored for each run from a copy; `fresh` or "
            "left out: new for each run",
            json_schema_extra=_may_be_fresh,
        ),
    ] = None
    mkfs: Annotated[MkfsWords, Field(description="further options of mkfs, word by word")] = ()
    mount: Annotated[MountOptions, Field(description="further mount options")] = ("noatime",)
    direct_io: Annotated[
        bool, Field(description="of the image's loop device: past the page cache of the file system below")
    ] = True
    device: Annotated[
        str | None,
        Field(description="a block device, such as /dev/sdb, in place of an image: all that is on it is lost"),
    ] = None
    erase: Annotated[Literal["yes-really"] | None, Field(description="a `device` is only taken with this")] = None
    identity: Annotated[
        Identity | None, Field(description="what the `device` has to be, since names change from boot to boot")
    ] = None
    check_every: Annotated[
        int,
        Field(ge=0, description="after every so many runs it is unmounted and checked by its own program; 0: never"),
    ] = 1

    @property
    def base(self) -> Literal["ext4", "xfs", "btrfs"]:
        """What is made; below an overlay, too."""
        return (self.below or "ext4") if self.type == "overlay" else self.type

    @field_validator("aged", mode="before")
    @classmethod
    def _fresh_is_not_aged(cls, value: Any) -> Any:
        if isinstance(value, str):
            if value != "fresh":
                raise ValueError(f"should be fresh, or a mapping such as {{fill: 70%, rounds: 5}}; not {value!r}")
            return None
        return value

    @field_validator("device")
    @classmethod
    def _device_is_a_path(cls, value: str | None) -> str | None:
        if value is not None and not value.startswith("/dev/"):
            raise ValueError(f"{value!r} is no device's path; write it whole, such as /dev/sdb")
        return value

    @field_validator("commit")
    @classmethod
    def _commit_is_whole_seconds(cls, value: float | None) -> float | None:
        if value is not None and value != int(value):
            raise ValueError("the kernel takes whole seconds (commit)")
        return value

    @field_validator("journal_size")
    @classmethod
    def _journal_is_whole_mib(cls, value: int | None) -> int | None:
        if value is not None and value % _MIB:
            raise ValueError("mkfs takes whole MiB (journal_size)")
        return value

    @field_validator("mount")
    @classmethod
    def _options_of_their_own_are_not_given_twice(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for word in value:
            name = word.partition("=")[0]
            if name in _OF_THEIR_OWN:
                raise ValueError(f"{word!r} has a key of its own: write it as {_OF_THEIR_OWN[name]} beside mount")
        return value

    @model_validator(mode="after")
    def _only_an_overlay_lies_below(self) -> FilesystemOptions:
        if self.below is not None and self.type != "overlay":
            raise ValueError(f"below is of an overlay, and type is {self.type}: leave it out")
        return self

    @model_validator(mode="after")
    def _each_has_its_own_options(self) -> FilesystemOptions:
        base = self.base
        for name, owners in (("data", ("ext4",)), ("journal_size", ("ext4", "xfs")), ("commit", ("ext4", "btrfs"))):
            if getattr(self, name) is not None and base not in owners:
                raise ValueError(f"{name} is of {' and '.join(owners)}, and this is {base}: leave it out")
        if self.journal == "none":
            if base != "ext4":
                raise ValueError(f"journal: none is of ext4, and this is {base}: leave it out")
            for name in ("data", "journal_size", "commit"):
                if getattr(self, name) is not None:
                    raise ValueError(f"{name} is of a journal, and journal is none: leave one of them out")
        if base == "xfs" and self.barrier is False:
            raise ValueError("xfs always tells the device to flush (Linux 4.19 and newer): leave barrier out")
        if self.block_size is not None and self.block_size not in _BLOCK_SIZES[base]:
            sizes = " or ".join(format_size(size) for size in _BLOCK_SIZES[base])
            raise ValueError(f"{base} has blocks of {sizes} here, not of {format_size(self.block_size)} (block_size)")
        return self

    @model_validator(mode="after")
    def _an_image_has_a_size_and_a_device_an_identity(self) -> FilesystemOptions:
        if self.device is None:
            for name in ("erase", "identity"):
                if getattr(self, name) is not None:
                    raise ValueError(
                        f"{name} is of a device, and none is given: write device: /dev/..., or leave it out"
                    )
            if self.size is None:
                raise ValueError("how large is the image to be? Write size, such as 4 GiB, or a device")
            if self.size < LEAST_FILE_SYSTEM[self.base]:
                raise ValueError(f"{self.base} needs {format_size(LEAST_FILE_SYSTEM[self.base])} at least (size)")
            if self.journal_size is not None and self.journal_size > self.size // 2:
                raise ValueError(
                    f"a journal of {format_size(self.journal_size)} does not fit: mkfs gives it half of "
                    f"{format_size(self.size)} at most (journal_size)"
                )
            return self
        if self.size is not None:
            raise ValueError("size is of an image, and of a device the whole is taken: leave it out")
        if self.erase is None:
            raise ValueError(f"all that is on {self.device} would be lost: write erase: yes-really if that is meant")
        if self.identity is not None and self.identity.uuid is not None:
            for word in self.mkfs:
                if word.startswith(("-U", "--uuid")) or "uuid=" in word:
                    raise ValueError(
                        f"the device is known by its uuid, and {word!r} of mkfs gives it another: leave it out"
                    )
        if self.identity is None:
            raise ValueError(
                f"which device is {self.device} to be? Write identity: {{serial: ...}} (or wwn, uuid, partuuid, or "
                "model and size, as `lsblk -o +SERIAL,WWN,UUID,PARTUUID,MODEL` shows them)"
            )
        return self


class FilesystemSystem(System[FilesystemOptions]):
    """Mounted where the data of other systems are."""

    kind = "filesystem"
    backend = "files"
    Options = FilesystemOptions
    buffers_writes = True
    _run = 0

    @classmethod
    def needs(cls, options: FilesystemOptions) -> Sequence[str]:
        """The programs of its kind, and root for mounting."""
        return ("root", *(() if options.device else ("loop devices",)), options.base)

    def provision(self, limit: float) -> dict[str, str]:
        """Whether this machine can: root, programs, room, and the device that it is to be."""
        base, host = self.options.base, self.place.host
        filesystems.refuse_missing(base, KEY)
        filesystems.refuse_files(self.options.mkfs)
        for name in _programs(self.options):
            filesystems.program(name)
        ask = self._ask(limit)
        if self.options.device is not None:
            self._claim(ask)
        elif (needs := self.needs_bytes()) > (free := host.free_disk(self.place.data.parent)):
            raise RunError(
                f"the image takes {format_size(needs)} ({KEY}.size), and {self.place.data.parent} has "
                f"{format_size(free)} free: lower it, or choose another place with --work"
            )
        return {f"mkfs.{base}": filesystems.version(base)}

    # ---- What it lies on.

    def _until(self, limit: float) -> Until:
        return Until.within(limit, self.place.logs / "filesystem")

    def _ask(self, limit: float) -> attested.Ask:
        until = self._until(limit)

        def ask(words: Sequence[str]) -> str:
            return self.place.host.run([filesystems.program(words[0]), *words[1:]], limit=until.left, log=until.log)

        return ask

    def _claim(self, ask: attested.Ask) -> Path:
        options = self.options
        assert options.device is not None, "the options have one"
        assert options.identity is not None, "the options have one"
        return claim(Path(options.device), options.identity, ask, least=LEAST_FILE_SYSTEM[options.base])

    def _attach(self, until: Until) -> Path:
        """The device that it is made on: what is on it is lost."""
        options = self.options
        if options.device is not None:
            device, ask = self._claim(self._ask(until.left)), self._ask(until.left)
            ask(["wipefs", "--quiet", "--all", str(device)])  # mkfs.btrfs takes no UUID that is still on a device
            return device
        return self.place.host.volumes.attach(
            self._image, self._size, direct_io=options.direct_io, until=until, key=KEY, written=True
        )

    def _on(self) -> Path | None:
        """The device that it was made on; None where there is none yet."""
        if self.options.device is not None:
            return Path(self.options.device).resolve()  # as the kernel names it, and not by a link of udev's
        return self.place.host.volumes.device(self._image) if self._image.exists() else None

    @property
    def _image(self) -> Path:
        return image_of(self.place.data)

    @property
    def _base(self) -> Path:
        """Where the file system itself is mounted; an overlay lies above it."""
        return below_of(self.place.data) if self.options.type == "overlay" else self.place.data

    def device(self) -> Device | None:
        """The loop device, or the one that was given."""
        device = self._on()
        return None if device is None else block_device(device)

    def needs_bytes(self) -> int:
        """Room for the image."""
        return max(self._size - self.live_bytes(), 0)

    def live_bytes(self) -> int:
        """What the image has of the file system below, full or not."""
        return self._image.stat().st_blocks * 512 if self._image.exists() else 0

    def restored_bytes(self, source: Path) -> int:
        """The image's size, whatever is put on it."""
        return self._size

    def snapshot_bytes(self) -> int:
        """What was loaded; or all of an aged one."""
        if self.options.aged is None:
            return super().snapshot_bytes()
        return self._size or _size_of(Path(str(self.options.device)))

    @property
    def _size(self) -> int:
        """Of the image, in whole blocks, which direct I/O asks for; 0 of a device that was given."""
        return (self.options.size or 0) // _PAGE * _PAGE

    # ---- How it is made.

    @cached_property
    def _spec(self) -> FileSystem:
        options = self.options
        size = self._size or _size_of(Path(str(options.device)))
        return FileSystem.model_validate(
            {
                "kind": options.base,
                "size": f"{size} B",
                "mkfs": (*_made(options), *options.mkfs),
                "mount": (*_mounted(options), *options.mount),
                "direct_io": options.direct_io,
            }
        )

    def data_key(self) -> dict[str, Any]:
        """Nothing: a data set is files, and the file system is made anew for every run.

        An aged one is a data set with all that mkfs was told. How it is mounted when it is measured is none of it.
        """
        if self.options.aged is None:
            return {}
        spec = self._spec
        told = {"type": spec.kind, "size": spec.size, "mkfs": spec.mkfs, "device": self.options.device}
        return {"aged": self.options.aged.model_dump(mode="json"), **told, "overlay": self.options.type == "overlay"}

    def prepare(self, limit: float) -> None:
        """An empty one, or one that is aged."""
        until = self._until(limit)
        if self.options.aged is None:
            self._make(until)
        else:
            self._age(self.options.aged, until)

    def _age(self, aged: Aged, until: Until) -> None:
        """Mounted as the kernel has it by default, whatever it is to be mounted with when it is measured."""
        volumes, ask = self.place.host.volumes, self._ask(until.left)
        spec = self._spec.model_copy(update={"mount": ("noatime",)})
        self._unmount(until)
        device = self._attach(until)
        volumes.make(spec, device, until)
        self._base.mkdir(exist_ok=True)
        volumes.mount(spec, device, self._base, until)
        ageing.age(self._base, fill=aged.fill, rounds=aged.rounds, seed=_AGEING_SEED, deadline=until.deadline)
        found = ageing.pieces_of_a_new_file(self._base, ask)
        self._unmount(until)
        found |= ageing.free_space(self.options.base, device, ask)
        self._mount(device, until)
        self._found_aged.write_text(json.dumps(found))

    @property
    def _found_aged(self) -> Path:
        """What was found of an aged one, beside it."""
        return self.place.data.with_name(f"{self.place.data.name}-aged.json")

    def snapshot(self, target: Path, limit: float) -> None:
        """What was loaded; of an aged one all blocks, as they are when it is unmounted."""
        if self.options.aged is None:
            super().snapshot(target, limit)
            return
        until, device = self._until(limit), self._on()
        if device is None:
            raise RunError("there is no file system to keep")
        if target.exists():
            raise RunError(f"cannot keep the file system in {target.name}: that exists already")
        self._unmount(until)
        target.mkdir()
        words = ["dd", f"if={device}", f"of={target / 'image'}", "bs=1M", "iflag=direct", "conv=sparse,fsync"]
        self.place.host.run(words, limit=until.left, log=until.log)
        (target / "aged.json").write_text(self._found_aged.read_text())

    def _restore_aged(self, source: Path, until: Until) -> None:
        self._unmount(until)
        device = self._attach(until)
        words = ["dd", f"if={source / 'image'}", f"of={device}", "bs=8M", "iflag=direct", "oflag=direct"]
        self.place.host.run([*words, "conv=fsync,nocreat"], limit=until.left, log=until.log)
        self._mount(device, until)
        self._found_aged.write_text((source / "aged.json").read_text())

    def restore(self, source: Path, limit: float, *, reflink: bool) -> None:
        """Made anew, and what was loaded copied into it."""
        if not source.is_dir():
            raise RunError(f"there is no snapshot {source.name} to restore")
        until = self._until(limit)
        until.look("making the file system")
        if self.options.aged is not None:
            if reflink:
                raise RunError("an aged file system is copied block by block: write restore: copy")
            self._restore_aged(source, until)
            return
        self._make(until)
        self.place.host.copy_into(source, self.place.data, reflink=reflink, limit=until.left)

    def _make(self, until: Until) -> None:
        self._unmount(until)
        device = self._attach(until)
        self.place.host.volumes.make(self._spec, device, until)
        self._mount(device, until)

    def _mount(self, device: Path, until: Until) -> None:
        volumes, data = self.place.host.volumes, self.place.data
        for point in {self._base, data}:
            point.mkdir(exist_ok=True)
        if self.options.discard and not discards(device):
            raise RunError(f"{device} cannot be told what was freed ({KEY}.discard): leave discard out")
        volumes.mount(self._spec, device, self._base, until)
        if self.options.type == "overlay":
            volumes.mount_overlay(self._base, data, until)

    def _unmount_here(self) -> None:
        volumes = self.place.host.volumes
        try:
            for point in (self.place.data, below_of(self.place.data)):
                volumes.unmount(point)
        except UndoError as error:
            raise RunError(str(error)) from error

    def _unmount(self, until: Until) -> None:
        """Raises RunError also where it stays mounted in a namespace of somebody else."""
        device = self._on()
        self._unmount_here()
        if device is None:
            return
        # What else a device that was given is used for is told when it is claimed.
        if self.options.device is None or (device.is_block_device() and uses(device).words(device) is None):
            self.place.host.volumes.see_released(device, until)

    # ---- The life of a run.

    def data_files(self) -> list[Path]:
        """All that is on it but what it was aged with."""
        top = self.place.data
        if not top.is_dir():
            return []
        of_ageing = self._base / ageing.FOLDER if self.options.type != "overlay" else None
        return sorted(
            file
            for each in top.iterdir()
            if each != of_ageing
            for file in ([each] if each.is_file() else files_below(each))
        )

    def start(self, run: int, limit: float) -> None:
        """Mount it where it was unmounted to be checked."""
        self._run = run
        volumes, device = self.place.host.volumes, self._on()
        if device is None or not self.place.data.is_dir():
            raise RunError("there is no file system to start on")
        if not volumes.mounted(self.place.data):
            self._mount(device, self._until(limit))

    def ready(self, limit: float) -> Endpoint:
        """What is mounted there is this one."""
        device = self._on()
        if device is None:
            raise RunError("the file system was not made")
        filesystems.attest_source(self.options.base, str(device), self._base)
        if self.options.type == "overlay":
            filesystems.attest_source("overlay", "overlay", self.place.data)
        return Endpoint(backend=self.backend, settings={"folder": str(self.place.data)})

    def asked(self) -> dict[str, Any]:
        """Every option that is given."""
        options = self.options
        given = {
            "type": options.type,
            "below": options.base if options.type == "overlay" else None,
            "block_size": options.block_size,
            "data": options.data,
            "journal": options.journal if options.base == "ext4" else None,
            "journal_size": options.journal_size,
            "barrier": options.barrier,
            "discard": options.discard,
            "commit": options.commit,
            "mount": list(options.mount),
        }
        return {key: value for key, value in given.items() if value is not None}

    def settings(self) -> dict[str, Any]:
        """As the kernel and the superblock have them."""
        device, mount = self._made_and_mounted()
        wrong = filesystems.not_in_force(self.options.mount, mount.options)
        found = attested.in_force(mount, device, self._ask(_ASK_LIMIT_S))
        if self.options.type == "overlay":
            found |= {"type": mount_of(self.place.data).kind, "below": mount.kind}
        return {**found, "mount": [word for word in self.options.mount if word not in wrong]}

    def facts(self) -> dict[str, Scalar]:
        """What was made, by which program, and on what."""
        device, mount = self._made_and_mounted()
        image = self._image if self.options.device is None else None
        # Without what was asked for, which is told by the settings: the rest is what may confound.
        spec = self._spec.model_copy(update={"mkfs": self.options.mkfs})
        found = filesystems.facts(spec, device, mount, image)
        shown = dict.fromkeys(word for word in mount.options if word.partition("=")[0] not in _OF_THEIR_OWN)
        found |= {"options": ",".join(shown)}
        found |= {"features": attested.features(mount, device, self._ask(_ASK_LIMIT_S))}
        found |= {"mkfs": filesystems.version(self.options.base), "hardware": block_device(device).hardware().kind}
        if self.options.aged is not None:
            found |= {f"aged.{name}": value for name, value in json.loads(self._found_aged.read_text()).items()}
        if self.options.type == "overlay":
            found |= {"overlay": ",".join(_without_paths(mount_of(self.place.data).options))}
        return {"device": "its own", **{f"file_system.{name}": value for name, value in found.items()}}

    def _made_and_mounted(self) -> tuple[Path, Mount]:
        device = self._on()
        if device is None:
            raise RunError("the file system was not made")
        return device, filesystems.attest_source(self.options.base, str(device), self._base)

    def cached(self, cold: bool) -> dict[str, Any]:
        """What of the image is in the page cache of the file system below it."""
        if self.options.device is not None:
            return {}
        resident, size = self.place.host.resident_bytes([self._image]), self.place.host.bytes_of([self._image])
        if cold and resident > _RESIDENT_AT_MOST * size:
            raise InvalidRun(f"caches are not cold: {resident} of {size} bytes of the image are in page cache")
        return {"image_resident_bytes": resident}

    def status(self) -> dict[str, float]:
        """How full it is."""
        used, free = files.room(self.place.data)
        return {"filesystem.used_bytes": float(used), "filesystem.free_bytes": float(free)}

    def stop(self, limit: float) -> None:
        """Write back what is dirty. It stays mounted, since its data are to be looked at."""
        if self.place.data.is_dir() and self.place.host.volumes.mounted(self.place.data):
            until = self._until(limit)
            self.place.host.run(["sync", "--file-system", str(self.place.data)], limit=until.left, log=until.log)

    def check(self, limit: float) -> None:
        """Unmounted, as its own program finds it."""
        every, device = self.options.check_every, self._on()
        if not every or self._run % every or device is None:
            return
        until = self._until(limit)
        self._unmount(until)
        words = filesystems.check_command(self.options.base, device)
        log = self.place.logs / "check"
        try:
            self.place.host.run(words, limit=until.left, log=log)
        except RunError as error:
            if " ended with status " not in str(error):
                raise
            name = " ".join((Path(words[0]).name, *words[1:-1]))
            raise RunError(f"{name} finds the file system damaged (logs/check.stdout): {error}") from error

    def notes(self) -> tuple[str, ...]:
        """What its machine does not hold."""
        confinement = self.deployment.site.confinement
        if confinement.group is None and confinement.cpus is None:
            return ()
        return (
            "The limits of its machine hold the driver, within whose calls a file system works; what threads of the "
            "kernel do for it (write-back, the journal's commits, the loop device's) is in no group, and not held to "
            "them.",
        )

    def destroy(self) -> None:
        """Unmounted, and the image removed. A device that was given keeps what is on it."""
        self.place.host.remove_volume(self.place.data)
        self._found_aged.unlink(missing_ok=True)


_ASK_LIMIT_S: Final = 30.0
_AGEING_SEED: Final = 1997  # all that are to be compared are aged by the same files


def _programs(options: FilesystemOptions) -> tuple[str, ...]:
    """Those that a run asks, so that one which is missing is told before the first."""
    asked = {"ext4": ("dumpe2fs",), "xfs": ("xfs_info",), "btrfs": ()}[options.base]
    checker = (filesystems.checker(options.base),) if options.check_every else ()
    aged = ("filefrag", *{"ext4": ("e2freefrag",), "xfs": ("xfs_db",), "btrfs": ()}[options.base])
    return (
        *asked,
        *checker,
        *(aged if options.aged is not None else ()),
        *(("lsblk", "blkid", "wipefs") if options.device is not None else ("losetup",)),
    )


def _size_of(device: Path) -> int:
    try:
        with device.open("rb") as file:
            return file.seek(0, 2)
    except OSError as error:
        raise RunError(f"cannot see how large {device} is: {error.strerror}") from error


def _made(options: FilesystemOptions) -> tuple[str, ...]:
    """The words of mkfs."""
    words: list[str] = []
    block, log = options.block_size, options.journal_size
    match options.base:
        case "ext4":
            words += ["-b", str(block)] if block else []
            words += ["-O", "^has_journal"] if options.journal == "none" else []
            words += ["-J", f"size={log // _MIB}"] if log else []
        case "xfs":
            words += ["-b", f"size={block}"] if block else []
            words += ["-l", f"size={log}"] if log else []
        case "btrfs":
            words += ["--sectorsize", str(block)] if block else []
    return (*words, *(options.identity.kept(options.base) if options.identity is not None else ()))


def _mounted(options: FilesystemOptions) -> tuple[str, ...]:
    """The mount options."""
    words: list[str] = []
    if options.data is not None:
        words.append(f"data={options.data}")
    if options.barrier is not None and options.base != "xfs":
        words.append("barrier" if options.barrier else "nobarrier")
    if options.discard is not None:
        words.append("discard" if options.discard else "nodiscard")
    if options.commit is not None:
        words.append(f"commit={options.commit:g}")
    return tuple(words)


def _without_paths(options: Sequence[str]) -> list[str]:
    """Paths are of this run's folder alone."""
    return [word for word in dict.fromkeys(options) if not re.match(r"(lower|upper|work)dir", word)]
