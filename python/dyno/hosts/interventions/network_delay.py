"""A slower way to the clients: time added to each message that the server sends.

Not by the kernel's own queues: those of the loopback delay whatever else on this machine talks through it, a namespace
would change the addresses by which the server knows its clients, and socket files pass through none. Between sending
and arriving it makes no difference on which side of the send the wait is, but one: the server's thread waits with it.
In a closed loop with a thread for each client that thread would have waited for the client's next request anyway.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from dyno.hosts.interventions.base import Lives
from dyno.hosts.interventions.calls import Calls, OpenFile
from dyno.model.interventions import Delay, Delays


class NetworkDelayOptions(Delays):
    """How much later a message is sent."""

    title = "time added to each message that the server sends"
    doses: Annotated[
        tuple[Delay, ...],
        Field(description="added to each message; 50 us, 200 us and 400 us if left out"),
    ] = (50e-6, 200e-6, 400e-6)


class NetworkDelay(Calls):
    """Before sendto, sendmsg and sendmmsg."""

    kind = "network-delay"
    Options = NetworkDelayOptions
    calls = ("sendto", "sendmsg", "sendmmsg")
    when: ClassVar[Literal["enter", "exit"]] = "enter"
    tried = "send"

    @classmethod
    def unfit(cls, lives: Lives) -> str | None:
        """What lives in the driver is reached over nothing."""
        return (
            "the system lives in the driver, and no message passes between them"
            if lives.embedded
            else super().unfit(lives)
        )

    def passes_by(self, files: Sequence[OpenFile], data: Path) -> Iterator[str]:
        """Nothing that is known of."""
        return iter(())
