"""Places where commands run and files live. The only room that starts processes or changes the machine."""

from dyno.hosts.local import LocalHost
from dyno.hosts.process import Process
from dyno.hosts.undo import UndoJournal

__all__ = ["LocalHost", "Process", "UndoJournal"]
