"""Every deployment with real servers: where their data are, how they end, and that nothing stays behind."""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from dyno import sql
from dyno.deployments.base import ENVIRONMENT, Deployment, Launch, Recipe, Running, Site
from dyno.deployments.layered import Layered
from dyno.deployments.native import Native
from dyno.deployments.volume import Volume
from dyno.hosts import LocalHost, UndoJournal, accounts, leftovers, undo
from dyno.hosts.cgroups import controller
from dyno.hosts.containers import ENGINE_LOST
from dyno.hosts.programs import find
from dyno.model.base import RunError
from dyno.model.endpoint import Endpoint
from dyno.model.study import Disk, Machine
from tests.making import until

LIMIT_S = 60.0
WHOLE_DISK = Disk()
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
SMALL = Recipe("small", (SH, SLEEP, Path("/usr/bin/cat")))
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

    def new(
        kind: type[Deployment], engine: str | None, recipe: Recipe | None = None, disk: Disk = WHOLE_DISK
    ) -> Deployment:
        deployment = kind(site(host, workspace, kind, engine, disk))
        made.append(deployment)
        deployment.provision(recipe or SMALL, LIMIT_S)
        return deployment

    yield new
    for deployment in made:
        deployment.destroy()


def site(host: LocalHost, workspace: Path, kind: type[Deployment], engine: str | None, disk: Disk = WHOLE_DISK) -> Site:
    # A name that would mean something to an engine, a pattern or a shell: users have such folders.
    folder = workspace / "100% a,b:c?"
    folder.mkdir(parents=True)
    confinement = host.confine(Machine(disk=disk), parent=kind.in_container)
    held = host.limit_disk(confinement, disk.limits, folder) if disk.limits else None
    return Site(host, folder, workspace / "work", workspace / "logs", confinement, engine, held)


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


def mounted_in(folder: Path) -> list[str]:
    """Of all that is mounted anywhere, what is in a folder, or is it."""
    text = Path("/proc/self/mountinfo").read_text().splitlines()
    return [line for line in text if any(f"{word}/".startswith(f"{folder}/") for word in line.split()[3:5])]


def engine_folder(deployment: Deployment) -> Path:
    """Where an engine has what is there only while it runs; of one without, a folder in which nothing ever is."""
    engine = getattr(deployment, "_engine", None)
    return deployment.site.work / "none" if engine is None else engine.own


