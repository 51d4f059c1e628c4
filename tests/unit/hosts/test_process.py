"""Processes that dyno starts: they end when dyno ends, they can be stopped for sure, and what they say is kept."""

from __future__ import annotations

import os
import secrets
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from dyno.hosts import LocalHost, Process
from dyno.hosts.leftovers import TOKEN_VARIABLE, end_server
from dyno.hosts.undo import UndoJournal
from dyno.model.base import RunError
from tests.making import until

LIMIT_S = 30
PYTHON = sys.executable

Start = Callable[..., Process]


@pytest.fixture
def start(host: LocalHost, tmp_path: Path) -> Iterator[Start]:
    started: list[Process] = []

    def begin(*argv: str, lines: bool = True) -> Process:
        process = host.start(argv, log=tmp_path / "logs" / "it", lines=lines)
        started.append(process)
        return process

    yield begin
    for process in started:
        process.kill()


def first_line(process: Process) -> str:
    return lines_of(process, 1)[0]


def lines_of(process: Process, number: int) -> list[str]:
    said: list[str] = []

    def enough() -> bool:
        said.extend(process.lines(0.1))
        return len(said) >= number

    until(enough)
    return said


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def test_it_reads_end_of_file_when_dyno_is_killed(tmp_path: Path) -> None:
    said = tmp_path / "said"
    program = (
        "import sys; from pathlib import Path; from dyno.hosts import Process\n"
        'script = \'echo up; cat >/dev/null; echo $$ > "$1".part; mv "$1".part "$1"\'\n'
        "p = Process(['sh', '-c', script, 'sh', sys.argv[1]],"
        " log=Path(sys.argv[2]), environment={'PATH': '/usr/bin:/bin'}, lines=True, folder=None)\n"
        "while not p.lines(1): pass\n"
        "print(p.pid, flush=True); sys.stdin.read()"
    )
    argv = [PYTHON, "-c", program, str(said), str(tmp_path / "log")]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as dyno:
        assert dyno.stdout is not None
        child = dyno.stdout.readline().strip()
        assert not said.exists()
        os.kill(dyno.pid, signal.SIGKILL)
        dyno.wait(LIMIT_S)
    until(said.exists)
    assert said.read_text().strip() == child


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGQUIT])
def test_a_server_gets_its_signal_when_dyno_is_killed(number: signal.Signals, tmp_path: Path) -> None:
    # It reads no standard input, and ran on until the next dyno command.
    said = tmp_path / "said"
    program = (
        "import signal, sys; from pathlib import Path; from dyno.hosts import LocalHost, UndoJournal\n"
        "host = LocalHost(UndoJournal(Path(sys.argv[1])))\n"
        "script = 'trap \"echo QUIT > $0.part; mv $0.part $0; exit\" QUIT; echo up; while :; do sleep 0.01; done'\n"
        "p = host.start_server(['sh', '-c', script, sys.argv[2]],"
        " log=Path(sys.argv[3]), marker=sys.argv[2], undo_by=signal.Signals(int(sys.argv[4])))\n"
        "log = Path(sys.argv[3] + '.stdout')\n"
        "while not log.read_text(): pass\n"
        "print(p.pid, flush=True); sys.stdin.read()"
    )
    words = [str(tmp_path / "state"), str(said), str(tmp_path / "log"), str(int(number))]
    argv = [PYTHON, "-c", program, *words]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as dyno:
        assert dyno.stdout is not None
        server = int(dyno.stdout.readline())
        assert is_alive(server)
        os.kill(dyno.pid, signal.SIGKILL)
        dyno.wait(LIMIT_S)
    until(lambda: not is_alive(server))
    assert said.exists() == (number == signal.SIGQUIT)


def test_what_waits_for_the_end_of_dyno_goes_with_its_server(host: LocalHost, tmp_path: Path) -> None:
    server = host.start_server(["sh", "-c", "exec sleep 1000", "mark"], log=tmp_path / "it", marker="mark")
    children = Path(f"/proc/self/task/{os.getpid()}/children")
    before = len(children.read_text().split())
    host.end_server(server, limit=LIMIT_S)
    assert len(children.read_text().split()) == before - 2


