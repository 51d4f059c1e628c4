"""What is common to systems that are server programs: their life as processes, their settings, their counters.

What differs from server to server is said in the module of each. Servers start and end by their deployment; tools that
look at the stopped data run on this machine, wherever the server ran.
"""

from __future__ import annotations

import hashlib
import json
import re
import secrets
import signal
import socket
import tempfile
import time
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Protocol, Self, TypeVar

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field, model_validator

from dyno import sql
from dyno.deployments.base import Launch, Running
from dyno.hosts import accounts
from dyno.hosts.accounts import Account
from dyno.hosts.leftovers import UndoError, remove_shared_memory
from dyno.hosts.ports import free_port
from dyno.hosts.process import Family
from dyno.model.base import Frozen, KeyProblem, Killed, NeverValid, Refused, RunError, Scalar
from dyno.model.counters import Counters
from dyno.model.endpoint import Endpoint
from dyno.systems.base import AfterLoad, System, files_below

USER = PASSWORD = DATABASE = "dyno"
WHO: Mapping[str, str] = {"user": USER, "password": PASSWORD, "database": DATABASE}
"""Of an endpoint, for clients."""
"""The account that workloads come as, from this machine alone. It has rights on its own database, and may look at what
the server says of itself."""

_LONGEST_SOCKET_PATH = 107  # sun_path of unix(7) has 108 bytes, and ends in a zero
_SIZE = re.compile(r"(?P<number>\d+) *(?P<unit>[KMGTPkmgtp]i?[Bb])")
_SETTING = re.compile(r"[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)?")
_LIKE_AN_OPTION = 0.75  # as `primary` and `primaries` are; no two settings of servers are so like an option
_LOOK_EVERY_S = 0.02
_PATIENCE_S = 1.0  # with whoever is there and says nothing; doubled each time, for a server that is slow
_LAST_LINES = 3
_REFUSES_SETTING = re.compile(
    # MySQL and MariaDB
    "unknown (variable|option|suffix)|ambiguous option|error while setting value|option .* requires an argument|"
    # PostgreSQL
    "unrecognized configuration parameter|invalid value for parameter|is outside the valid range for parameter",
    re.IGNORECASE,
)
_FAMILY_LIMIT_S = 5.0
_DYING_TAKES_S = 5.0  # from the end of its connections to that of its process, which may have much to give back

Figures = dict[str, float]


def _setting(name: str) -> str:
    if _SETTING.fullmatch(name) is None:
        raise ValueError("is no name of a server's setting: they are lower-case letters, digits and '_'")
    return name


def _single(value: object) -> object:
    if isinstance(value, Mapping):
        raise ValueError(
            "settings of this kind of system have no keys below them; what is meant for another kind is set where a "
            "level chooses that (factors.<factor>.<level>.system.config)"
        )
    return value


class ServerOptions(Frozen):
    """dyno's own options; every other key is a setting of the server, passed on as it is and read back."""

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[Annotated[str, AfterValidator(_setting)], Annotated[Scalar, BeforeValidator(_single)]]

    ours: ClassVar[frozenset[str]] = frozenset()
    """Settings that are dyno's own to make."""
    known: ClassVar[frozenset[str]] = frozenset()
    """Settings that the server has, and by no means all of them: a name that is one slip off is none."""
    choices: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    """Of some settings all that they can be."""
    units: ClassVar[Mapping[str, str]] = {}
    """Units of sizes that the server does not know, with its own for each."""

    connect: Annotated[
        Literal["socket", "tcp"], Field(description="how clients reach it: a socket file, or TCP on 127.0.0.1")
    ] = "socket"
    stop: Annotated[
        Literal["clean", "kill"],
        Field(
            description="how it ends: asked to, or killed after the run and started again, which has to succeed; what "
            "is checked of the data is then checked on what it recovered"
        ),
    ] = "clean"

    after_load: AfterLoad = ()

    @property
    def settings(self) -> dict[str, Scalar]:
        """The server's own, as the study asks for them."""
        return dict(self.__pydantic_extra__ or {})

    @model_validator(mode="after")
    def _can_be_set(self) -> Self:
        """As far as that is known without the server, which would refuse to start."""
        for name, value in sorted(self.settings.items()):
            if name in self.ours:
                raise KeyProblem(name, f"{name} is dyno's own to set")
            if meant := self._meant(name):
                raise KeyProblem(name, f"unknown setting '{name}'; did you mean '{meant}'?")
            if (size := _SIZE.fullmatch(str(value))) and (own := self.units.get(size["unit"])):
                raise KeyProblem(name, f"the server would not take '{value}': write {size['number']}{own}")
            if (can_be := self.choices.get(name)) and not _is_among(value, can_be):
                raise KeyProblem(name, f"should be one of {', '.join(can_be)}; not '{value}'")
        return self

    def _meant(self, name: str) -> str | None:
        """What somebody meant by a name that is no setting: one that is a slip off, or like an option of dyno's own."""
        if name in self.known:
            return None
        slips = (each for each in sorted({*type(self).model_fields, *self.known}) if _is_slip(name, each))
        alike = get_close_matches(name, type(self).model_fields, n=1, cutoff=_LIKE_AN_OPTION)
        return next(slips, None) or next(iter(alike), None)