def is_alive(pid: int) -> bool:
    """Not where it only waits for its parent to hear that it ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


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
    assert not is_alive(running.pid)


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


@pytest.mark.skipif(not ROOT or controller("io") is None, reason="needs root and control groups for io")
def test_it_reads_no_more_a_second_than_the_disk_of_its_machine_gives(given: Given, make: Make) -> None:
    limit, size = 2**20, 2 * 2**20
    dd = Path("/usr/bin/dd")
    deployment = make(*given, replace(SMALL, name="dd", programs=(*SMALL.programs, dd)), Disk(read_bandwidth="1 MiB/s"))
    reads = (
        'read begun _ </proc/uptime; dd if="$1/large" of=/dev/null bs=64k iflag=direct 2>/dev/null; '
        'read ended _ </proc/uptime; echo "$begun $ended"; : >"$2/up"; sleep 1000 & wait'
    )
    deployment.data.mkdir()
    (deployment.data / "large").write_bytes(b"x" * size)
    with (deployment.data / "large").open("rb+") as file:
        os.fsync(file)
    running, _ = started(deployment, reads)
    facts = deployment.facts(running)
    deployment.end(running, limit=LIMIT_S)
    begun, ended = map(float, (deployment.site.logs / "server.stdout").read_text().split())
    # A tenth of a second is handed out at once.
    assert ended - begun >= size / limit - 0.2
    assert (facts["io.limit.read_bytes"], facts["io.limit.reads"]) == (limit, "none")


def test_its_facts_have_the_same_keys_everywhere(given: Given, make: Make) -> None:
    deployment = make(*given)
    running, _ = started(deployment)
    facts = deployment.facts(running)
    deployment.end(running, limit=LIMIT_S)
    assert set(facts) == {
        "network", "namespaces", "seccomp", "no_new_privs", "capabilities", "capabilities.bound", "security_label",
        "cpus.allowed", "cpus.limit", "memory.limit", "oom_score_adj", "environment", "nofile", "memlock",
        "root.file_system", "data.file_system", "data.options", "data.device", "program.sha256",
        "io.limit.reads", "io.limit.writes", "io.limit.read_bytes", "io.limit.write_bytes",
    }  # fmt: skip
    assert facts["network"] == "host"
    options = str(facts["data.options"]).split(",")
    assert len(options) == len(set(options)), "each is told once"
    assert facts["data.device"] not in ("", "overlay")
    overlaid = deployment.kind == "container-layered"
    assert (facts["data.file_system"] == "overlay") == overlaid
    assert (facts["root.file_system"] == "overlay") == deployment.in_container
    assert (facts["seccomp"] == "filter") == deployment.in_container
    assert ("pid" in str(facts["namespaces"])) == deployment.in_container


def test_its_environment_is_the_same_everywhere_and_none_of_dyno_s(
    given: Given, make: Make, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    # Natively a server had all of dyno's: an allocator of the user's, a language, a time zone. In a container none.
    monkeypatch.setenv("MALLOC_ARENA_MAX", "1")
    monkeypatch.setenv("LANG", "de_DE.UTF-8")
    with UndoJournal(tmp_path) as journal:
        place = site(LocalHost(journal), LocalHost(journal).temporary_folder(tmp_path / "own"), *given)
        deployment = given[0](place)
        try:
            deployment.provision(SMALL, LIMIT_S)
            running, _ = started(deployment)
            facts = deployment.facts(running)
            deployment.end(running, limit=LIMIT_S)
        finally:
            deployment.destroy()
    assert facts["environment"] == " ".join(sorted(f"{name}={value}" for name, value in ENVIRONMENT.items()))


def test_the_versions_of_the_engine_and_of_its_client_are_told(host: LocalHost, workspace: Path) -> None:
    if why := why_not(Volume, "docker"):
        pytest.skip(why)
    deployment = Volume(site(host, workspace, Volume, "docker"))
    try:
        versions = deployment.provision(SMALL, LIMIT_S)
    finally:
        deployment.destroy()
    assert set(versions) == {"docker", "docker client", "runc", "image"}
    client = subprocess.run(["/usr/bin/docker", "--version"], capture_output=True, text=True, check=True).stdout
    assert versions["docker client"] in client


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
        sockets = Path(tempfile.mkdtemp(prefix="dyno-"))
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
    deployment = given[0](site(host, workspace, *given))
    deployment.provision(SMALL, LIMIT_S)
    deployment.end(started(deployment)[0], limit=LIMIT_S)
    group = deployment.site.confinement.group
    assert [each for each in groups_below(group) if each.name != "conmon"] == []
    folder = engine_folder(deployment)
    assert bool(mounted_in(folder)) == deployment.in_container, "the check can see it"
    deployment.destroy()
    assert mounted_in(folder) == mounted_in(workspace) == []
    assert not folder.exists()
    # A child of the server was killed with it, and ends a moment later.
    until(lambda: not list(leftovers._processes_with(host._undo.token)))


@pytest.mark.parametrize("daemon", ["dockerd", "containerd"])
@pytest.mark.parametrize("kind", [Layered, Volume], ids=lambda kind: str(kind.kind))
def test_where_the_engine_dies_the_cause_is_told_and_the_next_start_has_another(
    kind: type[Deployment], daemon: str, make: Make
) -> None:
    if why := why_not(kind, "docker"):
        pytest.skip(why)
    deployment = make(kind, "docker")
    running, _ = started(deployment)
    os.kill(pid_of(deployment, daemon), signal.SIGKILL)
    assert running.wait(LIMIT_S) == ENGINE_LOST
    assert is_alive(running.pid), "it lives on: its engine was not its parent"
    assert deployment.end(running, limit=LIMIT_S) == ENGINE_LOST
    assert f"{daemon}, the engine of containers, ended by itself by SIGKILL" in running.complaint()
    assert not is_alive(running.pid)
    assert (deployment.data / "seen").exists()
    again, _ = started(deployment)
    assert deployment.end(again, limit=LIMIT_S) == 3
    assert (deployment.data / "starts").read_text() == "x\nx\n"


def pid_of(deployment: Deployment, program: str) -> int:
    """Of the one process of this session that runs it."""
    token = deployment.site.host._undo.token
    found = [pid for pid in leftovers._processes_with(token) if Path(f"/proc/{pid}/comm").read_text() == f"{program}\n"]
    assert len(found) == 1
    return found[0]


SESSION = """
import sys
from pathlib import Path
from dyno.hosts import LocalHost, UndoJournal
from tests.contract import test_deployments as tests