def test_it_carries_the_sessions_token_from_the_moment_that_it_is_started(start: Start, journal: UndoJournal) -> None:
    # For a moment after exec, /proc shows an empty environment; undoing in that moment missed the process.
    for _ in range(50):
        process = start("sleep", "1000")
        environment = Path(f"/proc/{process.pid}/environ").read_bytes()
        assert f"{TOKEN_VARIABLE}={journal.token}".encode() in environment.split(b"\0")
        process.kill()


def test_it_is_not_reached_by_ctrl_c_at_the_terminal(start: Start) -> None:
    assert os.getsid(start("sleep", "1000").pid) != os.getsid(0)


def test_stop_asks_first_and_the_process_may_put_its_things_in_order(start: Start) -> None:
    process = start("sh", "-c", "trap 'exit 7' TERM; echo up; while :; do sleep 0.01; done")
    first_line(process)
    assert process.stop() == 7


def test_stop_insists_where_asking_is_ignored(start: Start) -> None:
    process = start("sh", "-c", "trap '' TERM; echo up; while :; do sleep 0.01; done")
    first_line(process)
    assert process.stop(grace=0.05) == -signal.SIGKILL
    assert not is_alive(process.pid)


def test_stop_ends_a_child_that_ignores_the_asking_though_the_process_itself_heeds_it(start: Start) -> None:
    # A server's worker that outlived it went on to disturb the runs that came after.
    inner = (
        "import os, signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "print(os.getpid(), flush=True); time.sleep(1000)"
    )
    process = start("sh", "-c", 'trap \'exit 0\' TERM; "$0" -c "$1" & while :; do sleep 0.01; done', PYTHON, inner)
    worker = int(first_line(process))
    assert process.stop() == 0
    until(lambda: not is_alive(worker))


def test_kill_ends_it_and_its_children_at_once(start: Start) -> None:
    process = start("sh", "-c", "sleep 1000 & echo $!; wait")
    child = int(first_line(process))
    process.kill()
    assert process.wait(0) == -signal.SIGKILL
    until(lambda: not is_alive(child))


def test_stopping_and_killing_what_has_ended_changes_nothing(start: Start) -> None:
    process = start("sh", "-c", "exit 3")
    assert process.wait(LIMIT_S) == 3
    assert process.stop() == 3
    process.kill()
    assert process.wait(0) == 3


def test_waiting_returns_as_soon_as_it_ends_and_none_before(start: Start) -> None:
    process = start("cat")
    assert process.wait(0) is None
    begun = time.monotonic()
    process.kill()
    assert process.wait(LIMIT_S) == -signal.SIGKILL
    assert time.monotonic() - begun < LIMIT_S / 2


def test_the_complaint_is_the_first_error_and_the_last_line_of_standard_error(start: Start) -> None:
    process = start("sh", "-c", "echo up >&2; echo 'no such table: usertable' >&2; echo ended >&2; exit 1")
    process.wait(LIMIT_S)
    assert process.complaint() == "no such table: usertable / ended"


def test_what_an_earlier_one_with_the_same_log_said_is_no_complaint_of_this_one(start: Start) -> None:
    start("sh", "-c", "echo 'error: an earlier one' >&2").wait(LIMIT_S)
    process = start("sh", "-c", "echo 'error: mine' >&2")
    process.wait(LIMIT_S)
    assert process.complaint() == "error: mine"


def test_a_line_that_tells_outweighs_the_last_ones(start: Start) -> None:
    process = start("sh", "-c", "printf '[Note] up\\n1 [ERROR] unknown variable\\n2 [ERROR] Aborting\\n' >&2; exit 1")
    process.wait(LIMIT_S)
    assert process.complaint(telling=r"\[ERROR\]") == "[ERROR] unknown variable"
    assert process.complaint(telling="FATAL") == "1 [ERROR] unknown variable / 2 [ERROR] Aborting"


def test_a_process_without_complaint_has_an_empty_one(start: Start) -> None:
    process = start("true")
    process.wait(LIMIT_S)
    assert process.complaint() == ""


def test_a_missing_program_is_a_run_error_that_names_it(start: Start) -> None:
    with pytest.raises(RunError, match=r"cannot start no-such-server: No such file.*\(/opt/no-such-server\)"):
        start("/opt/no-such-server")


def test_a_file_that_is_no_program_is_a_run_error(start: Start, tmp_path: Path) -> None:
    (tmp_path / "text").write_text("hello")
    with pytest.raises(RunError, match="cannot start text: Permission denied"):
        start(str(tmp_path / "text"))


