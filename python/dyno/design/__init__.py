"""Which run comes next, or that a study is done and why. Pure: no processes, no files, no clock."""

from dyno.design.forecasts import FEWEST_BLOCKS, POWER, OfCell, OfFactors, OfPair, Prospect, Runs, Spread, of_pilot
from dyno.design.plan import Design, Forecast, State, Stop, block_order, forecast
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
    "of_pilot",
]
