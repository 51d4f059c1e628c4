"""A container whose data are in its own writable layer, as they are where nobody gives it a volume."""

from __future__ import annotations

from pathlib import Path

from dyno.deployments.container import InContainer
from dyno.hosts.containers import Container
from dyno.model.base import RunError


class Layered(InContainer):
    """Between runs the data are where those of any deployment are. They are renamed into the layer and back.

    Nothing is copied, neither then nor at the first write to a file: the layer below has no data.
    """

    kind = "container-layered"

    _running: Path | None = None

    def data_while_running(self) -> Path:
        """In the layer of the container that runs."""
        return self._running or self.data

    def place_data(self, container: Container, data: Path) -> None:
        """The folders on the way are made as they are on the machine, so that whoever may pass there may pass here."""
        inside = container.upper / data.relative_to("/")
        try:
            for folder in reversed(data.relative_to("/").parents):
                made = container.upper / folder
                if not made.exists():
                    made.mkdir()
                    made.chmod(Path("/", folder).stat().st_mode & 0o7777)
            self._outside(container, data).rename(inside)
        except OSError as error:
            raise RunError(f"cannot have the data in the container's layer: {error}") from error
        self._running = inside

    def take_data_back(self, container: Container, data: Path) -> None:
        """Before the layer is removed."""
        if self._running is None:
            return
        try:
            self._running.rename(self._outside(container, data))
        except OSError as error:
            raise RunError(f"cannot have the data back from the container's layer: {error}") from error
        self._running = None

    def _outside(self, container: Container, data: Path) -> Path:
        """Where the engine sees the data: a rename from one mount to another is refused, even on one file system."""
        return container.engine.place / data.relative_to(self.site.folder)
