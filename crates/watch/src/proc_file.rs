//! A file of `/proc`, kept open and read again and again.

use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;

/// The file. Its process may end; reading then fails.
#[derive(Debug)]
pub struct ProcFile {
    file: File,
    /// Whether the kernel gives all that fits at once, so that less is the end.
    is_one_record: bool,
}

/// Device and inode: which file it is, by whatever path it was opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileId(u64, u64);

impl ProcFile {
    /// Which file it is.
    pub fn id(&self) -> io::Result<FileId> {
        let told = self.file.metadata()?;
        Ok(FileId(told.dev(), told.ino()))
    }

    /// Opens a file that is one record to the kernel, as those about one thing are.
    pub fn open(path: impl AsRef<Path>) -> io::Result<Self> {
        let file = File::open(path)?;
        Ok(Self {
            file,
            is_one_record: true,
        })
    }

    /// Opens a file of many records, which the kernel gives by the page: `vmstat`, `diskstats`, `net/dev`,
    /// `schedstat` of the machine, and the children of a thread.
    pub fn open_list(path: impl AsRef<Path>) -> io::Result<Self> {
        let file = File::open(path)?;
        Ok(Self {
            file,
            is_one_record: false,
        })
    }

    /// Reads it from its beginning, as it is now.
    pub fn read<'b>(&self, buffer: &'b mut Buffer) -> io::Result<&'b [u8]> {
        let bytes = &mut buffer.0;
        let mut length = 0;
        loop {
            if length == bytes.len() {
                bytes.resize((2 * length).max(4096), 0);
            }
            match self.file.read_at(&mut bytes[length..], length as u64) {
                Ok(read) => {
                    length += read;
                    if read == 0 || (self.is_one_record && length < bytes.len()) {
                        return Ok(&bytes[..length]);
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}

/// Room for a file's text, used for one after the other.
#[derive(Debug, Default)]
pub struct Buffer(Vec<u8>);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_the_kernel_are_read_as_whole_as_others_read_them() {
        let mut buffer = Buffer::default();
        for (path, is_list) in [
            ("/proc/vmstat", true),
            ("/proc/diskstats", true),
            ("/proc/net/dev", true),
            ("/proc/stat", false),
            ("/proc/meminfo", false),
            ("/proc/net/snmp", false),
            ("/proc/self/stat", false),
            ("/proc/self/status", false),
        ] {
            let open = if is_list {
                ProcFile::open_list
            } else {
                ProcFile::open
            };
            let Ok(file) = open(path) else { continue };
            let lines = |text: &[u8]| crate::text::lines(text).count();
            let known = lines(&std::fs::read(path).unwrap());
            // The second time into a buffer that has room.
            for _ in 0..2 {
                assert_eq!(lines(file.read(&mut buffer).unwrap()), known, "{path}");
            }
        }
    }

    #[test]
    fn a_file_longer_than_the_buffer_is_read_whole_and_read_anew() {
        let path = std::env::temp_dir().join(format!("dyno-proc-file-{}", std::process::id()));
        let mut buffer = Buffer::default();
        std::fs::write(&path, "x".repeat(10_000)).unwrap();
        let file = ProcFile::open(&path).unwrap();
        assert_eq!(file.read(&mut buffer).unwrap().len(), 10_000);
        std::fs::write(&path, "short").unwrap();
        assert_eq!(file.read(&mut buffer).unwrap(), b"short");
        std::fs::remove_file(&path).unwrap();
    }
}
