"""What every system that is a server must do besides, on the real servers."""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dyno import sql
from dyno.deployments.base import Site
from dyno.deployments.container import InContainer
from dyno.deployments.layered import Layered
from dyno.deployments.native import Native
from dyno.deployments.volume import Volume
from dyno.hosts import accounts, undo
from dyno.hosts.confinement import Confinement
from dyno.hosts.programs import find
from dyno.model.base import InvalidRun, RunError
from dyno.model.endpoint import Endpoint
from dyno.model.study import Machine
from dyno.systems import server as servers
from dyno.systems.base import Place
from dyno.systems.server import ServerSystem
from tests.contract.conftest import LIMIT_S
from tests.contract.test_systems import LEAST, ROOMS, SINGLE, options_of

SERVERS = sorted(name for name, kind in SINGLE.items() if issubclass(kind, ServerSystem))
# Of each: a setting that it rounds, one that it does not know, and one that it cannot start with.
ROUNDED = {
    "mariadb": {"max_connections": 3},
    "mysql": {"innodb_buffer_pool_size": "3M"},
    "postgresql": {"work_mem": "65kB", "shared_buffers": "33001kB"},
}
FATAL = {
    "mariadb": {"innodb_page_size": "5k"},
    "mysql": {"innodb_page_size": "5k"},
    "postgresql": {"max_connections": "many"},
}


def make(name: str, place: Place, **options: Any) -> ServerSystem[Any]:
    kind = ROOMS.systems[name]
    made = kind(options_of(kind, {**LEAST[name], **options}), place)
    assert isinstance(made, ServerSystem)
    return made


@pytest.fixture(params=SERVERS)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def server(name: str, place: Place) -> Iterator[ServerSystem[Any]]:
    made = make(name, place)
    made.provision(LIMIT_S)
    made.prepare(LIMIT_S)
    yield made
    with suppress(RunError):
        made.destroy()


def pid_of(endpoint: Endpoint) -> int:
    (pid,) = endpoint.processes.values()
    return pid


@pytest.mark.parametrize("connect", ["socket", "tcp"])
def test_it_answers_by_either_way_and_by_no_other(name: str, connect: str, place: Place) -> None:
    server = make(name, place, connect=connect)
    server.provision(LIMIT_S)
    server.prepare(LIMIT_S)
    server.start(1, LIMIT_S)
    endpoint = server.ready(LIMIT_S)
    assert ("socket" in endpoint.settings) == (connect == "socket")
    with sql.connect(endpoint, limit=LIMIT_S) as connection:
        assert connection.value("SELECT 6 * 7") == 42
        if name in ("mariadb", "mysql"):  # whichever of them starts removes temporary tables where it keeps its own
            assert connection.value("SELECT @@tmpdir") == str(server._folder)
    if connect == "tcp":  # any user of this machine could come by it
        for stranger in ("root", "postgres", "mysql", ""):
            entry = {**endpoint.settings, "user": stranger, "password": ""}
            with pytest.raises(sql.SqlError):
                sql.connect(Endpoint(endpoint.backend, entry), limit=5)
    server.destroy()


