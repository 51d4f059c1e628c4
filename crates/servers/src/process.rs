//! A server's process, always meant by its id.

use std::fs::File;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::wait_until;

/// A process that ends with its owner.
#[derive(Debug)]
pub struct Process(Child);

impl Process {
    /// Starts it, with what it prints in a file. `install` says what to install where it is missing.
    #[must_use]
    pub fn start(command: &mut Command, log: &Path, install: &str) -> Self {
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
        Self(child)
    }

    /// Its id.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.0.id()
    }

    /// Whether it ended.
    pub fn has_ended(&mut self) -> bool {
        self.0.try_wait().expect("a child").is_some()
    }

    fn send(&self, signal: Signal) {
        let id = i32::try_from(self.0.id()).expect("a process id");
        kill(Pid::from_raw(id), signal).expect("a process of ours");
    }

    /// Has it end by itself, and waits for that.
    pub fn stop(mut self) {
        self.send(Signal::SIGTERM);
        let what = format!("the end of process {}", self.id());
        wait_until(Duration::from_secs(30), &what, || self.has_ended());
    }

    /// Lets it do nothing until [`Self::resume`].
    pub fn pause(&self) {
        self.send(Signal::SIGSTOP);
    }

    /// Lets it go on.
    pub fn resume(&self) {
        self.send(Signal::SIGCONT);
    }
}

impl Drop for Process {
    /// Ends it at once, whatever it does.
    fn drop(&mut self) {
        // It may have ended already; the id is its own until it is waited for.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
