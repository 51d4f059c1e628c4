"""Which run comes next, or that a study is done and why. Pure: no processes, no files, no clock."""

from dyno.design.blocks import block_order
from dyno.design.plan import Design, Forecast, State, Stop, forecast

__all__ = ["Design", "Forecast", "State", "Stop", "block_order", "forecast"]
