//! Has a generator write its text, and keeps it compressed: made once, whole or not at all.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

use memchr::memchr;
use nix::sys::statvfs::statvfs;
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::manifest::{Counter, Format, Manifest};
use crate::{DATA, MANIFEST};

/// zstd's own default: a twentieth of the text is left, at several times the speed of TSBS's generator.
const LEVEL: i32 = 3;
const CHUNK: usize = 1 << 20;
/// So often it is looked how much room is left, in bytes of text.
const LOOK_EVERY: u64 = 64 << 20;

/// Packs what `command` writes to its standard output into `folder`, unless that is there already; leaves at least
/// `least_free` bytes of the file system free. In one line, why it could not.
pub fn pack(
    folder: &Path,
    text: Format,
    about: &Value,
    command: &[String],
    least_free: u64,
    halt: &AtomicBool,
) -> Result<Manifest, String> {
    if let Ok(manifest) = Manifest::read(folder) {
        return Ok(manifest);
    }
    let staged = folder.with_extension(format!("partial-{}", std::process::id()));
    let packed = fs::create_dir_all(&staged)
        .map_err(|error| format!("{}: {error}", staged.display()))
        .and_then(|()| fill(&staged, text, about, command, least_free, halt))
        .and_then(|manifest| put_in_place(&staged, folder, manifest));
    if packed.is_err() {
        // What is left of it is of no use; the error that is told is the one before.
        let _ = fs::remove_dir_all(&staged);
    }
    packed
}

fn put_in_place(staged: &Path, folder: &Path, manifest: Manifest) -> Result<Manifest, String> {
    // What cannot be read is in the way of what can.
    if Manifest::read(folder).is_err() {
        let _ = fs::remove_dir_all(folder);
    }
    match fs::rename(staged, folder) {
        Ok(()) => Ok(manifest),
        // Somebody else was faster.
        Err(_) if Manifest::read(folder).is_ok() => {
            let _ = fs::remove_dir_all(staged);
            Manifest::read(folder)
        }
        Err(error) => Err(format!("{}: {error}", folder.display())),
    }
}

fn fill(
    staged: &Path,
    text: Format,
    about: &Value,
    command: &[String],
    least_free: u64,
    halt: &AtomicBool,
) -> Result<Manifest, String> {
    let shown = command.join(" ");
    let (program, arguments) = command.split_first().ok_or("no generator was named")?;
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| format!("`{shown}` could not be carried out: {error}"))?;
    let written = child
        .stdout
        .take()
        .ok_or_else(|| "the generator has no output".to_owned())
        .and_then(|output| write(staged, text, output, least_free, halt));
    if written.is_err() {
        // It would wait for a reader for ever.
        let _ = child.kill();
    }
    let status = child
        .wait()
        .map_err(|error| format!("`{shown}`: {error}"))?;
    let (counter, sizes, sha256) = written?;
    if !status.success() {
        return Err(format!("`{shown}` ended with {status}; it said above why"));
    }
    let manifest = counter.manifest(about.clone(), sizes, sha256);
    if manifest.rows == 0 {
        return Err(format!("`{shown}` made no rows"));
    }
    let keep = || -> io::Result<()> {
        let mut file = File::create(staged.join(MANIFEST))?;
        serde_json::to_writer_pretty(&mut file, &manifest)?;
        file.write_all(b"\n")?;
        file.sync_all()?;
        File::open(staged)?.sync_all()
    };
    keep().map_err(|error| format!("{}: {error}", staged.display()))?;
    Ok(manifest)
}

fn write(
    staged: &Path,
    text: Format,
    mut from: impl Read,
    least_free: u64,
    halt: &AtomicBool,
) -> Result<(Counter, (u64, u64), String), String> {
    let path = staged.join(DATA);
    let failed = |error: io::Error| format!("{}: {error}", path.display());
    let mut encoder = File::create(&path)
        .and_then(|file| zstd::stream::write::Encoder::new(file, LEVEL))
        .map_err(failed)?;
    // So that a file that was damaged since is told, and not loaded.
    encoder.include_checksum(true).map_err(failed)?;
    let (mut digest, mut counter) = (Sha256::new(), Counter::new(text));
    let mut buffer = vec![0; CHUNK];
    let (mut bytes, mut looked_at, mut rest) = (0_u64, 0, Vec::new());
    loop {
        if halt.load(Ordering::Relaxed) {
            return Err("packing was cut short".to_owned());
        }
        let read = from.read(&mut buffer).map_err(failed)?;
        if read == 0 {
            break;
        }
        let chunk = &buffer[..read];
        bytes += read as u64;
        digest.update(chunk);
        encoder.write_all(chunk).map_err(failed)?;
        lines(&mut rest, chunk, &mut |line| counter.line(line))?;
        if bytes >= looked_at {
            looked_at = bytes + LOOK_EVERY;
            leave_free(staged, least_free)?;
        }
    }
    if !rest.is_empty() {
        return Err("the data end within a line".to_owned());
    }
    let file = encoder.finish().map_err(failed)?;
    file.sync_all().map_err(failed)?;
    let packed = file.metadata().map_err(failed)?.len();
    let sha256 = digest
        .finalize()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    Ok((counter, (bytes, packed), sha256))
}

/// Gives `each` the whole lines of a chunk, without their ends; what is left of the last one waits in `rest`.
pub fn lines<E>(
    rest: &mut Vec<u8>,
    mut chunk: &[u8],
    each: &mut impl FnMut(&[u8]) -> Result<(), E>,
) -> Result<(), E> {
    if !rest.is_empty() {
        let Some(end) = memchr(b'\n', chunk) else {
            rest.extend_from_slice(chunk);
            return Ok(());
        };
        rest.extend_from_slice(&chunk[..end]);
        each(rest)?;
        rest.clear();
        chunk = &chunk[end + 1..];
    }
    while let Some(end) = memchr(b'\n', chunk) {
        each(&chunk[..end])?;
        chunk = &chunk[end + 1..];
    }
    rest.extend_from_slice(chunk);
    Ok(())
}

fn leave_free(folder: &Path, least_free: u64) -> Result<(), String> {
    let room = statvfs(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let free = room.blocks_available() * room.fragment_size();
    if free < least_free {
        return Err(format!(
            "{}: {} MiB are free there, and {} MiB are to stay free: the data are not packed",
            folder.display(),
            free >> 20,
            least_free >> 20
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn lines_are_the_same_wherever_chunks_end(text in "([a-c]{0,5}\n){0,9}", size in 1..9usize) {
            let (mut rest, mut found) = (Vec::new(), Vec::new());
            for chunk in text.as_bytes().chunks(size) {
                lines(&mut rest, chunk, &mut |line| {
                    found.push(String::from_utf8(line.to_vec()).unwrap());
                    Ok::<(), ()>(())
                }).unwrap();
            }
            prop_assert!(rest.is_empty());
            prop_assert_eq!(found, text.lines().collect::<Vec<_>>());
        }
    }
}
