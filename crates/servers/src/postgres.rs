//! `PostgreSQL`, by the programs of the machine. Run by root it belongs to the account `postgres`, as it
//! refuses to run as root.

use std::fs;
use std::os::unix::fs::chown;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use nix::sys::signal::Signal;
use nix::unistd::{Uid, User};

use crate::disk::on_disk;
use crate::{Folder, LONG, Process, Shared, free_port, wait_until};

const INSTALL: &str = "install it: apt-get install postgresql";

/// How often another port is tried where somebody was faster to take one.
const PORTS_TRIED: u32 = 5;

/// A server with an empty database `postgres` and the superuser `dyno`, who needs no password.
#[derive(Debug)]
pub struct Postgres {
    process: Option<Process>,
    folder: Folder,
    port: u16,
    account: Option<User>,
    settings: Vec<String>,
    /// What of its data is on a disk of its own, and the room there in MiB.
    disk: Option<(String, u32)>,
}

impl Postgres {
    /// Starts one, which takes connections then. `settings` are `name=value`; `access` are lines of
    /// `pg_hba.conf` for accounts other than `dyno`.
    #[must_use]
    pub fn start(settings: &[&str], access: &[&str]) -> Self {
        Self::start_as(settings, access, None)
    }

    /// As [`Self::start`], with a folder of its data on a disk that has so much room left and ends with
    /// the process: `base` holds the tables, `pg_wal` the log.
    #[must_use]
    pub fn start_on_disk(settings: &[&str], folder: &str, room_mib: u32) -> Self {
        Self::start_as(settings, &[], Some((folder.to_owned(), room_mib)))
    }

    fn start_as(settings: &[&str], access: &[&str], disk: Option<(String, u32)>) -> Self {
        let mut server = Self {
            process: None,
            folder: Folder::new("postgres"),
            port: 0,
            account: account(),
            settings: settings.iter().map(|&one| one.to_owned()).collect(),
            disk,
        };
        server.make_data(access);
        for _ in 0..PORTS_TRIED {
            server.port = free_port();
            if server.starts() {
                return server;
            }
        }
        let log = fs::read_to_string(server.log()).unwrap_or_default();
        panic!("PostgreSQL does not start: {log}");
    }

    /// The one for all tests, as [`Shared`] is.
    #[must_use]
    pub fn shared() -> Arc<Self> {
        static SHARED: Shared<Postgres> = Shared::new();
        SHARED.get(|| Self::start(&[], &[]))
    }

    /// Starts it anew with the same data, at the same addresses.
    pub fn start_again(&mut self) {
        // Those that were left by the first one may still be ending, and it starts only without them.
        wait_until(LONG, "PostgreSQL starts again", || self.starts());
    }

    /// The socket's file.
    #[must_use]
    pub fn socket(&self) -> PathBuf {
        self.folder.path().join(format!(".s.PGSQL.{}", self.port))
    }

    /// Its port on 127.0.0.1.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The first of its processes.
    #[must_use]
    pub fn process(&self) -> &Process {
        self.process.as_ref().expect("it was started")
    }

    /// Kills its first process as if it had crashed; the others see to that and end.
    pub fn kill(&mut self) {
        self.process.as_mut().expect("it was started").kill();
    }

    fn make_data(&self, access: &[&str]) {
        if let Some(account) = &self.account {
            let (user, group) = (account.uid.as_raw(), account.gid.as_raw());
            chown(self.folder.path(), Some(user), Some(group)).expect("a folder of ours");
        }
        let made = self
            .command("initdb")
            .args(["--username=dyno", "--auth=trust", "--encoding=UTF8"])
            .args(["--locale=C", "--no-sync", "--wal-segsize=1", "--pgdata"])
            .arg(self.data())
            .output()
            .unwrap_or_else(|error| panic!("initdb: {error}; {INSTALL}"));
        assert!(
            made.status.success(),
            "initdb: {}",
            String::from_utf8_lossy(&made.stderr)
        );
        let own = ["local all dyno trust", "host all dyno samehost trust"];
        let access = [&own, access].concat().join("\n") + "\n";
        fs::write(self.data().join("pg_hba.conf"), access).expect("its folder");
    }

    /// Whether it takes connections; false where it has ended instead.
    fn starts(&mut self) -> bool {
        let mut command = self.command("postgres");
        command
            .arg("-D")
            .arg(self.data())
            .arg("-k")
            .arg(self.folder.path())
            .args(["-p", &self.port.to_string()]);
        let usual = [
            "listen_addresses=127.0.0.1",
            "fsync=off",
            "shared_buffers=16MB",
            "autovacuum=off",
        ];
        for setting in usual
            .into_iter()
            .chain(self.settings.iter().map(String::as_str))
        {
            command.args(["-c", setting]);
        }
        if let Some((folder, room)) = &self.disk {
            command = on_disk(&command, &self.data().join(folder), *room);
        }
        // Its immediate shutdown: no checkpoint, as the data go, too.
        let mut process = Process::start(&mut command, &self.log(), Signal::SIGQUIT, INSTALL);
        let mut ended = false;
        wait_until(LONG, "PostgreSQL takes connections", || {
            ended = process.has_ended();
            ended || self.says_ready(process.id())
        });
        self.process = Some(process);
        !ended
    }

    /// Whether it has put into its own file that it is ready, which is what `pg_ctl` goes by.
    fn says_ready(&self, id: u32) -> bool {
        let file = fs::read_to_string(self.data().join("postmaster.pid")).unwrap_or_default();
        let lines: Vec<&str> = file.lines().map(str::trim).collect();
        lines.first() == Some(&id.to_string().as_str()) && lines.get(7) == Some(&"ready")
    }

    /// A program of the server, run in its folder by its account.
    fn command(&self, program: &str) -> Command {
        let program = programs().join(program);
        let mut command = match &self.account {
            None => Command::new(program),
            Some(account) => {
                let mut command = Command::new("setpriv");
                command
                    .arg(format!("--reuid={}", account.uid))
                    .arg(format!("--regid={}", account.gid))
                    .arg("--clear-groups")
                    .arg(program);
                command
            }
        };
        command.current_dir(self.folder.path());
        command
    }

    fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    fn log(&self) -> PathBuf {
        self.folder.path().join("log")
    }
}

/// The account that the server runs as; `None` is the one of the test.
fn account() -> Option<User> {
    Uid::effective().is_root().then(|| {
        let account = User::from_name("postgres").expect("the list of accounts");
        account.unwrap_or_else(|| panic!("there is no account postgres; {INSTALL}"))
    })
}

/// The folder of the server's programs: distributions keep them out of the search path, by version.
fn programs() -> PathBuf {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten();
    let mut versions: Vec<PathBuf> = versions
        .filter_map(|entry| Some(entry.ok()?.path().join("bin")))
        .collect();
    versions.sort();
    let has = |folder: &Path, program| folder.join(program).is_file();
    std::env::split_paths(&path)
        .chain(versions)
        .find(|folder| has(folder, "initdb") && has(folder, "postgres"))
        .unwrap_or_else(|| panic!("PostgreSQL's server is missing; {INSTALL}"))
}
