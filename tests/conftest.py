"""What every test has: an undo journal of its own, so that no test sees or cleans another's changes."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from dyno.hosts import LocalHost, UndoJournal

# How long an example takes says how busy the machine is; of what is tested it says nothing.
settings.register_profile("any machine", deadline=None)
settings.load_profile("any machine")


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Where servers run as users of their own, they must be let into the tests' folders.

    Not into pytest's usual one: it is shared by all sessions of a user, and each of them closes it anew.
    """
    if config.option.basetemp is None and os.geteuid() == 0:
        config.option.basetemp = str(Path(tempfile.gettempdir()) / f"dyno-tests-{os.getpid()}")


ON_THE_MACHINE = (
    "contract/",
    "end_to_end/test_perf.py",
    "end_to_end/test_servers.py",
    "studies/test_ext4_journal.py",
    "studies/test_looking_glass_engines.py",
    "studies/test_mariadb_virtualization.py",
    "unit/hosts/test_cgroups.py",
    "unit/hosts/test_kernel.py",
    "unit/hosts/test_leftovers.py",
    "unit/lab/test_sites.py",
)
"""Tests that start servers, drive them, watch the machine and change it.

All that wait to be alone on the machine are among them: in another process one would wait for a module to end.
"""

CLUSTERS = (
    "contract/test_clusters.py",
    "contract/test_failover.py",
    "studies/test_mysql_failover.py",
    "studies/test_mysql_high_availability.py",
)
"""Tests that start several servers, and mostly wait for these: they have a process for themselves."""

TIME_SERIES = (
    "contract/test_cratedb.py",
    "contract/test_queries.py",
    "contract/test_time_series.py",
    "contract/test_tsbs.py",
    "studies/test_time_series.py",
)
"""Tests of stores of time series, which wait for rows to be merged: another process has them."""

APART = ("contract/test_drbd.py", "contract/test_every_fault.py")
"""Tests that take many minutes, and that are run by themselves: `make test-drbd`, `make test-faults`."""

ALONE = (
    "contract/test_replicated_disk.py",
    "end_to_end/test_planted_bottlenecks.py",
    "end_to_end/test_probe.py",
)
"""Tests of what holds a machine back, which another busy process would be a second answer to.

And of disks that die with whoever serves them: mkfs.btrfs makes no file system while a loop device has lost its file.
"""


@pytest.hookimpl(tryfirst=True)  # before pytest selects by marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what touches the machine: one process has all of it, and another may run the rest meanwhile.

    What is to be alone there is marked by itself, and run when both have ended.
    """
    here = Path(__file__).parent
    for item in items:
        path = str(item.path.relative_to(here))
        if path.startswith(APART) or item.get_closest_marker("apart"):
            item.add_marker(pytest.mark.apart)
        elif path.startswith(ALONE):
            item.add_marker(pytest.mark.alone)
        elif path.startswith(CLUSTERS):
            item.add_marker(pytest.mark.clusters)
        elif path.startswith(TIME_SERIES):
            item.add_marker(pytest.mark.time_series)
        elif path.startswith(ON_THE_MACHINE):
            item.add_marker(pytest.mark.machine)


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Keep the folders of a session only where there is something to look for in them."""
    given = session.config.option.basetemp
    if given is not None and Path(given).name == f"dyno-tests-{os.getpid()}" and exitstatus == 0:
        shutil.rmtree(given, ignore_errors=True)


@pytest.fixture
def tmp_path(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Pytest's own, which other users may pass through."""
    for folder in (tmp_path_factory.getbasetemp(), tmp_path):
        folder.chmod(0o711)
    return tmp_path


@pytest.fixture(autouse=True)
def state(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The state folder that dyno finds in this test, and in the processes that the test starts."""
    folder = tmp_path_factory.mktemp("state")
    monkeypatch.setenv("DYNO_STATE", str(folder))
    return folder


@pytest.fixture
def journal(state: Path) -> Iterator[UndoJournal]:
    """A journal that is closed after the test, with all that the test left in it."""
    with UndoJournal() as opened:
        yield opened


@pytest.fixture
def host(journal: UndoJournal) -> LocalHost:
    """The machine under test, with that journal."""
    return LocalHost(journal)


@pytest.fixture
def workspace(host: LocalHost, tmp_path: Path) -> Path:
    """A folder in which the host may remove what it likes."""
    return host.temporary_folder(tmp_path / "workspace")
