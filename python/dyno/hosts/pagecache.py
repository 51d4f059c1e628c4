"""The page cache of single files: dropping them from it, and evidence of what is in it."""

from __future__ import annotations

import ctypes
import mmap
import os
from pathlib import Path

_PAGE = mmap.PAGESIZE
_libc = ctypes.CDLL(None, use_errno=True)
_libc.mmap.restype = ctypes.c_void_p
_libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
_libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
_libc.mincore.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p]
_MAP_FAILED = ctypes.c_void_p(-1).value


def evict(path: Path) -> None:
    """Write a file's dirty pages back and drop its clean ones (posix_fadvise). Raises OSError."""
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
        os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)
    finally:
        os.close(handle)


def resident_bytes(path: Path) -> int:
    """How much of a file is in page cache, in bytes, by mincore(2). Raises OSError."""
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        size = os.fstat(handle).st_size
        if size == 0:
            return 0
        # PROT_NONE: the mapping is only asked about, and asking must not read a page in.
        address = _libc.mmap(None, size, 0, mmap.MAP_SHARED, handle, 0)
        if address == _MAP_FAILED:
            raise OSError(ctypes.get_errno(), f"mmap of {path}: {os.strerror(ctypes.get_errno())}")
        try:
            pages = (ctypes.c_ubyte * ((size + _PAGE - 1) // _PAGE))()
            if _libc.mincore(address, size, pages) != 0:
                raise OSError(ctypes.get_errno(), f"mincore of {path}: {os.strerror(ctypes.get_errno())}")
            return min(sum(page & 1 for page in bytes(pages)) * _PAGE, size)
        finally:
            _libc.munmap(address, size)
    finally:
        os.close(handle)
