"""Carries out a design, run by run, and leaves nothing behind. See `lab.Lab`."""

from dyno.lab.interrupt import Interrupt
from dyno.lab.lab import Ending, Lab, refuse_full_disk
from dyno.lab.listener import Listener
from dyno.lab.rooms import Rooms

__all__ = ["Ending", "Interrupt", "Lab", "Listener", "Rooms", "refuse_full_disk"]