def _is_slip(name: str, meant: str) -> bool:
    """Whether they differ by one letter that is missing, too much or another, or by two that were exchanged."""
    least = min(len(name), len(meant))
    same = next((at for at in range(least) if name[at] != meant[at]), least)
    a, b = name[same:], meant[same:]
    return a != b and (a[1:] == b or a == b[1:] or a[1:] == b[1:] or a[:2][::-1] + a[2:] == b)


def _is_among(value: Scalar, choices: Sequence[str]) -> bool:
    """Also by its place among them, as servers take it."""
    text = str(value).upper()
    return text in choices or (text.isdigit() and int(text) < len(choices))


O = TypeVar("O", bound=ServerOptions)  # noqa: E741 - the options of one kind


class Closes(Protocol):
    """What counters are read by, as far as whoever asks for them is concerned."""

    def close(self) -> None:
        """Let go of it."""
        ...


@dataclass(frozen=True)
class Asking:
    """A `CounterSource` on a server that runs."""

    connection: Closes
    reads: Callable[[], Counters]
    has_ended: Callable[[], bool]

    def read(self) -> Counters:
        """By its connection."""
        return self.reads()

    def ended(self) -> bool:
        """Whether it has; its connections end before it does."""
        return self.has_ended()

    def close(self) -> None:
        """Close the connection."""
        self.connection.close()


