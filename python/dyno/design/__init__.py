"""Which run comes next, or that a study is done and why, and what counts of a run.

Pure: no processes, no files, no clock.
"""

from dyno.design.blocks import block_order
from dyno.design.forecasts import FEWEST_BLOCKS, POWER, OfCell, OfFactors, OfPair, Prospect, Runs, Spread, of_pilot
from dyno.design.part import measured_part
from dyno.design.plan import Design, Forecast, State, Stop, forecast
from dyno.design.rule import Rule

__all__ = [
    "FEWEST_BLOCKS",
    "POWER",
    "Design",
    "Forecast",
    "OfCell",
    "OfFactors",
    "OfPair",
    "Prospect",
    "Rule",
    "Runs",
    "Spread",
    "State",
    "Stop",
    "block_order",
    "forecast",
    "measured_part",
    "of_pilot",
]
