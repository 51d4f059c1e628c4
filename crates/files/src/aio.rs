//! Asynchronous writes of one thread: by `io_uring`, or by helper threads where that is not allowed.

#![allow(unsafe_code)]

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};
use std::sync::Arc;
use std::thread::JoinHandle;

use io_uring::{IoUring, opcode, types};
use parking_lot::{Condvar, Mutex};

/// Writes that may be under way at once.
pub const MOST: usize = 4096;
const QUEUE: u32 = 128;
const HELPERS: usize = 4;

/// A write that is under way.
#[derive(Debug)]
pub struct Pending {
    /// The flowop that began it.
    pub flowop: usize,
    /// When it did, as the clock counts.
    pub begun: u64,
    /// How long beginning it took, in ns, and whether the time was over by then; known once it was begun.
    pub took: (u64, bool),
    /// The bytes that are to be written.
    pub length: usize,
    /// Data that are its own; else they are the thread's, which outlives it.
    pub data: Option<Box<[u8]>>,
    /// Which file it is in, by its fileset and its number there, and up to where, if that is kept track of.
    pub reaches: Option<(usize, usize, u64)>,
}

/// A write that has ended: how many bytes, or the system's number of the error.
#[derive(Debug)]
pub struct Ended {
    /// What it was.
    pub pending: Pending,
    /// What became of it.
    pub written: io::Result<usize>,
}

/// Where writes are under way.
#[derive(Debug)]
pub struct Aio {
    engine: Engine,
    pending: Vec<Option<Pending>>,
    free: Vec<usize>,
    outstanding: usize,
    ended: VecDeque<(u64, i32)>,
}

enum Engine {
    Ring(Box<IoUring>),
    Threads(Helpers),
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

impl Engine {
    const fn name(&self) -> &'static str {
        match self {
            Self::Ring(_) => "io_uring",
            Self::Threads(_) => "threads",
        }
    }
}

impl Aio {
    /// By `io_uring` if the system allows it; `threads` asks for helper threads all the same. The calling thread
    /// must be the one that uses it, and have its table of open files already.
    pub fn new(threads: bool) -> io::Result<Self> {
        let ring = || {
            let most = u32::try_from(MOST * 2).unwrap_or(u32::MAX);
            IoUring::builder()
                .setup_cqsize(most)
                .setup_coop_taskrun()
                .setup_single_issuer()
                .build(QUEUE)
                .or_else(|_| IoUring::builder().setup_cqsize(most).build(QUEUE))
        };
        let engine = match (threads, ring) {
            (false, ring) => match ring() {
                Ok(ring) => Engine::Ring(Box::new(ring)),
                Err(_) => Engine::Threads(Helpers::new()?),
            },
            (true, _) => Engine::Threads(Helpers::new()?),
        };
        Ok(Self {
            engine,
            pending: Vec::new(),
            free: Vec::new(),
            outstanding: 0,
            ended: VecDeque::new(),
        })
    }

    /// What carries the writes out.
    pub const fn name(&self) -> &'static str {
        self.engine.name()
    }

    /// Writes that were begun and not given back yet.
    pub const fn outstanding(&self) -> usize {
        self.outstanding
    }

    /// Begins a write of `pending`'s own data, or of `data`; gives the key for [`Self::took`].
    ///
    /// The caller keeps `data` where they are until the write was given back (or [`Self::drain`]ed), as the
    /// memory of a thread is kept until the thread has ended.
    pub fn write(
        &mut self,
        file: BorrowedFd,
        data: &[u8],
        offset: u64,
        pending: Pending,
    ) -> io::Result<usize> {
        let data = pending.data.as_deref().unwrap_or(data);
        // The pending write's own data stay where they are when it is moved: they are on the heap.
        let (start, length) = (data.as_ptr(), u32::try_from(data.len()).unwrap_or(u32::MAX));
        let key = self.free.pop().unwrap_or_else(|| {
            self.pending.push(None);
            self.pending.len() - 1
        });
        self.pending[key] = Some(pending);
        self.outstanding += 1;
        match &mut self.engine {
            Engine::Ring(ring) => {
                let entry = opcode::Write::new(types::Fd(file.as_raw_fd()), start, length)
                    .offset(offset)
                    .build()
                    .user_data(key as u64);
                // SAFETY: the data stay where they are until the write has ended: they are the pending
                // write's own, or the thread's memory, which is given up only after `drain`.
                let pushed = unsafe { ring.submission().push(&entry) };
                pushed.map_err(|_| io::Error::other("the queue of writes is full"))?;
                loop {
                    match ring.submit() {
                        Ok(_) => return Ok(key),
                        Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                        // Completions are to be taken first.
                        Err(error) if error.raw_os_error() == Some(libc::EBUSY) => {
                            let done = ring
                                .completion()
                                .map(|done| (done.user_data(), done.result()));
                            self.ended.extend(done);
                        }
                        Err(error) => return Err(error),
                    }
                }
            }
            Engine::Threads(helpers) => {
                helpers.write(Write {
                    key: key as u64,
                    file: file.as_raw_fd(),
                    start: start as usize,
                    length: length as usize,
                    offset,
                });
                Ok(key)
            }
        }
    }

    /// Notes how long beginning a write took, and whether the time was over by then.
    pub fn took(&mut self, key: usize, ns: u64, late: bool) {
        if let Some(Some(pending)) = self.pending.get_mut(key) {
            pending.took = (ns, late);
        }
    }

    /// Gives back writes that have ended, at most `most`, after waiting for `at_least`.
    pub fn take(
        &mut self,
        at_least: usize,
        most: usize,
        mut each: impl FnMut(Ended),
    ) -> io::Result<()> {
        let at_least = at_least.min(self.outstanding);
        loop {
            match &mut self.engine {
                Engine::Ring(ring) => {
                    let done = ring
                        .completion()
                        .map(|done| (done.user_data(), done.result()));
                    self.ended.extend(done);
                    let missing = at_least.saturating_sub(self.ended.len());
                    if missing == 0 {
                        break;
                    }
                    match ring.submit_and_wait(missing) {
                        Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                        Err(error) => return Err(error),
                        Ok(_) => {}
                    }
                }
                Engine::Threads(helpers) => {
                    let missing = at_least.saturating_sub(self.ended.len());
                    helpers.take(missing, &mut self.ended);
                    break;
                }
            }
        }
        for _ in 0..most {
            let Some((key, result)) = self.ended.pop_front() else {
                break;
            };
            let key = usize::try_from(key).unwrap_or(usize::MAX);
            if let Some(pending) = self.pending.get_mut(key).and_then(Option::take) {
                self.free.push(key);
                self.outstanding -= 1;
                let written =
                    usize::try_from(result).map_err(|_| io::Error::from_raw_os_error(-result));
                each(Ended { pending, written });
            }
        }
        Ok(())
    }

    /// Waits for all.
    pub fn drain(&mut self, each: impl FnMut(Ended)) -> io::Result<()> {
        self.take(self.outstanding, usize::MAX, each)
    }
}

