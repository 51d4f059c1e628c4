"""Bridges of the network: which there are, and how one is made that leads nowhere."""

from __future__ import annotations

import fcntl
import secrets
import socket
import struct

from dyno.hosts.leftovers import BRIDGE_PREFIX
from dyno.model.base import RunError

_SIOCBRADDBR = 0x89A0  # linux/sockios.h
_SIOCSIFADDR = 0x8916
_SIOCSIFNETMASK = 0x891C
_LONGEST = 15  # bytes of an interface's name, linux/if.h
ADDRESS, MASK = "192.0.2.1", "255.255.255.252"
"""Of TEST-NET-1, which RFC 5737 keeps for examples: nobody is reached at it."""


def interfaces() -> set[str]:
    """The names of all that this process's network has."""
    return {name for _, name in socket.if_nameindex()}


def new_name() -> str:
    """One that no other session takes."""
    return f"{BRIDGE_PREFIX}{secrets.token_hex(5)}"[:_LONGEST]


def make(name: str) -> None:
    """Make a bridge that has an address, as nobody then looks for one to give it. Raises RunError."""
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
            fcntl.ioctl(any_socket, _SIOCBRADDBR, name.encode() + b"\0")
            for request, address in ((_SIOCSIFADDR, ADDRESS), (_SIOCSIFNETMASK, MASK)):
                packed = struct.pack("16sHH4s8x", name.encode(), socket.AF_INET, 0, socket.inet_aton(address))
                fcntl.ioctl(any_socket, request, packed)
    except OSError as error:
        raise RunError(f"cannot make a bridge of the network: {error.strerror}") from error