kind, engine = tests.KINDS[int(sys.argv[1])]
journal = UndoJournal()
host = LocalHost(journal)
folder = host.temporary_folder(Path(sys.argv[2]))
deployment = kind(tests.site(host, folder, kind, engine))
deployment.provision(tests.SMALL, tests.LIMIT_S)
running, _ = tests.started(deployment, sys.argv[3])
print(journal.token, running.pid, deployment.site.confinement.group, tests.engine_folder(deployment), flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize("number", range(len(KINDS)), ids=[name_of(each) for each in KINDS])
def test_what_a_killed_session_left_is_gone_after_cleaning(number: int, tmp_path: Path) -> None:
    if why := why_not(*KINDS[number]):
        pytest.skip(why)
    # One that does not listen takes as long as its engine grants it, so it is tried once.
    script = SERVER.format('trap "" TERM', WAITING) if KINDS[number] == (Layered, "docker") else CATCHING
    argv = [sys.executable, "-c", SESSION, str(number), str(tmp_path / "killed"), script]
    root = Path(__file__).parents[2]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=root) as session:
        assert session.stdout is not None
        token, pid, group, folder = session.stdout.readline().split()
        session.kill()
    (cleaned,) = undo.clean()
    assert cleaned.token == token
    assert cleaned.stuck == ()
    assert not is_alive(int(pid))
    assert list(leftovers._processes_with(token)) == []
    assert mounted_in(Path(folder)) == mounted_in(tmp_path) == []
    assert not Path(folder).exists()
    assert not (tmp_path / "killed").exists()
    assert [found for top in leftovers.CGROUPS.glob("*") for found in top.glob(f"{group.strip('/')}*")] == []


def test_limits_and_cpus_are_in_force_in_every_deployment(given: Given, host: LocalHost, workspace: Path) -> None:
    if not ROOT:
        pytest.skip("limits need root")
    kind, engine = given
    (workspace / "limited").mkdir()
    machine = Machine.model_validate({"cpus": 0.5, "memory": "256 MiB"})
    cpus = str(min(os.sched_getaffinity(0)))
    confinement = host.confine(machine, cpus, parent=kind.in_container)
    place = Site(host, workspace / "limited", workspace / "work", workspace / "logs", confinement, engine)
    deployment = kind(place)
    try:
        deployment.provision(SMALL, LIMIT_S)
        running, _ = started(deployment)
        facts = deployment.facts(running)
        deployment.end(running, limit=LIMIT_S)
    finally:
        deployment.destroy()
    assert facts["cpus.limit"] == 0.5
    assert facts["memory.limit"] == 256 * 1024**2
    assert facts["cpus.allowed"] == cpus


def test_a_system_that_has_no_recipe_is_refused_in_a_container(host: LocalHost, workspace: Path) -> None:
    for kind in (Layered, Volume):
        with pytest.raises(RunError, match=f"what an image of it has to have, so it cannot run in {kind.kind}"):
            kind(Site(host, workspace, workspace, workspace / "logs")).provision(None, LIMIT_S)


