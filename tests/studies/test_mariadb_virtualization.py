"""The first published study, end to end, at the scale smoke: three real deployments, and what may go wrong in them.

As root, with Docker: `tests/install-servers` installs what is missing.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from dyno.hosts.leftovers import CGROUPS
from tests.end_to_end.conftest import DYNO
from tests.making import until
from tests.unit.hosts.rights import alone_on_the_machine

STUDY = Path(__file__).parents[2] / "studies" / "mariadb-virtualization.yaml"
DEPLOYMENTS = ["native", "container-layered", "container-volume"]
RUNS = len(DEPLOYMENTS) * 2 * 2 * 2  # of two workloads and two thread counts, in two blocks

ONE_CELL = (
    "--set=factors.workload=[a]",
    "--set=factors.threads=[1]",
    "--set=workload.duration=2 s",
    "--set=replicates.retries=0",
)
LAYERED = (*ONE_CELL, "--set=factors.deployment=[native, container-layered]")


class Home:
    """A user who runs this study: a working folder, and a state folder that marks all that is started from there."""

    def __init__(self, folder: Path) -> None:
        folder.chmod(0o711)
        self.folder = folder
        self.state = folder / "state"
        self.found = machine()
        # Short, since sockets are in it, and open to the servers' accounts.
        self.temporary = Path(tempfile.mkdtemp(prefix="t", dir="/tmp"))
        self.temporary.chmod(0o1777)
        self.environment = {
            **os.environ,
            "DYNO_STATE": str(self.state),
            "TMPDIR": str(self.temporary),
            "COLUMNS": "120",
        }

    def dyno(self, *words: str | Path, before: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
        argv = [*before, DYNO, *map(str, words)]
        return subprocess.run(
            argv, cwd=self.folder, env=self.environment, capture_output=True, text=True, timeout=280, check=False
        )

    def start(self, *words: str | Path) -> subprocess.Popen[str]:
        argv = [DYNO, *map(str, words)]
        return subprocess.Popen(
            argv, cwd=self.folder, env=self.environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
        )

    def results(self) -> Path:
        (folder,) = (self.folder / "results" / "mariadb-virtualization").iterdir()
        return folder

    def runs(self) -> list[dict[str, Any]]:
        return [json.loads(path.read_text()) for path in sorted(self.results().glob("runs/*/run.json"))]

    def committed(self) -> int:
        return len(list((self.folder / "results").glob("mariadb-virtualization/*/runs/*/run.json")))

    def servers(self) -> list[int]:
        """Every mariadbd whose arguments name this folder, in whichever deployment."""
        return [pid for pid, words in arguments() if words[0].endswith("mariadbd") and str(self.folder) in str(words)]

    def engines(self) -> list[int]:
        """The processes of container engines that were started from here."""
        wanted = f"DYNO_STATE={self.state}".encode()
        found = []
        for pid, words in arguments():
            if Path(words[0]).name in ("dockerd", "containerd", "containerd-shim-runc-v2", "conmon"):
                try:
                    ours = wanted in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
                except OSError:
                    continue
                found += [pid] if ours else []
        return found

    def there(self) -> list[str]:
        """All that is on the machine now of what was done from here, and what came to it meanwhile from elsewhere."""
        ours = (str(self.folder), str(self.temporary))
        mounts = [line.split()[4] for line in text(Path("/proc/self/mountinfo")).splitlines()]
        loops = [text(path).strip() for path in Path("/sys/block").glob("loop*/loop/backing_file")]
        places = [place for place in (*mounts, *loops) if place.startswith(ours)]
        folders = [str(path) for path in self.temporary.iterdir()]
        processes = [f"process {pid}" for pid in (*self.servers(), *self.engines())]
        journals = [str(path) for path in (self.state / "undo").glob("*.jsonl")]
        return places + folders + processes + journals + sorted(machine() - self.found)

    def left(self) -> list[str]:
        """What stays of that: another dyno beside this one takes its own away again."""
        with contextlib.suppress(AssertionError):
            until(lambda: not self.there(), 20)
        return self.there()


def machine() -> set[str]:
    """What studies add to a machine without a mark of their user: control groups, networks, files of engines."""
    # Those of nodes are of clusters, which are tested meanwhile, for longer than is waited for here.
    groups = {str(path) for path in CGROUPS.rglob("dyno-*") if "-node-" not in path.name}
    others = ("/etc/docker/*", "/opt/*", "/run/containerd/s/*", "/run/docker*", "/run/containers/*", "/sys/class/net/*")
    return groups | {str(path) for pattern in others for path in Path("/").glob(pattern[1:])}


def arguments() -> Iterator[tuple[int, list[str]]]:
    for entry in Path("/proc").glob("[0-9]*"):
        words = text(entry / "cmdline").split("\0")
        if words[0]:
            yield int(entry.name), words


def text(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""  # gone meanwhile


def kernel_settings() -> dict[str, str]:
    """Every setting of the kernel that can be written, but for those that say what happened last."""
    changing = {"kernel/ns_last_pid", "kernel/random/uuid", "fs/binfmt_misc/register"}
    found = {}
    for path in Path("/proc/sys").rglob("*"):
        try:
            if path.is_file() and path.stat().st_mode & 0o200 and str(path.relative_to("/proc/sys")) not in changing:
                found[str(path)] = path.read_text(errors="replace")
        except OSError:
            continue
    return found


@pytest.fixture(scope="module", autouse=True)
def alone() -> Iterator[None]:
    with alone_on_the_machine():
        yield


@pytest.fixture(scope="module")
def before(alone: None) -> Iterator[dict[str, str]]:
    """The kernel's settings before any study of this module; forwarding is off, as where no engine ever ran."""
    forwarding = Path("/proc/sys/net/ipv4/ip_forward")
    found = forwarding.read_text()
    forwarding.write_text("0")
    yield kernel_settings()
    forwarding.write_text(found)


