//! Gives packed text to a loader of others on its standard input, and says what that cost it.

use std::io::{self, ErrorKind, Read, Write};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use dyno_result::clock::{cpu_so_far, now_ns};
use dyno_result::figures::Cpu;
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use serde::Serialize;

use crate::manifest::unpack;

const CHUNK: usize = 256 << 10;
const LOOK: Duration = Duration::from_millis(20);

/// How a loader was fed.
#[derive(Clone, Debug, Serialize)]
pub struct Fed {
    /// Its exit status; none where a signal ended it.
    pub status: Option<i32>,
    /// Whether it took all of the text.
    pub whole: bool,
    /// Of the text, as far as it took it.
    pub bytes: u64,
    /// When it was started, in ns since the epoch.
    pub started_ns: u64,
    /// When it had ended.
    pub ended_ns: u64,
    /// Between the two by a monotonic clock, in seconds.
    pub elapsed_s: f64,
    /// Of the loader alone.
    pub cpu: Cpu,
    /// Of unpacking and feeding.
    pub feeding_cpu: Cpu,
}

/// Feeds `command` with what is packed in `folder`. In one line, why it could not; that a loader takes no more and ends
/// is for whoever reads what it says.
pub fn feed(folder: &Path, command: &[String], halt: &AtomicBool) -> Result<Fed, String> {
    let shown = command.join(" ");
    let mut data = unpack(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let (program, arguments) = command.split_first().ok_or("no loader was named")?;
    let (started_ns, started) = (now_ns(), Instant::now());
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::piped())
        .spawn()
        .map_err(|error| format!("`{shown}` could not be carried out: {error}"))?;
    let input = child.stdin.take().ok_or("the loader has no input")?;
    let child = Mutex::new(child);
    let over = AtomicBool::new(false);
    let (given, status) = thread::scope(|scope| {
        // A loader that takes nothing keeps the write below waiting: it is ended from here.
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                if halt.load(Ordering::Relaxed) {
                    let _ = lock(&child).kill();
                    return;
                }
                thread::sleep(LOOK);
            }
        });
        let given = give(&mut data, input);
        let status = wait(&child);
        over.store(true, Ordering::Relaxed);
        (given, status)
    });
    let status = status.map_err(|error| format!("`{shown}`: {error}"))?;
    let (bytes, whole) = given.map_err(|error| format!("{}: {error}", folder.display()))?;
    Ok(Fed {
        status: status.code(),
        whole,
        bytes,
        started_ns,
        ended_ns: now_ns(),
        elapsed_s: started.elapsed().as_secs_f64(),
        cpu: cpu_of_children(),
        feeding_cpu: cpu_so_far(),
    })
}

fn lock(child: &Mutex<Child>) -> std::sync::MutexGuard<'_, Child> {
    child.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Asks again and again, so that whoever would end it gets at it meanwhile.
fn wait(child: &Mutex<Child>) -> io::Result<ExitStatus> {
    loop {
        if let Some(status) = lock(child).try_wait()? {
            return Ok(status);
        }
        thread::sleep(Duration::from_millis(1));
    }
}

/// How much it took, and whether that was all.
fn give(data: &mut impl Read, mut input: impl Write) -> io::Result<(u64, bool)> {
    let mut buffer = vec![0; CHUNK];
    let mut bytes = 0;
    loop {
        let read = data.read(&mut buffer)?;
        if read == 0 {
            return Ok((bytes, true));
        }
        match input.write_all(&buffer[..read]) {
            Ok(()) => bytes += read as u64,
            Err(error) if error.kind() == ErrorKind::BrokenPipe => return Ok((bytes, false)),
            Err(error) => return Err(error),
        }
    }
}

fn cpu_of_children() -> Cpu {
    getrusage(UsageWho::RUSAGE_CHILDREN).map_or_else(
        |_| Cpu::default(),
        |usage| Cpu {
            user_s: usage.user_time().num_microseconds() as f64 / 1e6,
            system_s: usage.system_time().num_microseconds() as f64 / 1e6,
        },
    )
}
