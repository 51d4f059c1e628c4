//! The subcommand `watch`.
use crate::Stop;
use std::process::ExitCode;
#[derive(clap::Args)]
pub struct Arguments {}
pub fn run(_: &Arguments) -> Result<ExitCode, Stop> {
    Err(Stop::failed("not yet"))
}
