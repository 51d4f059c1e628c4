"""What every system under test can do. The lab calls these in the order of a run's life, and nothing else."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, ClassVar, Final, Generic, Protocol, TypeVar

from pydantic import Field

from dyno import sql
from dyno.deployments.base import Deployment, Recipe, Running, Site
from dyno.deployments.native import Native
from dyno.hosts import LocalHost, files
from dyno.hosts.devices import Device
from dyno.hosts.doctor import CLUSTERS
from dyno.model.base import Frozen, RunError, Scalar
from dyno.model.counters import CounterSource
from dyno.model.endpoint import Endpoint

AfterLoad = Annotated[
    tuple[Annotated[str, Field(min_length=1)], ...],
    Field(
        description="SQL statements that are executed once, in this order, when the data are loaded, and are part of "
        "the data set: an index, ANALYZE, a trigger"
    ),
]

O = TypeVar("O", bound=Frozen)  # noqa: E741 - the options of one kind


class Parts(Protocol):
    """What of an embedded system a function belongs to, by its name in a profile of the driver's process."""

    def component(self, symbol: str) -> str | None:
        """The component that it is of; None where whoever called it says that."""
        ...

    def call(self, symbol: str) -> str | None:
        """The call of the system's interface that it is; None for all others."""
        ...


class NoParts:
    """Of a system whose functions are not told apart."""

    def component(self, symbol: str) -> str | None:
        """Nothing is known."""

    def call(self, symbol: str) -> str | None:
        """Nothing is known."""


UNDONE: Final = "{} undoes nothing, and the workload rolls back: write workload.rollbacks: 0"
"""Of what cannot roll back, why it cannot serve a workload that does."""


@dataclass(frozen=True)
class Place:
    """What a system is given: a host, and folders that are its own. `data` is on the file system to be measured.

    `shared` is a folder for what is costly to make and the same for every system of a kind, such as an empty store;
    beside the data where it is None. `deployment` is what servers start and end by, and `data` is then its own;
    native without limits where it is None.
    """

    host: LocalHost
    data: Path
    logs: Path
    core: str
    shared: Path | None = None
    deployment: Deployment | None = None


