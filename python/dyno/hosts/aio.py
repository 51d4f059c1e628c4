"""How many blocks a second are read or written of a file, where several are asked for at a time.

By the kernel's own asynchronous I/O (io_submit(2), linux/aio_abi.h). One read after the other never has more than one
at the device, and threads of an interpreter wait for each other longer than for a fast device.
"""

from __future__ import annotations

import ctypes
import errno
import mmap
import os
import platform
import time
from collections.abc import Sequence

_NUMBERS = {
    # io_setup, io_destroy, io_getevents, io_submit: the C library has no functions for them.
    "x86_64": (206, 207, 208, 209),
    "aarch64": (0, 1, 4, 2),
    "riscv64": (0, 1, 4, 2),
}
_READ, _WRITE = 0, 1
_LIBC = ctypes.CDLL(None, use_errno=True)
_LIBC.syscall.restype = ctypes.c_long


class _Asked(ctypes.Structure):
    """`struct iocb`, as little-endian machines have it; so are all that have a number above."""

    _fields_ = (
        ("data", ctypes.c_uint64),
        ("key", ctypes.c_uint32),
        ("rw_flags", ctypes.c_uint32),
        ("opcode", ctypes.c_uint16),
        ("priority", ctypes.c_int16),
        ("file", ctypes.c_uint32),
        ("buffer", ctypes.c_uint64),
        ("size", ctypes.c_uint64),
        ("offset", ctypes.c_int64),
        ("reserved", ctypes.c_uint64),
        ("flags", ctypes.c_uint32),
        ("resfd", ctypes.c_uint32),
    )


class _Answer(ctypes.Structure):
    """`struct io_event`; `result` is in bytes, or less an error's number."""

    _fields_ = (
        ("data", ctypes.c_uint64),
        ("asked", ctypes.c_uint64),
        ("result", ctypes.c_int64),
        ("more", ctypes.c_int64),
    )


def answered(
    file: int, data: mmap.mmap, blocks: Sequence[int], *, size: int, depth: int, seconds: float, write: bool
) -> float:
    """Read or write these blocks of `size` bytes, by their numbers, and say how many were answered a second.

    `depth` are asked for at a time, and none after `seconds`. They go from and to `data`, each by another part of it;
    where the file is open with O_DIRECT its places and sizes have to be what that takes. Raises OSError.
    """
    setup, destroy, getevents, submit = _numbers()
    at, parts = ctypes.addressof(ctypes.c_char.from_buffer(data)), len(data) // size
    asked = (_Asked * len(blocks))(
        *(
            _Asked(
                opcode=_WRITE if write else _READ,
                file=file,
                buffer=at + number % parts * size,
                size=size,
                offset=block * size,
            )
            for number, block in enumerate(blocks)
        )
    )
    first, each = ctypes.addressof(asked), ctypes.sizeof(_Asked)
    pointers = (ctypes.c_uint64 * len(blocks))(*(first + number * each for number in range(len(blocks))))
    answers = (_Answer * depth)()
    queue = ctypes.c_ulong(0)
    _system_call(setup, depth, ctypes.addressof(queue))
    try:
        begun, sent, done = time.monotonic(), 0, 0
        while True:
            more = min(depth - (sent - done), len(blocks) - sent)
            if more and time.monotonic() - begun < seconds:
                place = ctypes.addressof(pointers) + sent * ctypes.sizeof(ctypes.c_uint64)
                sent += _system_call(submit, queue.value, more, place)
            if sent == done:
                return done / (time.monotonic() - begun)
            for answer in answers[: _system_call(getevents, queue.value, 1, depth, ctypes.addressof(answers), 0)]:
                if answer.result != size:
                    code = -answer.result if answer.result < 0 else errno.EIO
                    raise OSError(code, os.strerror(code))
                done += 1
    finally:
        # It waits for what is still under way, which would write into memory that is no longer ours.
        _system_call(destroy, queue.value)


def _numbers() -> tuple[int, int, int, int]:
    machine = platform.machine()
    if machine not in _NUMBERS:
        raise OSError(errno.ENOSYS, f"how several are asked for at a time is not known of {machine}")
    return _NUMBERS[machine]


def _system_call(number: int, *words: int) -> int:
    while True:
        answer = int(_LIBC.syscall(*map(ctypes.c_long, (number, *words))))
        if answer >= 0:
            return answer
        code = ctypes.get_errno()
        if code != errno.EINTR:  # a signal is handled meanwhile, as with calls of Python's own
            raise OSError(code, os.strerror(code))
