//! The subcommand `files`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use clap::ValueEnum;
use dyno_files::{Request, Stop as Ended};
use dyno_result::figures::Outcome;
use dyno_wml::ast::Script;

use crate::{Stop, drive, versions};

#[derive(clap::Args)]
#[allow(clippy::struct_excessive_bools)] // switches of a command line
pub struct Arguments {
    /// A workload file, or the name of a built-in one
    #[arg(required_unless_present_any = ["list", "print"])]
    workload: Option<String>,
    /// List the built-in workloads
    #[arg(long)]
    list: bool,
    /// Print a built-in workload's text
    #[arg(long, value_name = "NAME", conflicts_with = "list")]
    print: Option<String>,
    /// Only look whether the workload is right
    #[arg(long)]
    check: bool,
    /// Only say what would run, and how much space and memory it takes
    #[arg(long, conflicts_with = "check")]
    explain: bool,
    /// A value in place of the first one that the workload gives a variable
    #[arg(long, value_name = "NAME=VALUE")]
    set: Vec<String>,
    /// How long to run, in place of what the workload says
    #[arg(long)]
    seconds: Option<f64>,
    /// The same seed gives the same files and the same random numbers
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// The length of an interval
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u64).range(10..=3_600_000))]
    interval_ms: u64,
    /// Files in filebench's order, and what else differs from it put back
    #[arg(long)]
    compat: bool,
    /// Let the workload's `system` commands run
    #[arg(long)]
    allow_system: bool,
    /// Let the workload write over block devices that its files are
    #[arg(long)]
    allow_device: bool,
    /// Have each block say where it belongs, and look at what is read
    #[arg(long)]
    verify: bool,
    /// Use threads for asynchronous writes even where the kernel has rings for them
    #[arg(long)]
    no_io_uring: bool,
    /// What of it to do
    #[arg(long, value_enum, default_value_t)]
    phase: Phase,
    /// The folder to write the result to
    #[arg(long)]
    out: Option<PathBuf>,
    /// What to print
    #[arg(long, value_enum, default_value_t)]
    format: Format,
    /// Print a JSON line an interval
    #[arg(long)]
    progress: bool,
    /// End when standard input ends
    #[arg(long)]
    stop_on_stdin_eof: bool,
}

#[derive(Clone, Copy, Default, ValueEnum)]
enum Phase {
    /// Make the filesets, and run
    #[default]
    All,
    /// Make the filesets
    Create,
    /// Run on filesets that were made before with the same workload, values and seed
    Run,
}

#[derive(Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
enum Format {
    /// filebench's table and summary
    #[default]
    Filebench,
    /// The result's text
    Json,
}

