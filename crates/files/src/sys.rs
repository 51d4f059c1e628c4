//! What the system offers and no library wraps safely.

#![allow(unsafe_code)]

use std::io;
use std::ptr::NonNull;

use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};
use rustix::thread::UnshareFlags;

/// Pages of that size make copies to and from large memory cheaper.
const LARGE_PAGE: usize = 2 << 20;

/// Memory of its own mapping: aligned to pages, there from the start.
#[derive(Debug)]
pub struct Memory {
    start: NonNull<u8>,
    length: usize,
}

// SAFETY: the mapping belongs to this value alone, and is as any other memory.
unsafe impl Send for Memory {}

impl Memory {
    /// That many bytes, at least one; `shared` memory is counted as such by the system.
    pub fn new(length: usize, shared: bool) -> io::Result<Self> {
        let length = length.max(1);
        let kind = if shared {
            MapFlags::SHARED
        } else {
            MapFlags::PRIVATE
        };
        // SAFETY: a new anonymous mapping at a place of the kernel's choice.
        let start = unsafe {
            mmap_anonymous(
                std::ptr::null_mut(),
                length,
                ProtFlags::READ | ProtFlags::WRITE,
                kind,
            )
        }?;
        // SAFETY: advice on the new mapping, which is nobody else's. Where large pages are not to be had, small ones
        // do; where it cannot be there from the start, it comes when it is used.
        unsafe {
            if length >= LARGE_PAGE {
                let _ = madvise(start, length, Advice::LinuxHugepage);
            }
            let _ = madvise(start, length, Advice::LinuxPopulateWrite);
        }
        let start = NonNull::new(start.cast()).ok_or_else(|| io::Error::other("no memory"))?;
        Ok(Self { start, length })
    }

    /// How many bytes there are.
    pub const fn len(&self) -> usize {
        self.length
    }

    /// All of it.
    pub const fn all(&mut self) -> &mut [u8] {
        // SAFETY: the mapping has that many bytes, was zeroed by the kernel, and is borrowed as a whole.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.length) }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: it was mapped with that length, and nothing refers to it any more.
        let unmapped = unsafe { munmap(self.start.as_ptr().cast(), self.length) };
        debug_assert!(unmapped.is_ok());
    }
}

/// Gives the calling thread a table of open files of its own: a copy, which others do not see any more.
pub fn own_files() -> io::Result<()> {
    // SAFETY: whatever this thread has open stays open for it under the same number, and it gives none of
    // the files that it opens to another thread.
    unsafe { rustix::thread::unshare_unsafe(UnshareFlags::FILES) }.map_err(io::Error::from)
}

/// Gives the calling thread a priority for input and output: a level of the class best-effort, 0 to 7.
pub fn set_io_priority(level: u32) -> io::Result<()> {
    const WHO_PROCESS: libc::c_int = 1;
    const CLASS_BEST_EFFORT: libc::c_int = 2;
    const CLASS_SHIFT: u32 = 13;
    let level = libc::c_int::try_from(level).unwrap_or(7);
    // SAFETY: the call takes numbers only; 0 is the calling thread.
    let set = unsafe {
        libc::syscall(
            libc::SYS_ioprio_set,
            WHO_PROCESS,
            0,
            CLASS_BEST_EFFORT << CLASS_SHIFT | level,
        )
    };
    if set == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// Timers of the calling thread are due when they are, not some 50 microseconds later.
pub fn sleep_precisely() {
    // SAFETY: the call takes numbers only.
    unsafe {
        libc::prctl(libc::PR_SET_TIMERSLACK, 1);
    }
}

/// Stores that many bytes one by one, none of which the compiler may leave out.
pub fn store_bytes(memory: &mut [u8], count: u64) {
    let Some(first) = memory.first_mut() else {
        return;
    };
    let first: *mut u8 = first;
    for _ in 0..count / 8 {
        // SAFETY: it is the first byte of memory that is borrowed for this.
        unsafe {
            first.write_volatile(1);
            first.write_volatile(1);
            first.write_volatile(1);
            first.write_volatile(1);
            first.write_volatile(1);
            first.write_volatile(1);
            first.write_volatile(1);
            first.write_volatile(1);
        }
    }
    for _ in 0..count % 8 {
        // SAFETY: as above.
        unsafe { first.write_volatile(1) };
    }
}

/// The size of a block device in bytes.
pub fn device_size(file: &impl std::os::fd::AsRawFd) -> io::Result<u64> {
    const BLKGETSIZE64: libc::c_ulong = 0x8008_1272;
    let mut size = 0_u64;
    // SAFETY: the call writes 8 bytes to the place it is given.
    let got = unsafe { libc::ioctl(file.as_raw_fd(), BLKGETSIZE64, &raw mut size) };
    if got == 0 {
        Ok(size)
    } else {
        Err(io::Error::last_os_error())
    }
}
