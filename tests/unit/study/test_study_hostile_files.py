"""Files that are no studies, or that mean harm: one line each, soon, and never a traceback."""

from __future__ import annotations

import errno
import os
import time
from pathlib import Path

import pytest
import yaml
from study_example import EXAMPLE, KINDS, changed, written

import dyno.study
from dyno.model.base import Frozen
from dyno.model.study import Kinds
from dyno.study import StudyError, load, loader


@pytest.fixture(params=["libyaml", "pure Python"])
def _parser(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "pure Python":
        monkeypatch.setattr(loader, "_LOADER", yaml.SafeLoader)


def refused(path: Path) -> str:
    began = time.monotonic()
    with pytest.raises(StudyError) as caught:
        dyno.study.check(path, KINDS)
    message = str(caught.value)
    assert message.isprintable()
    assert len(message) < 500
    assert time.monotonic() - began < 20
    return message.replace(f"{path.parent}/", "")


def refused_bytes(data: bytes | str, folder: Path) -> str:
    return refused(written(folder, data))


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    assert refused(tmp_path / "study.yaml") == "study.yaml: no such file"


def test_a_file_that_is_not_there_but_one_of_a_like_name_is(tmp_path: Path) -> None:
    written(tmp_path, EXAMPLE, "journal.yaml")
    assert refused(tmp_path / "jornal.yaml") == "jornal.yaml: no such file; did you mean 'journal.yaml'?"


def test_a_folder(tmp_path: Path) -> None:
    assert refused(tmp_path).endswith(": is a directory; name the study file within it")


def test_a_path_through_a_file(tmp_path: Path) -> None:
    path = written(tmp_path, EXAMPLE) / "study.yaml"
    assert refused(path) == "study.yaml: cannot be read: Not a directory"


def test_a_name_that_no_file_can_have(tmp_path: Path) -> None:
    assert refused(tmp_path / "a\0b") == r"a\x00b: cannot be read: embedded null byte"
    assert refused(tmp_path / ("a" * 5000)).endswith(": cannot be read: File name too long")


def test_a_loop_of_links(tmp_path: Path) -> None:
    path = tmp_path / "study.yaml"
    path.symlink_to(path)
    assert refused(path) == "study.yaml: cannot be read: Too many levels of symbolic links"


def test_a_pipe_that_nobody_writes_to_does_not_hang(tmp_path: Path) -> None:
    path = tmp_path / "study.yaml"
    os.mkfifo(path)
    assert refused(path) == "study.yaml: is not a regular file; a study is read from a file"


def test_a_device() -> None:
    assert refused(Path("/dev/zero")) == "zero: is not a regular file; a study is read from a file"


def test_a_file_that_may_not_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The refusal is planted: root may read every file."""
    path = written(tmp_path, EXAMPLE)

    def refuse(*_args: object) -> int:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    monkeypatch.setattr(os, "open", refuse)
    assert refused(path) == "study.yaml: cannot be read: Permission denied"


def test_the_null_kind_needs_no_quotes(tmp_path: Path) -> None:
    text = "study: x\nquestion: y\nsystem: {kind: null}\nworkload:\n  kind: null\n"
    kinds = Kinds(systems={"null": Frozen}, workloads={"null": Frozen})
    study = load(written(tmp_path, text), kinds)
    assert (study.cells[0].system.kind, study.cells[0].workload.kind) == ("null", "null")


@pytest.mark.usefixtures("_parser")
@pytest.mark.parametrize(
    ("name", "data", "expected"),
    [
        ("empty", b"", "study.yaml:1: is empty; a study has study, question, system and workload"),
        ("only a comment", b"# nothing\n", "study.yaml:1: is empty; a study has study, question, system and workload"),
        ("only null", b"---\n~\n", "study.yaml:1: is empty; a study has study, question, system and workload"),
        (
            "a list",
            b"\n- study: x\n",
            "study.yaml:2: should be a mapping of keys, not a list; begin with 'study: name'",
        ),
        (
            "a word",
            b"study",
            "study.yaml:1: should be a mapping of keys, not a single value; begin with 'study: name'",
        ),
        (
            "Latin-1",
            b"study: a\nquestion: caf\xe9\n",
            "study.yaml:2: byte 23 of the file is not UTF-8; save the file as UTF-8",
        ),
        (
            "UTF-16",
            "study: a".encode("utf-16"),
            "study.yaml:1: byte 1 of the file is not UTF-8; save the file as UTF-8",
        ),
        ("NUL", b"study: a\n\0\n", "study.yaml:2: character U+0000 is not allowed in YAML; remove it"),
        (
            "a second byte order mark",
            b"a: 1\n\xef\xbb\xbfb: 2\n",
            "study.yaml:2: character U+FEFF is not allowed in YAML; remove it",
        ),
        ("a wrong directive", b"%YAML 9.9\n---\na: 1\n", "study.yaml:1: not valid YAML: "),
        ("an escaped surrogate", b'study: "\\ud800"\n', "study.yaml:1: "),
        ("a code point beyond Unicode", b'study: "\\Uffffffff"\n', "study.yaml:1: not valid YAML: "),
    ],
)
def test_what_is_no_yaml_mapping(name: str, data: bytes, expected: str, tmp_path: Path) -> None:
    assert refused_bytes(data, tmp_path).startswith(expected)


def test_a_file_above_the_limit(tmp_path: Path) -> None:
    message = refused_bytes(b"#" * (1024 * 1024 + 1), tmp_path)
    assert message == "study.yaml: is larger than 1 MiB; no study is, so this is probably another file"


@pytest.mark.usefixtures("_parser")
@pytest.mark.parametrize("opening", ["[", "{a: ", "- ", "? ", "a:\n"])
def test_deep_nesting(opening: str, tmp_path: Path) -> None:
    text = "a: " + opening * 20_000 if opening != "a:\n" else "".join(" " * n + "a:\n" for n in range(1000))
    message = refused_bytes(text, tmp_path)
    assert "nested more than 50 deep" in message or "not valid YAML" in message


@pytest.mark.usefixtures("_parser")
def test_a_billion_laughs(tmp_path: Path) -> None:
    lines = ["a0: &a0 [ha, ha, ha, ha, ha, ha, ha, ha, ha]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 12)]
    assert refused_bytes("\n".join(lines), tmp_path) == (
        "study.yaml:6: more than 100,000 values once aliases are filled in; no study has as many"
    )


@pytest.mark.usefixtures("_parser")
def test_nesting_through_aliases(tmp_path: Path) -> None:
    lines = ["a0: &a0 [x]", *(f"a{n}: &a{n} [*a{n - 1}]" for n in range(1, 100))]
    assert (
        refused_bytes("\n".join(lines), tmp_path)
        == "study.yaml:49: nested more than 50 deep once the alias is filled in"
    )


@pytest.mark.usefixtures("_parser")
def test_very_many_values(tmp_path: Path) -> None:
    assert "more than 100,000 values" in refused_bytes("a: [" + "1," * 200_000 + "]", tmp_path)


def test_text_that_is_costly_to_look_at_as_a_quantity(tmp_path: Path) -> None:
    text = changed({10: f'    cache_size: "1{" " * 900_000}!"'})
    assert refused_bytes(text, tmp_path).startswith("study.yaml:10: system.config.cache_size: '1   ")


def test_many_anchors_within_one_another(tmp_path: Path) -> None:
    text = "a: " + "".join(f"&a{n} [" for n in range(45)) + "1," * 90_000 + "]" * 45
    assert "required key is missing" in refused_bytes(text, tmp_path) or "unknown key" in refused_bytes(text, tmp_path)


@pytest.mark.parametrize("value", ["a\\nb", "\\e[31mred", "\\u202etxet", "x" * 100_000])
def test_what_a_terminal_would_act_on_is_escaped_and_long_values_are_cut(value: str, tmp_path: Path) -> None:
    message = refused_bytes(changed({13: f'  mix: "{value}"'}), tmp_path)
    assert message.startswith(("study.yaml:13: workload.mix: should be one of a, b, c; not '", "study.yaml:13: '\\x1b"))


@pytest.mark.parametrize("key", ["a\\nb", "x" * 1000, "\\u202e"])
def test_keys_are_escaped_and_cut_too(key: str, tmp_path: Path) -> None:
    assert "unknown key" in refused_bytes(changed({13: f'  mix: a\n  "{key}": 1'}), tmp_path)


@pytest.mark.parametrize(
    ("line", "remedy"),
    [
        ("factors: {a: ${b}}", 'within braces, quote "${...}"'),
        ("question: is it: so?", "quote a text that has ': ' in it"),
        ("factors:\n\ta: 1", "indent with spaces, not tabs"),
    ],
)
def test_the_commonest_slips_of_yaml_come_with_their_remedy(line: str, remedy: str, tmp_path: Path) -> None:
    assert refused_bytes(f"study: x\n{line}\n", tmp_path).endswith(remedy)
