//! The subcommand `merge`.

use std::path::PathBuf;
use std::process::ExitCode;

use crate::Stop;

#[derive(clap::Args)]
pub struct Arguments {
    /// The folder to write the one result to
    #[arg(long)]
    out: PathBuf,
    /// The drivers' result folders
    #[arg(required = true)]
    folders: Vec<PathBuf>,
}

pub fn run(arguments: &Arguments) -> Result<ExitCode, Stop> {
    if let Some(folder) = arguments
        .folders
        .iter()
        .find(|folder| **folder == arguments.out)
    {
        return Err(Stop::usage(format!(
            "{}: is both a result to merge and the folder to write to",
            folder.display()
        )));
    }
    let result = dyno_drive::merge(&arguments.folders, &arguments.out)
        .map_err(|error| Stop::usage(error.to_string()))?;
    Ok(status_of(&result))
}

/// The exit status that `drive` would have had.
pub fn status_of(result: &serde_json::Value) -> ExitCode {
    match result["outcome"].as_str() {
        Some("ok") => ExitCode::SUCCESS,
        Some("partial") => ExitCode::from(3),
        _ => ExitCode::FAILURE,
    }
}
