//! A server's process, always meant by its id.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::{LONG, wait_until};

/// A process that ends with its owner.
#[derive(Debug)]
pub struct Process {
    child: Child,
    /// What ends it fastest and leaves nothing behind.
    parting: Signal,
}

impl Process {
    /// Starts it, with what it prints in a file; `parting` will end it. `install` says what to install
    /// where it is missing.
    pub(crate) fn start(command: &mut Command, log: &Path, parting: Signal, install: &str) -> Self {
        let log = File::create(log).expect("a log file");
        let again = log.try_clone().expect("a log file");
        let child = command
            .stdin(Stdio::null())
            .stdout(log)
            .stderr(again)
            .spawn()
            .unwrap_or_else(|error| {
                panic!("{}: {error}; {install}", command.get_program().display())
            });
        Self { child, parting }
    }

    /// Its id.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Whether it ended.
    pub fn has_ended(&mut self) -> bool {
        self.child.try_wait().expect("a child").is_some()
    }

    fn send(&self, signal: Signal) {
        let id = i32::try_from(self.child.id()).expect("a process id");
        kill(Pid::from_raw(id), signal).expect("a process of ours");
    }

    /// Has it end by itself, and waits for that.
    pub(crate) fn stop(mut self) {
        self.send(Signal::SIGTERM);
        let what = format!("the end of process {}", self.id());
        wait_until(LONG, &what, || self.has_ended());
    }

    /// Ends it at once, whatever it does.
    pub(crate) fn kill(&mut self) {
        // It may have ended already; the id is its own until it is waited for.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Lets it do nothing until [`Self::resume`].
    pub fn pause(&self) {
        self.send(Signal::SIGSTOP);
        // The signal comes to one thread after the other.
        wait_until(LONG, "a process that stands still", || {
            let tasks = fs::read_dir(format!("/proc/{}/task", self.id())).expect("its threads");
            tasks.flatten().all(|task| {
                // The state stands behind the name, which is in parentheses.
                let status = fs::read_to_string(task.path().join("stat")).unwrap_or_default();
                let state = status.rsplit_once(") ").map(|(_, rest)| rest.as_bytes()[0]);
                state.is_none_or(|state| state == b'T')
            })
        });
    }

    /// Lets it go on.
    pub fn resume(&self) {
        self.send(Signal::SIGCONT);
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if !self.has_ended() {
            self.send(self.parting);
            let end = Instant::now() + Duration::from_secs(20);
            while !self.has_ended() && Instant::now() < end {
                thread::sleep(Duration::from_millis(2));
            }
        }
        self.kill();
    }
}
