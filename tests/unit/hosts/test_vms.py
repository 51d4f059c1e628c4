"""Asking what runs in a virtual machine, and QEMU itself; what a machine begins with."""

from __future__ import annotations

import base64
import contextlib
import json
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from dyno.hosts import vm_image
from dyno.hosts.qmp import Monitor
from dyno.hosts.vms import Acceleration, Agent, append, parse_answer
from dyno.model.base import RunError
from tests.making import until

Answer = Callable[[bytes], bytes]


@contextlib.contextmanager
def answering(path: Path, answer: Answer, greeting: bytes = b"") -> Iterator[list[bytes]]:
    """Somebody at a socket file, who answers each line."""
    heard: list[bytes] = []
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(path))
    listener.listen()

    def serve() -> None:
        with contextlib.suppress(OSError):
            while True:
                opened, _ = listener.accept()
                with opened, opened.makefile("rb") as lines:
                    opened.sendall(greeting)
                    for line in lines:
                        heard.append(line)
                        opened.sendall(answer(line))

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield heard
    finally:
        listener.close()


def said(number: bytes, status: int, text: str) -> bytes:
    return b"%s %d %s\n" % (number, status, base64.b64encode(text.encode()))


def alive(_seconds: float) -> int | None:
    return None


def ask(path: Path, command: str) -> str:
    with contextlib.closing(Agent(path, alive)) as agent:
        return agent.ask(command, 5.0)


def test_an_agent_is_told_a_command_with_its_limit_and_gives_what_it_said(tmp_path: Path) -> None:
    with answering(tmp_path / "a", lambda line: said(line.split()[0], 0, "so be it\n")) as heard:
        assert ask(tmp_path / "a", "echo 'so be it'") == "so be it"
    number, limit, command = heard[0].split()
    assert (number, limit, base64.b64decode(command)) == (b"1", b"5.0", b"echo 'so be it'")


def test_an_answer_that_nobody_waited_for_is_passed_over(tmp_path: Path) -> None:
    with answering(tmp_path / "a", lambda line: said(b"0", 0, "late") + said(line.split()[0], 0, "now")):
        assert ask(tmp_path / "a", "date") == "now"


def test_a_command_that_fails_is_an_error_with_its_last_words(tmp_path: Path) -> None:
    with (
        answering(tmp_path / "n1", lambda line: said(line.split()[0], 32, "mount: wrong fs type\n")),
        pytest.raises(RunError, match="`mount /x` ended with status 32 in n1: mount: wrong fs type"),
    ):
        ask(tmp_path / "n1", "mount /x")


def test_an_agent_that_says_nothing_is_an_error_in_time(tmp_path: Path) -> None:
    with answering(tmp_path / "n1", lambda _line: b""), pytest.raises(RunError, match="n1 does not answer `true`"):
        Agent(tmp_path / "n1", alive).ask("true", 0.1)


def test_who_waits_for_an_answer_hears_at_once_that_another_thread_let_go(tmp_path: Path) -> None:
    """It had been asked of None, or waited on a socket that connected anew to a machine that was killed."""
    agent, said_by = Agent(tmp_path / "n1", alive), list[str]()

    def wait() -> None:
        try:
            agent.ask("sleep 60", 60.0)
        except RunError as error:
            said_by.append(str(error))

    with answering(tmp_path / "n1", lambda _line: b"") as heard:
        waiting = threading.Thread(target=wait, daemon=True)
        waiting.start()
        until(lambda: bool(heard))
        agent.close()
        waiting.join(10)
    assert not waiting.is_alive()
    assert len(said_by) == 1
    assert said_by[0].startswith("n1 does not answer `sleep 60`")


def test_a_machine_that_has_ended_is_not_waited_for(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="n1 does not answer"):
        Agent(tmp_path / "n1", lambda _seconds: 1).ask("true", 60.0)


@pytest.mark.parametrize("line", [b"", b"1 2", b"one 0 eA==", b"1 0 ===x"])
def test_what_is_no_answer_is_told_from_one(line: bytes) -> None:
    if line == b"1 2":
        assert parse_answer(line) == (1, 2, "")
    else:
        with pytest.raises(OSError, match="it said"):
            parse_answer(line)


def of_qemu(line: bytes) -> bytes:
    asked = json.loads(line)
    number = {"id": asked["id"]} if "id" in asked else {}
    late = b'{"return": "of a question before", "id": -1}\n'
    event = b'{"event": "JOB_STATUS_CHANGE"}\n'
    if asked["execute"] == "job-cancel":
        return json.dumps({"error": {"class": "DeviceNotActive", "desc": "Job not found"}, **number}).encode() + b"\n"
    return event + late + json.dumps({"return": asked.get("arguments", {}), **number}).encode() + b"\n"


