//! A recorded disk as a file: a FUSE file system with nothing else in it.

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, UNIX_EPOCH};

use fuser::{
    Config, Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation, INodeNo,
    KernelConfig, LockOwner, MountOption, OpenFlags, ReplyAttr, ReplyData, ReplyDirectory,
    ReplyEmpty, ReplyEntry, ReplyOpen, ReplyStatfs, ReplyWrite, Request, Session, WriteFlags,
};
use nix::fcntl::FallocateFlags;
use nix::mount::umount;

use crate::disk::{Disk, Totals};

/// The name of the file that is the disk.
pub const FILE: &str = "disk";

const DISK: INodeNo = INodeNo(2);
const FOREVER: Duration = Duration::from_secs(86_400);
/// Loop devices offer discards of this granularity.
const BLOCK: u32 = 4096;
/// The kernel sends no more in one request.
const LARGEST_WRITE: u32 = 1 << 20;

/// A disk that is served.
pub struct Served {
    session: JoinHandle<io::Result<()>>,
    worker: JoinHandle<(Totals, io::Result<()>)>,
    folder: PathBuf,
}

impl Served {
    /// Mounts a file system at a folder and serves the disk as the file [`FILE`] in it.
    pub fn mount(disk: Disk, size: u64, folder: &Path) -> io::Result<Self> {
        let (requests, to_do) = channel();
        let front = Front {
            size,
            acknowledged: disk.acknowledged(),
            requests,
        };
        let mut config = Config::default();
        config.mount_options = vec![
            MountOption::FSName("dyno-recorder".into()),
            MountOption::NoAtime,
        ];
        let session = Session::new(front, folder, &config)?;
        let worker = thread::spawn(move || work(disk, &to_do));
        let session = thread::spawn(move || session.run());
        Ok(Self {
            session,
            worker,
            folder: folder.canonicalize()?,
        })
    }

    /// What unmounts it, from any thread. It fails for as long as the file is in use, and may be tried again: the
    /// session's own would give up after the first time, and say that all is well.
    pub fn unmounter(&self) -> impl Fn() -> io::Result<()> + Send + use<> {
        let folder = self.folder.clone();
        move || Ok(umount(&folder)?)
    }

    /// Waits until it is unmounted. Gives what the disk was asked for; an error says what could not be recorded.
    pub fn wait(self) -> io::Result<Totals> {
        let ended = |_| io::Error::other("a thread of the recorder ended early");
        self.session.join().map_err(ended)??;
        let (totals, recorded) = self.worker.join().map_err(ended)?;
        recorded.map(|()| totals)
    }
}

/// What the disk has to do, in the order in which it came.
enum ToDo {
    Read {
        offset: u64,
        length: u32,
        reply: ReplyData,
    },
    Write {
        offset: u64,
        data: Vec<u8>,
        reply: ReplyWrite,
    },
    Zero {
        offset: u64,
        length: u64,
        reply: ReplyEmpty,
    },
    Flush {
        covers: u64,
        reply: ReplyEmpty,
    },
}

/// Once something could not be recorded nothing is done any more: the log would not tell of it.
fn work(mut disk: Disk, to_do: &Receiver<ToDo>) -> (Totals, io::Result<()>) {
    let mut failed = None;
    while let Ok(next) = to_do.recv() {
        let outcome = match next {
            ToDo::Read {
                offset,
                length,
                reply,
            } => {
                let mut data = vec![0; length as usize];
                match disk.read(offset, &mut data) {
                    Ok(have) => reply.data(&data[..have]),
                    Err(error) => reply.error(Errno::from(error)),
                }
                Ok(())
            }
            ToDo::Write { reply, .. } if failed.is_some() => {
                reply.error(Errno::EIO);
                Ok(())
            }
            ToDo::Zero { reply, .. } | ToDo::Flush { reply, .. } if failed.is_some() => {
                reply.error(Errno::EIO);
                Ok(())
            }
            ToDo::Write {
                offset,
                data,
                reply,
            } => match disk.write(offset, &data) {
                Ok(()) => {
                    reply.written(u32::try_from(data.len()).unwrap_or(u32::MAX));
                    Ok(())
                }
                Err(error) => {
                    reply.error(Errno::EIO);
                    Err(error)
                }
            },
            ToDo::Zero {
                offset,
                length,
                reply,
            } => answer(disk.zero(offset, length), reply),
            ToDo::Flush { covers, reply } => answer(disk.flush(covers), reply),
        };
        if let Err(error) = outcome {
            failed = Some(error);
        }
    }
    (disk.totals(), failed.map_or(Ok(()), Err))
}

fn answer(done: io::Result<()>, reply: ReplyEmpty) -> io::Result<()> {
    match &done {
        Ok(()) => reply.ok(),
        Err(_) => reply.error(Errno::EIO),
    }
    done
}

/// Takes requests in and hands them on, so that it is known what was acknowledged when a flush came.
struct Front {
    size: u64,
    acknowledged: Arc<AtomicU64>,
    requests: Sender<ToDo>,
}

