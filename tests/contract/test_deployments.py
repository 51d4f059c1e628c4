"""Every deployment with real servers: where their data are, how they end, and that nothing stays behind."""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from dyno import sql
from dyno.deployments.base import Deployment, Launch, Recipe, Running, Site
from dyno.deployments.layered import Layered
from dyno.deployments.native import Native
from dyno.deployments.volume import Volume
from dyno.hosts import LocalHost, accounts, leftovers
from dyno.hosts.programs import find
from dyno.model.base import RunError
from dyno.model.endpoint import Endpoint
from dyno.model.study import Machine
from tests.making import until

LIMIT_S = 60.0
ROOT = os.geteuid() == 0
Given = tuple[type[Deployment], str | None]
KINDS: list[Given] = [
    (Native, None),
    (Layered, "docker"),
    (Volume, "docker"),
    (Layered, "podman"),
    (Volume, "podman"),
]
MARIADB = find("mariadbd")
SH, SLEEP = Path("/usr/bin/sh"), Path("/usr/bin/sleep")
# Its arguments are the data and a folder beside them. What it does at a TERM is put in.
SERVER = '{}; echo "the data are $(cat "$1/seen")"; echo woe >&2; echo x >>"$1/starts"; : >"$2/up"; {}'
WAITING = "sleep 1000 & wait"
CATCHING = SERVER.format('trap "exit 3" TERM', WAITING)


def name_of(given: Given) -> str:
    kind, engine = given
    return kind.kind + (f"-{engine}" if engine else "")


def why_not(kind: type[Deployment], engine: str | None) -> str | None:
    if kind.in_container and not ROOT:
        return "containers need root"
    if engine is not None and find("dockerd" if engine == "docker" else engine) is None:
        return f"{engine} is not installed (make servers)"
    return None


@pytest.fixture(params=KINDS, ids=name_of)
def given(request: pytest.FixtureRequest) -> Given:
    kind, engine = request.param
    if why := why_not(kind, engine):
        pytest.skip(why)
    return kind, engine


Make = Callable[..., Deployment]


@pytest.fixture
def make(host: LocalHost, workspace: Path) -> Iterator[Make]:
    """Gives a deployment that was provisioned; it is destroyed after the test."""
    made: list[Deployment] = []

    def new(kind: type[Deployment], engine: str | None, recipe: Recipe | None = None) -> Deployment:
        deployment = kind(site(host, workspace, kind, engine))
        made.append(deployment)
        deployment.provision(recipe or Recipe("small", (SH, SLEEP, Path("/usr/bin/cat"))), LIMIT_S)
        return deployment

    yield new
    for deployment in made:
        deployment.destroy()


def site(host: LocalHost, workspace: Path, kind: type[Deployment], engine: str | None) -> Site:
    # A name that would mean something to an engine, a pattern or a shell: users have such folders.
    folder = workspace / "100% a,b:c?"
    folder.mkdir(parents=True)
    confinement = host.confine(Machine(), parent=kind.in_container)
    return Site(host, folder, workspace / "work", workspace / "logs", confinement, engine)


def launch(deployment: Deployment, script: str = CATCHING) -> Launch:
    deployment.data.mkdir(exist_ok=True)
    (deployment.data / "seen").write_text("here")
    beside = deployment.site.work / f"beside-{secrets.token_hex(6)}"
    beside.mkdir(parents=True)
    argv = (str(SH), "-c", script, "sh", str(deployment.data), str(beside))
    return Launch(argv, deployment.site.logs / "server", str(beside), deployment.data, folders=(beside,))


def started(deployment: Deployment, script: str = CATCHING) -> tuple[Running, Path]:
    """A server that does what it is to do, and the folder beside its data."""
    asked = launch(deployment, script)
    running = deployment.start(asked, LIMIT_S)
    until((asked.folders[0] / "up").exists)
    return running, asked.folders[0]


def mounts() -> set[str]:
    return {line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()}


