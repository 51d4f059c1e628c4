//! The subcommand `watch`.

use std::io::{self, BufRead, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::mpsc::{Sender, channel};
use std::thread;

use dyno_watch::{Command, WatchJob};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::{Stop, read_job};

#[derive(clap::Args)]
pub struct Arguments {
    /// What to watch, as JSON
    #[arg(long)]
    job: PathBuf,
    /// The CSV file to write samples to
    #[arg(long)]
    out: PathBuf,
    /// End when standard input ends
    #[arg(long)]
    stop_on_stdin_eof: bool,
}

pub fn run(arguments: &Arguments) -> Result<ExitCode, Stop> {
    let text = read_job(&arguments.job)?;
    let job = WatchJob::from_json(&text)
        .map_err(|error| Stop::usage(format!("{}: {error}", arguments.job.display())))?;
    let (sender, commands) = channel();
    // Both end with the program. The loop holds a sender of its own, so that the end of standard input
    // is an end only where it was asked to be one.
    stop_on_signals(sender.clone())?;
    let stop_at_eof = arguments.stop_on_stdin_eof;
    let input = sender.clone();
    thread::spawn(move || read_commands(&input, stop_at_eof));
    let ready = || {
        // Where nobody reads, watching goes on all the same.
        let _ = writeln!(io::stdout(), "{{\"ready\": true}}");
    };
    let warn = |message: &str| eprintln!("dyno-core: {message}");
    dyno_watch::watch(&job, &arguments.out, &commands, ready, warn)
        .map_err(|error| Stop::failed(error.to_string()))?;
    Ok(ExitCode::SUCCESS)
}

fn stop_on_signals(sender: Sender<Command>) -> Result<(), Stop> {
    let mut signals = Signals::new([SIGTERM, SIGINT])
        .map_err(|error| Stop::failed(format!("waiting for signals: {error}")))?;
    thread::spawn(move || {
        for _ in signals.forever() {
            let _ = sender.send(Command::Stop);
        }
    });
    Ok(())
}

fn read_commands(sender: &Sender<Command>, stop_at_eof: bool) {
    for line in io::stdin().lock().lines().map_while(Result::ok) {
        match Command::from_line(&line) {
            Ok(command) => {
                let _ = sender.send(command);
            }
            Err(error) => eprintln!("dyno-core: standard input: {error}"),
        }
    }
    if stop_at_eof {
        let _ = sender.send(Command::Stop);
    }
}