impl Front {
    fn hand_on(&self, to_do: ToDo) {
        // Were the worker gone, the reply would be dropped with the request, which answers it with an error.
        let _ = self.requests.send(to_do);
    }

    fn attributes(&self, inode: INodeNo) -> Option<FileAttr> {
        let (kind, perm, size) = match inode {
            INodeNo::ROOT => (FileType::Directory, 0o700, 0),
            DISK => (FileType::RegularFile, 0o600, self.size),
            _ => return None,
        };
        Some(FileAttr {
            ino: inode,
            size,
            blocks: size / 512,
            atime: UNIX_EPOCH,
            mtime: UNIX_EPOCH,
            ctime: UNIX_EPOCH,
            crtime: UNIX_EPOCH,
            kind,
            perm,
            nlink: 1,
            uid: 0,
            gid: 0,
            rdev: 0,
            blksize: BLOCK,
            flags: 0,
        })
    }
}

impl Filesystem for Front {
    fn init(&mut self, _request: &Request, config: &mut KernelConfig) -> io::Result<()> {
        // Whatever the kernel offers less is what it sends at most.
        let _ = config.set_max_write(LARGEST_WRITE);
        Ok(())
    }

    fn lookup(&self, _request: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        match self.attributes(DISK) {
            Some(found) if parent == INodeNo::ROOT && name == FILE => {
                reply.entry(&FOREVER, &found, Generation(0));
            }
            _ => reply.error(Errno::ENOENT),
        }
    }

    fn getattr(&self, _request: &Request, inode: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        match self.attributes(inode) {
            Some(found) => reply.attr(&FOREVER, &found),
            None => reply.error(Errno::ENOENT),
        }
    }

    fn open(&self, _request: &Request, _inode: INodeNo, _flags: OpenFlags, reply: ReplyOpen) {
        // Nothing is to be held back in the page cache above the recorder.
        reply.opened(FileHandle(0), FopenFlags::FOPEN_DIRECT_IO);
    }

    fn read(
        &self,
        _request: &Request,
        _inode: INodeNo,
        _handle: FileHandle,
        offset: u64,
        length: u32,
        _flags: OpenFlags,
        _owner: Option<LockOwner>,
        reply: ReplyData,
    ) {
        self.hand_on(ToDo::Read {
            offset,
            length,
            reply,
        });
    }

    fn write(
        &self,
        _request: &Request,
        _inode: INodeNo,
        _handle: FileHandle,
        offset: u64,
        data: &[u8],
        _write_flags: WriteFlags,
        _flags: OpenFlags,
        _owner: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        let data = data.to_vec();
        self.hand_on(ToDo::Write {
            offset,
            data,
            reply,
        });
    }

    fn fallocate(
        &self,
        _request: &Request,
        _inode: INodeNo,
        _handle: FileHandle,
        offset: u64,
        length: u64,
        mode: i32,
        reply: ReplyEmpty,
    ) {
        let zeros = FallocateFlags::FALLOC_FL_PUNCH_HOLE | FallocateFlags::FALLOC_FL_ZERO_RANGE;
        if FallocateFlags::from_bits_truncate(mode).intersects(zeros) {
            self.hand_on(ToDo::Zero {
                offset,
                length,
                reply,
            });
        } else {
            reply.error(Errno::EOPNOTSUPP);
        }
    }

    fn fsync(
        &self,
        _request: &Request,
        _inode: INodeNo,
        _handle: FileHandle,
        _data_only: bool,
        reply: ReplyEmpty,
    ) {
        let covers = self.acknowledged.load(Ordering::Acquire);
        self.hand_on(ToDo::Flush { covers, reply });
    }

    fn flush(
        &self,
        _request: &Request,
        _inode: INodeNo,
        _handle: FileHandle,
        _owner: LockOwner,
        reply: ReplyEmpty,
    ) {
        // That a descriptor was closed; no flush of a disk.
        reply.ok();
    }

    fn readdir(
        &self,
        _request: &Request,
        _inode: INodeNo,
        _handle: FileHandle,
        offset: u64,
        mut reply: ReplyDirectory,
    ) {
        let names = [
            (INodeNo::ROOT, FileType::Directory, "."),
            (INodeNo::ROOT, FileType::Directory, ".."),
            (DISK, FileType::RegularFile, FILE),
        ];
        let from = usize::try_from(offset).unwrap_or(usize::MAX);
        for (place, (inode, kind, name)) in names.into_iter().enumerate().skip(from) {
            if reply.add(inode, place as u64 + 1, kind, name) {
                break;
            }
        }
        reply.ok();
    }

    fn statfs(&self, _request: &Request, _inode: INodeNo, reply: ReplyStatfs) {
        let blocks = self.size / u64::from(BLOCK);
        reply.statfs(blocks, 0, 0, 1, 0, BLOCK, 255, BLOCK);
    }
}