@pytest.fixture(scope="module")
def smoke(before: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    """The whole study, once."""
    tmp_path_factory.getbasetemp().chmod(0o711)
    home = Home(tmp_path_factory.mktemp("smoke"))
    answer = home.dyno("run", STUDY, "--scale", "smoke")
    assert answer.returncode == 0, answer.stderr
    yield home
    home.temporary.rmdir()


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    made = Home(tmp_path)
    yield made
    made.dyno("clean")
    made.temporary.rmdir()


def test_every_run_of_the_three_deployments_is_ok(smoke: Home) -> None:
    runs = smoke.runs()
    assert [(run["outcome"], run["cause"]) for run in runs] == [("ok", None)] * RUNS
    assert sorted({run["levels"]["deployment"] for run in runs}) == sorted(DEPLOYMENTS)


def test_only_the_deployment_differs_and_it_is_what_was_asked_for(smoke: Home) -> None:
    by_deployment: dict[str, dict[str, Any]] = {}
    for run in smoke.runs():
        facts = by_deployment.setdefault(run["levels"]["deployment"], run["deployed"])
        stable = {key: value for key, value in run["deployed"].items() if key in ("io_engine", "data.file_system")}
        assert stable.items() <= facts.items()
    settings = [
        {name: value for name, value in run["settings"].items() if run["levels"]["threads"] == "1"}
        for run in smoke.runs()
        if run["levels"]["threads"] == "1" and run["levels"]["workload"] == "a"
    ]
    assert all(each == settings[0] for each in settings), "the same settings everywhere"
    binaries = {facts["program.sha256"] for facts in by_deployment.values()}
    assert len(binaries) == 1, "the same server everywhere"
    # What must not differ between deployments, and what cannot but.
    alike = ("environment", "cpus.limit", "memory.limit", "data.device", "device", "file_system.made_by", "network")
    assert {name: len({facts[name] for facts in by_deployment.values()}) for name in alike} == dict.fromkeys(alike, 1)
    assert by_deployment["native"]["device"] == "its own"
    roots = {name: facts["root.file_system"] for name, facts in by_deployment.items()}
    assert roots["native"] != roots["container-volume"] == "overlay"
    kinds = {name: facts["data.file_system"] for name, facts in by_deployment.items()}
    assert kinds == {"native": "ext4", "container-layered": "overlay", "container-volume": "ext4"}
    assert {facts["io_engine"] for facts in by_deployment.values()} <= {"io_uring", "libaio"}


def test_every_run_was_cold_and_its_device_was_looked_at(smoke: Home) -> None:
    for run in smoke.runs():
        assert run["caches"]["asked"] == "cold"
        assert run["caches"]["resident_bytes"] <= 0.01 * run["caches"]["data_bytes"]
        assert run["responses"]["device_read"] > 0, "a cold start that reads nothing is none"
        assert run["responses"]["system_read_per_op"] > 0
        if run["levels"]["workload"] == "a":
            assert run["responses"]["device_written_per_op"] > 0
            assert run["responses"]["system_written_per_op"] > 0


def test_the_answer_stands_beside_what_was_published(smoke: Home) -> None:
    shown = json.loads(smoke.dyno("show", smoke.results(), "--format", "json").stdout)
    claims = {claim["id"]: claim for claim in shown["claims"]}
    assert len(claims) == 13
    assert {claim["verdict"] for claim in claims.values()} == {"open"}
    assert all(claim["reason"] for claim in claims.values())
    assert shown["answer"] == (
        f"Not judged: scale smoke shows that everything works, not how fast anything is. All {RUNS} runs are ok."
    )
    assert shown["failures"] == []
    page = (smoke.results() / "report.html").read_text()
    assert "container-layered" in page
    assert page.count("<svg") >= 4


def test_where_the_time_goes_is_shown(smoke: Home) -> None:
    answer = smoke.dyno("show", smoke.results(), "--timing")
    assert answer.returncode == 0, answer.stderr
    assert all(name in answer.stdout for name in (*DEPLOYMENTS, "restore", "ready", "stop"))


def test_nothing_stays_on_the_machine(smoke: Home, before: dict[str, str]) -> None:
    assert [path.name for path in smoke.results().glob(".*")] == []
    assert smoke.left() == []
    assert kernel_settings() == before


def test_a_study_that_was_killed_is_cleared_away_and_goes_on(home: Home, before: dict[str, str]) -> None:
    with home.start("run", STUDY, "--scale", "smoke", *LAYERED) as running:
        until(lambda: home.committed() >= 1 and bool(home.servers()), 120)
        running.send_signal(signal.SIGKILL)
        errors = running.communicate()[1]
    assert "Traceback" not in errors
    there = "\n".join(home.there())
    for sign in (f"{home.folder}/results", f"{home.temporary}/", f"{CGROUPS}/", "process ", ".jsonl"):
        assert sign in there, "killed too late to show anything"
    answer = home.dyno("clean")
    assert answer.returncode == 0, answer.stderr
    assert home.left() == []
    assert kernel_settings() == before
    kept = home.committed()
    answer = home.dyno("run", STUDY, "--scale", "smoke", *LAYERED, "--resume")
    assert answer.returncode == 0, answer.stderr
    runs = home.runs()
    assert kept >= 1
    slots = Counter((run["slot"]["cell"], run["slot"]["block"]) for run in runs if run["outcome"] == "ok")
    assert len(slots) == 4
    assert set(slots.values()) == {1}, "a run was counted twice"
    assert kernel_settings() == before


def only(deployment: str) -> tuple[str, ...]:
    """One cell, in that deployment."""
    words = (*ONE_CELL, f"--set=factors.deployment=[{deployment}]", "--set=replicates.precision_of=mean")
    return words if deployment != "native" else (*words, "--set=host.containers=null")


def injected(home: Home, inject: Callable[[], None], *words: str) -> tuple[int, str]:
    """Run one small study, and do something to it while it drives; its exit status and what it said."""
    with home.start("run", STUDY, "--scale", "smoke", *words) as running:
        until(lambda: running.poll() is not None or (home.committed() >= 1 and driving(home)), 120)
        if running.poll() is None:
            inject()
        errors = running.communicate(timeout=240)[1]
        assert "Traceback" not in errors
    return running.returncode, errors


def driving(home: Home) -> bool:
    # A driver among the processes of this user: the server is up, and is being asked.
    state = f"DYNO_STATE={home.state}"
    return bool(home.servers()) and any(
        Path(words[0]).name == "dyno-core"
        and "drive" in words
        and state in text(Path(f"/proc/{pid}/environ")).split("\0")
        for pid, words in arguments()
    )


@pytest.mark.parametrize("deployment", DEPLOYMENTS)
def test_a_server_killed_in_the_middle_of_a_run_is_a_failed_run(home: Home, deployment: str) -> None:
    def kill() -> None:
        for pid in home.servers():
            os.kill(pid, signal.SIGKILL)

    status, errors = injected(home, kill, *only(deployment))
    failed = [run for run in home.runs() if run["outcome"] == "failed"]
    assert len(failed) == 1, errors
    assert failed[0]["step"] == "drive"
    assert "mariadbd was killed by SIGKILL" in failed[0]["cause"]
    assert status == 1
    assert home.left() == []


def test_an_engine_that_dies_in_the_middle_of_a_run_fails_it_and_leaves_nothing(home: Home) -> None:
    def kill() -> None:
        for pid in home.engines():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue

    status, errors = injected(home, kill, *only("container-volume"))
    failed = [run for run in home.runs() if run["outcome"] == "failed"]
    assert failed, errors
    assert any(word in failed[0]["cause"] for word in ("docker", "engine"))
    assert status == 1
    assert home.left() == []


@pytest.mark.parametrize("words", [("--set=workload.driver=go-ycsb",), ("--set=host.containers=podman",)], ids=str)
def test_another_driver_and_another_engine_do_the_same(home: Home, words: tuple[str, ...]) -> None:
    answer = home.dyno("run", STUDY, "--scale", "smoke", *ONE_CELL, *words)
    assert answer.returncode == 0, answer.stderr
    assert [run["outcome"] for run in home.runs()] == ["ok"] * 2 * len(DEPLOYMENTS)
    versions = set().union(*(run["versions"] for run in home.runs()))
    assert versions & {"go-ycsb", "podman"}
    assert home.left() == []


def test_a_disk_that_fills_up_in_the_middle_of_a_run_fails_it(home: Home) -> None:
    def fill() -> None:
        (mount,) = home.results().glob(".dyno-*/sites/*/mount")
        with (mount / "filler").open("wb") as file, contextlib.suppress(OSError):
            while True:
                file.write(bytes(2**20))

    status, errors = injected(home, fill, *only("container-volume"))
    failed = [run for run in home.runs() if run["outcome"] == "failed"]
    assert failed, errors
    assert any(words in failed[0]["cause"] for words in ("free disk", "free", "No space left")), failed[0]["cause"]
    assert status == 1
    assert home.left() == []


def test_a_file_system_too_small_for_the_data_fails_with_that_reason(home: Home) -> None:
    answer = home.dyno(
        "run",
        STUDY,
        "--scale",
        "smoke",
        *LAYERED,
        "--set=host.file_system.size=192 MiB",
        "--set=workload.records=200000",
    )
    assert answer.returncode != 0
    assert "Traceback" not in answer.stderr
    said = answer.stderr + answer.stdout + "".join(str(run["cause"]) for run in home.runs())
    assert "raise host.file_system.size" in said, said
    assert home.left() == []


@pytest.mark.parametrize(
    ("mistake", "said"),
    [
        ("host.machine.memory=100 TiB", "a machine with 100 TiB of memory cannot be had"),
        ("host.pin.system=4095", "there is no CPU 4095"),
        ("host.sysctl.vm.no_such_setting=1", "no setting of that name"),
    ],
)
def test_what_this_machine_cannot_give_is_refused_in_a_line_and_leaves_no_results(
    home: Home, mistake: str, said: str
) -> None:
    answer = home.dyno("run", STUDY, "--scale", "smoke", "--set", mistake)
    assert answer.returncode == 2, answer.stderr
    assert said in answer.stderr.splitlines()[-1]
    assert list((home.folder / "results").glob("mariadb-virtualization/*")) == []
    assert home.left() == []


def test_without_the_right_to_mount_the_study_is_refused_and_leaves_nothing(home: Home) -> None:
    answer = home.dyno(
        "run", STUDY, "--scale", "smoke", before=("setpriv", "--bounding-set=-sys_admin", "--inh-caps=-sys_admin")
    )
    assert answer.returncode == 2, answer.stderr
    assert "Traceback" not in answer.stderr
    assert "mount" in answer.stderr.splitlines()[-1] or "root" in answer.stderr.splitlines()[-1]
    assert home.left() == []
    assert not list((home.folder / "results").glob("mariadb-virtualization/*/runs/*"))


def test_without_root_the_study_is_refused_in_a_line_and_nothing_is_left(home: Home) -> None:
    place = home.folder / "nobody"
    place.mkdir()
    place.chmod(0o777)
    nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
    environment = {**home.environment, "DYNO_STATE": str(place / "state"), "HOME": str(place)}
    if subprocess.run(
        [*nobody, DYNO, "--version"], cwd=place, env=environment, check=False, capture_output=True
    ).returncode:
        pytest.skip("this dyno is installed where no other user may read it")
    answer = subprocess.run(
        [*nobody, DYNO, "run", str(STUDY), "--scale", "smoke"],
        cwd=place, env=environment, check=False, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert answer.returncode == 2, answer.stderr
    assert "root" in answer.stderr.splitlines()[-1]
    assert "Traceback" not in answer.stderr
    assert list((place / "results").glob("*/*/runs/*")) == []
    assert list((place / "state" / "undo").iterdir()) == []
