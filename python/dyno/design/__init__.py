"""Which run comes next, or that a study is done and why, and what counts of a run.

Pure: no processes, no files, no clock.
"""

from dyno.design.part import measured_part
from dyno.design.plan import Design, Forecast, State, Stop, block_order, forecast

__all__ = ["Design", "Forecast", "State", "Stop", "block_order", "forecast", "measured_part"]
