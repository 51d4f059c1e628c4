"""The undo journal: what was changed is undone, whoever ended and however."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import secrets
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from dyno.hosts import LocalHost, UndoJournal, leftovers, undo
from dyno.hosts.leftovers import TOKEN_VARIABLE, UndoError
from dyno.hosts.undo import Change, Cleaned
from dyno.model.base import RunError, UserError
from tests.making import until

LIMIT_S = 30
Killed = Callable[..., tuple[str, int, int, Path]]


def journals(state: Path) -> list[Path]:
    return sorted((state / "undo").glob("*.jsonl"))


def folder_change(path: Path) -> Change:
    return Change("remove-tree", {"path": str(path)})


def abandoned(state: Path, *changes: Change, torn: str = "") -> Path:
    """The journal of a session that nobody holds."""
    folder = state / "undo"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{len(journals(state)):016x}.jsonl"
    lines = [json.dumps({"kind": change.kind, "what": change.what}) + "\n" for change in changes]
    path.write_text("".join(lines) + torn)
    return path


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The changes of kind `tell` in the order in which they were undone."""
    heard: list[str] = []
    monkeypatch.setitem(undo.UNDOERS, "tell", lambda word: heard.append(word))
    return heard


def tell(word: str) -> Change:
    return Change("tell", {"word": word})