def groups_below(name: str | None) -> list[Path]:
    """Control groups that a container had below a group, in every hierarchy."""
    if name is None:
        return []
    found = []
    for hierarchy in (leftovers.CGROUPS, *leftovers.CGROUPS.glob("*")):
        found += [each for each in hierarchy.glob(f"{name.strip('/')}/*") if each.is_dir() and each.name != "native"]
    return found


def test_its_data_are_there_for_the_server_and_for_the_host(given: Given, make: Make) -> None:
    deployment = make(*given)
    running, _ = started(deployment)
    assert (deployment.data_while_running() / "seen").read_text() == "here"
    assert (deployment.data_while_running() / "starts").read_text() == "x\n"
    assert running.wait(0) is None
    assert deployment.end(running, limit=LIMIT_S) == 3
    assert (deployment.site.logs / "server.stdout").read_text() == "the data are here\n"
    assert running.complaint() == "woe"
    assert deployment.data_while_running() == deployment.data
    assert sorted(path.name for path in deployment.data.iterdir()) == ["seen", "starts"]


def test_it_starts_again_on_the_data_that_the_last_one_left(given: Given, make: Make) -> None:
    deployment = make(*given)
    for number in range(2):
        running, _ = started(deployment)
        deployment.end(running, limit=LIMIT_S)
        assert (deployment.data / "starts").read_text() == "x\n" * (number + 1)


def test_a_signal_that_it_does_not_provide_for_ends_it_as_it_ends_any_process(given: Given, make: Make) -> None:
    # The first process of a process-id namespace is not ended by such a signal.
    deployment = make(*given)
    running, _ = started(deployment, SERVER.format(":", WAITING))
    assert deployment.end(running, limit=LIMIT_S) == -signal.SIGTERM


def test_one_that_does_not_end_is_killed(given: Given, make: Make) -> None:
    deployment = make(*given)
    running, _ = started(deployment, SERVER.format('trap "" TERM', WAITING))
    assert deployment.end(running, limit=0.2) == -signal.SIGKILL
    assert not Path(f"/proc/{running.pid}").exists()


def test_that_it_ended_by_itself_is_seen_with_its_status(given: Given, make: Make) -> None:
    deployment = make(*given)
    running, beside = started(
        deployment, SERVER.format(":", 'while [ ! -e "$2/go" ]; do sleep 0.01; done; echo why >&2; exit 7')
    )
    (beside / "go").touch()
    assert running.wait(LIMIT_S) == 7
    assert running.wait(0) == 7
    assert running.complaint() == "why"
    assert deployment.end(running, limit=LIMIT_S) == 7
    assert (deployment.data / "seen").exists()


def test_that_it_was_killed_is_seen(given: Given, make: Make) -> None:
    deployment = make(*given)
    running, _ = started(deployment)
    os.kill(running.pid, signal.SIGKILL)
    assert running.wait(LIMIT_S) == -signal.SIGKILL
    assert deployment.end(running, limit=LIMIT_S) == -signal.SIGKILL
    assert (deployment.data / "seen").exists()


def test_a_program_that_is_not_there_is_told_and_the_data_are_back(given: Given, make: Make) -> None:
    deployment = make(*given)
    wrong = launch(deployment)
    wrong = replace(wrong, argv=("/usr/bin/no-such-server", *wrong.argv[1:]))
    with pytest.raises(RunError, match="no-such-server"):
        deployment.start(wrong, LIMIT_S)
    assert (deployment.data / "seen").exists()
    assert deployment.end(started(deployment)[0], limit=LIMIT_S) == 3


def test_its_facts_have_the_same_keys_everywhere(given: Given, make: Make) -> None:
    deployment = make(*given)
    running, _ = started(deployment)
    facts = deployment.facts(running)
    deployment.end(running, limit=LIMIT_S)
    assert set(facts) == {
        "network", "namespaces", "seccomp", "no_new_privs", "capabilities", "capabilities.bound", "security_label",
        "cpus.allowed", "cpus.limit", "memory.limit", "oom_score_adj", "nofile", "memlock", "root.file_system",
        "data.file_system", "data.options", "data.device", "program.sha256",
    }  # fmt: skip
    assert facts["network"] == "host"
    assert facts["data.device"] not in ("", "overlay")
    overlaid = deployment.kind == "container-layered"
    assert (facts["data.file_system"] == "overlay") == overlaid
    assert (facts["root.file_system"] == "overlay") == deployment.in_container
    assert (facts["seccomp"] == "filter") == deployment.in_container
    assert ("pid" in str(facts["namespaces"])) == deployment.in_container