def test_lines_gives_only_whole_lines_and_keeps_the_part_for_later(start: Start) -> None:
    process = start("sh", "-c", "printf 'one\\ntw'; read x; printf 'o\\nthree\\n'")
    assert lines_of(process, 1) == ["one"]
    process.tell("go on")
    assert lines_of(process, 2) == ["two", "three"]


def test_lines_of_a_process_that_closed_its_output_are_none_and_do_not_spin(start: Start) -> None:
    process = start("sh", "-c", "echo last; exec >&-; exec sleep 1000")
    assert first_line(process) == "last"
    process.lines(LIMIT_S)  # the end of the output
    looks, deadline = 0, time.monotonic() + 0.2
    while time.monotonic() < deadline:
        assert process.lines(0.1) == []
        looks += 1
    assert looks <= 3, "it waits for the process and does not return at once"
    assert process.wait(0) is None


def test_lines_returns_when_the_process_ends_without_a_word(start: Start) -> None:
    process = start("sh", "-c", "sleep 1000 & exit 0")  # the child still holds the output
    begun = time.monotonic()
    until(lambda: process.lines(LIMIT_S) == [] and process.wait(0) is not None)
    assert time.monotonic() - begun < LIMIT_S / 2


def test_speaking_with_what_has_ended_is_no_error(start: Start) -> None:
    process = start("true")
    process.wait(LIMIT_S)
    process.tell("hello")
    assert process.lines(0.1) == []


def test_bytes_that_are_no_text_are_lines_all_the_same(start: Start) -> None:
    assert first_line(start("printf", r"caf\351\n")) == "caf\N{REPLACEMENT CHARACTER}"


def test_output_goes_to_the_logs_in_the_order_in_which_it_was_started(host: LocalHost, tmp_path: Path) -> None:
    for word in ("one", "two"):
        host.start(["sh", "-c", f"echo {word}; echo no {word} >&2"], log=tmp_path / "both").wait(LIMIT_S)
    assert (tmp_path / "both.stdout").read_text() == "one\ntwo\n"
    assert (tmp_path / "both.stderr").read_text() == "no one\nno two\n"


def test_no_handle_is_left_open_by_a_process_that_ended(host: LocalHost, tmp_path: Path) -> None:
    def handles() -> int:
        return sum(1 for _ in Path("/proc/self/fd").iterdir())

    before = handles()
    for _ in range(5):
        host.start(["true"], log=tmp_path / "it", lines=True).wait(LIMIT_S)
        host.start(["sleep", "1000"], log=tmp_path / "it").stop()
    assert handles() == before


