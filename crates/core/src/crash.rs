//! The subcommands `record`, `cut-power`, `crash-write` and `crash-judge`: what a power failure leaves.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use dyno_recorder::cut::{self, Cut, Mode};
use dyno_recorder::disk::Disk;
use dyno_recorder::fuse::{FILE, Served};
use dyno_recorder::history::History;
use dyno_recorder::judge;
use dyno_recorder::log::Log;
use dyno_recorder::write::{self, Job, Limit};
use serde_json::json;

use crate::Stop;
use crate::drive::halt_on_request;

const LOOK_EVERY: Duration = Duration::from_millis(50);

#[derive(clap::Args)]
pub struct RecordArguments {
    /// What the disk holds; made, with nothing in it, where there is none
    #[arg(long)]
    image: PathBuf,
    /// The disk's size in bytes
    #[arg(long, value_parser = clap::value_parser!(u64).range(4096..=1 << 50))]
    size: u64,
    /// The log to write
    #[arg(long)]
    log: PathBuf,
    /// The file to keep the point of the log in: 8 bytes, the number of records so far
    #[arg(long)]
    point: PathBuf,
    /// The folder to mount at; the disk is the file `disk` in it
    #[arg(long)]
    mount: PathBuf,
    /// End when standard input ends
    #[arg(long)]
    stop_on_stdin_eof: bool,
}

/// Serves until it is unmounted from without, or told to end.
pub fn record(arguments: &RecordArguments) -> Result<ExitCode, Stop> {
    if !arguments.size.is_multiple_of(4096) {
        return Err(Stop::usage(format!(
            "--size {}: no multiple of 4096",
            arguments.size
        )));
    }
    let halt = halt_on_request(arguments.stop_on_stdin_eof)?;
    let disk = Disk::open(
        &arguments.image,
        arguments.size,
        &arguments.log,
        &arguments.point,
    )
    .map_err(|error| {
        Stop::failed(format!(
            "cannot record {}: {error}",
            arguments.image.display()
        ))
    })?;
    let served = Served::mount(disk, arguments.size, &arguments.mount).map_err(|error| {
        Stop::failed(format!(
            "cannot mount at {}: {error}",
            arguments.mount.display()
        ))
    })?;
    say(&json!({"disk": arguments.mount.join(FILE)}))?;
    let unmount = served.unmounter();
    thread::spawn(move || {
        // While a loop device uses the file it cannot be unmounted.
        while !halt.load(Ordering::Relaxed) || unmount().is_err() {
            thread::sleep(LOOK_EVERY);
        }
    });
    let totals = served
        .wait()
        .map_err(|error| Stop::failed(format!("the disk could not be recorded: {error}")))?;
    say(&json!(totals))?;
    Ok(ExitCode::SUCCESS)
}

#[derive(clap::Args)]
pub struct CutArguments {
    /// The log that was recorded
    #[arg(long)]
    log: PathBuf,
    /// The image as recording began; without it there was nothing in it
    #[arg(long)]
    base: Option<PathBuf>,
    /// How many records of the log there were when the power failed; without it all
    #[arg(long)]
    point: Option<u64>,
    /// What is left to chance is a function of it
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Which of the writes in the disk's cache are there afterwards
    #[arg(long, value_enum, default_value_t = Mode::Any)]
    mode: Mode,
    /// What the disk writes whole or not at all, in bytes
    #[arg(long, default_value_t = 512, value_parser = clap::value_parser!(u64).range(512..=65_536))]
    sector: u64,
    /// How much the disk's cache holds, in bytes
    #[arg(long, default_value_t = 32 << 20)]
    cache: u64,
    /// The image to make; one that is there is made over
    #[arg(long)]
    out: PathBuf,
}

/// Makes the image and says what became of the cache.
pub fn cut_power(arguments: &CutArguments) -> Result<ExitCode, Stop> {
    let log = Log::read(&arguments.log).map_err(|error| unread(&arguments.log, &error))?;
    let records = log.entries.len() as u64;
    let point = arguments.point.unwrap_or(records);
    if point > records {
        return Err(Stop::usage(format!(
            "--point {point}: the log has {records} records"
        )));
    }
    let remains = cut::cut(
        &log,
        &Cut {
            point,
            seed: arguments.seed,
            mode: arguments.mode,
            sector: arguments.sector,
            cache: arguments.cache,
        },
    );
    cut::put(
        &remains,
        &log,
        &arguments.log,
        arguments.base.as_deref(),
        &arguments.out,
    )
    .map_err(|error| Stop::failed(format!("cannot make {}: {error}", arguments.out.display())))?;
    say(&json!({"point": point, "records": records, "torn_log": log.torn, "fate": remains.fate}))?;
    Ok(ExitCode::SUCCESS)
}

