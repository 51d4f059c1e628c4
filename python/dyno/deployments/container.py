"""What deployments in containers share: an engine of their own, an image of the machine's own programs, a life.

Every start has a container of its own, which is removed at its end. Paths are the same inside and outside, so a server
is started by the same words everywhere; it is on the machine's own network, so no proxy stands before it.
"""

from __future__ import annotations

import re
import signal
import time
from abc import abstractmethod
from collections.abc import Mapping
from pathlib import Path

from dyno.deployments.base import ENVIRONMENT, Deployment, Launch, Recipe, Running, Site
from dyno.hosts import containers
from dyno.hosts.containers import ENGINE_LOST, Container, Engine, Plan
from dyno.hosts.images import Contents
from dyno.model.base import RunError

_KILL_LIMIT_S = 10.0
_ENGINE_LIMIT_S = 60.0


class Contained(Running):
    """A server that is the first process of a container."""

    def __init__(self, container: Container) -> None:
        self.container = container
        self.pid = container.pid

    def wait(self, timeout: float) -> int | None:
        """`ENGINE_LOST` where the engine ended before the server did."""
        return self.container.wait(timeout)

    def complaint(self, lines: int = 1, telling: str = "") -> str:
        """What became of the engine comes first, where it is gone."""
        return self.container.complaint(lines, telling)


class InContainer(Deployment):
    """One engine for all that is started on a site; it is started again where it died in a run."""

    in_container = True

    def __init__(self, site: Site) -> None:
        super().__init__(site)
        self._engine: Engine | None = None
        self._image: str | None = None

    @abstractmethod
    def place_data(self, container: Container, data: Path) -> None:
        """Before the server starts: have the data where it looks for them."""

    @abstractmethod
    def take_data_back(self, container: Container, data: Path) -> None:
        """After it ended and nothing of it is mounted; does nothing where they are back."""

    def mounted(self, launch: Launch) -> tuple[Path, ...]:
        """What of the machine the container has at its own path."""
        return launch.folders

    def provision(self, recipe: Recipe | None, limit: float) -> Mapping[str, str]:
        """Start the engine and give it an image of the recipe."""
        if recipe is None:
            raise RunError(f"this system does not say what an image of it has to have, so it cannot run in {self.kind}")
        deadline = time.monotonic() + limit
        engine = self._running_engine(limit)
        contents = Contents(recipe.programs, recipe.files, recipe.account)
        name = re.sub(r"[^a-z0-9]+", "-", recipe.name.lower()).strip("-")
        tag = f"dyno-{name}:{contents.checksum[:16]}"
        if tag != self._image:
            archive = self.site.work / f"{name}.tar"
            archive.parent.mkdir(parents=True, exist_ok=True)
            try:
                contents.write(archive)
                engine.import_image(archive, tag, deadline - time.monotonic())
            finally:
                archive.unlink(missing_ok=True)
            self._image = tag
        return {**engine.versions(max(deadline - time.monotonic(), 0)), "image": contents.checksum}

    def start(self, launch: Launch, limit: float) -> Running:
        """In a new container."""
        if self._image is None:
            raise RunError(f"{self.kind} was not provisioned")
        deadline = time.monotonic() + limit
        engine = self._running_engine(limit)
        group = self.site.confinement.group
        assert group is not None, "containers end by a group that is in the journal"
        plan = Plan(
            image=self._image,
            argv=launch.argv,
            group=group,
            environment=ENVIRONMENT,
            binds=self.mounted(launch),
            cpus=self.site.confinement.cpus,
            account=launch.account,
            disk=None if launch.loading else self.site.disk,
        )
        container = engine.create(plan, limit)
        try:
            self.place_data(container, launch.data)
            container.start(launch.log, deadline - time.monotonic())
        except RunError as error:
            self._put_away(container, engine)
            raise RunError(f"{Path(launch.argv[0]).name}: {error}") from error
        return Contained(container)

    def end(self, running: Running, *, limit: float, farewell: signal.Signals = signal.SIGTERM) -> int:
        """The container goes with it. ENGINE_LOST where the engine ended before the server did."""
        assert isinstance(running, Contained)
        assert self._engine is not None
        container = running.container
        sent = farewell
        if container.wait(0) is None:
            sent = container.ask_to_end(farewell)
            container.wait(limit)
        if not container.has_ended(0):
            sent = farewell
            container.kill()
        status = container.wait(_KILL_LIMIT_S)
        self._put_away(container, self._engine)
        if status is None:
            return ENGINE_LOST
        # Elsewhere what was sent to it would have ended it by itself.
        return -farewell if status == -signal.SIGKILL and sent != farewell else status

    def destroy(self) -> None:
        """Ends the engine; its images are in the site's folder."""
        engine, self._engine, self._image = self._engine, None, None
        if engine is not None:
            engine.end(_ENGINE_LIMIT_S)

    def _running_engine(self, limit: float) -> Engine:
        if self._engine is None:
            kind = containers.choose(self.site.engine)
            self._engine = kind(self.site.host, self.site.folder, self.site.logs)
        if not self._engine.runs:
            self._engine.start(limit)
        return self._engine

    def _put_away(self, container: Container, engine: Engine) -> None:
        container.kill()
        container.put_down(_ENGINE_LIMIT_S)
        self.take_data_back(container, self.data)
        container.release()
        if engine.died() is None:
            container.remove(_ENGINE_LIMIT_S)
        else:
            engine.bury()
