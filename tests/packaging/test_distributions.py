"""What is published: the wheel and the sdist each give a working `dyno` and `dyno-core` in a fresh environment."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("sdist")
    # From a copy: building leaves an egg-info folder beside the sources.
    copy = out / "checkout"
    ignored = shutil.ignore_patterns("target", "results", "build", "*.egg-info", ".*")
    shutil.copytree(ROOT, copy, ignore=ignored)
    argv = [sys.executable, "-m", "build", "--sdist", "--no-isolation", "--outdir", str(out), str(copy)]
    subprocess.run(argv, check=True, capture_output=True)
    return next(out.glob("*.tar.gz"))


@pytest.fixture(scope="module")
def wheel(sdist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built from the sdist, so that what the sdist lacks is missed here."""
    out = tmp_path_factory.mktemp("wheel")
    # The crates are compiled already where this checkout was installed; only the package around them is new.
    environment = {**os.environ, "CARGO_TARGET_DIR": str(ROOT / "target")}
    subprocess.run(
        [
            sys.executable,
            "-m",
            "pip",
            "wheel",
            "--quiet",
            "--no-deps",
            "--no-build-isolation",
            "-w",
            str(out),
            str(sdist),
        ],
        env=environment,
        check=True,
    )
    return next(out.glob("*.whl"))


def test_the_sdist_holds_the_sources_and_nothing_that_was_built(sdist: Path) -> None:
    with tarfile.open(sdist) as archive:
        names = [name.partition("/")[2] for name in archive.getnames()]
    for needed in (
        "pyproject.toml",
        "Cargo.lock",
        "LICENSE",
        "README.md",
        "python/dyno/cli.py",
        "schema/job.schema.json",
    ):
        assert needed in names
    assert any(name.endswith("main.rs") for name in names)
    assert not [name for name in names if name.startswith(("target/", ".venv/", "results/"))]


@pytest.mark.timeout(600)
def test_an_installed_wheel_runs_a_study_with_its_own_binary(wheel: Path, tmp_path: Path) -> None:
    environment = tmp_path / "fresh"
    venv.create(environment, with_pip=False)
    python = environment / "bin" / "python"
    # The dependencies are those of this environment, by path; what is installed anew is dyno itself.
    subprocess.run(
        [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet", "--no-deps", str(wheel)],
        check=True,
    )
    site = next((environment / "lib").glob("python*/site-packages"))
    ours = Path(sysconfig.get_path("purelib"))
    for entry in ours.iterdir():
        if not entry.name.lower().startswith("dyno") and not (site / entry.name).exists():
            (site / entry.name).symlink_to(entry)
    study = tmp_path / "study.yaml"
    study.write_text(
        "study: installed\nquestion: Does it work?\nsystem: {kind: sqlite}\n"
        "workload: {kind: ycsb, mix: a, records: 100, operations: 100}\n"
        "replicates: {min: 2, max: 2, precision: 500%}\n"
    )
    path = {**os.environ, "PATH": "/usr/bin:/bin", "DYNO_STATE": str(tmp_path / "state")}
    answer = subprocess.run(
        [environment / "bin" / "dyno", "run", str(study)],
        cwd=tmp_path, env=path, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert answer.returncode == 0, answer.stderr
    core = subprocess.run([environment / "bin" / "dyno-core", "--version"], capture_output=True, text=True, check=True)
    assert core.stdout.startswith("dyno-core ")
    run = next((tmp_path / "results" / "installed").glob("*/runs/0001/run.json")).read_text()
    assert str(environment / "bin" / "dyno-core") in run
