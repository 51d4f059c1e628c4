"""The study of file systems: at each scale that measures disks, its files are more than page cache can hold."""

from __future__ import annotations

from pathlib import Path

import pytest

from dyno.cli import check_file
from dyno.model.units import parse_size
from dyno.workloads.filebench import FilebenchOptions, FilebenchWorkload

FILE = Path(__file__).parents[3] / "studies" / "filesystems.yaml"


@pytest.mark.parametrize("scale", ["default", "published"])
def test_files_exceed_what_the_memory_limit_leaves_for_page_cache_and_fit_on_the_image(scale: str) -> None:
    # The scale of published sizes had 16 MiB of pages beside 2 GiB of memory: no disk was in it.
    for cell in check_file(FILE, scale).cells:
        workload = FilebenchWorkload(FilebenchOptions.model_validate(cell.workload.options))
        there = sum(fileset["bytes_at_start"] for fileset in workload._told("filesets", []))
        memory, size = cell.host.machine.memory, parse_size(str(cell.system.options["size"]))
        assert memory is not None
        assert 1.4 * memory < there, cell.name
        assert workload.data_bytes() < 0.65 * size, cell.name