def test_without_root_containers_are_refused(host: LocalHost, workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(RunError, match="needs root"):
        Volume(Site(host, workspace, workspace, workspace / "logs")).provision(SMALL, LIMIT_S)
    assert list(workspace.iterdir()) == []


ALONE = """
import fcntl, os, signal, socket, struct, subprocess, sys, tempfile
from pathlib import Path
from dyno.hosts import LocalHost, UndoJournal, undo
from tests.contract import test_deployments as tests

number, folder = int(sys.argv[1]), Path(sys.argv[2])
kind, engine = tests.KINDS[number]

def mount(*words):
    subprocess.run(["mount", *map(str, words)], check=True)

# A machine on which no engine ever ran, but for a Docker that runs now and has a bridge.
upper = folder / "upper"
upper.mkdir()
mount("-t", "tmpfs", "tmpfs", upper)
for name in ("run", "opt", "dev/shm"):
    mount("-t", "tmpfs", "tmpfs", f"/{name}")
tempfile.tempdir = "/run"
for name in ("etc", "var/lib", "root"):
    for each in ("new", "work"):
        (upper / each / name).mkdir(parents=True)
    layers = f"lowerdir=/{name},upperdir={upper}/new/{name},workdir={upper}/work/{name}"
    mount("-t", "overlay", "overlay", "-o", layers, f"/{name}")
for each in ("etc/docker", "var/lib/containers", "var/lib/cni"):
    subprocess.run(["rm", "-rf", f"/{each}"], check=True)
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
    fcntl.ioctl(any_socket, 0x89A0, b"docker0\\0")  # SIOCBRADDBR
    for name in (b"lo", b"docker0"):
        fcntl.ioctl(any_socket, 0x8914, struct.pack("16sH22x", name, 1))  # SIOCSIFFLAGS, IFF_UP
    address = struct.pack("16sHH4s16x", b"docker0", socket.AF_INET, 0, bytes((172, 17, 0, 1)))
    fcntl.ioctl(any_socket, 0x8916, address)  # SIOCSIFADDR
Path("/proc/sys/net/ipv4/ip_forward").write_text("0")

def values(top):
    found = {}
    for path in sorted(Path(top).rglob("*")):
        try:
            found[str(path)] = path.read_text()
        except OSError:
            continue
    return found

def machine():
    tops = (Path("/run"), Path("/opt"), Path("/dev/shm"), upper / "new")
    files = [str(path) for top in tops for path in top.rglob("*")]
    routes = Path("/proc/net/route").read_text()
    return {**dict.fromkeys(files, "there"), "routes": routes, **values("/proc/sys/net")}

def one_life(host, name, end):
    place = host.temporary_folder(folder / name)
    deployment = kind(tests.site(host, place, kind, engine))
    deployment.provision(tests.SMALL, tests.LIMIT_S)
    running, _ = tests.started(deployment)
    end(deployment, running)

def in_peace(deployment, running):
    assert deployment.end(running, limit=tests.LIMIT_S) == 3
    deployment.destroy()

def without_its_engine(deployment, running):
    for daemon in ("dockerd", "containerd"):
        os.kill(tests.pid_of(deployment, daemon), signal.SIGKILL)
    deployment.end(running, limit=tests.LIMIT_S)
    deployment.destroy()

def killed(deployment, running):
    os.kill(os.getpid(), signal.SIGKILL)

ends = [in_peace, *([without_its_engine] if engine == "docker" else []), killed]
before = machine()
for end in ends:
    child = os.fork()
    if child == 0:
        try:
            with UndoJournal() as journal:
                one_life(LocalHost(journal), end.__name__, end)
            os._exit(0)
        except BaseException as error:
            print(f"{end.__name__}: {error!r}", flush=True)
            os._exit(1)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert status == (-9 if end is killed else 0), status
    for cleaned in undo.clean():
        assert cleaned.stuck == (), cleaned.stuck
    after = machine()
    for each in sorted({*before, *after}):
        if before.get(each) != after.get(each):
            print(f"{end.__name__}: {each}: {before.get(each)!r} -> {after.get(each)!r}", flush=True)
print("looked", flush=True)
"""


@pytest.mark.parametrize("number", [1, 3], ids=["docker", "podman"])
def test_the_machine_is_as_it_was_however_it_ends(number: int, tmp_path: Path) -> None:
    # dockerd deleted the bridge of a Docker that ran already and turned on ip_forward; a key was left in /etc/docker,
    # folders in /opt/containerd and /run, and the sockets of shims whose engine had died.
    if why := why_not(*KINDS[number]):
        pytest.skip(why)
    argv = ["unshare", "--mount", "--net", sys.executable, "-c", ALONE, str(number), str(tmp_path)]
    done = subprocess.run(argv, cwd=Path(__file__).parents[2], capture_output=True, text=True, timeout=120, check=False)
    assert (done.stdout, done.returncode) == ("looked\n", 0), done.stderr
