"""Times on CPUs that software emulates are held against nothing but their like."""

from __future__ import annotations

from small_studies import Runs, study

from dyno.analysis import analyse, compare_folders
from dyno.model import measures
from dyno.model.findings import Findings
from dyno.model.study import Study

SYSTEMS = ["group", "drbd-a", "drbd-c"]


def topologies(compare: str | None = "topology", *, of: str = "throughput") -> tuple[Study, Runs]:
    """One native system beside two in emulated machines, each a hundred times slower, with some loss."""
    plan = study({"topology": SYSTEMS}, compare=compare, of=of)
    made = Runs(plan)
    for block in range(6):
        for cell, speed in enumerate((1000.0, 10.0, 8.0)):
            figures = {
                "throughput": speed + block / 100,
                "latency_p99": 1e4 / (speed + block / 100),
                "device_written_per_op": 4096.0 * (cell + 1) + block,
            }
            made.add(cell, block, responses=figures, deployed={"emulated": cell > 0})
    return plan, made


def findings(compare: str | None = "topology", *, of: str = "throughput") -> Findings:
    plan, made = topologies(compare, of=of)
    return analyse(plan, made, ended="all blocks are done")


def test_a_time_under_emulation_is_never_compared_with_a_native_one() -> None:
    found = [each for each in findings().comparisons if each.response in ("throughput", "latency_p99")]
    against_native = [each for each in found if each.a == "group"]
    assert len(against_native) == 4
    assert all((each.ratio, each.ci, each.verdict) == (None, None, "not enough runs") for each in against_native)
    assert "the CPUs of drbd-a were emulated by software and those of group were not" in against_native[0].sentence


def test_emulated_systems_are_compared_with_each_other() -> None:
    (alike,) = [each for each in findings().comparisons if each.response == "throughput" and each.a == "drbd-a"]
    assert alike.verdict == "lower"


def test_what_takes_no_time_is_compared_all_the_same_and_its_confounder_named() -> None:
    written = [each for each in findings().comparisons if each.response == "device_written_per_op"]
    assert all(each.ratio is not None for each in written)
    assert written[0].confounded == ("deployed.emulated",)
    assert written[2].confounded == ()


def test_no_answer_calls_an_emulated_system_slower_or_faster() -> None:
    told = findings()
    assert "faster" not in told.answer
    assert "slower" not in told.answer
    assert all(each.a != "group" or each.response == "device_written_per_op" for each in told.overall)
    assert any("emulated by software in 2 of 3 cells" in note for note in told.notes)


def test_the_ranking_of_cells_that_are_not_compared_stays_open() -> None:
    assert findings(None).answer.startswith("Which is the fastest is open: some of the systems had CPUs")
    assert findings(None, of="device_written_per_op").answer.startswith("The lowest mean")


def test_a_folder_measured_under_emulation_is_not_held_against_a_native_one() -> None:
    plan = study({})
    native, emulated = Runs(plan), Runs(plan)
    for block in range(4):
        native.add(0, block, 100.0 + block, deployed={"emulated": False})
        emulated.add(0, block, 10.0 + block, deployed={"emulated": True})
    (found,) = compare_folders(plan, native, plan, emulated)
    assert found.ratio is None
    assert "the CPUs of the second were emulated by software" in found.sentence


def test_what_hangs_on_time_is_told_by_units_and_by_what_paces_it() -> None:
    timed = ("throughput", "read.latency_p99", "elapsed", "cpu.util", "operations", "new_orders_per_min", "server.cpu")
    untimed = ("failed_operations", "device_written_per_op", "instructions", "syncs_lost", "server.written")
    assert [name for name in (*timed, *untimed) if measures.is_of_time(name)] == list(timed)


def test_what_drbd_does_not_flush_is_said_to_be_the_price_of_a_promise() -> None:
    plan = study({"disk_flushes": ["true", "false"]}, compare="disk_flushes")
    made = Runs(plan)
    for block in range(4):
        for cell, flushes in enumerate((True, False)):
            settings = {"drbd.disk-flushes": flushes, "drbd.protocol": "C"}
            made.add(cell, block, 10.0 * (cell + 1) + block / 10, settings=settings)
    notes = analyse(plan, made, ended="all blocks are done").notes
    (told,) = [note for note in notes if "do not promise the same" in note]
    assert "differ in drbd.disk-flushes (true: true, false: false)" in told
