"""Results of `dyno-core files`: the committed examples are read as those of any driver of dyno's own."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from dyno.workloads import core

SCHEMA = Path(__file__).parents[3] / "schema"
EXAMPLES = sorted((SCHEMA / "golden").glob("files-result-*.json"))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_every_committed_result_is_as_the_schema_says(path: Path) -> None:
    schema = json.loads((SCHEMA / "files-result.schema.json").read_text())
    Draft202012Validator(schema).validate(json.loads(path.read_text()))


def test_a_committed_result_has_the_responses_that_any_driver_gives(tmp_path: Path) -> None:
    result = json.loads((SCHEMA / "golden" / "files-result-oltp-compat.json").read_text())
    measured = core.told(result, {}, tmp_path)
    assert measured.complete
    assert measured.responses["throughput"] == result["total"]["throughput_per_s"] > 0
    assert (
        measured.responses["table-read.latency_p99"] == result["operations"]["table-read"]["latency_us"]["p99"] / 1000
    )
    # The summary is of what goes to the file system: what works or waits meanwhile is apart.
    assert "reader-work" in result["others"]
    assert sum(each["count"] for each in result["operations"].values()) == result["total"]["count"]


def test_a_result_with_a_key_that_the_schema_does_not_have_is_not_valid() -> None:
    schema = json.loads((SCHEMA / "files-result.schema.json").read_text())
    result = json.loads(EXAMPLES[0].read_text())
    assert not Draft202012Validator(schema).is_valid({**result, "more": 1})
