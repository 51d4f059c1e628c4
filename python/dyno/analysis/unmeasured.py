"""Why a response has no figure, as far as the plan and the runs tell."""

from __future__ import annotations

import re
from collections.abc import Sequence

from dyno.analysis.usage import EVENTS
from dyno.model.faults import OF_FAULTS
from dyno.model.run import Outcome, RunRecord
from dyno.model.study import Study
from dyno.model.usage import is_resource, resources, shares

WATCHED = "machine"  # the kind of observer whose samples make the responses that end with `.util`
COUNTING = "perf-stat"  # the kind of observer that counts events of CPUs
TRANSACTIONS = "counted"  # the kind of observer that counts what transactions take
USUAL_HZ = 1.0  # samples a second of that observer, where a plan does not say it
_OF_OTHERS = ("server.syncs", "server.logged", "server.lock", "server.instructions", "server.cycles", "workload.")
_OF_DEVICE = tuple(name for name in (*resources(), *shares()) if name.startswith("disk."))


def why_unmeasured(study: Study, runs: Sequence[RunRecord], response: str) -> str:
    """A clause without its full stop; empty where it is not known."""
    if why := why_no_counts(study, runs, response):
        return why
    if why := why_no_cycles(study, response):
        return why
    if response in OF_FAULTS:
        if any(run.faulted is not None for run in runs):
            return "no ok run knows it: see the figures of each fault (--format json, failovers)"
        return "nothing was struck in these runs (faults)"
    watched = is_resource(response) and not response.startswith(_OF_OTHERS)
    if not response.endswith(".util") and not watched:
        return ""
    if why := why_unobserved(study, runs):
        return why
    if response in _OF_DEVICE and all(run.disk is None for run in runs):
        return "these runs do not say which device their data are on"
    return ""


def why_no_counts(study: Study, runs: Sequence[RunRecord], response: str) -> str:
    """Why the observer of counters left nothing of it; empty where it is none of its events, or that is not known."""
    event = next((event for event, name in EVENTS.items() if response.partition(".")[2] == name), None)
    if event is None or not is_resource(response):
        return ""
    if not any(each.kind == COUNTING for each in study.observe):
        return f"the study has no observer `{COUNTING}`, which counts it"
    for note in (note for run in runs for note in run.notes):
        said, _, rest = note.partition(":")
        if said.startswith("This machine ") and re.search(rf"(^|[ ,]){re.escape(event)}($|[ ,])", f"{said} {rest}"):
            return f"t{said[1:]}"
    return f"`{COUNTING}` did not count {event}; its `events` may name it"


def why_no_cycles(study: Study, response: str) -> str:
    """Why a transaction has no cycles, or no instructions; empty of other responses."""
    event = response.rpartition(".")[2]
    if event not in ("cycles", "instructions"):
        return ""
    if not any(each.kind == TRANSACTIONS for each in study.observe):
        return f"the study has no observer `{TRANSACTIONS}`, which counts them"
    return "this machine has no counters" if event == "cycles" else ""


def why_unobserved(study: Study, runs: Sequence[RunRecord]) -> str:
    """Why the observer of the machine left nothing of what counts; a clause, empty where it is not known."""
    watching = next((each for each in study.observe if each.kind == WATCHED), None)
    if watching is None:
        return f"the study has no observer `{WATCHED}`, which measures it"
    interval = 1 / float(watching.options.get("hz") or USUAL_HZ)
    lengths = [run.measured.seconds for run in runs if run.outcome is Outcome.OK and run.measured]
    # What counts is a sample that is wholly of the measured part: in one of two intervals there is always one.
    if not lengths or max(lengths) >= 2 * interval:
        return ""
    longest, between = f"{max(lengths):.3g} s", f"{interval:.3g} s"
    if max(lengths) < interval:
        return f"runs of {longest} are shorter than the {WATCHED} observer's interval of {between}"
    return f"no whole interval of {between} of the {WATCHED} observer lies within runs of {longest}"
