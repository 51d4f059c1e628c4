//! A file of `/proc`, kept open and read again and again.

use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;

/// The file. Its process may end; reading then fails.
#[derive(Debug)]
pub struct ProcFile {
    file: File,
    records: Records,
}

/// How the kernel gives a file's text: as many whole records at once as fit into its own page and into the room
/// that it is given.
#[derive(Clone, Copy, Debug)]
enum Records {
    /// Less than there is room for is the end.
    One,
    /// Each of less than half a page, so that less than that and than there is room for is the end.
    Short,
    /// Nothing is the end.
    Any,
}

/// Of the smallest page.
const HALF_PAGE: usize = 2048;

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
        Self::open_as(path, Records::One)
    }

    /// Opens a file of many short records: `vmstat`, `diskstats`, `net/dev`, and the children of a thread.
    pub fn open_list(path: impl AsRef<Path>) -> io::Result<Self> {
        Self::open_as(path, Records::Short)
    }

    /// Opens a file of records of any length: `schedstat` of the machine, where one has all domains of a CPU.
    pub fn open_long_list(path: impl AsRef<Path>) -> io::Result<Self> {
        Self::open_as(path, Records::Any)
    }

    fn open_as(path: impl AsRef<Path>, records: Records) -> io::Result<Self> {
        let file = File::open(path)?;
        Ok(Self { file, records })
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
                    let has_room = length < bytes.len();
                    let is_end = match self.records {
                        Records::One => has_room,
                        Records::Short => has_room && read < HALF_PAGE,
                        Records::Any => false,
                    };
                    if read == 0 || is_end {
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
        for (path, records) in [
            ("/proc/vmstat", Records::Short),
            ("/proc/diskstats", Records::Short),
            ("/proc/net/dev", Records::Short),
            ("/proc/schedstat", Records::Any),
            ("/proc/stat", Records::One),
            ("/proc/meminfo", Records::One),
            ("/proc/net/snmp", Records::One),
            ("/proc/self/stat", Records::One),
            ("/proc/self/status", Records::One),
        ] {
            let Ok(file) = ProcFile::open_as(path, records) else {
                continue;
            };
            let lines = |text: &[u8]| crate::text::lines(text).count();
            let known = lines(&std::fs::read(path).unwrap());
            // The second time into a buffer that has room.
            for _ in 0..2 {
                assert_eq!(lines(file.read(&mut buffer).unwrap()), known, "{path}");
            }
        }
    }

    #[test]
    fn a_list_is_read_whole_however_much_room_there_is() {
        // Of many short records, of more than a page.
        let path = "/proc/kallsyms";
        let beginning = |whole: &[u8]| whole[..20_000.min(whole.len())].to_owned();
        let known = beginning(&std::fs::read(path).unwrap());
        let file = ProcFile::open_list(path).unwrap();
        for room in [0, 1, 100, 2047, 2049, 4096, 5000, 10_000] {
            let mut buffer = Buffer(vec![0; room]);
            assert_eq!(beginning(file.read(&mut buffer).unwrap()), known, "{room}");
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