impl Drop for Aio {
    fn drop(&mut self) {
        // What is under way still reads from the thread's memory.
        let _ = self.drain(|_| ());
    }
}

#[derive(Debug)]
struct Write {
    key: u64,
    file: RawFd,
    start: usize,
    length: usize,
    offset: u64,
}

/// Threads that share the table of open files of the one that began them.
#[derive(Debug)]
struct Helpers {
    shared: Arc<Exchange>,
    threads: Vec<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Exchange {
    asked: Mutex<(VecDeque<Write>, bool)>,
    any: Condvar,
    done: Mutex<Vec<(u64, i32)>>,
    some: Condvar,
}

impl Helpers {
    fn new() -> io::Result<Self> {
        let shared = Arc::new(Exchange::default());
        let threads = (0..HELPERS)
            .map(|_| {
                let shared = Arc::clone(&shared);
                std::thread::Builder::new()
                    .name("aio".to_owned())
                    .stack_size(64 * 1024)
                    .spawn(move || shared.serve())
            })
            .collect::<io::Result<_>>()?;
        Ok(Self { shared, threads })
    }

    fn write(&self, write: Write) {
        self.shared.asked.lock().0.push_back(write);
        self.shared.any.notify_one();
    }

    fn take(&self, at_least: usize, into: &mut VecDeque<(u64, i32)>) {
        let mut done = self.shared.done.lock();
        while done.len() < at_least {
            self.shared.some.wait(&mut done);
        }
        into.extend(done.drain(..));
    }
}

impl Drop for Helpers {
    fn drop(&mut self) {
        self.shared.asked.lock().1 = true;
        self.shared.any.notify_all();
        for thread in self.threads.drain(..) {
            // One that panicked said so.
            let _ = thread.join();
        }
    }
}

impl Exchange {
    fn serve(&self) {
        loop {
            let write = {
                let mut asked = self.asked.lock();
                loop {
                    if let Some(write) = asked.0.pop_front() {
                        break write;
                    }
                    if asked.1 {
                        return;
                    }
                    self.any.wait(&mut asked);
                }
            };
            // SAFETY: the file is open in the table that this thread shares with the one that asked, which
            // closes it only after the write was given back; so are the data where they were.
            let (file, data) = unsafe {
                (
                    BorrowedFd::borrow_raw(write.file),
                    std::slice::from_raw_parts(write.start as *const u8, write.length),
                )
            };
            let result = loop {
                match rustix::io::pwrite(file, data, write.offset) {
                    Err(rustix::io::Errno::INTR) => {}
                    Ok(written) => break i32::try_from(written).unwrap_or(i32::MAX),
                    Err(error) => break -error.raw_os_error(),
                }
            };
            self.done.lock().push((write.key, result));
            self.some.notify_one();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use super::*;
    use crate::testing::Folder;

    #[test]
    fn writes_end_in_the_file_by_either_way_and_errors_are_told() {
        for threads in [false, true] {
            let folder = Folder::new("aio");
            let path = folder.path().join("file");
            let file = std::fs::File::create(&path).unwrap();
            let mut aio = Aio::new(threads).unwrap();
            let data: Vec<u8> = (0..=255).collect();
            let pending = || Pending {
                flowop: 0,
                begun: 0,
                took: (0, false),
                length: 256,
                data: None,
                reaches: None,
            };
            for number in 0..300 {
                aio.write(file.as_fd(), &data, number * 256, pending())
                    .unwrap();
            }
            let mut written = 0;
            aio.take(150, 150, |ended| written += ended.written.unwrap())
                .unwrap();
            assert_eq!(aio.outstanding(), 150);
            aio.drain(|ended| written += ended.written.unwrap())
                .unwrap();
            assert_eq!((written, aio.outstanding()), (300 * 256, 0));
            assert_eq!(std::fs::read(&path).unwrap(), data.repeat(300));
            let unwritable = std::fs::File::open(&path).unwrap();
            aio.write(unwritable.as_fd(), &data, 0, pending()).unwrap();
            let mut error = None;
            aio.drain(|ended| error = ended.written.unwrap_err().raw_os_error())
                .unwrap();
            assert_eq!(error, Some(libc::EBADF));
        }
    }
}