class System(ABC, Generic[O]):
    """One system in one configuration at one place.

    `kind` is its name in study files, `backend` the protocol that its endpoint speaks.

    Life: provision once a study; `prepare`, load, `finish_load`, `snapshot` once a data set; then for each run
    `restore`, `start`, `ready`, drive, `status`, `stop`; `destroy` at the end. Each raises RunError with the cause,
    InvalidRun where the system runs but not as it was asked to. `limit` is in seconds.
    """

    kind: ClassVar[str]
    backend: ClassVar[str]
    Options: ClassVar[type[Frozen]]
    brings_recipe: ClassVar[bool] = False
    """Whether it can run in a container: `recipe` then says what of."""
    buffers_writes: ClassVar[bool] = False
    """Whether some of what it writes to its data files goes through page cache, whatever its options."""
    maps_files: ClassVar[bool] = False
    """Whether its process maps data files as it starts, whose pages no one can drop from page cache while it runs."""
    has_counters: ClassVar[bool] = False
    """Whether it can be asked for its own counters while it is driven: `counters` then gives what to ask by."""

    @classmethod
    def most_clients(cls, options: O) -> int | None:  # noqa: ARG003 - kinds that have a limit read them
        """How many clients it lets in at once with these options; None where there is no such limit."""
        return None

    @classmethod
    def needs(cls, options: O) -> Sequence[str]:  # noqa: ARG003 - likewise
        """What has to be there where it runs: the names of `dyno doctor`'s checks."""
        return CLUSTERS.get(cls.kind, ())

    @classmethod
    def refuses(cls, options: O, workload: str, *, rolls_back: bool) -> str | None:  # noqa: ARG003 - likewise
        """Why it cannot serve a workload of that kind with these options; None where it can.

        `rolls_back` says whether some of its transactions are to be undone.
        """
        return None

    @classmethod
    def reached_by(cls, options: O) -> str | None:  # noqa: ARG003 - kinds that are reached at all read them
        """`socket` or `tcp`, whichever clients come by; None for an embedded system."""
        return None

    @classmethod
    def opens_directly(cls, options: O) -> str | None:  # noqa: ARG003 - kinds that can read them
        """What says that data files are open with O_DIRECT: an option, or that there is none; None if nothing."""
        return None

    @classmethod
    def for_valgrind(cls, options: O) -> tuple[str, ...]:  # noqa: ARG003 - most need nothing
        """Words that the command of a server has to end with where it runs under valgrind."""
        return ()

    @classmethod
    def why_not_valgrind(cls, options: O) -> str | None:  # noqa: ARG003 - most can
        """What the study asks for and cannot be had under valgrind; None where there is nothing."""
        return None

    def __init__(self, options: O, place: Place) -> None:
        self.options = options
        self.place = place

    def provision(self, limit: float) -> dict[str, str]:
        """Have the programs ready; returns their versions by name."""
        return {}

    @cached_property
    def deployment(self) -> Deployment:
        """What it starts and ends by, where it has processes of its own."""
        if self.place.deployment is not None:
            return self.place.deployment
        folder = self.place.data.parent
        return Native(Site(host=self.place.host, folder=folder, work=folder, logs=self.place.logs))

    @property
    def running(self) -> Running | None:
        """Its process between start and stop, as its deployment gave it; None where it has none."""
        return None

    def recipe(self) -> Recipe | None:
        """What its image is made of; None where it cannot run in a container. Raises RunError."""
        return None

    def data_key(self) -> dict[str, Any]:
        """Those of the options that shape the stored data: cells that agree in them share one loaded data set."""
        return {}

    def after_load(self) -> tuple[str, ...]:
        """The SQL statements that `finish_load` executes: cells that agree in them too share a loaded data set."""
        return ()

    @abstractmethod
    def prepare(self, limit: float) -> None:
        """Make an empty store, replacing what is there, so that `start` gives an endpoint that can be loaded."""

    def needs_bytes(self) -> int:
        """What it takes of the place's file system for a store, empty or not, besides what it takes there already."""
        return 0

    def live_bytes(self) -> int:
        """What its live data take of the place's file system now."""
        return files.bytes_on_disk(self.place.data)

    def restored_bytes(self, source: Path) -> int:
        """What they will take there when they were restored from that snapshot."""
        return files.bytes_on_disk(source)

    def snapshot_bytes(self) -> int:
        """What a snapshot of them takes."""
        return files.bytes_on_disk(self.place.data)

    def finish_load(self, endpoint: Endpoint, limit: float) -> None:
        """Once the data are loaded, and while it still runs to be loaded: execute what the study adds to them."""
        if statements := self.after_load():
            with sql.connect(endpoint, limit=limit) as connection:
                for statement in statements:
                    try:
                        connection.rows(statement)
                    except sql.SqlError as error:
                        raise RunError(f"after_load: {error}") from error

    def snapshot(self, target: Path, limit: float) -> None:
        """Keep the data of the stopped system in `target`, which must not exist."""
        self.place.host.copy_tree(self.place.data, target, reflink=False, limit=limit)

    def restore(self, source: Path, limit: float, *, reflink: bool) -> None:
        """Put the stopped system's data back to a snapshot, synced to the device."""
        self.place.host.remove_tree(self.place.data)
        self.place.host.copy_tree(source, self.place.data, reflink=reflink, limit=limit)

    def device(self) -> Device | None:
        """The block device of its own that its data are on, from when they were restored; None where it has none.

        They are then on the file system of its place, and on the device of that.
        """
        return None

    def data_files(self) -> list[Path]:
        """The files whose state in page cache is part of `caches: cold`."""
        return files_below(self.place.data)

    @abstractmethod
    def start(self, run: int, limit: float) -> None:
        """Start it on the data that are there. `run` is its place in the order of execution, 0 where it is loaded."""

    @abstractmethod
    def ready(self, limit: float) -> Endpoint:
        """Wait until it answers, by asking it, and say where it can be reached."""

    def asked(self) -> dict[str, Any]:
        """The settings that must be effective, keyed and typed as the system reads them back."""
        return {}

    def settings(self) -> dict[str, Any]:
        """The effective settings, as the system itself says when it is ready; an embedded one's say the driver."""
        return {}

    def refutes(self, status: Mapping[str, float]) -> str | None:
        """Why a run did not do what the options ask for, by what its driver says of an embedded system; None if it did.

        Names in `status` begin with the backend's: `sqlite.wal_bytes`.
        """
        return None

    def builds(self, endpoint: Endpoint) -> dict[str, Endpoint]:
        """An embedded one, as it is to be counted: by the name of a build, where that build is reached.

        The first, `optimised`, is what was measured. Others do the same in such a way that
        `parts` can be told apart.
        """
        return {"optimised": endpoint}

    def parts(self) -> Parts:
        """What the functions of an embedded system belong to."""
        return NoParts()

    def facts(self) -> dict[str, Scalar]:
        """How it does its work here, in its own words and as found after it was ready: what may confound."""
        return {}

    def cached(self, cold: bool) -> dict[str, Any]:
        """Evidence of what is in its own caches now that it is ready.

        Raises InvalidRun where they are to be `cold` and hold more than starting brings.
        """
        return {}

    def counters(self, limit: float) -> CounterSource | None:
        """What to ask it by for its own counters while it is driven, a connection of its own; None where it has none.

        It is asked and closed by whom it is given to. No answer takes longer than `limit`.
        """
        return None

    @property
    def is_struck(self) -> bool:
        """Whether a fault of dyno's is in force that was not mended."""
        return False

    def status(self) -> dict[str, float]:
        """The system's own counters since it was ready, and its sizes now."""
        return {}

    def at_rest(self) -> dict[str, float]:
        """What the data of the stopped system take, in bytes, for the status of a run; empty where nobody asks."""
        return {}

    def sent_bytes(self) -> int | None:
        """What its nodes and their clients sent over a network of their own until now; None where there is none now."""
        return None

    def notes(self) -> tuple[str, ...]:
        """What a reader must know of how it ran, in sentences."""
        return ()

    def events(self) -> tuple[tuple[int, str], ...]:
        """What looked after it did since it was started, with the time in ns since the epoch."""
        return ()

    def check(self, limit: float) -> None:
        """Check the stopped system's data. Raises RunError where they are damaged."""

    @abstractmethod
    def stop(self, limit: float) -> None:
        """Stop it; nothing happens where it does not run."""

    def destroy(self) -> None:
        """Stop it and remove its data."""
        self.stop(limit=60.0)
        self.place.host.remove_tree(self.place.data)


def files_below(folder: Path) -> list[Path]:
    """The files of a folder, none where there is no folder."""
    return sorted(path for path in folder.rglob("*") if path.is_file()) if folder.is_dir() else []