def test_its_socket_is_short_wherever_temporary_files_go(
    server: ServerSystem[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Paths of sockets are limited to 107 bytes, and users' folders are longer.
    long = tmp_path / ("x" * 60) / ("y" * 60)
    long.mkdir(parents=True)
    monkeypatch.setattr("tempfile.tempdir", str(long))
    server.start(1, LIMIT_S)
    server.ready(LIMIT_S)
    server.stop(LIMIT_S)


def test_a_setting_that_the_server_changed_makes_the_run_invalid(name: str, place: Place) -> None:
    server = make(name, place, **ROUNDED[name])
    server.provision(LIMIT_S)
    server.prepare(LIMIT_S)
    server.start(1, LIMIT_S)
    with pytest.raises(InvalidRun, match=r"\w+ is \d+, the study asks for \d+: the setting was not effective"):
        server.ready(LIMIT_S)
    server.destroy()


@pytest.mark.parametrize("wrong", ["no_such_setting", "fatal"])
def test_a_server_that_does_not_start_is_a_run_error_with_its_last_words(
    name: str, wrong: str, server: ServerSystem[Any]
) -> None:
    bad = make(name, server.place, **(FATAL[name] if wrong == "fatal" else {wrong: 1}))
    bad.start(1, LIMIT_S)
    with pytest.raises(RunError, match=f"{server.program} ended with status [1-9].* as it started: .*(?i:error|fatal)"):
        bad.ready(LIMIT_S)
    bad.stop(LIMIT_S)


def test_a_server_that_does_not_answer_in_time_is_a_run_error(server: ServerSystem[Any]) -> None:
    server.start(1, LIMIT_S)
    assert server.running is not None
    pid = server.running.pid
    os.kill(pid, signal.SIGSTOP)
    with pytest.raises(RunError, match=f"{server.program} did not answer within 0 s"):
        server.ready(0.0)
    os.kill(pid, signal.SIGCONT)


def test_a_server_that_died_during_the_run_is_a_run_error_when_it_is_stopped(server: ServerSystem[Any]) -> None:
    server.start(1, LIMIT_S)
    pid = pid_of(server.ready(LIMIT_S))
    os.kill(pid, signal.SIGKILL)
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    with pytest.raises(RunError, match=r"was killed by SIGKILL$"):
        server.stop(LIMIT_S)
    server.stop(LIMIT_S)


def test_a_server_that_does_not_end_in_time_is_killed_and_the_run_fails(server: ServerSystem[Any]) -> None:
    server.start(1, LIMIT_S)
    pid = pid_of(server.ready(LIMIT_S))
    segments = posix_segments(pid)
    assert bool(segments) is (server.kind == "postgresql")
    os.kill(pid, signal.SIGSTOP)
    with pytest.raises(RunError, match=r"did not end within 0.1 s and was killed"):
        server.stop(0.1)
    assert shared_memory(pid) == set()
    assert not any(each.exists() for each in segments)
    assert not Path(f"/proc/{pid}").exists()


LATE = [*((name, "native") for name in SERVERS), ("mariadb", "container-volume")]


@pytest.fixture(params=LATE, ids="-".join)
def late(request: pytest.FixtureRequest, place: Place, workspace: Path) -> Iterator[ServerSystem[Any]]:
    """A server that comes to its port too late, natively and, one of them, in a container."""
    name, where = request.param
    with ExitStack() as stack:
        if where == "container-volume":
            if os.geteuid() != 0 or find("dockerd") is None:
                pytest.skip("containers need root and docker (make servers)")
            (folder := workspace / "site").mkdir()
            confinement = place.host.confine(Machine(), parent=True)
            deployment = Volume(Site(place.host, folder, workspace / "work", place.logs, confinement, "docker"))
            stack.callback(deployment.destroy)
            place = replace(place, data=deployment.data, deployment=deployment)
        made = make(name, place, connect="tcp")
        made.provision(LIMIT_S)
        if where == "container-volume":
            made.deployment.provision(made.recipe(), LIMIT_S)
        made.prepare(LIMIT_S)
        stack.callback(made.stop, LIMIT_S)
        yield made


@pytest.fixture
def early(late: ServerSystem[Any], workspace: Path) -> Iterator[tuple[Endpoint, sql.Connection]]:
    """Another session's server, as dyno starts all of its kind, with a table of its own."""
    (workspace / "early").mkdir()
    logs = workspace / "early-logs"
    logs.mkdir()
    place = replace(late.place, data=workspace / "early" / "live", logs=logs, deployment=None)
    made = make(late.kind, place, connect="tcp")
    made.provision(LIMIT_S)
    made.prepare(LIMIT_S)
    made.start(1, LIMIT_S)
    try:
        endpoint = made.ready(LIMIT_S)
        with sql.connect(endpoint, limit=LIMIT_S) as connection:
            connection.rows("CREATE TABLE others (k INTEGER PRIMARY KEY)")
            yield endpoint, connection
    finally:
        made.stop(LIMIT_S)


def fails_for_its_port(late: ServerSystem[Any], port: int) -> None:
    late.start(1, LIMIT_S)
    folder, running = late._folder, late.running
    assert folder is not None
    assert running is not None
    how = f"^{late.program} ended with status 1 as it started: .+; another process listens on its port, {port}$"
    with pytest.raises(RunError, match=how):
        late.ready(LIMIT_S)
    assert late.running is None
    assert not Path(f"/proc/{running.pid}").exists()
    assert not folder.exists()


def test_a_server_of_dynos_that_has_its_port_is_not_taken_for_it(
    late: ServerSystem[Any], early: tuple[Endpoint, sql.Connection], monkeypatch: pytest.MonkeyPatch
) -> None:
    # Two sessions chose the same port, and the second would have driven the data of the first: all else is alike.
    endpoint, others = early
    monkeypatch.setattr(servers, "free_port", lambda: endpoint.settings["port"])
    fails_for_its_port(late, endpoint.settings["port"])
    assert others.value("SELECT count(*) FROM others") == 0


def test_whoever_has_its_port_and_says_nothing_is_named_at_once(
    late: ServerSystem[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as mute:
        port = mute.getsockname()[1]
        monkeypatch.setattr(servers, "free_port", lambda: port)
        fails_for_its_port(late, port)


def stopped_before_it_ends(late: ServerSystem[Any]) -> int:
    """Its process, stopped while it begins: on a busy machine it may have ended before that."""
    for _ in range(20):
        late.start(1, LIMIT_S)
        assert late.running is not None
        pid = late.running.pid
        os.kill(pid, signal.SIGSTOP)
        if late.running.wait(0.05) is None:
            return pid
        with pytest.raises(RunError):
            late.ready(LIMIT_S)
    raise AssertionError("it always ended before it could be stopped")


def test_as_long_as_it_lives_it_is_waited_for_though_another_answers(
    late: ServerSystem[Any], early: tuple[Endpoint, sql.Connection], monkeypatch: pytest.MonkeyPatch
) -> None:
    port = early[0].settings["port"]
    monkeypatch.setattr(servers, "free_port", lambda: port)
    pid = stopped_before_it_ends(late)
    told = f"did not answer within 0.5 s: another server answers on port {port}"
    if late.own_endpoint(Path(), early[0]) != early[0]:
        told = "did not answer within 0.5 s"  # it is asked by its socket
    with pytest.raises(RunError, match=told):
        late.ready(0.5)
    os.kill(pid, signal.SIGKILL)
    with suppress(RunError):
        late.stop(LIMIT_S)


def test_its_counters_are_of_the_run_alone(server: ServerSystem[Any]) -> None:
    counter = {"mariadb": "questions", "mysql": "questions", "postgresql": "wal.wal_records"}[server.kind]
    server.start(1, LIMIT_S)
    with sql.connect(server.ready(LIMIT_S), limit=LIMIT_S) as connection:
        connection.rows("CREATE TABLE t (k INTEGER PRIMARY KEY)")
        for k in range(20):
            connection.rows(f"INSERT INTO t VALUES ({k})")
    first = server.status()[counter]
    assert first >= 20
    server.stop(LIMIT_S)
    server.start(2, LIMIT_S)
    server.ready(LIMIT_S)
    assert server.status()[counter] < first
    server.stop(LIMIT_S)
    server.check(LIMIT_S)


def test_damage_of_a_page_is_found_after_the_run(server: ServerSystem[Any]) -> None:
    server.start(1, LIMIT_S)
    with sql.connect(server.ready(LIMIT_S), limit=LIMIT_S) as connection:
        connection.rows("CREATE TABLE damaged (k INTEGER PRIMARY KEY, v VARCHAR(200))")
        rows = ",".join(f"({k}, '{'x' * 200}')" for k in range(2000))
        connection.rows(f"INSERT INTO damaged VALUES {rows}")
        if server.backend == "mysql":
            files = [server.place.data / "dyno" / "damaged.ibd"]
        else:
            files = [server.place.data / connection.value("SELECT pg_relation_filepath('damaged')")]
    server.stop(LIMIT_S)
    server.check(LIMIT_S)
    whole = bytearray(files[0].read_bytes())
    whole[4 * 16384 + 5000 : 4 * 16384 + 5100] = b"\xa5" * 100
    files[0].write_bytes(whole)
    with pytest.raises(RunError, match=r"(innochecksum|pg_checksums).* ended with status 1"):
        server.check(LIMIT_S)


def test_a_journal_that_nobody_holds_ends_it_and_removes_its_socket(server: ServerSystem[Any]) -> None:
    server.start(1, LIMIT_S)
    endpoint = server.ready(LIMIT_S)
    folder, process = server._folder, server.running
    assert folder is not None
    assert process is not None
    # What `dyno clean` does with the journal of a session that was killed.
    undo._undo(undo.Change("server", {"marker": server.marker(folder), "undo_by": server.undo_by.name}))
    assert process.wait(LIMIT_S) is not None
    with pytest.raises(sql.SqlError):
        sql.connect(endpoint, limit=1)


def fill(server: ServerSystem[Any], rows: int = 20_000) -> None:
    """A table, loaded as the lab loads one."""
    server.start(0, LIMIT_S)
    with sql.connect(server.ready(LIMIT_S), limit=LIMIT_S) as connection:
        connection.rows("CREATE TABLE filled (k INTEGER PRIMARY KEY, v VARCHAR(100))")
        for first in range(0, rows, 5000):
            some = ",".join(f"({k}, '{'x' * 100}')" for k in range(first, first + 5000))
            connection.rows(f"INSERT INTO filled VALUES {some}")
    server.stop(LIMIT_S)


def test_after_a_cold_start_its_own_caches_hold_no_rows_and_reading_them_is_noticed(
    server: ServerSystem[Any],
) -> None:
    assert server.cached(cold=True) == {}
    fill(server)
    server.start(1, LIMIT_S)
    endpoint = server.ready(LIMIT_S)
    cold = server.cached(cold=True)
    assert cold["tables"] >= 1
    assert cold["tables_bytes"] <= 256 * 1024
    assert 0 <= cold["pool_dirty_bytes"] <= cold["pool_bytes"]
    with sql.connect(endpoint, limit=LIMIT_S) as connection:
        assert connection.value("SELECT count(*) FROM filled WHERE v LIKE 'x%'") == 20_000
    with pytest.raises(InvalidRun, match=r"caches are not cold: \d+ pages of the workload's \d+ tables"):
        server.cached(cold=True)
    assert server.cached(cold=False)["pool_bytes"] > cold["pool_bytes"] + 20_000 * 100
    server.stop(LIMIT_S)


def test_what_was_loaded_leaves_nothing_to_be_tidied_up_during_the_runs(place: Place) -> None:
    # The last transactions of a load were purged after each cold start, which read and changed pages of its tables.
    server = make("mariadb", place)
    server.provision(LIMIT_S)
    server.prepare(LIMIT_S)
    fill(server)
    server.start(1, LIMIT_S)
    server.ready(LIMIT_S)
    evidence = server.cached(cold=True)
    assert (evidence["tables_bytes"], evidence["pool_dirty_bytes"]) == (0, 0)
    server.destroy()


def posix_segments(pid: int) -> set[Path]:
    """Those that a process has mapped."""
    lines = Path(f"/proc/{pid}/maps").read_text().splitlines()
    return {Path(line.split()[-1]) for line in lines if "/dev/shm/" in line}


def shared_memory(creator: int) -> set[str]:
    """The segments that a process made."""
    lines = [line.split() for line in Path("/proc/sysvipc/shm").read_text().splitlines()[1:]]
    return {words[1] for words in lines if words[4] == str(creator)}


@pytest.mark.parametrize("connect", ["socket", "tcp"])
def test_one_that_is_to_be_killed_comes_back_with_all_that_was_committed(name: str, connect: str, place: Place) -> None:
    server = make(name, place, stop="kill", connect=connect)
    server.provision(LIMIT_S)
    server.prepare(LIMIT_S)
    server.start(1, LIMIT_S)
    endpoint = server.ready(LIMIT_S)
    with sql.connect(endpoint, limit=LIMIT_S) as connection:
        connection.rows("CREATE TABLE t (k INTEGER PRIMARY KEY)")
        connection.rows("INSERT INTO t VALUES (42)")
    pid = pid_of(endpoint)
    status = server.status()
    assert status["recovery_s"] > 0
    assert server.running is not None
    assert server.running.pid != pid
    assert not Path(f"/proc/{pid}").exists()
    # Workloads look at the store where it was.
    with sql.connect(endpoint, limit=LIMIT_S) as connection:
        assert connection.rows("SELECT k FROM t") == [(42,)]
    server.stop(LIMIT_S)
    server.check(LIMIT_S)
    assert shared_memory(pid) == set()
    server.destroy()


def test_one_that_was_to_be_killed_and_does_not_come_back_is_a_run_error(name: str, place: Place) -> None:
    server = make(name, place, stop="kill")
    server.provision(LIMIT_S)
    server.prepare(LIMIT_S)
    server.start(1, LIMIT_S)
    killed = server.ready(LIMIT_S).processes[server.program]
    gone = {"postgresql": "global/pg_control"}.get(name, "ibdata1")
    (place.data / gone).unlink()
    with pytest.raises(RunError, match=f"{server.program} ended .* as it started"):
        server.status()
    assert shared_memory(killed) == set()
    server.stop(LIMIT_S)
    server.destroy()


@pytest.mark.parametrize(
    ("name", "options", "engine"),
    [
        ("mariadb", {"innodb_linux_aio": "aio"}, "libaio"),
        ("mariadb", {"innodb_use_native_aio": False}, "none"),
        ("mysql", {}, "libaio"),
        ("postgresql", {}, "not told"),
    ],
)
def test_what_it_reads_and_writes_by_is_in_its_own_words(
    name: str, options: dict[str, Any], engine: str, place: Place
) -> None:
    default = make(name, place)
    default.provision(LIMIT_S)
    default.prepare(LIMIT_S)
    default.start(1, LIMIT_S)
    default.ready(LIMIT_S)
    assert default.facts()["io_engine"] in ("io_uring", "libaio", "none") or name == "postgresql"
    default.stop(LIMIT_S)
    # Into the same log: what an earlier start said does not count.
    server = make(name, place, **options)
    server.start(2, LIMIT_S)
    server.ready(LIMIT_S)
    assert server.facts() == {"io_engine": engine}
    server.destroy()


@pytest.mark.parametrize(
    ("name", "recorded"),
    [
        ("mariadb", {"innodb_log_file_size", "innodb_log_file_buffering"}),
        ("mysql", {"innodb_redo_log_capacity", "innodb_buffer_pool_instances"}),
    ],
)
def test_a_small_pool_is_as_small_as_asked_and_what_writes_depend_on_is_recorded(
    name: str, recorded: set[str], place: Place
) -> None:
    server = make(name, place, innodb_buffer_pool_size="64M", innodb_flush_method="fsync")
    server.provision(LIMIT_S)
    server.prepare(LIMIT_S)
    server.start(1, LIMIT_S)
    server.ready(LIMIT_S)
    settings = server.settings()
    assert settings["innodb_buffer_pool_size"] == 64 * 2**20
    assert settings["innodb_flush_method"].lower() == "fsync"
    assert recorded <= settings.keys()
    server.destroy()


def test_it_starts_within_the_limits_of_its_deployment(name: str, place: Place) -> None:
    cpu = min(os.sched_getaffinity(0))
    folder = place.data.parent
    site = Site(place.host, folder, folder, place.logs, Confinement(cpus=str(cpu)))
    server = make(name, replace(place, deployment=Native(site)))
    server.provision(LIMIT_S)
    server.prepare(LIMIT_S)
    server.start(1, LIMIT_S)
    pid = pid_of(server.ready(LIMIT_S))
    assert os.sched_getaffinity(pid) == {cpu}
    server.destroy()


def test_its_recipe_names_files_that_are_there_each_once(server: ServerSystem[Any]) -> None:
    recipe = server.recipe()
    assert type(server).brings_recipe
    assert recipe is not None
    everything = [*recipe.programs, *recipe.files]
    assert len(everything) == len(set(everything))
    assert all(path.is_absolute() and path.is_file() for path in everything)
    assert {Path(word) for word in server.words(server.program) if word.count("/") > 1 and ":" not in word} <= {
        *everything
    }


@pytest.mark.skipif(os.geteuid() != 0, reason="containers need root")
@pytest.mark.parametrize("kind", [Layered, Volume], ids=lambda kind: str(kind.kind))
def test_the_same_server_runs_in_a_container_and_comes_back_there_after_a_kill(
    name: str, kind: type[InContainer], place: Place, workspace: Path
) -> None:
    if find("dockerd") is None:
        pytest.skip("docker is not installed (make servers)")
    confinement = place.host.confine(Machine(), parent=True)
    folder = workspace / "site"
    folder.mkdir()
    deployment = kind(Site(place.host, folder, workspace / "work", place.logs, confinement, "docker"))
    place = replace(place, data=deployment.data, deployment=deployment)
    server = make(name, place, stop="kill")
    server.provision(LIMIT_S)
    try:
        deployment.provision(server.recipe(), LIMIT_S)
        server.prepare(LIMIT_S)
        fill(server, 5000)
        server.start(1, LIMIT_S)
        endpoint = server.ready(LIMIT_S)
        assert server.cached(cold=True)["tables_bytes"] <= 256 * 1024
        assert server.facts()["io_engine"] in ("io_uring", "libaio", "not told")
        assert all(path.is_relative_to(deployment.data_while_running()) for path in server.data_files())
        assert len(server.data_files()) > 20
        with sql.connect(endpoint, limit=LIMIT_S) as connection:
            assert connection.value("SELECT count(*) FROM filled") == 5000
            connection.rows("INSERT INTO filled VALUES (5000, 'last')")
        assert server.status()["recovery_s"] > 0
        with sql.connect(endpoint, limit=LIMIT_S) as connection:
            assert connection.value("SELECT v FROM filled WHERE k = 5000") == "last"
        server.stop(LIMIT_S)
        server.check(LIMIT_S)
        assert server.data_files()
        server.destroy()
    finally:
        server.stop(LIMIT_S)
        deployment.destroy()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root starts servers as other users")
def test_a_folder_that_keeps_its_user_out_is_named_before_anything_is_done(
    name: str, place: Place, tmp_path: Path
) -> None:
    closed = tmp_path / "closed"
    (closed / "work").mkdir(parents=True)
    closed.chmod(0o700)
    server = make(name, Place(place.host, closed / "work" / "live", place.logs, place.core))
    with pytest.raises(RunError, match=f"may not enter {closed}, .*--work"):
        server.provision(LIMIT_S)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root starts servers as other users")
def test_a_missing_user_is_named(name: str, place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    def nobody(_name: str) -> None:
        raise KeyError

    monkeypatch.setattr(accounts.pwd, "getpwnam", nobody)
    with pytest.raises(RunError, match=r"there is no user (mysql|postgres), as whom"):
        make(name, place).provision(LIMIT_S)
