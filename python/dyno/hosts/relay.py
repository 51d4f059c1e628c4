"""A link in user space, since kernels may have no netem: frames pass between two interfaces late, and at a rate.

A program of its own, run by its path with Python's standard library alone, in the namespace of the interfaces:

    python relay.py INTERFACE INTERFACE DELAY RATE

Both ways are alike: a frame takes its turn on a line of RATE bytes a second (0: as fast as they come), and arrives
DELAY seconds after it has left. One that would wait too long for its turn is dropped, as from a full queue. It says
`ready` once it passes frames on, and ends with its standard input, which dyno holds however it ends.
"""

from __future__ import annotations

import contextlib
import os
import select
import socket
import sys
import time
from collections import deque
from dataclasses import dataclass, field

LONGEST_WAIT_S = 0.4
"""For its turn; what examples of tbf(8) have for `latency`. Deeper queues would add seconds to what was asked for."""

_SOL_PACKET = 263  # linux/socket.h
_PACKET_VNET_HDR = 15  # linux/if_packet.h
_PACKET_IGNORE_OUTGOING = 23
_ETH_P_ALL = 3  # linux/if_ether.h
_SO_SNDBUFFORCE, _SO_RCVBUFFORCE = 32, 33  # asm-generic/socket.h
_VNET_HEADER = 10  # bytes, linux/virtio_net.h: what the kernel left undone of a frame, checksums and segments
_MOST = 2**16 + 2048  # bytes: the largest frame that is left to be cut into segments, and its headers
_BUFFER = 16 * 2**20
_AT_ONCE = 64


@dataclass
class Line:
    """When frames arrive at the other end of one; times and delays are in seconds, of any clock."""

    delay: float
    rate: float = 0.0
    """Bytes a second; 0: without limit."""
    longest_wait: float = LONGEST_WAIT_S
    _free_at: float = field(default=0.0, init=False)

    def due(self, size: int, now: float) -> float | None:
        """When a frame of so many bytes arrives that comes now; None where it is dropped."""
        if not self.rate:
            return now + self.delay
        begins = max(now, self._free_at)
        if begins - now > self.longest_wait:
            return None
        self._free_at = begins + size / self.rate
        return self._free_at + self.delay


class Way:
    """From one interface to another."""

    def __init__(self, source: socket.socket, target: socket.socket, line: Line) -> None:
        self.source, self._target, self._line = source, target, line
        self._waiting: deque[tuple[float, bytes]] = deque()

    def take(self) -> None:
        """What has come, but not more than a few frames: others wait to be sent."""
        for _ in range(_AT_ONCE):
            try:
                frame = self.source.recv(_MOST)
            except (BlockingIOError, InterruptedError):
                return
            due = self._line.due(len(frame) - _VNET_HEADER, time.monotonic())
            if due is not None:
                self._waiting.append((due, frame))

    def give(self) -> float | None:
        """Send what is due; how long until the next is, in seconds, None where nothing waits."""
        while self._waiting:
            left = self._waiting[0][0] - time.monotonic()
            if left > 0:
                return left
            _, frame = self._waiting.popleft()
            with contextlib.suppress(
                OSError
            ):  # a network loses what it cannot take; an interface that is gone shows in recv
                self._target.send(frame)
        return None


def _open(interface: str) -> socket.socket:
    """All frames that come in at it, with what the kernel left undone of them."""
    opened = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)  # hears nothing before it is bound
    opened.setsockopt(_SOL_PACKET, _PACKET_VNET_HDR, 1)
    opened.setsockopt(_SOL_PACKET, _PACKET_IGNORE_OUTGOING, 1)
    for option in (_SO_SNDBUFFORCE, _SO_RCVBUFFORCE):
        opened.setsockopt(socket.SOL_SOCKET, option, _BUFFER)
    opened.setblocking(False)
    opened.bind((interface, _ETH_P_ALL))
    return opened


def _relay(here: str, there: str, delay: float, rate: float) -> None:
    a, b = _open(here), _open(there)
    ways = (Way(a, b, Line(delay, rate)), Way(b, a, Line(delay, rate)))
    print("ready", flush=True)
    while True:
        left = [until for way in ways if (until := way.give()) is not None]
        readable, _, _ = select.select([a, b, sys.stdin.fileno()], [], [], min(left, default=None))
        for way in ways:
            if way.source in readable:
                way.take()
        if sys.stdin.fileno() in readable and not os.read(sys.stdin.fileno(), 1):
            return


if __name__ == "__main__":
    with contextlib.suppress(PermissionError):
        # Before all others: while it waits for a CPU, or for a timer with slack, frames are later than was asked for.
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    _relay(sys.argv[1], sys.argv[2], float(sys.argv[3]), float(sys.argv[4]))
