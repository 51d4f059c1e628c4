//! Wrong inputs by the million: `cargo run --release -p dyno-wml --example fuzz -- 1000000 [SEED] [FILE...]`.
//!
//! They are made of the file that has every form of the language, of the workloads that dyno comes with, and of the files
//! that are named. The first input that makes the parser panic, takes long or has an error beyond its text ends it.

#[path = "../tests/fuzzing/mod.rs"]
mod fuzzing;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let inputs: u64 = arguments
        .next()
        .map_or(Ok(1_000_000), |text| text.parse())?;
    let seed: u64 = arguments.next().map_or(Ok(1), |text| text.parse())?;
    let mut seeds = vec![fuzzing::FORMS.as_bytes().to_vec()];
    let built_in = concat!(env!("CARGO_MANIFEST_DIR"), "/../files/workloads");
    for entry in std::fs::read_dir(built_in)? {
        seeds.push(std::fs::read(entry?.path())?);
    }
    for path in arguments {
        seeds.push(std::fs::read(path)?);
    }
    let started = std::time::Instant::now();
    // In rounds, so that something is seen meanwhile.
    let mut total = fuzzing::Outcome::default();
    let mut round = 0;
    while total.inputs < inputs {
        let outcome = fuzzing::run(
            (inputs - total.inputs).min(100_000),
            seed + round,
            &seeds,
            &|_| {},
        );
        total.inputs += outcome.inputs;
        total.bytes += outcome.bytes;
        total.accepted += outcome.accepted;
        total.slowest = total.slowest.max(outcome.slowest);
        round += 1_000_003;
        println!(
            "{} inputs of {} files, {} MB: {} accepted, {} refused, slowest {:.1} ms, {:.0} s",
            total.inputs,
            seeds.len(),
            total.bytes >> 20,
            total.accepted,
            total.inputs - total.accepted,
            total.slowest.as_secs_f64() * 1e3,
            started.elapsed().as_secs_f64(),
        );
    }
    Ok(())
}
