"""A container whose data are in a volume: a folder of the machine, which the container has at the same path."""

from __future__ import annotations

from pathlib import Path

from dyno.deployments.base import Launch
from dyno.deployments.container import InContainer
from dyno.hosts.containers import Container


class Volume(InContainer):
    """The data stay where they are."""

    kind = "container-volume"

    def mounted(self, launch: Launch) -> tuple[Path, ...]:
        """The data too."""
        return (launch.data, *launch.folders)

    def place_data(self, container: Container, data: Path) -> None:
        """They are mounted."""

    def take_data_back(self, container: Container, data: Path) -> None:
        """They never left."""
