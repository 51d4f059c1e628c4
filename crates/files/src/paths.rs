//! Paths within a fileset, and calls on them, without a copy or an allocation for each.

use std::ffi::CStr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{AtFlags, Mode, OFlags, Stat};
use rustix::io::Errno;

use crate::tree::Tree;

/// Room for the longest path: 400 levels of ten digits and a slash.
const LONGEST: usize = 4600;

/// A name or a path in a buffer of the caller's, ended as the system wants it.
#[derive(Debug)]
pub struct PathBuffer {
    bytes: Box<[u8; LONGEST]>,
}

impl Default for PathBuffer {
    fn default() -> Self {
        Self {
            bytes: Box::new([0; LONGEST]),
        }
    }
}

impl PathBuffer {
    /// `directory` (empty, or ending in a slash) and the name that a number has.
    fn write(&mut self, directory: &[u8], number: u32) -> &CStr {
        let begin = directory.len();
        self.bytes[..begin].copy_from_slice(directory);
        let length = write_name(number, &mut self.bytes[begin..]);
        self.bytes[begin + length] = 0;
        CStr::from_bytes_until_nul(&self.bytes[..=begin + length]).unwrap_or(c"")
    }
}

/// Writes a number's name, of eight digits or more; gives its length.
fn write_name(number: u32, into: &mut [u8]) -> usize {
    let length = if number > 99_999_999 { 10 } else { 8 };
    let mut rest = number;
    for digit in into[..length].iter_mut().rev() {
        *digit = b'0' + u8::try_from(rest % 10).unwrap_or(0);
        rest /= 10;
    }
    if length == 10 && into[0] == b'0' {
        into.copy_within(1..10, 0);
        return 9;
    }
    length
}

/// Where a fileset's directories are: for each a handle, or where there are many, its path from the root's handle.
#[derive(Debug)]
pub struct Places {
    root: OwnedFd,
    /// By directory; empty where there are too many of them.
    handles: Vec<OwnedFd>,
    /// All paths, one after the other, each ending in a slash; the root's is empty.
    paths: Vec<u8>,
    /// Where each one's path begins; one more than there are directories.
    begins: Vec<usize>,
}

impl Places {
    /// Of a tree whose root is open; up to `most` directories get handles, once [`Self::open_handles`] is called.
    pub fn new(tree: &Tree, root: OwnedFd) -> Self {
        let mut places = Self {
            root,
            handles: Vec::new(),
            paths: Vec::new(),
            begins: vec![0, 0],
        };
        for dir in &tree.dirs[1..] {
            let parent = places.range(dir.parent);
            places.paths.extend_from_within(parent);
            let mut name = [0; 12];
            let length = write_name(dir.number, &mut name);
            name[length] = b'/';
            places.paths.extend_from_slice(&name[..=length]);
            places.begins.push(places.paths.len());
        }
        places
    }

    /// Opens a handle for each directory, if there are at most `most`.
    pub fn open_handles(&mut self, most: usize) -> Result<(), Errno> {
        let count = self.begins.len() - 1;
        if count > most {
            return Ok(());
        }
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        self.handles = (0..count)
            .map(|dir| {
                let path = [&self.paths[self.range(dir_number(dir))], b".\0"].concat();
                let path = CStr::from_bytes_until_nul(&path).unwrap_or(c".");
                rustix::fs::openat(&self.root, path, flags, Mode::empty())
            })
            .collect::<Result<_, _>>()?;
        Ok(())
    }

    fn range(&self, dir: u32) -> std::ops::Range<usize> {
        self.begins[dir as usize]..self.begins[dir as usize + 1]
    }

    /// How many directories there are.
    pub fn len(&self) -> usize {
        self.begins.len() - 1
    }

    /// The handle and the path from it to use for `number` in `dir`.
    #[inline]
    fn find<'a>(
        &'a self,
        dir: u32,
        number: u32,
        buffer: &'a mut PathBuffer,
    ) -> (BorrowedFd<'a>, &'a CStr) {
        match self.handles.get(dir as usize) {
            Some(handle) => (handle.as_fd(), buffer.write(b"", number)),
            None => (
                self.root.as_fd(),
                buffer.write(&self.paths[self.range(dir)], number),
            ),
        }
    }

    /// Opens the file `number` of `dir`.
    #[inline]
    pub fn open(
        &self,
        (dir, number): (u32, u32),
        flags: OFlags,
        mode: u32,
        buffer: &mut PathBuffer,
    ) -> Result<OwnedFd, Errno> {
        let (handle, path) = self.find(dir, number, buffer);
        rustix::fs::openat(handle, path, flags, Mode::from_raw_mode(mode))
    }

    /// Removes the file, or the directory, `number` of `dir`.
    pub fn remove(
        &self,
        (dir, number): (u32, u32),
        flags: AtFlags,
        buffer: &mut PathBuffer,
    ) -> Result<(), Errno> {
        let (handle, path) = self.find(dir, number, buffer);
        rustix::fs::unlinkat(handle, path, flags)
    }

    /// Makes the directory `number` of `dir`.
    pub fn make_dir(
        &self,
        (dir, number): (u32, u32),
        buffer: &mut PathBuffer,
    ) -> Result<(), Errno> {
        let (handle, path) = self.find(dir, number, buffer);
        rustix::fs::mkdirat(handle, path, Mode::from_raw_mode(0o755))
    }

    /// The status of what is `number` in `dir`.
    pub fn status(
        &self,
        (dir, number): (u32, u32),
        buffer: &mut PathBuffer,
    ) -> Result<Stat, Errno> {
        let (handle, path) = self.find(dir, number, buffer);
        rustix::fs::statat(handle, path, AtFlags::SYMLINK_NOFOLLOW)
    }

    /// Opens a directory to read its entries.
    pub fn open_dir(&self, dir: u32) -> Result<OwnedFd, Errno> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        if let Some(handle) = self.handles.get(dir as usize) {
            return rustix::fs::openat(handle, c".", flags, Mode::empty());
        }
        let path = [&self.paths[self.range(dir)], b".\0"].concat();
        let path = CStr::from_bytes_until_nul(&path).unwrap_or(c".");
        rustix::fs::openat(&self.root, path, flags, Mode::empty())
    }

    /// The path of `number` in `dir` from the root, for people.
    pub fn describe(&self, (dir, number): (u32, u32)) -> String {
        let mut buffer = PathBuffer::default();
        let path = buffer.write(&self.paths[self.range(dir)], number);
        path.to_string_lossy().into_owned()
    }
}

fn dir_number(dir: usize) -> u32 {
    u32::try_from(dir).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_eight_digits_or_as_many_as_they_need() {
        let mut buffer = PathBuffer::default();
        for number in [
            1,
            42,
            99_999_999,
            100_000_000,
            999_999_999,
            1_000_000_000,
            u32::MAX,
        ] {
            let expected = format!("a/{number:08}");
            assert_eq!(buffer.write(b"a/", number).to_str(), Ok(expected.as_str()));
        }
    }
}
