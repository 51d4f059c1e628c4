//! A file of `/proc`, kept open and read again and again.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// The file. Its process may end; reading then fails.
#[derive(Debug)]
pub struct ProcFile(File);

impl ProcFile {
    /// Opens it.
    pub fn open(path: impl AsRef<Path>) -> io::Result<Self> {
        File::open(path).map(Self)
    }

    /// Reads it from its beginning, as it is now.
    pub fn read<'b>(&self, buffer: &'b mut Buffer) -> io::Result<&'b [u8]> {
        let bytes = &mut buffer.0;
        let mut length = 0;
        loop {
            if length == bytes.len() {
                bytes.resize((2 * length).max(4096), 0);
            }
            match self.0.read_at(&mut bytes[length..], length as u64) {
                Ok(0) => return Ok(&bytes[..length]),
                Ok(read) => length += read,
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
