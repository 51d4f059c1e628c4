//! The subcommand `drive`.

use std::io::{self, Read};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use dyno_drive::{DriveResult, Job, Options, Outcome};
use signal_hook::consts::{SIGINT, SIGTERM};

use crate::{Stop, read_job, versions};

#[derive(clap::Args)]
pub struct Arguments {
    /// What to do, as JSON
    #[arg(long)]
    job: PathBuf,
    /// The folder to write the result to
    #[arg(long, required_unless_present = "probe")]
    out: Option<PathBuf>,
    /// Print a JSON line an interval
    #[arg(long)]
    progress: bool,
    /// End when standard input ends
    #[arg(long)]
    stop_on_stdin_eof: bool,
    /// Only open the backend, show its settings as read back, and close it
    #[arg(long, conflicts_with = "out")]
    probe: bool,
}

pub fn run(arguments: &Arguments) -> Result<ExitCode, Stop> {
    let text = read_job(&arguments.job)?;
    let job = Job::from_json(&text)
        .map_err(|error| Stop::usage(format!("{}: {error}", arguments.job.display())))?;
    let halt = halt_on_request(arguments.stop_on_stdin_eof)?;
    let Some(out) = &arguments.out else {
        return probe(&job, &halt);
    };
    let options = Options {
        out,
        progress: arguments.progress,
        halt,
        versions: versions::all(),
    };
    let result = dyno_drive::drive(&job, &options).map_err(|error| {
        Stop::failed(format!("writing the result to {}: {error}", out.display()))
    })?;
    exit(&result)
}

fn probe(job: &Job, halt: &Arc<AtomicBool>) -> Result<ExitCode, Stop> {
    let probe =
        dyno_drive::probe(job, halt).map_err(|failure| Stop::failed(failure.to_string()))?;
    println!("{}", serde_json::json!(probe));
    Ok(ExitCode::SUCCESS)
}

fn exit(result: &DriveResult) -> Result<ExitCode, Stop> {
    match (result.outcome, &result.error) {
        (Outcome::Ok, _) => Ok(ExitCode::SUCCESS),
        (Outcome::Partial, _) => Ok(ExitCode::from(3)),
        (Outcome::Failed, Some(failure)) => Err(Stop::failed(failure.to_string())),
        (Outcome::Failed, None) => Err(Stop::failed("failed")),
    }
}

/// A flag that becomes true when somebody wants the run to end.
pub fn halt_on_request(on_stdin_eof: bool) -> Result<Arc<AtomicBool>, Stop> {
    let halt = Arc::new(AtomicBool::new(false));
    for signal in [SIGTERM, SIGINT] {
        signal_hook::flag::register(signal, Arc::clone(&halt))
            .map_err(|error| Stop::failed(format!("waiting for signal {signal}: {error}")))?;
    }
    if on_stdin_eof {
        let halt = Arc::clone(&halt);
        // Ends with the program; what it reads is of no interest.
        thread::spawn(move || {
            let mut buffer = [0; 256];
            let mut input = io::stdin().lock();
            while !matches!(input.read(&mut buffer), Ok(0) | Err(_)) {}
            halt.store(true, Ordering::Relaxed);
        });
    }
    Ok(halt)
}
