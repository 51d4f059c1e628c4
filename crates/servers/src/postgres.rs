//! `PostgreSQL`, by the programs of the machine. Run by root it belongs to the account `postgres`, as it
//! refuses to run as root.

use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use nix::sys::signal::Signal;
use nix::unistd::User;

use crate::common::{Folder, Process, account};
use crate::{free_port, wait_until};

/// How often another port is tried where somebody was faster to take one.
const PORTS_TRIED: u32 = 5;

/// Longer than anything takes that comes about at all.
const LONG: std::time::Duration = std::time::Duration::from_secs(60);

/// A server with an empty database `postgres` and the superuser `dyno`, who needs no password.
#[derive(Debug)]
pub struct Postgres {
    programs: PathBuf,
    account: Option<User>,
    settings: Vec<String>,
    port: u16,
    process: Process,
    // Dropped after the process has ended.
    folder: Folder,
}

impl Postgres {
    /// Starts one, which takes connections then. `settings` are `name=value`; `access` are lines of
    /// `pg_hba.conf` for accounts other than `dyno`.
    #[must_use]
    pub fn start(settings: &[&str], access: &[&str]) -> Self {
        let programs = programs();
        let account = account("postgres");
        let folder = Folder::new("postgres", account.as_ref());
        let data = folder.path().join("data");
        let initdb = command(&programs.join("initdb"), &folder, account.as_ref())
            .args([
                "--username=dyno",
                "--auth=trust",
                "--encoding=UTF8",
                "--locale=C",
                "--no-sync",
            ])
            .args(["--wal-segsize=1", "--pgdata"])
            .arg(&data)
            .output()
            .unwrap();
        assert!(
            initdb.status.success(),
            "{}",
            String::from_utf8_lossy(&initdb.stderr)
        );
        let own = ["local all dyno trust", "host all dyno samehost trust"];
        let access = [&own, access].concat().join("\n") + "\n";
        fs::write(data.join("pg_hba.conf"), access).unwrap();
        let settings: Vec<String> = settings
            .iter()
            .map(|setting| (*setting).to_owned())
            .collect();
        for _ in 0..PORTS_TRIED {
            let port = free_port();
            let mut process = spawn(&programs, &folder, account.as_ref(), &settings, port);
            if wait_ready(&folder, &mut process) {
                return Self {
                    programs,
                    account,
                    settings,
                    port,
                    process,
                    folder,
                };
            }
        }
        panic!("PostgreSQL does not start: {}", log(&folder));
    }

    /// The port on 127.0.0.1.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The socket's file.
    #[must_use]
    pub fn socket(&self) -> PathBuf {
        self.folder.path().join(format!(".s.PGSQL.{}", self.port))
    }

    /// The first of its processes.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.process.pid()
    }

    /// Kills its first process as if it had crashed; the others see to that and end.
    pub fn kill(&mut self) {
        self.process.end(Signal::SIGKILL);
    }

    /// Starts it anew, with the same data and on the same port.
    pub fn start_again(&mut self) {
        // Those that were left by the first one may still be ending, and it starts only without them.
        wait_until(LONG, "PostgreSQL starts again", || {
            let Self {
                programs,
                account,
                settings,
                port,
                folder,
                ..
            } = self;
            self.process = spawn(programs, folder, account.as_ref(), settings, *port);
            wait_ready(folder, &mut self.process)
        });
    }
}

fn spawn(
    programs: &Path,
    folder: &Folder,
    account: Option<&User>,
    settings: &[String],
    port: u16,
) -> Process {
    let log = File::create(folder.path().join("log")).unwrap();
    let mut command = command(&programs.join("postgres"), folder, account);
    command
        .arg("-D")
        .arg(folder.path().join("data"))
        .arg("-k")
        .arg(folder.path())
        .args(["-p", &port.to_string()]);
    let usual = [
        "listen_addresses=127.0.0.1",
        "fsync=off",
        "shared_buffers=16MB",
        "autovacuum=off",
    ];
    for setting in usual.into_iter().chain(settings.iter().map(String::as_str)) {
        command.args(["-c", setting]);
    }
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(log);
    // Its immediate shutdown: no checkpoint, as the data go, too.
    Process::new(command.spawn().unwrap(), Signal::SIGQUIT)
}

/// Whether it takes connections; false where it has ended instead.
fn wait_ready(folder: &Folder, process: &mut Process) -> bool {
    let mut ended = false;
    wait_until(LONG, "PostgreSQL takes connections", || {
        ended = process.has_ended();
        ended || says_ready(folder, process.pid())
    });
    !ended
}

/// Whether it has put into its own file that it is ready, which is what `pg_ctl` goes by.
fn says_ready(folder: &Folder, pid: u32) -> bool {
    let file = fs::read_to_string(folder.path().join("data/postmaster.pid")).unwrap_or_default();
    let lines: Vec<&str> = file.lines().map(str::trim).collect();
    lines.first() == Some(&pid.to_string().as_str()) && lines.get(7) == Some(&"ready")
}

fn command(program: &Path, folder: &Folder, account: Option<&User>) -> Command {
    let mut command = Command::new(program);
    command.current_dir(folder.path());
    if let Some(account) = account {
        command.uid(account.uid.as_raw()).gid(account.gid.as_raw());
    }
    command
}

fn log(folder: &Folder) -> String {
    fs::read_to_string(folder.path().join("log")).unwrap_or_default()
}

/// The folder of the server's programs: distributions keep them out of the search path, by version.
fn programs() -> PathBuf {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten();
    let mut versions: Vec<PathBuf> = versions
        .filter_map(|entry| Some(entry.ok()?.path().join("bin")))
        .collect();
    versions.sort();
    std::env::split_paths(&path)
        .chain(versions)
        .find(|folder| folder.join("initdb").is_file() && folder.join("postgres").is_file())
        .unwrap_or_else(|| {
            panic!("PostgreSQL's server is missing: apt-get install postgresql (Debian, Ubuntu)")
        })
}