def test_a_change_is_on_disk_before_it_is_made(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[bytes] = []
    really = os.fsync

    def watched(handle: int) -> None:
        really(handle)
        for path in journals(state):
            synced.append(path.read_bytes())

    monkeypatch.setattr(os, "fsync", watched)
    with UndoJournal() as journal:
        journal.will(folder_change(state / "not there"))
        # `will` has returned, so the caller goes on to make the change: the line must have been synced by now.
        assert b"not there" in synced[-1]


def test_a_folder_is_in_the_journal_before_it_exists(
    state: Path, tmp_path: Path, host: LocalHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[bool] = []
    really = Path.mkdir

    def watched(path: Path, *args: object, **kwargs: object) -> None:
        seen.append(any(str(tmp_path / "made") in journal.read_text() for journal in journals(state)))
        really(path, *args, **kwargs)  # type: ignore[arg-type]

    monkeypatch.setattr(Path, "mkdir", watched)
    host.temporary_folder(tmp_path / "made")
    assert seen
    assert all(seen)


def test_closing_undoes_newest_first(told: list[str]) -> None:
    with UndoJournal() as journal:
        for word in ("first", "second", "third"):
            journal.will(tell(word))
    assert told == ["third", "second", "first"]


def test_what_was_undone_before_is_not_undone_again(told: list[str]) -> None:
    with UndoJournal() as journal:
        journal.will(tell("first"))
        journal.undo(journal.will(tell("second")))
    assert told == ["second", "first"]


def test_closing_leaves_no_journal(state: Path) -> None:
    UndoJournal().close()
    assert journals(state) == []


def test_an_error_in_the_session_still_undoes_and_goes_on_up(told: list[str]) -> None:
    def session() -> None:
        with UndoJournal() as journal:
            journal.will(tell("change"))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        session()
    assert told == ["change"]


def test_cleaning_undoes_what_an_ended_session_left_newest_first(state: Path, told: list[str]) -> None:
    path = abandoned(state, tell("first"), tell("second"))
    assert undo.clean() == [Cleaned(path.stem, ("tell first", "tell second"), ())]
    assert told == ["second", "first"]
    assert journals(state) == []


def test_cleaning_leaves_out_what_the_session_itself_undid(state: Path, told: list[str]) -> None:
    done = Change("undone", {"kind": "tell", "what": {"word": "second"}})
    abandoned(state, tell("first"), tell("second"), done)
    undo.clean()
    assert told == ["first"]


@pytest.mark.parametrize("torn", ["{", '{"kind": "tell", "what": {"wo', "\0" * 40])
def test_a_torn_last_line_is_a_change_that_was_not_made(state: Path, told: list[str], torn: str) -> None:
    abandoned(state, tell("first"), torn=torn)
    undo.clean()
    assert told == ["first"]
    assert journals(state) == []


def test_a_disk_that_takes_half_a_line_refuses_the_change_and_keeps_the_journal_readable(
    state: Path, told: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # os.write on a full disk writes what fits and says so only by its answer.
    really = os.write
    with UndoJournal() as journal:
        with monkeypatch.context() as full:
            full.setattr(os, "write", lambda handle, data: really(handle, data[: len(data) // 2]))
            with pytest.raises(OSError, match="No space") as error:
                journal.will(tell("not made"))
        assert error.value.errno == errno.ENOSPC
        journal.will(tell("made"))
        lines = journals(state)[0].read_text().splitlines()
        assert [json.loads(line)["kind"] for line in lines] == ["processes", "tell"]
    assert told == ["made"]


def test_the_journal_of_a_living_session_is_not_touched(state: Path, journal: UndoJournal, tmp_path: Path) -> None:
    folder = LocalHost(journal).temporary_folder(tmp_path / "in use")
    assert undo.clean() == []
    assert folder.is_dir()
    assert undo.living() == 1


def test_only_living_sessions_are_counted(state: Path, journal: UndoJournal) -> None:
    abandoned(state)
    assert undo.living() == 1


def test_an_unknown_kind_of_change_stays_in_the_journal_with_a_message(state: Path, told: list[str]) -> None:
    path = abandoned(state, Change("from-the-future", {"n": 1}), tell("known"))
    (cleaned,) = undo.clean()
    assert cleaned.undone == ("tell known",)
    assert "does not know how to undo 'from-the-future'; there are server, processes, cgroup, " in cleaned.stuck[0]
    assert path.exists()
    assert len(undo.clean()[0].stuck) == 1, "it is tried again by the next command"


def test_a_server_is_found_by_its_argument_and_asked_before_it_is_killed(host: LocalHost, tmp_path: Path) -> None:
    """A server of another user may hide its environment, and one that is killed may leave shared memory behind."""
    marker, heard = f"--folder={secrets.token_hex(4)}", tmp_path / "heard"
    script = 'trap "echo asked >$0; exit 0" QUIT; echo up >$0; while :; do sleep 0.01; done'
    argv = ["sh", "-c", script, str(heard), marker]
    process = host.start_server(argv, log=tmp_path / "log", marker=marker, undo_by=signal.SIGQUIT)
    until(lambda: heard.exists() and heard.read_text() == "up\n")
    undo._undo(Change("server", {"marker": marker, "undo_by": "SIGQUIT"}))
    assert process.wait(LIMIT_S) == 0
    assert heard.read_text() == "asked\n"
    host.end_server(process, limit=0)


def test_a_server_that_does_not_end_when_asked_is_killed(
    host: LocalHost, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leftovers, "_ASK_LIMIT_S", 0.05)
    marker = f"--folder={secrets.token_hex(4)}"
    argv = ["sh", "-c", 'trap "" QUIT; while :; do sleep 0.01; done', "sh", marker]
    process = host.start_server(argv, log=tmp_path / "log", marker=marker, undo_by=signal.SIGQUIT)
    undo._undo(Change("server", {"marker": marker, "undo_by": "SIGQUIT"}))
    assert process.wait(LIMIT_S) == -signal.SIGKILL
    host.end_server(process, limit=0)


def test_a_server_that_was_ended_is_no_longer_in_the_journal(host: LocalHost, state: Path, tmp_path: Path) -> None:
    marker = f"--folder={secrets.token_hex(4)}"
    process = host.start_server(["sleep", "1000", marker], log=tmp_path / "log", marker=marker)
    (journal,) = journals(state)
    assert marker in journal.read_text()
    host.end_server(process, limit=LIMIT_S)
    assert [change.kind for change in undo._remaining(journal)] == ["processes"]


def test_a_server_that_cannot_be_started_is_not_in_the_journal(host: LocalHost, state: Path, tmp_path: Path) -> None:
    with pytest.raises(RunError, match="cannot start no-such-program"):
        host.start_server(["no-such-program", "--m"], log=tmp_path / "log", marker="--m")
    (journal,) = journals(state)
    assert [change.kind for change in undo._remaining(journal)] == ["processes"]


def test_a_known_kind_with_another_dynos_keys_stays_in_the_journal(state: Path, tmp_path: Path) -> None:
    # It was once a TypeError out of every dyno command there was.
    abandoned(state, Change("remove-tree", {"folder": str(tmp_path)}))
    (cleaned,) = undo.clean()
    assert "cannot read what another wrote" in cleaned.stuck[0]
    assert tmp_path.is_dir()


@pytest.mark.parametrize("line", ['{"x": 1}', "12", "[]", '{"kind": "undone", "what": {"x": 1}}', '{"kind": "tell"}'])
def test_a_line_that_another_dyno_wrote_otherwise_stays_in_the_journal(state: Path, told: list[str], line: str) -> None:
    path = abandoned(state, tell("ours"), torn=line + "\n")
    (cleaned,) = undo.clean()
    assert told == ["ours"]
    assert line in cleaned.stuck[0]
    assert path.exists()


def test_a_stuck_change_at_the_end_is_an_error_and_the_journal_stays(state: Path) -> None:
    journal = UndoJournal()
    journal.will(Change("from-the-future", {}))
    with pytest.raises(UndoError, match="from-the-future"):
        journal.close()
    assert len(journals(state)) == 1
    assert undo.living() == 0, "nobody holds it, so that the next command can try"


def test_a_folder_that_may_not_be_removed_stays_in_the_journal(
    state: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_path: str) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    abandoned(state, folder_change(tmp_path))
    with monkeypatch.context() as forbidden:
        forbidden.setattr(shutil, "rmtree", refuse)
        assert "Permission denied" in undo.clean()[0].stuck[0]
    assert undo.clean()[0].stuck == ()
    assert not tmp_path.exists()


def test_a_process_that_may_not_be_ended_stays_in_the_journal(
    state: Path, sleeper: Callable[..., int], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_pid: int, _signal: int) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted")

    token = secrets.token_hex(8)  # of this test alone: the suite may run twice at the same time
    pid = sleeper(token)
    path = abandoned(state, Change("processes", {"token": token}))
    with monkeypatch.context() as context:
        context.setattr(os, "kill", refuse)
        assert f"process {pid} may not be ended" in undo.clean()[0].stuck[0]
    assert path.exists()


def test_another_users_journal_is_told_of_and_does_not_end_dyno(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # `sudo dyno run` leaves journals of root in the user's own state folder.
    path = abandoned(state, tell("never"))
    really = os.open

    def refuse(name: object, *args: object) -> int:
        if name == path:
            raise PermissionError(errno.EACCES, "Permission denied")
        return really(name, *args)  # type: ignore[arg-type]

    monkeypatch.setattr(os, "open", refuse)
    (cleaned,) = undo.clean()
    assert "cannot be opened: Permission denied" in cleaned.stuck[0]
    assert undo.living() == 0


def test_a_state_folder_that_cannot_be_made_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match="file"):
        UndoJournal(tmp_path / "file")


def test_where_nothing_was_ever_run_there_is_nothing_to_clean(tmp_path: Path) -> None:
    assert undo.clean(tmp_path / "never made") == []
    assert undo.living(tmp_path / "never made") == 0


def test_a_folder_that_was_there_before_is_refused_and_not_removed(
    state: Path, host: LocalHost, tmp_path: Path
) -> None:
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    (theirs / "thesis.tex").write_text("years of work")
    with pytest.raises(UserError, match="exists already"):
        host.temporary_folder(theirs)
    assert str(theirs) not in journals(state)[0].read_text(), "closing would remove it"
    assert (theirs / "thesis.tex").read_text() == "years of work"


def test_a_folder_that_cannot_be_made_is_an_error_for_the_user(host: LocalHost, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match=r"cannot make the folder .*file/inner: Not a directory"):
        host.temporary_folder(tmp_path / "file" / "inner")


def test_a_cleaner_that_takes_a_journal_between_its_creation_and_its_lock_costs_only_another_try(
    state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    really = fcntl.flock
    raced: list[Path] = []

    def late(handle: int, how: int) -> None:
        if not raced:
            raced.extend(journals(state))
            raced[0].unlink()  # what a cleaner does that was first to lock it
        really(handle, how)

    monkeypatch.setattr(fcntl, "flock", late)
    with UndoJournal() as journal:
        assert raced[0].stem != journal.token
        assert [path.stem for path in journals(state)] == [journal.token]


def test_two_cleaners_at_once_undo_each_change_once(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    heard: list[str] = []
    both = threading.Barrier(2)
    monkeypatch.setitem(undo.UNDOERS, "tell", lambda word: heard.append(word))
    for number in range(20):
        abandoned(state, tell(str(number)))
    results: list[list[Cleaned]] = []

    def run() -> None:
        both.wait(LIMIT_S)
        results.append(undo.clean())

    threads = [threading.Thread(target=run) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LIMIT_S)
    assert sorted(heard, key=int) == [str(number) for number in range(20)]
    assert sum(len(result) for result in results) == 20
    assert journals(state) == []


def test_a_cleaner_does_not_undo_what_another_finished_between_its_opening_and_its_locking(
    state: Path, told: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = abandoned(state, tell("once"))
    really = fcntl.flock

    def late(handle: int, how: int) -> None:
        monkeypatch.setattr(fcntl, "flock", really)
        undo.clean()  # the other cleaner, from beginning to end
        really(handle, how)

    monkeypatch.setattr(fcntl, "flock", late)
    assert undo.clean() == []
    assert told == ["once"]
    assert not path.exists()


# ------------------------------------------------------------------------------------------------------------------
# With real processes.

SESSION = """
import os, subprocess, sys
from pathlib import Path
from dyno.hosts import LocalHost, UndoJournal
from dyno.hosts.leftovers import TOKEN_VARIABLE

journal = UndoJournal()
host = LocalHost(journal)
folder = host.temporary_folder(Path(sys.argv[1]))
(folder / "inner").mkdir()
(folder / "inner" / "data").write_bytes(b"x" * 100_000)
child = host.start(["sleep", "1000"], log=folder / "logs" / "child")

# A server as distributions start it: a grandchild in a session of its own whose parent has ended.
reader, writer = os.pipe()
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.set_inheritable(writer, True)
        script = f"echo $$ >&{writer}; exec {writer}>&-; {sys.argv[2]}"  # says its id as a program of its own
        os.execvpe("sh", ["sh", "-c", script], {**os.environ, TOKEN_VARIABLE: journal.token})
    os._exit(0)
os.close(writer)
daemon = int(os.read(reader, 32))
os.wait()
print(journal.token, child.pid, daemon, flush=True)
sys.stdin.read()
"""


def environment_of(pid: int) -> bytes:
    try:
        return Path("/proc", str(pid), "environ").read_bytes()
    except OSError:
        return b""


def is_alive(pid: int) -> bool:
    try:
        state = Path("/proc", str(pid), "stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state not in "ZX"


@pytest.fixture
def sleeper() -> Iterator[Callable[..., int]]:
    """Starts `sleep` processes that carry a token; ends those that are left."""
    started: list[subprocess.Popen[bytes]] = []

    def start(token: str) -> int:
        process = subprocess.Popen(["sleep", "1000"], env={**os.environ, TOKEN_VARIABLE: token})
        started.append(process)
        until(lambda: token.encode() in environment_of(process.pid))
        return process.pid

    yield start
    for process in started:
        process.kill()
        process.wait()


@pytest.fixture
def killed(tmp_path: Path) -> Iterator[Killed]:
    """A session that made a folder, a child and a daemon, and was ended by SIGKILL."""
    left: list[int] = []

    def kill(daemon: str = "exec sleep 1000") -> tuple[str, int, int, Path]:
        folder = tmp_path / "killed"
        argv = [sys.executable, "-c", SESSION, str(folder), daemon]
        with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as session:
            assert session.stdout is not None
            token, child, grandchild = session.stdout.readline().split()
            left.extend((int(child), int(grandchild)))
            os.kill(session.pid, signal.SIGKILL)
            session.wait(LIMIT_S)
        return token, int(child), int(grandchild), folder

    yield kill
    for pid in left:
        if is_alive(pid) and TOKEN_VARIABLE.encode() in environment_of(pid):
            os.kill(pid, signal.SIGKILL)


def test_what_a_killed_session_left_is_gone_after_cleaning(state: Path, killed: Killed) -> None:
    token, child, daemon, folder = killed()
    assert is_alive(daemon), "the daemon outlives its session"
    assert folder.is_dir()
    assert undo.living() == 0
    (cleaned,) = undo.clean()
    assert cleaned.token == token
    assert cleaned.stuck == ()
    assert not is_alive(child)
    assert not is_alive(daemon)
    assert not folder.exists()
    assert journals(state) == []


def test_a_daemon_that_writes_into_the_folder_without_end_is_ended_before_the_folder_is_removed(
    killed: Killed, tmp_path: Path
) -> None:
    # Undone in the order of the entries alone, the folder came first, filled up while it was emptied, and stayed.
    busy = f"i=0; while :; do i=$((i+1)); mkdir -p {tmp_path}/killed/d; : > {tmp_path}/killed/d/$i; done"
    _, _, daemon, folder = killed(busy)
    assert undo.clean()[0].stuck == ()
    assert not is_alive(daemon)
    assert not folder.exists()


def test_processes_of_another_session_are_not_ended(state: Path, sleeper: Callable[..., int]) -> None:
    token = secrets.token_hex(8)
    ours, theirs = sleeper(token), sleeper(f"{token}b")
    abandoned(state, Change("processes", {"token": token}))
    undo.clean()
    assert not is_alive(ours)
    assert is_alive(theirs)


def test_a_session_does_not_end_itself_though_it_may_carry_its_own_token(
    state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = (
        "import os; from dyno.hosts import leftovers\n"
        f"leftovers.end_processes(os.environ[{TOKEN_VARIABLE!r}]); print('still here')"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, TOKEN_VARIABLE: secrets.token_hex(8)},
        capture_output=True,
        check=True,
    )
    assert done.stdout == b"still here\n"


def test_the_lock_goes_with_the_session_and_not_with_its_children(state: Path, killed: Killed) -> None:
    # A child that had inherited the lock would keep the journal of a dead session from being cleaned.
    _, _, daemon, _ = killed()
    assert is_alive(daemon)
    handles = [str(path.readlink()) for path in Path("/proc", str(daemon), "fd").iterdir()]
    assert not any("undo" in handle for handle in handles)
