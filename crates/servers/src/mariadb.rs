//! `MariaDB`.

use std::env;
use std::fs;
use std::io::Read;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use nix::sys::signal::Signal;
use nix::unistd::Uid;

use crate::disk::on_disk;
use crate::{Folder, LONG, Process, Shared, cache, free_port, wait_until};

const INSTALL: &str = "install it: apt-get install mariadb-server";

/// A `MariaDB` server of one's own. `root` has no password and may enter from this machine.
#[derive(Debug)]
pub struct Mariadb {
    process: Option<Process>,
    folder: Folder,
    port: u16,
    options: Vec<String>,
    /// The room on a disk of its own, in MiB.
    room: Option<u32>,
}

impl Mariadb {
    /// Starts one and waits until it answers.
    #[must_use]
    pub fn start() -> Self {
        Self::start_with(&[])
    }

    /// As [`Self::start`], with its data on a disk that has so much room left and ends with the process.
    #[must_use]
    pub fn start_on_disk(room_mib: u32) -> Self {
        Self::start_as(&[], Some(room_mib))
    }

    /// As [`Self::start`], with options such as `--max-connections=3`.
    #[must_use]
    pub fn start_with(options: &[&str]) -> Self {
        Self::start_as(options, None)
    }

    fn start_as(options: &[&str], room: Option<u32>) -> Self {
        let folder = Folder::new("mariadb");
        folder.copy(&template(), "data");
        let mut server = Self {
            process: None,
            folder,
            port: free_port(),
            options: options.iter().map(|&option| option.to_owned()).collect(),
            room,
        };
        server.start_again();
        server
    }

    /// The one for all tests, as [`Shared`] is.
    #[must_use]
    pub fn shared() -> Arc<Self> {
        static SHARED: Shared<Mariadb> = Shared::new();
        SHARED.get(Self::start)
    }

    /// Starts it anew with the same data, at the same addresses.
    pub fn start_again(&mut self) {
        assert!(self.process.is_none(), "it runs already");
        let path = self.folder.path();
        let (data, log) = (path.join("data"), path.join("log"));
        let mut command = Command::new(program("mariadbd"));
        command
            .arg("--no-defaults")
            .args(as_root())
            .arg(format!("--datadir={}", data.display()))
            // A server that starts removes the temporary tables of others in a folder that they share.
            .arg(format!("--tmpdir={}", path.display()))
            .arg(format!("--socket={}", self.socket().display()))
            .arg(format!("--port={}", self.port))
            .args(SMALL)
            .args([
                "--bind-address=127.0.0.1",
                "--skip-name-resolve",
                "--innodb-buffer-pool-size=32M",
                "--innodb-flush-log-at-trx-commit=2",
                "--aria-pagecache-buffer-size=1M",
                "--key-buffer-size=1M",
            ])
            .args(&self.options);
        if let Some(room) = self.room {
            command = on_disk(&command, &data, room);
        }
        let mut process = Process::start(&mut command, &log, Signal::SIGKILL, INSTALL);
        wait_for_greeting(&mut process, &self.socket(), &log);
        self.process = Some(process);
    }

    /// Its socket file.
    #[must_use]
    pub fn socket(&self) -> PathBuf {
        self.folder.path().join("socket")
    }

    /// Its port on 127.0.0.1.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Its process.
    ///
    /// # Panics
    /// While it is stopped.
    #[must_use]
    pub fn process(&self) -> &Process {
        self.process.as_ref().expect("it runs")
    }

    /// Has it end by itself.
    pub fn stop(&mut self) {
        self.process.take().expect("it runs").stop();
    }

    /// Ends it at once.
    pub fn kill(&mut self) {
        self.process = None;
    }
}

/// Without what takes time or room and no test needs.
const SMALL: [&str; 1] = ["--innodb-log-file-size=8M"];

/// An empty data folder, made once for a version and kept in the user's cache: it takes seconds.
fn template() -> PathBuf {
    let said = Command::new(program("mariadbd"))
        .arg("--version")
        .output()
        .unwrap_or_else(|error| panic!("mariadbd: {error}; {INSTALL}"));
    let said = String::from_utf8_lossy(&said.stdout);
    let version = said.split_whitespace().nth(2).unwrap_or("unknown");
    let template = cache().join(format!("mariadb-data-{version}"));
    if !template.is_dir() {
        let made = cache().join(format!("mariadb-data-{version}-{}", std::process::id()));
        make_template(&made);
        // Somebody else may have been faster.
        if fs::rename(&made, &template).is_err() {
            let _ = fs::remove_dir_all(&made);
        }
    }
    template
}

fn make_template(data: &Path) {
    fs::create_dir_all(data).expect("a folder in the cache");
    let made = Command::new(program("mariadb-install-db"))
        .arg("--no-defaults")
        .args(as_root())
        .arg(format!("--datadir={}", data.display()))
        .arg(format!("--tmpdir={}", data.display()))
        .args(["--auth-root-authentication-method=normal", "--skip-test-db"])
        .args(SMALL)
        .output()
        .unwrap_or_else(|error| panic!("mariadb-install-db: {error}; {INSTALL}"));
    assert!(
        made.status.success(),
        "mariadb-install-db: {}",
        String::from_utf8_lossy(&made.stderr)
    );
}

/// A program of the path, or of where Debian keeps those of administrators.
fn program(name: &str) -> PathBuf {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path)
        .chain(["/usr/sbin".into(), "/usr/local/sbin".into()])
        .map(|folder| folder.join(name))
        .find(|file| file.is_file())
        .unwrap_or_else(|| name.into())
}

/// Both servers run as root only if they are told so.
pub(crate) fn as_root() -> Option<&'static str> {
    Uid::effective().is_root().then_some("--user=root")
}

/// Waits until the server greets.
pub(crate) fn wait_for_greeting(process: &mut Process, socket: &Path, log: &Path) {
    wait_until(LONG, "the server's greeting", || {
        if process.has_ended() {
            let log = fs::read_to_string(log).unwrap_or_default();
            panic!("the server ended while starting:\n{log}");
        }
        let Ok(mut stream) = UnixStream::connect(socket) else {
            return false;
        };
        let mut greeting = [0; 5];
        // The fifth byte is the protocol's version; an error would have another.
        stream.read_exact(&mut greeting).is_ok() && greeting[4] == 10
    });
}