pub fn run(arguments: &Arguments) -> Result<ExitCode, Stop> {
    if arguments.list {
        list();
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(name) = &arguments.print {
        print!("{}", built_in(name)?);
        return Ok(ExitCode::SUCCESS);
    }
    let workload = arguments.workload.as_deref().unwrap_or_default();
    let (text, path) = read(workload)?;
    let script =
        dyno_wml::parse(&text, workload).map_err(|error| Stop::usage(error.to_string()))?;
    let quiet = arguments.check || arguments.explain;
    let request = request(arguments, &script, path.as_deref(), quiet)?;
    if arguments.check {
        return check(&request);
    }
    if arguments.explain {
        let explanation = dyno_files::explain(&request).map_err(stop)?;
        match arguments.format {
            Format::Json => println!("{}", serde_json::json!(explanation)),
            Format::Filebench => print!("{}", explanation.text()),
        }
        return Ok(ExitCode::SUCCESS);
    }
    let result = dyno_files::carry_out(&request).map_err(stop)?;
    match (result.outcome, &result.error) {
        (Outcome::Ok, _) => Ok(ExitCode::SUCCESS),
        (Outcome::Partial, _) => Ok(ExitCode::from(3)),
        (Outcome::Failed, Some(failure)) => Err(Stop::failed(failure.to_string())),
        (Outcome::Failed, None) => Err(Stop::failed("failed")),
    }
}

fn request<'a>(
    arguments: &'a Arguments,
    script: &'a Script,
    path: Option<&'a Path>,
    quiet: bool,
) -> Result<Request<'a>, Stop> {
    let mut values = Vec::new();
    let mut values_given = BTreeMap::new();
    for set in &arguments.set {
        let Some((name, value)) = set.split_once('=') else {
            return Err(Stop::usage(format!("--set {set}: expected NAME=VALUE")));
        };
        let name = name.trim_start_matches('$');
        let assigned = dyno_wml::parse_value(value, &format!("--set {name}"))
            .map_err(|error| Stop::usage(error.to_string()))?;
        values.push((name.to_owned(), assigned));
        values_given.insert(name.to_owned(), value.to_owned());
    }
    if let Some(seconds) = arguments.seconds
        && !(seconds > 0.0 && seconds < 1e9)
    {
        return Err(Stop::usage(format!(
            "--seconds {seconds}: expected a number above 0"
        )));
    }
    let halt = if quiet {
        Arc::new(AtomicBool::new(false))
    } else {
        drive::halt_on_request(arguments.stop_on_stdin_eof)?
    };
    Ok(Request {
        script,
        beside: path.and_then(Path::parent),
        values,
        values_given,
        seconds: arguments.seconds,
        seed: arguments.seed,
        interval: Duration::from_millis(arguments.interval_ms),
        compat: arguments.compat,
        allow_system: arguments.allow_system,
        allow_device: arguments.allow_device,
        verify: arguments.verify,
        no_ring: arguments.no_io_uring,
        phase: match arguments.phase {
            Phase::All => dyno_files::Phase::All,
            Phase::Create => dyno_files::Phase::Create,
            Phase::Run => dyno_files::Phase::Run,
        },
        out: arguments.out.as_deref(),
        format: match arguments.format {
            Format::Filebench => dyno_files::Format::Filebench,
            Format::Json => dyno_files::Format::Json,
        },
        progress: arguments.progress,
        halt,
        versions: versions::all(),
    })
}

fn stop(ended: Ended) -> Stop {
    match ended {
        Ended::Usage(message) => Stop::usage(message),
        Ended::Failed(message) => Stop::failed(message),
    }
}

fn list() {
    for name in dyno_files::names() {
        let purpose = dyno_files::text(name)
            .map(dyno_files::purpose)
            .unwrap_or_default();
        println!("{name}: {purpose}");
    }
}

fn built_in(name: &str) -> Result<&'static str, Stop> {
    dyno_files::text(name).ok_or_else(|| {
        let known: Vec<&str> = dyno_files::names().collect();
        Stop::usage(format!(
            "{name}: there is no such workload, expected one of {}",
            known.join(", ")
        ))
    })
}

/// A workload's text, and its path where it is a file.
fn read(workload: &str) -> Result<(String, Option<PathBuf>), Stop> {
    if let Some(text) = dyno_files::text(workload) {
        return Ok((text.to_owned(), None));
    }
    let path = PathBuf::from(workload);
    match std::fs::read(&path) {
        Ok(bytes) => Ok((String::from_utf8_lossy(&bytes).into_owned(), Some(path))),
        Err(_) if !workload.contains(['/', '.']) => {
            built_in(workload).map(|text| (text.to_owned(), None))
        }
        Err(error) => Err(Stop::usage(format!(
            "{workload}: cannot be read ({error}), expected a workload file or the name of a built-in one"
        ))),
    }
}

/// Prints what is to be said of the workload; whether it is right.
fn check(request: &Request) -> Result<ExitCode, Stop> {
    let findings = dyno_files::check(request).map_err(stop)?;
    let mut errors = findings
        .iter()
        .filter(|finding| finding.severity == dyno_wml::Severity::Error);
    for finding in &findings {
        if finding.severity != dyno_wml::Severity::Error {
            println!("{finding}");
        }
    }
    if let Some(first) = errors.next() {
        let more = errors.count();
        let more = if more > 0 {
            format!(" (and {more} more)")
        } else {
            String::new()
        };
        return Err(Stop::usage(format!("{}{more}", first.error)));
    }
    dyno_files::explain(request).map_err(stop)?;
    Ok(ExitCode::SUCCESS)
}