class ServerSystem(System[O]):
    """A server in a data folder of its own, reached by a socket file or a free port of this machine alone."""

    program: ClassVar[str]
    """What its process is called in messages, logs and samples."""
    account: ClassVar[str]
    """The user that it runs as where dyno is root."""
    farewell: ClassVar[signal.Signals] = signal.SIGTERM
    """What asks it to end cleanly."""
    asked_to_end: ClassVar[int] = 0
    """The exit status of one that ended cleanly since it was asked to, besides 0."""
    undo_by: ClassVar[signal.Signals] = signal.SIGKILL
    """What ends it at once without leaving anything behind, its data aside."""
    first_of_child: ClassVar[str | None] = None
    """The function that each process it forks enters, and only such a process."""
    telling: ClassVar[str] = ""
    """A pattern of the first line of its log that says what went wrong; the last ones do where it is empty."""
    leaves_data_alone: ClassVar[frozenset[str]]
    """Settings that do not change what a loaded data set is made of; cells that differ in others load their own."""
    has_counters = True

    _running: Running | None = None
    _folder: Path | None = None
    _endpoint: Endpoint | None = None
    _asked: Mapping[str, Any] | None = None
    _effective: Mapping[str, Any] = {}
    _before: Figures = {}
    _said_before: int = 0
    _launch: Launch | None = None
    _limits: tuple[float, float] = (60.0, 60.0)  # of its start and of its readiness, in seconds
    _ended: tuple[int, ...] = ()
    """Its processes that ended, whose shared memory may still be there."""

    comes_back = False
    """Whether it is being started again on its data, and does not answer yet."""

    loading = False
    """Whether it was started to be loaded: `stop` then leaves nothing to be tidied up later."""

    @classmethod
    def reached_by(cls, options: O) -> str | None:
        """As the study says."""
        return options.connect

    @classmethod
    def why_not_valgrind(cls, options: O) -> str | None:
        """One that is killed tells nothing of what it counted; what it took to come back would be told in its place."""
        return (
            "stop has to be clean: a server that is killed does not tell what it counted"
            if options.stop == "kill"
            else None
        )

    # What each server says of itself

    @abstractmethod
    def programs(self) -> dict[str, Path]:
        """The programs that it needs. Raises RunError where one is missing, naming the package to install."""

    def words(self, program: str) -> list[str]:
        """What starts one of them, without arguments."""
        return [str(self.programs()[program])]

    def own_endpoint(self, folder: Path, endpoint: Endpoint) -> Endpoint:
        """Where dyno itself asks it when it comes up; `folder` has its socket."""
        return endpoint

    @abstractmethod
    def make_empty(self, folder: Path, limit: float) -> None:
        """Fill an empty folder, which the server's account owns, with a store that has the account and database."""

    @abstractmethod
    def command(self, folder: Path, port: int | None) -> list[str]:
        """What starts it; sockets and the like go to `folder`, `port` is None where it is reached by socket alone."""

    @abstractmethod
    def socket_file(self, folder: Path) -> Path:
        """The socket file that it makes there."""

    @abstractmethod
    def marker(self, folder: Path) -> str:
        """That one of the command's arguments which names this folder."""

    def further_ways(self) -> dict[str, Any]:
        """Of its endpoint, how else it is reached since it was started, and by whom."""
        return {}

    def table_design(self) -> Mapping[str, Any] | None:
        """See `Endpoint.tables`."""
        return None

    @abstractmethod
    def is_ours(self, connection: sql.Connection, folder: Path) -> bool:
        """Whether who answers was started with this folder: accounts and databases are called alike everywhere."""

    @abstractmethod
    def read_settings(self, connection: sql.Connection) -> tuple[dict[str, Any], dict[str, Any]]:
        """What was asked for, in the server's own terms, and what is effective: that, and what matters besides."""

    def read_cached(self, connection: sql.Connection, cold: bool) -> dict[str, Any]:
        """See `cached`."""
        return {}

    @abstractmethod
    def read_counters(self, connection: sql.Connection) -> Figures:
        """Those of its own counters that only grow."""

    @abstractmethod
    def read_sizes(self, connection: sql.Connection) -> Figures:
        """Those of its figures that are as they are now."""

    @abstractmethod
    def reader(self, endpoint: Endpoint, limit: float) -> tuple[Closes, Callable[[], Counters]]:
        """A connection of its own, and what reads by it all that the server counts: again and again, so at little cost.

        Where the server counts what it did for this connection too, as little as can be.
        """

    # The life

    @property
    def log_name(self) -> str:
        """What the files among the logs are called that it writes to."""
        return self.program

    @property
    def template_name(self) -> str:
        """What servers have in common whose empty stores are alike where their settings are."""
        return self.kind

    @property
    def running(self) -> Running | None:
        """Its process, between its start and its end."""
        return self._running

    def data_files(self) -> list[Path]:
        """Where they are now: while it runs its deployment may have them elsewhere."""
        return files_below(self.place.data if self._running is None else self.deployment.data_while_running())

    def said(self) -> str:
        """What it wrote to its log since this start."""
        log = self._log()
        return log.read_bytes()[self._said_before :].decode(errors="replace") if log.exists() else ""

    def data_key(self) -> dict[str, Any]:
        """Every setting that may shape what is stored."""
        given = self.options.settings.items()
        return {name: value for name, value in given if name not in self.leaves_data_alone}

    def after_load(self) -> tuple[str, ...]:
        """As the account of workloads."""
        return self.options.after_load

    def provision(self, limit: float) -> dict[str, str]:
        """Find the programs, the account to run them as, and whether it can reach the data."""
        self.programs()
        account = self._account()
        if account is not None:
            for own in dict.fromkeys((self.place.data.parent, self._templates())):
                # Ours to open, and nobody chose its mode.
                own.chmod(own.stat().st_mode | 0o011)
                if barrier := account.barrier(own / "data"):
                    raise RunError(
                        f"user {account.name}, as whom {self.program} runs, may not enter {barrier}, below which the "
                        f"data are to be: `chmod a+x {barrier}`, or choose another place with --work"
                    )
        said = self.place.host.run(
            [*self.words(self.program), "--version"], limit=limit, log=self.place.logs / f"{self.log_name}-version"
        )
        found = re.search(r"\d+\.\d+(\.\d+)*(-[A-Za-z]+)?", said)
        return {self.kind: found[0] if found else said.strip()}

    def prepare(self, limit: float) -> None:
        """A copy of the empty store that was made for the first data set of this key."""
        host, deadline = self.place.host, time.monotonic() + limit
        host.remove_tree(self.place.data)
        key = hashlib.sha256(json.dumps([self.kind, self.data_key()], sort_keys=True).encode()).hexdigest()[:16]
        templates = self._templates()
        template = templates / f"empty-{self.template_name}-{key}"
        if not template.exists():
            making = templates / f"{template.name}-{secrets.token_hex(4)}"
            making.mkdir(mode=0o700, parents=True)
            if account := self._account():
                accounts.give(making, account)
            try:
                self.make_empty(making, deadline - time.monotonic())
            except RunError as error:
                if _REFUSES_SETTING.search(str(error)):
                    raise Refused(*error.args) from error
                raise
            making.rename(template)
        host.copy_tree(template, self.place.data, reflink=False, limit=deadline - time.monotonic())

    def start(self, run: int, limit: float) -> None:
        """Start the process; whether it came up is for `ready` to see."""
        if not self.place.data.is_dir():
            raise RunError("there are no data to start on")
        self._asked = None
        self.loading = run == 0
        folder = self._new_folder()
        port = free_port() if self.options.connect == "tcp" else None
        self._launch = Launch(
            argv=tuple(self.command(folder, port)),
            log=self.place.logs / self.log_name,
            marker=self.marker(folder),
            data=self.place.data,
            folders=(folder,),
            undo_by=self.undo_by,
            account=self._account(),
            loading=self.loading,
            for_valgrind=self.for_valgrind(self.options),
            first_of_child=self.first_of_child,
        )
        self._limits = limit, self._limits[1]
        running = self._start(limit)
        where: dict[str, Any] = (
            {"socket": str(self.socket_file(folder))} if port is None else {"host": "127.0.0.1", "port": port}
        )
        self._endpoint = Endpoint(
            backend=self.backend,
            settings={**where, **WHO, **self.further_ways()},
            processes={self.program: running.pid},
            tables=self.table_design(),
        )

    def _start(self, limit: float) -> Running:
        assert self._launch is not None
        self._said_before = self._log().stat().st_size if self._log().exists() else 0
        try:
            self._running = self.deployment.start(self._launch, limit)
        except RunError:
            self._remove_shared_memory()
            self._remove_folder()
            raise
        return self._running

    def ready(self, limit: float) -> Endpoint:
        """Ask it until it answers; then see that what the study asks for is what it runs with."""
        if self._running is None or self._endpoint is None:
            raise RunError(f"{self.program} was not started")
        self._limits = self._limits[0], limit
        with self._answering(self._running, self._endpoint, limit) as connection:
            self.attest(connection)
            self._before = self.read_counters(connection)
        return self._endpoint

    def attest(self, connection: sql.Connection) -> None:
        """See that what the study asks for is what it runs with. Raises NeverValid."""
        asked, effective = self.read_settings(connection)
        self._asked, self._effective = asked, {**effective, "connect": self.options.connect}
        for name, value in asked.items():
            if effective.get(name) != value:
                raise NeverValid(
                    f"{name} is {effective.get(name, 'not a setting that the server shows')}, the study asks for "
                    f"{value}: the setting was not effective"
                )

    def asked(self) -> dict[str, Any]:
        """Every setting that the study makes, in the server's own terms as soon as it was ready."""
        return dict(self.options.settings if self._asked is None else self._asked)

    def settings(self) -> dict[str, Any]:
        """What the server said when it was ready."""
        return dict(self._effective)

    def counters(self, limit: float) -> Asking | None:
        """By the same way as clients; None where it does not run, and while it comes back."""
        running, endpoint = self._running, self._endpoint
        if running is None or endpoint is None or self.comes_back or running.wait(0) is not None:
            return None
        connection, reads = self.reader(endpoint, limit)
        return Asking(connection, reads, lambda: running.wait(_DYING_TAKES_S) is not None)

    def cached(self, cold: bool) -> dict[str, Any]:
        """As the server itself says."""
        if self._endpoint is None:
            return {}
        with sql.connect(self._endpoint, limit=self._limits[1]) as connection:
            return self.read_cached(connection, cold)

    def status(self) -> dict[str, float]:
        """Counters since it was ready, and sizes as they are now; where it is to be killed, what coming back took."""
        if self._running is None or self._endpoint is None:
            return {}
        with sql.connect(self._endpoint, limit=30.0) as connection:
            now, sizes = self.read_counters(connection), self.read_sizes(connection)
        figures = {**{name: value - self._before.get(name, 0.0) for name, value in now.items()}, **sizes}
        if self.options.stop == "kill":
            figures["recovery_s"] = self._recover(self._running)
        return figures

    def _recover(self, running: Running) -> float:
        """Kill it and start it again on what is left, where it was; seconds from the start to an answer."""
        started, _ = self._limits
        family = Family(running.pid)
        status = self.end_process(started)
        if status != -signal.SIGKILL:
            raise self._died(running, status, "had ended by itself")
        return self.come_back(family, started, self._limits[1])

    def come_back(self, family: Family, limit: float, ready: float) -> float:
        """Start it again on what its process left, once the children of that are gone; seconds until it answers."""
        if not family.gone_within(limit):
            raise RunError(f"{self.program} was killed, and what it had started did not end within {limit:g} s")
        begun = time.monotonic()
        with self.coming_back():
            again = self.start_again(limit)
            assert self._endpoint is not None
            with self._answering(again, self._endpoint, ready):
                return time.monotonic() - begun

    @contextmanager
    def coming_back(self) -> Iterator[None]:
        """Meanwhile it may live, and is not expected to answer."""
        self.comes_back = True
        try:
            yield
        finally:
            self.comes_back = False

    def end_process(self, limit: float, farewell: signal.Signals = signal.SIGKILL) -> int:
        """End its process and let it come back by `start_again`, where it was; its exit status. Raises RunError."""
        assert self._running is not None
        try:
            status = self.deployment.end(self._running, limit=limit, farewell=farewell)
        except UndoError as error:
            raise RunError(f"{self.program}: {error}") from error
        self._ended = (*self._ended, self._running.pid)
        self._running = None
        return status

    def start_again(self, limit: float) -> Running:
        """Start it on the data that its process left, with the same way in; whether it came up is to be seen."""
        running = self._start(limit)
        assert self._endpoint is not None
        self._endpoint = replace(self._endpoint, processes={self.program: running.pid})
        return running

    def stop(self, limit: float) -> None:
        """Ask it to end cleanly. Raises RunError where it had to be killed, or had ended by itself."""
        running = self._running
        if running is None:
            return
        early = running.wait(0)
        begun = time.monotonic()
        status = self._end(running, limit)
        if early is not None:
            raise self._died(running, early, "had ended by itself")
        if status == -signal.SIGKILL and time.monotonic() - begun >= limit:
            raise RunError(f"{self.program} did not end within {limit:g} s and was killed")
        # Told before it could listen to it, it ends by the signal itself; nothing was done to its data then.
        if status not in (0, self.asked_to_end) and not (status == -self.farewell and self._asked is None):
            raise self._died(running, status, "ended")

    def _died(self, running: Running, status: int, ended: str, when: str = "", besides: str = "") -> RunError:
        """How it came to its end; who is killed says nothing of it, and the last words are of something else."""
        if status == -signal.SIGKILL:
            return Killed(f"{self.program} was killed by SIGKILL{when}")
        how = f"by {signal.Signals(-status).name}" if status < 0 else f"with status {status}"
        said = running.complaint(_LAST_LINES, self.telling)
        why = f"{self.program} {ended} {how}{when}: {said}{besides}"
        return Refused(why) if _REFUSES_SETTING.search(said) else RunError(why)

    def _end(self, running: Running, limit: float) -> int:
        self._running = self._endpoint = None
        family = Family(running.pid)
        self._ended = (*self._ended, running.pid)
        try:
            status = self.deployment.end(running, limit=limit, farewell=self.farewell)
            family.gone_within(_FAMILY_LIMIT_S)
            self._remove_shared_memory()
            return status
        except UndoError as error:
            raise RunError(f"{self.program}: {error}") from error
        finally:
            self._remove_folder()

    def _remove_shared_memory(self) -> None:
        """Of those too that were killed and whose successor ended before it could take theirs over."""
        ended, self._ended = self._ended, ()
        for pid in ended:
            remove_shared_memory(pid)

    def _remove_folder(self) -> None:
        folder, self._folder = self._folder, None
        if folder is not None:
            try:
                self.place.host.remove_temporary_folder(folder)
            except UndoError as error:
                raise RunError(f"{self.program}: {error}") from error

    def _log(self) -> Path:
        return self.place.logs / f"{self.log_name}.stderr"

    def _templates(self) -> Path:
        folder = self.place.shared or self.place.data.parent
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    def _account(self) -> Account | None:
        try:
            return accounts.for_server(self.account)
        except KeyError:
            raise RunError(
                f"there is no user {self.account}, as whom {self.program} is to run since it refuses root: "
                f"install {self.program} from its package, or run dyno as another user"
            ) from None

    def _new_folder(self) -> Path:
        """A folder for sockets: a short path, since a socket's may have 107 bytes and the data's may be longer."""
        for parent in (Path(tempfile.gettempdir()), Path("/tmp")):
            folder = parent / f"dyno-{secrets.token_hex(4)}"
            if len(str(self.socket_file(folder)).encode()) <= _LONGEST_SOCKET_PATH:
                break
        else:
            raise RunError(f"no path below {parent} is short enough for a socket (107 bytes)")
        self._folder = self.place.host.temporary_folder(folder)
        folder.chmod(0o755)
        if account := self._account():
            accounts.give(folder, account)
        return folder

    def _answering(self, running: Running, endpoint: Endpoint, limit: float) -> sql.Connection:
        assert self._folder is not None
        deadline, patience = time.monotonic() + limit, _PATIENCE_S
        asked = self.own_endpoint(self._folder, endpoint)
        while True:
            # A port is chosen before the server takes it, and another may be quicker.
            try:
                with sql.connect(asked, limit=max(min(deadline - time.monotonic(), patience), 0.1)) as connection:
                    if not self.is_ours(connection, self._folder):
                        raise sql.SqlError(f"another server answers on port {asked.settings.get('port')}")
                return sql.connect(asked, limit=max(deadline - time.monotonic(), 0.1))
            except sql.SqlError as error:
                # Waits for its end and not for time to pass: a server that dies is noticed at once.
                if (status := running.wait(_LOOK_EVERY_S)) is not None:
                    self._end(running, 0.0)
                    raise self._died(running, status, "ended", " as it started", _taken(endpoint)) from error
                if time.monotonic() > deadline:
                    raise RunError(f"{self.program} did not answer within {limit:g} s: {error}") from error
                patience *= 2


