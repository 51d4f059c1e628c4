//! The subcommand `cut`.

use std::path::PathBuf;
use std::process::ExitCode;

use crate::Stop;
use crate::merge::status_of;

#[derive(clap::Args)]
pub struct Arguments {
    /// The first measured interval that is kept, from 0; those before it become warm-up
    #[arg(long)]
    from_interval: u64,
    /// The folder to write the result to
    #[arg(long)]
    out: PathBuf,
    /// The result folder to cut
    folder: PathBuf,
}

pub fn run(arguments: &Arguments) -> Result<ExitCode, Stop> {
    if arguments.folder == arguments.out {
        return Err(Stop::usage(format!(
            "{}: is both the result to cut and the folder to write to",
            arguments.folder.display()
        )));
    }
    let result = dyno_drive::cut(&arguments.folder, arguments.from_interval, &arguments.out)
        .map_err(|error| Stop::usage(error.to_string()))?;
    Ok(status_of(&result))
}
