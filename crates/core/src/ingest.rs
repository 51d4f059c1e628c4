//! The subcommands `pack`, `feed` and `ingest`.

use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

use dyno_ingest::{Format, Job, Options};
use dyno_result::figures::Outcome;

use crate::{Stop, drive, read_job, versions};

#[derive(clap::Args)]
pub struct PackArguments {
    /// The folder to fill; nothing happens where it is filled already
    #[arg(long)]
    out: PathBuf,
    /// How the generator writes rows: ilp, cratedb or timescaledb
    #[arg(long)]
    format: String,
    /// A JSON value to keep with the data: from what they were made
    #[arg(long, default_value = "null")]
    about: String,
    /// Bytes of the file system that are to stay free
    #[arg(long, default_value_t = 1 << 30)]
    least_free: u64,
    /// The generator and its arguments; its standard output is packed
    #[arg(required = true, last = true)]
    command: Vec<String>,
}

#[derive(clap::Args)]
pub struct FeedArguments {
    /// A folder that `pack` filled
    #[arg(long)]
    data: PathBuf,
    /// A file for what it cost, as JSON
    #[arg(long)]
    report: PathBuf,
    /// The loader and its arguments; it reads rows from its standard input
    #[arg(required = true, last = true)]
    command: Vec<String>,
}

#[derive(clap::Args)]
pub struct Arguments {
    /// What to do, as JSON
    #[arg(long)]
    job: PathBuf,
    /// The folder to write the result to
    #[arg(long)]
    out: PathBuf,
    /// Print a JSON line an interval
    #[arg(long)]
    progress: bool,
    /// End when standard input ends
    #[arg(long)]
    stop_on_stdin_eof: bool,
}

pub fn pack(arguments: &PackArguments) -> Result<ExitCode, Stop> {
    let format = Format::by_name(&arguments.format).ok_or_else(|| {
        Stop::usage(format!(
            "--format {}: expected ilp, cratedb or timescaledb",
            arguments.format
        ))
    })?;
    let about = serde_json::from_str(&arguments.about)
        .map_err(|error| Stop::usage(format!("--about: is not JSON ({error})")))?;
    let halt = drive::halt_on_request(false)?;
    let manifest = dyno_ingest::pack(
        &arguments.out,
        format,
        &about,
        &arguments.command,
        arguments.least_free,
        &halt,
    )
    .map_err(Stop::failed)?;
    println!("{}", serde_json::json!(manifest));
    Ok(ExitCode::SUCCESS)
}

pub fn feed(arguments: &FeedArguments) -> Result<ExitCode, Stop> {
    let halt = drive::halt_on_request(false)?;
    let fed =
        dyno_ingest::feed(&arguments.data, &arguments.command, &halt).map_err(Stop::failed)?;
    let text = serde_json::json!(fed).to_string() + "\n";
    fs::write(&arguments.report, text)
        .map_err(|error| Stop::failed(format!("{}: {error}", arguments.report.display())))?;
    Ok(match fed.status.map(u8::try_from) {
        Some(Ok(status)) => ExitCode::from(status),
        _ => ExitCode::FAILURE,
    })
}

pub fn run(arguments: &Arguments) -> Result<ExitCode, Stop> {
    let text = read_job(&arguments.job)?;
    let job = Job::from_json(&text)
        .map_err(|error| Stop::usage(format!("{}: {error}", arguments.job.display())))?;
    let options = Options {
        out: &arguments.out,
        progress: arguments.progress,
        halt: drive::halt_on_request(arguments.stop_on_stdin_eof)?,
        versions: versions::all(),
    };
    let result = dyno_ingest::ingest(&job, &options).map_err(|error| {
        Stop::failed(format!(
            "writing the result to {}: {error}",
            arguments.out.display()
        ))
    })?;
    match (result.outcome, &result.error) {
        (Outcome::Ok, _) => Ok(ExitCode::SUCCESS),
        (Outcome::Partial, _) => Ok(ExitCode::from(3)),
        (Outcome::Failed, Some(failure)) => Err(Stop::failed(failure.to_string())),
        (Outcome::Failed, None) => Err(Stop::failed("failed")),
    }
}