def test_qemu_is_asked_past_its_greeting_and_past_what_happens_meanwhile(tmp_path: Path) -> None:
    with answering(tmp_path / "q", of_qemu, b'{"QMP": {}}\n') as heard:
        monitor = Monitor(tmp_path / "q")
        assert monitor.ask("blockdev-del", **{"node-name": "peer"}) == {"node-name": "peer"}
        with pytest.raises(RunError, match="job-cancel was refused at q: Job not found"):
            monitor.ask("job-cancel", id="mirror")
        monitor.close()
    assert [json.loads(line)["execute"] for line in heard] == ["qmp_capabilities", "blockdev-del", "job-cancel"]


def test_threads_that_ask_one_program_are_each_given_their_own_answer(tmp_path: Path) -> None:
    # Who looked after a disk and who waited until it was whole stole each other's answers, and waited 10 s for theirs.
    given: list[tuple[Any, Any]] = []
    with answering(tmp_path / "q", of_qemu, b'{"QMP": {}}\n'):
        monitor = Monitor(tmp_path / "q", patience=2.0)

        def ask(thread: int) -> None:
            for number in range(100):
                asked = {"thread": thread, "number": number}
                try:
                    given.append((asked, monitor.ask("query-block-jobs", **asked)))
                except BaseException as error:  # noqa: BLE001 - compared below
                    given.append((asked, error))

        threads = [threading.Thread(target=ask, args=(number,)) for number in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        monitor.close()
    assert len(given) == 300
    assert [each for each in given if each[0] != each[1]] == []


@pytest.mark.parametrize("greeting", [b'{"QMP": {}}\n', b""])
def test_letting_go_of_a_program_that_owes_an_answer_ends_the_question(tmp_path: Path, greeting: bytes) -> None:
    ended: list[BaseException] = []
    with answering(tmp_path / "q", lambda line: of_qemu(line) if b"capabilities" in line else b"", greeting) as heard:
        monitor = Monitor(tmp_path / "q", patience=60.0)

        def ask() -> None:
            try:
                monitor.ask("query-block-jobs")
            except BaseException as error:  # noqa: BLE001 - looked at below
                ended.append(error)

        thread = threading.Thread(target=ask, daemon=True)
        thread.start()
        until(lambda: not greeting or len(heard) == 2)

        def let_go() -> bool:
            monitor.close()
            return not thread.is_alive()

        until(let_go, 10)
    assert [type(each) for each in ended] == [RunError], ended


def test_who_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="query-status was not answered at gone"):
        Monitor(tmp_path / "gone").ask("query-status")


def test_a_kernel_is_told_who_it_is() -> None:
    told = append({"name": "n1", "address": "10.213.0.11/24"}, Acceleration("kvm"))
    assert told.endswith("dyno.name=n1 dyno.address=10.213.0.11/24")
    assert "clocksource" not in told


def test_an_emulated_cpu_does_not_tell_the_time() -> None:
    """Its kernel took 1,300 s for 170 s, and a peer that was there for gone."""
    assert "clocksource=acpi_pm" in append({"name": "n1"}, Acceleration("tcg"))


def test_an_entry_of_the_first_file_system_is_padded_to_four_and_tells_its_sizes() -> None:
    entry = vm_image.newc("init", b"#!/bin/sh\n", 0o100755)
    assert len(entry) % 4 == 0
    assert entry.startswith(b"070701")
    assert (int(entry[14:22], 16), int(entry[54:62], 16), int(entry[94:102], 16)) == (0o100755, 10, 5)
    assert entry[110:115] == b"init\0"


def test_an_image_that_is_missing_or_of_another_dyno_says_how_it_is_made(tmp_path: Path) -> None:
    with pytest.raises(RunError, match=r"there is no image of virtual machines in .*: `dyno get drbd-vm` makes it"):
        vm_image.open_image(tmp_path)
    facts: dict[str, Any] = {"guest": "another", "packages": {}, "kernel": "6.1", "drbd": "8.4.11", "sha256": {}}
    (tmp_path / "image.json").write_text(json.dumps(facts))
    with pytest.raises(RunError, match="is of another dyno: `dyno get drbd-vm` makes it anew"):
        vm_image.open_image(tmp_path)
    facts["guest"] = vm_image._guest_key()
    (tmp_path / "image.json").write_text(json.dumps(facts))
    with pytest.raises(RunError, match=r"lacks vmlinuz, initrd, root\.img"):
        vm_image.open_image(tmp_path)


def test_a_folder_that_is_no_image_is_not_replaced_by_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DYNO_DRBD_VM", str(tmp_path))
    (tmp_path / "thesis").write_text("mine")
    with pytest.raises(Exception, match="has no image of virtual machines, and will not be replaced by one"):
        vm_image.DrbdVm().get()
    assert (tmp_path / "thesis").read_text() == "mine"
