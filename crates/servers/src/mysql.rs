//! `MySQL`, which Debian has in sid only: it runs from a folder that `dyno get mysql` makes.

use std::env;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;

use nix::sys::signal::Signal;

use crate::mariadb::{as_root, wait_for_greeting};
use crate::{Folder, Process, Shared, cache, free_port};

const INSTALL: &str = "make it once by `dyno get mysql`";

/// A `MySQL` server of one's own. `root` has no password and may enter by the socket file.
#[derive(Debug)]
pub struct Mysql {
    _process: Process,
    folder: Folder,
    port: u16,
}

impl Mysql {
    /// Starts one and waits until it answers.
    #[must_use]
    pub fn start() -> Self {
        Self::start_with(&[])
    }

    /// As [`Self::start`], with options such as `--require-secure-transport=ON`.
    #[must_use]
    pub fn start_with(options: &[&str]) -> Self {
        let root = root();
        let folder = Folder::new("mysql");
        let template = root.join("data");
        assert!(
            template.is_dir(),
            "no MySQL at {}: {INSTALL}",
            root.display()
        );
        folder.copy(&template, "data");
        let path = folder.path();
        let (socket, log) = (path.join("socket"), path.join("log"));
        let port = free_port();
        let mut command = Command::new(root.join("mysqld"));
        command
            .arg("--no-defaults")
            .args(as_root())
            .arg(format!("--datadir={}", path.join("data").display()))
            .arg(format!("--socket={}", socket.display()))
            .arg(format!("--pid-file={}", path.join("pid").display()))
            .arg(format!("--port={port}"))
            .args([
                "--bind-address=127.0.0.1",
                "--skip-name-resolve",
                "--mysqlx=OFF",
                "--skip-log-bin",
                "--performance-schema=OFF",
                "--innodb-buffer-pool-size=32M",
                "--innodb-redo-log-capacity=8M",
                "--innodb-flush-log-at-trx-commit=2",
            ])
            .args(options);
        let mut process = Process::start(&mut command, &log, Signal::SIGKILL, INSTALL);
        wait_for_greeting(&mut process, &socket, &log);
        Self {
            _process: process,
            folder,
            port,
        }
    }

    /// The one for all tests, as [`Shared`] is.
    #[must_use]
    pub fn shared() -> Arc<Self> {
        static SHARED: Shared<Mysql> = Shared::new();
        SHARED.get(Self::start)
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
}

/// Where `MySQL` is: `DYNO_MYSQL_ROOT`, or the user's cache.
fn root() -> PathBuf {
    if let Some(root) = env::var_os("DYNO_MYSQL_ROOT") {
        return root.into();
    }
    cache().join("mysql-root")
}
