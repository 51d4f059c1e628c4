"""Findings for other programs."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence

from dyno.model.findings import Comparison, Findings, OverallRatio
from dyno.report.decisions import standings

MOST_SENTENCES = 12
_FIGURES = ("unit", "n", "failed", "invalid", "partial", "mean", "sd", "variance", "cov", "mad", "min", "max", "range")


def foremost(found: Sequence[Comparison]) -> tuple[list[Comparison], list[Comparison]]:
    """Those to be read, and the others: of more than a reader takes in, those with the first level."""
    if len(found) <= MOST_SENTENCES:
        return list(found), []
    return [each for each in found if each.a == found[0].a], [each for each in found if each.a != found[0].a]


def part_of(found: OverallRatio) -> str:
    """`all 18`, `workload=a (6)`, `all 3, of 2 unlike tasks`: which combinations a ratio is over."""
    number = f"{found.of}" if found.combinations == found.of else f"{found.combinations} of {found.of}"
    unlike = f", {found.unlike}" if found.unlike else ""
    if not found.where:
        return f"{'all ' if found.combinations == found.of else ''}{number}{unlike}"
    return f"{' '.join(f'{factor}={level}' for factor, level in found.where.items())} ({number}{unlike})"


_OF_DEVICE = {"device_read_per_op": "read B/op", "device_written_per_op": "written B/op"}


def of_device(findings: Findings) -> dict[str, dict[int, float | None]]:
    """What was really read from and written to the device of the data: title of a column -> cell -> bytes an operation.

    It stands beside every response, since a store that is served from memory is not what a disk's study measures.
    Empty where it was not counted.
    """
    columns: dict[str, dict[int, float | None]] = {}
    for cell in findings.cells:
        if cell.response in _OF_DEVICE:
            columns.setdefault(_OF_DEVICE[cell.response], {})[cell.cell] = cell.mean
    return {title: columns[title] for title in _OF_DEVICE.values() if title in columns}


def to_json(findings: Findings) -> str:
    """The findings as JSON, keys in the order of their declaration (docs/reference/findings.md)."""
    return findings.model_dump_json(indent=2)


def to_csv(findings: Findings) -> str:
    """A line for each response of each cell, then for each resource; what is undefined is empty.

    Levels stand in columns `levels.<factor>`, the name of a resource (`server.cpu`) in that of responses. `standing` is
    how a cell stands in the decision table, where its response has one.
    """
    standing = standings(findings)
    factors = list(dict.fromkeys(factor for cell in findings.cells for factor in cell.levels))
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(
        [
            "cell",
            *(f"levels.{factor}" for factor in factors),
            "response",
            *_FIGURES,
            "ci_low",
            "ci_high",
            "precision",
            "converged",
            "unsteady",
            "standing",
        ]
    )
    for cell in findings.cells:
        writer.writerow(
            [
                cell.cell,
                *(cell.levels.get(factor, "") for factor in factors),
                cell.response,
                *(getattr(cell, name) for name in _FIGURES),
                *(cell.ci or ("", "")),
                cell.precision,
                "true" if cell.converged else "false",
                cell.unsteady,
                standing.get((cell.response, cell.cell), ""),
            ]
        )
    for figure in findings.resources:
        known = {"unit": figure.unit, "n": figure.n, "mean": figure.mean, "sd": figure.sd}
        writer.writerow(
            [
                figure.cell,
                *(figure.levels.get(factor, "") for factor in factors),
                figure.resource,
                *(known.get(name) for name in _FIGURES),
                *(figure.ci or ("", "")),
                *("", "", "", ""),
            ]
        )
    return text.getvalue()
