"""What the driver tells of the machine's counters, as rows."""

from __future__ import annotations

from dyno.lab.call_costs import _by_hardware

TOLD = {
    "counted.payment": 4.0,
    "instructions.payment": 4000.0,
    "cycles.payment": 8000.0,
    "calls.payment.lookup": 12.0,
    "instructions.payment.lookup": 2400.0,
    "cycles.payment.lookup": 6000.0,
}


def test_calls_and_what_is_in_none_add_up_to_the_transaction() -> None:
    rows = list(_by_hardware(TOLD, "outlined", {"payment": 4}))
    assert rows == [
        ("outlined", "hardware", "payment", "", "", "instructions", 400.0),
        ("outlined", "hardware", "payment", "lookup", "", "instructions", 600.0),
        ("outlined", "hardware", "payment", "", "", "cycles", 500.0),
        ("outlined", "hardware", "payment", "lookup", "", "cycles", 1500.0),
    ]


def test_a_build_that_keeps_no_calls_apart_has_whole_transactions() -> None:
    told = {name: value for name, value in TOLD.items() if "lookup" not in name}
    assert [row[3:] for row in _by_hardware(told, "optimised", {"payment": 4})] == [
        ("", "", "instructions", 1000.0),
        ("", "", "cycles", 2000.0),
    ]
