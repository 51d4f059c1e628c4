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
    pub fn read<'b>(&self, buffer: &'b mut Buffer) -> io::Result<&'b str> {
        let bytes = &mut buffer.0;
        let mut length = 0;
        loop {
            if length == bytes.len() {
                bytes.resize((2 * length).max(4096), 0);
            }
            match self.0.read_at(&mut bytes[length..], length as u64) {
                Ok(0) => break,
                Ok(read) => length += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        std::str::from_utf8(&bytes[..length]).map_err(io::Error::other)
    }
}

/// Room for a file's text, used for one after the other.
#[derive(Debug, Default)]
pub struct Buffer(Vec<u8>);

/// The number that follows `key` and white space or a colon at the beginning of a line.
pub fn number_of(text: &str, key: &str) -> Option<u64> {
    text.lines().find_map(|line| {
        let rest = line.strip_prefix(key)?;
        if !rest.starts_with([' ', ':', '\t']) {
            return None;
        }
        let word = rest.trim_start_matches([' ', ':', '\t']);
        word.split(' ').next()?.parse().ok()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_found_by_their_whole_key() {
        let text = "MemFreeze: 1 kB\nMemFree:    42 kB\nctxt 7\nvoluntary:\t3\n";
        assert_eq!(number_of(text, "MemFree"), Some(42));
        assert_eq!(number_of(text, "ctxt"), Some(7));
        assert_eq!(number_of(text, "voluntary"), Some(3));
        assert_eq!(number_of(text, "Mem"), None);
    }

    #[test]
    fn a_file_longer_than_the_buffer_is_read_whole_and_read_anew() {
        let path = std::env::temp_dir().join(format!("dyno-proc-file-{}", std::process::id()));
        let mut buffer = Buffer::default();
        std::fs::write(&path, "x".repeat(10_000)).unwrap();
        let file = ProcFile::open(&path).unwrap();
        assert_eq!(file.read(&mut buffer).unwrap().len(), 10_000);
        std::fs::write(&path, "short").unwrap();
        assert_eq!(file.read(&mut buffer).unwrap(), "short");
        std::fs::remove_file(&path).unwrap();
    }
}