#[derive(clap::Args)]
pub struct WriteArguments {
    /// The root of the file system
    #[arg(long)]
    folder: PathBuf,
    /// The file in which the recorder keeps the point of its log
    #[arg(long)]
    point: PathBuf,
    /// The file to write the history to; not on that file system
    #[arg(long)]
    history: PathBuf,
    /// How many write at once
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u64).range(1..=1024))]
    threads: u64,
    /// For how long
    #[arg(long, required_unless_present = "steps", value_parser = seconds)]
    seconds: Option<Duration>,
    /// How many steps all threads take together, in place of a time
    #[arg(long, conflicts_with = "seconds")]
    steps: Option<u64>,
    /// All that is left to chance is a function of it
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// How many files each thread has at the most
    #[arg(long, default_value_t = 32, value_parser = clap::value_parser!(u64).range(1..=4096))]
    files: u64,
    /// How large a file becomes, in blocks of 4096 bytes
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u64).range(1..=65_536))]
    largest: u64,
    /// Of 100 steps, how many are with files that are never synced
    #[arg(long, default_value_t = 40, value_parser = clap::value_parser!(u64).range(0..=100))]
    loose: u64,
    /// How much of the free room is filled with data that are removed before, in percent
    #[arg(long, default_value_t = 80, value_parser = clap::value_parser!(u64).range(0..=95))]
    prefill: u64,
    /// End when standard input ends
    #[arg(long)]
    stop_on_stdin_eof: bool,
}

fn seconds(text: &str) -> Result<Duration, String> {
    text.parse()
        .ok()
        .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
        .ok_or_else(|| "expected a number of seconds".into())
}

/// Writes and says what was done.
pub fn write(arguments: &WriteArguments) -> Result<ExitCode, Stop> {
    let limit = match (arguments.steps, arguments.seconds) {
        (Some(steps), _) => Limit::Steps(steps),
        (None, seconds) => Limit::Time(seconds.unwrap_or_default()),
    };
    let halt = halt_on_request(arguments.stop_on_stdin_eof)?;
    let job = Job {
        folder: arguments.folder.clone(),
        point: arguments.point.clone(),
        history: arguments.history.clone(),
        threads: arguments.threads,
        limit,
        seed: arguments.seed,
        files: arguments.files,
        largest: arguments.largest,
        loose: arguments.loose,
        prefill: arguments.prefill,
    };
    let done =
        write::write(&job, &halt).map_err(|error| Stop::failed(format!("writing: {error}")))?;
    say(&json!(done))?;
    Ok(if done.halted {
        ExitCode::from(3)
    } else {
        ExitCode::SUCCESS
    })
}

#[derive(clap::Args)]
pub struct JudgeArguments {
    /// The history that was kept
    #[arg(long)]
    history: PathBuf,
    /// The point of the cut
    #[arg(long)]
    point: u64,
    /// The root of the file system after the cut; without it, it could not be mounted
    #[arg(long)]
    folder: Option<PathBuf>,
}

/// Judges and says what was found; a broken promise is a finding, no failure.
pub fn judge(arguments: &JudgeArguments) -> Result<ExitCode, Stop> {
    let history =
        History::read(&arguments.history).map_err(|error| unread(&arguments.history, &error))?;
    let judged = judge::judge(&history, arguments.point, arguments.folder.as_deref())
        .map_err(|error| Stop::failed(format!("cannot judge: {error}")))?;
    say(&json!(judged))?;
    Ok(ExitCode::SUCCESS)
}

fn unread(path: &Path, error: &io::Error) -> Stop {
    Stop::usage(format!("{}: {error}", path.display()))
}

fn say(what: &serde_json::Value) -> Result<(), Stop> {
    let mut output = io::stdout().lock();
    writeln!(output, "{what}")
        .and_then(|()| output.flush())
        .map_err(|error| Stop::failed(format!("writing to standard output: {error}")))
}