def test_several_threads_may_wait_for_the_end_of_one_process(start: Start) -> None:
    # A cluster's manager, who strikes it and who watches it ask whether one server lives: the first to see its end
    # closed the handle that the others were about to wait for.
    wrong: list[BaseException] = []

    def poll(process: Process) -> None:
        try:
            while process.wait(0) is None:
                pass
            assert process.wait(0) == 0
        except BaseException as error:  # noqa: BLE001 - counted below
            wrong.append(error)

    for _ in range(300):
        process = start("true", lines=False)
        threads = [threading.Thread(target=poll, args=(process,)) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(LIMIT_S)
    assert wrong == []


def test_a_command_gives_its_own_output_though_another_wrote_to_the_same_log(host: LocalHost, tmp_path: Path) -> None:
    # Two systems that both asked for `version` were given each other's answer as well, which was no JSON any more.
    assert host.run(["echo", "one"], limit=LIMIT_S, log=tmp_path / "version") == "one\n"
    assert host.run(["echo", "two"], limit=LIMIT_S, log=tmp_path / "version") == "two\n"


def test_a_command_that_fails_is_a_run_error_with_its_words(host: LocalHost, tmp_path: Path) -> None:
    with pytest.raises(RunError, match=r"`sh -c .*` ended with status 4: disk quota exceeded"):
        host.run(["sh", "-c", "echo disk quota exceeded >&2; exit 4"], limit=LIMIT_S, log=tmp_path / "it")


def test_a_long_command_stands_behind_its_cause(host: LocalHost, tmp_path: Path) -> None:
    """Why a server did not take a setting was behind a kilobyte of its command."""
    words = ["sh", "-c", "echo unknown variable foo >&2; exit 4", *(f"--option={number}" for number in range(50))]
    with pytest.raises(RunError, match=r"^sh ended with status 4: unknown variable foo; the command was `sh -c .*`$"):
        host.run(words, limit=LIMIT_S, log=tmp_path / "it")


def test_a_command_that_takes_too_long_is_ended_and_a_run_error(host: LocalHost, tmp_path: Path) -> None:
    with pytest.raises(RunError, match=r"`sleep 1000` did not end within 0.05 s"):
        host.run(["sleep", "1000"], limit=0.05, log=tmp_path / "it")


def test_a_process_that_outlives_its_killing_is_told_with_its_state_and_not_waited_for(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The kernel does not let it end where it waits for a device. Stopped by a signal that kills nothing it is as one.
    process = start("sleep", "1000")
    monkeypatch.setattr("dyno.hosts.process._DYING_S", 0.1)
    with monkeypatch.context() as deaf:
        deaf.setattr(os, "killpg", lambda pid, _: os.kill(pid, signal.SIGSTOP))
        with pytest.raises(RunError) as caught:
            process.kill()
    assert str(caught.value).startswith(f"sleep (process {process.pid}) did not end within 0.1 s of being killed: ")
    assert "its state is T (stopped)" in str(caught.value)
    assert process.stop(grace=0) == -signal.SIGKILL


def test_what_is_frozen_stands_still_with_all_that_it_started(start: Start) -> None:
    """A server whose children lead sessions of their own went on serving its clients."""
    inner = "import os, signal; os.setsid(); print(os.getpid(), flush=True); signal.pause()"
    outer = f"import signal, subprocess, sys; subprocess.Popen([sys.executable, '-c', {inner!r}]); signal.pause()"
    process = start(PYTHON, "-c", outer)
    child = int(first_line(process))
    try:
        assert os.getsid(child) == child
        process.send(signal.SIGSTOP)
        assert [state_of(pid) for pid in (process.pid, child)] == ["T", "T"]
        process.send(signal.SIGCONT)
        until(lambda: all(state_of(pid) == "S" for pid in (process.pid, child)))
    finally:
        os.kill(child, signal.SIGKILL)


def test_what_a_frozen_server_had_started_ends_when_it_is_put_away(start: Start) -> None:
    """As those of PostgreSQL do, which lead sessions of their own: frozen with it, they stayed for ever."""
    marker = f"marker-{secrets.token_hex(8)}"
    inner = "import os, sys; os.setsid(); print(os.getpid(), flush=True); sys.stdin.read()"
    outer = f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', {inner!r}], stdin=subprocess.PIPE).wait()"
    process = start(PYTHON, "-c", outer, marker)
    child = int(first_line(process))
    try:
        process.send(signal.SIGSTOP)
        end_server(marker, "SIGTERM")
        assert process.wait(LIMIT_S) == -signal.SIGTERM
        until(lambda: not is_alive(child))
    finally:
        if is_alive(child):
            os.kill(child, signal.SIGKILL)


def test_a_stop_is_waited_for_until_each_thread_took_it(start: Start) -> None:
    """The signal is sent at once, and a thread on another CPU goes on until it looks at it."""
    burn = "hashlib.pbkdf2_hmac('sha256', b'', b'', 2**31 - 1)"  # it lets other threads run meanwhile
    threads = f"import hashlib, threading\nfor _ in range(4): threading.Thread(target=lambda: {burn}).start()\n"
    process = start(PYTHON, "-c", f"{threads}print('here', flush=True)")
    first_line(process)
    for _ in range(50):
        process.send(signal.SIGSTOP)
        states = {each.read_text().rpartition(")")[2].split()[0] for each in tasks_of(process.pid)}
        assert states == {"T"}
        process.send(signal.SIGCONT)


def test_what_does_not_stand_still_is_told_with_its_state(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    process = start("sleep", "1000")
    monkeypatch.setattr("dyno.hosts.process._STOPPING_S", 0.05)
    message = r"^sleep \(process \d+\) did not stand still within 0.05 s of being stopped: its state is S"
    with monkeypatch.context() as deaf:
        deaf.setattr(os, "killpg", lambda pid, number: None)
        with pytest.raises(RunError, match=message):
            process.send(signal.SIGSTOP)


def tasks_of(pid: int) -> list[Path]:
    return list(Path(f"/proc/{pid}/task").glob("*/stat"))


def state_of(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