def _taken(endpoint: Endpoint) -> str:
    """That somebody else has the port of a server that ended, where it is so."""
    if (port := endpoint.settings.get("port")) is None:
        return ""
    try:
        socket.create_connection((endpoint.settings["host"], port), timeout=_PATIENCE_S).close()
    except OSError:
        return ""
    return f"; another process listens on its port, {port}"


def newest(pattern: str, folder: str = "/") -> Path | None:
    """The file of that pattern whose path has the highest number in it; None where there is none."""
    found = sorted(Path(folder).glob(pattern), key=lambda path: [int(n) for n in re.findall(r"\d+", str(path))])
    return found[-1] if found else None


_UNITS = {"": 0, "K": 1, "M": 2, "G": 3, "T": 4, "P": 5, "E": 6}


def binary_number(value: Scalar) -> int | None:
    """`128M` as MariaDB reads it; None where it is no whole number."""
    found = re.fullmatch(r"(-?\d+)([KMGTPE]?)", str(value).strip().upper())
    return None if found is None else int(found[1]) << (10 * _UNITS[found[2]])


def truth(value: Scalar) -> bool | None:
    """A switch in any of the spellings that servers take; None where it is none."""
    words: Sequence[tuple[bool, tuple[str, ...]]] = (
        (True, ("on", "true", "yes", "1")),
        (False, ("off", "false", "no", "0")),
    )
    return next((meaning for meaning, spelt in words if str(value).strip().lower() in spelt), None)
