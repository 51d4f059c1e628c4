//! The subcommands `fold` and `flame`.

use std::fs::{self, File};
use std::io::{BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use serde_json::Value;

use crate::{Stop, read_job};

#[derive(clap::Args)]
pub struct FoldArguments {
    /// The file to write a line a stack to
    #[arg(long)]
    out: PathBuf,
    /// What `perf script -F comm,pid,tid,time,event,ip,sym,dso` printed
    script: PathBuf,
}

#[derive(clap::Args)]
pub struct FlameArguments {
    /// The graphs to draw
    #[arg(long)]
    job: PathBuf,
    /// The folder to write NAME.svg and NAME.page.svg of each graph to
    #[arg(long)]
    out: PathBuf,
}

pub fn fold(arguments: &FoldArguments) -> Result<ExitCode, Stop> {
    let script = File::open(&arguments.script).map_err(failed(&arguments.script))?;
    let mut out = BufWriter::new(File::create(&arguments.out).map_err(failed(&arguments.out))?);
    dyno_flame::fold(BufReader::new(script), &mut out).map_err(failed(&arguments.script))?;
    out.flush().map_err(failed(&arguments.out))?;
    Ok(ExitCode::SUCCESS)
}

pub fn run(arguments: &FlameArguments) -> Result<ExitCode, Stop> {
    let wrong = |message: String| Stop::usage(format!("{}: {message}", arguments.job.display()));
    let mut job =
        dyno_job::parse(&read_job(&arguments.job)?).map_err(|error| wrong(error.to_string()))?;
    let graphs: Vec<dyno_flame::Graph> = dyno_job::read(
        job.get_mut("graphs").map_or(Value::Null, Value::take),
        "graphs",
    )
    .map_err(|error| wrong(error.to_string()))?;
    fs::create_dir_all(&arguments.out).map_err(failed(&arguments.out))?;
    for graph in &graphs {
        if graph.name.is_empty() || graph.name.contains(['/', '\0']) {
            return Err(wrong(format!(
                "graphs: {:?} cannot be the name of a file",
                graph.name
            )));
        }
        let drawn = dyno_flame::draw(graph)
            .map_err(|error| wrong(format!("graphs: {}: {error}", graph.name)))?;
        for (end, svg) in [("page.svg", drawn.page), ("svg", drawn.file)] {
            let path = arguments.out.join(format!("{}.{end}", graph.name));
            fs::write(&path, svg).map_err(failed(&path))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn failed(path: &Path) -> impl Fn(std::io::Error) -> Stop {
    move |error| Stop::failed(format!("{}: {error}", path.display()))
}