@pytest.fixture(scope="module")
def template(shared: Path) -> Path:
    """MariaDB's empty store, owned by the account that is to run it."""
    if not MARIADB:
        pytest.skip("MariaDB is not installed (make servers)")
    folder = shared / "template"
    folder.mkdir()
    words = ["mariadb-install-db", "--no-defaults", f"--datadir={folder}", "--skip-test-db", "--skip-name-resolve"]
    words += ["--auth-root-authentication-method=normal", *(["--user=mysql"] if ROOT else [])]
    subprocess.run(words, check=True, capture_output=True)
    return folder


def test_mariadb_runs_in_it_as_its_account_and_keeps_what_it_was_told(given: Given, make: Make, template: Path) -> None:
    files = tuple(path for path in map(Path, ("/usr/share/mysql", "/usr/lib/mysql/plugin")) if path.exists())
    assert MARIADB is not None
    deployment = make(*given, Recipe("MariaDB 10", (MARIADB,), files, "mysql" if ROOT else None))
    deployment.site.host.copy_tree(template, deployment.data, reflink=False, limit=LIMIT_S)
    account = accounts.for_server("mysql")
    for number in range(2):
        sockets = Path(tempfile.mkdtemp(prefix="dyno-five-c-"))
        if account:
            accounts.give(sockets, account)
        marker = f"--socket={sockets}/s"
        argv = [str(MARIADB), "--no-defaults", f"--datadir={deployment.data}", "--skip-networking", marker]
        argv += [f"--pid-file={sockets}/pid"]
        log = deployment.site.logs / "mariadbd"
        asked = Launch(tuple(argv), log, marker, deployment.data, (sockets,), account=account)
        running = deployment.start(asked, LIMIT_S)
        with answer(running, sockets / "s") as connection:
            if number == 0:
                connection.rows("CREATE DATABASE kept")
                connection.rows("CREATE TABLE kept.it (number INT PRIMARY KEY) ENGINE=InnoDB SELECT 7 AS number")
            assert connection.value("SELECT number FROM kept.it") == 7
            assert (deployment.data_while_running() / "kept" / "it.ibd").stat().st_size > 0
            status = Path(f"/proc/{running.pid}/status").read_text()
            assert account is None or f"Uid:\t{account.uid}" in status
        assert deployment.end(running, limit=LIMIT_S) == 0, running.complaint(5)
        shutil.rmtree(sockets)
    assert (deployment.data / "kept" / "it.ibd").exists()


def answer(running: Running, socket: Path) -> sql.Connection:
    """Asked until it answers, as long as it is there."""
    endpoint = Endpoint(backend="mysql", settings={"socket": str(socket), "user": "root", "database": "mysql"})
    for _ in range(int(LIMIT_S / 0.1)):
        try:
            return sql.connect(endpoint, limit=LIMIT_S)
        except sql.SqlError:
            assert running.wait(0.1) is None, running.complaint(5)
    raise AssertionError("it did not answer")


def test_nothing_of_it_stays(given: Given, host: LocalHost, workspace: Path) -> None:
    before = mounts()
    deployment = given[0](site(host, workspace, *given))
    deployment.provision(Recipe("small", (SH, SLEEP, Path("/usr/bin/cat"))), LIMIT_S)
    deployment.end(started(deployment)[0], limit=LIMIT_S)
    group = deployment.site.confinement.group
    assert [each for each in groups_below(group) if each.name != "conmon"] == []
    deployment.destroy()
    assert mounts() == before
    assert list(leftovers._processes_with(host._undo.token)) == []
