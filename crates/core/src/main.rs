//! `dyno-core`: what dyno does at full speed, or must do at no cost.
//!
//! Each subcommand reads one JSON job and writes one result; it is useful on its own. Exit status: 0
//! all that was asked was done; 1 it failed; 2 the job or the command line is wrong; 3 the run was cut
//! short, and its partial result is written.

mod crash;
mod cut;
mod drive;
mod files;
mod flame;
mod ingest;
mod merge;
mod versions;
mod watch;

use std::path::Path;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use nix::sys::resource::{Resource, getrlimit, setrlimit};

#[derive(Parser)]
#[command(name = "dyno-core", version, about)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Bring a workload to a data store and measure it
    Drive(drive::Arguments),
    /// Run a workload in filebench's language on a file system
    Files(files::Arguments),
    /// Keep what a generator of rows of time series writes, compressed
    Pack(ingest::PackArguments),
    /// Give such rows to a loader on its standard input
    Feed(ingest::FeedArguments),
    /// Load such rows into a data store and measure it
    Ingest(ingest::Arguments),
    /// Make one result of several drivers' results
    Merge(merge::Arguments),
    /// Make a result of the part of another from one of its intervals on
    Cut(cut::Arguments),
    /// Sample the machine and processes until told to stop
    Watch(watch::Arguments),
    /// Fold what `perf script` printed into a line a stack
    Fold(flame::FoldArguments),
    /// Draw flame graphs of folded stacks, or of what changed between two
    Flame(flame::FlameArguments),
    /// Serve a file as a disk and log its writes and flushes, until it is unmounted
    Record(crash::RecordArguments),
    /// Make the image that a power failure at a point of such a log would leave
    CutPower(crash::CutArguments),
    /// Write to a file system upon such a disk, and keep what was promised at which point
    CrashWrite(crash::WriteArguments),
    /// Say which promises are broken by what a file system holds after a cut
    CrashJudge(crash::JudgeArguments),
    /// Show the versions of the program and of what is built into it
    Version {
        /// As one JSON object
        #[arg(long)]
        json: bool,
    },
}

fn main() -> ExitCode {
    allow_many_files();
    let ended = match Arguments::parse().command {
        Command::Drive(arguments) => drive::run(&arguments),
        Command::Files(arguments) => files::run(&arguments),
        Command::Pack(arguments) => ingest::pack(&arguments),
        Command::Feed(arguments) => ingest::feed(&arguments),
        Command::Ingest(arguments) => ingest::run(&arguments),
        Command::Merge(arguments) => merge::run(&arguments),
        Command::Cut(arguments) => cut::run(&arguments),
        Command::Watch(arguments) => watch::run(&arguments),
        Command::Fold(arguments) => flame::fold(&arguments),
        Command::Flame(arguments) => flame::run(&arguments),
        Command::Record(arguments) => crash::record(&arguments),
        Command::CutPower(arguments) => crash::cut_power(&arguments),
        Command::CrashWrite(arguments) => crash::write(&arguments),
        Command::CrashJudge(arguments) => crash::judge(&arguments),
        Command::Version { json } => {
            versions::show(json);
            Ok(ExitCode::SUCCESS)
        }
    };
    ended.unwrap_or_else(|stop| {
        // Whoever reads this expects one line.
        eprintln!("dyno-core: {}", stop.message.replace('\n', " "));
        ExitCode::from(stop.status)
    })
}

/// Each connection of a client and each watched thread keeps files open, and the usual limit of 1024
/// is there for programs of another age. Where the limit cannot be raised, opening one too many fails
/// and says so.
fn allow_many_files() {
    if let Ok((_, most)) = getrlimit(Resource::RLIMIT_NOFILE) {
        let _ = setrlimit(Resource::RLIMIT_NOFILE, most, most);
    }
}

/// Why the program ends early, in one line, and its exit status.
struct Stop {
    status: u8,
    message: String,
}

impl Stop {
    /// It failed.
    fn failed(message: impl Into<String>) -> Self {
        Self {
            status: 1,
            message: message.into(),
        }
    }

    /// The job or the command line is wrong.
    fn usage(message: impl Into<String>) -> Self {
        Self {
            status: 2,
            message: message.into(),
        }
    }
}

/// Reads a job's text.
fn read_job(path: &Path) -> Result<String, Stop> {
    std::fs::read_to_string(path).map_err(|error| {
        Stop::usage(format!(
            "{}: cannot be read ({error}), expected a job in JSON",
            path.display()
        ))
    })
}
