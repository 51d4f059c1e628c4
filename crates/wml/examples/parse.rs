//! Looks workload files over: `cargo run -p dyno-wml --example parse -- [--check] FILE...`.

use dyno_wml::{Severity, Variables, check, parse_bytes};

fn main() {
    let mut paths: Vec<String> = std::env::args().skip(1).collect();
    let checked = paths.first().is_some_and(|first| first == "--check");
    if checked {
        paths.remove(0);
    }
    let (mut refused, mut wrong) = (0, 0);
    for path in &paths {
        let bytes = match std::fs::read(path) {
            Ok(bytes) => bytes,
            Err(error) => {
                println!("{path}: {error}");
                continue;
            }
        };
        match parse_bytes(&bytes, path) {
            Ok(script) if checked => {
                let findings = check(&script, Variables::new(path, false), &|_| None);
                let errors = findings
                    .iter()
                    .filter(|finding| finding.severity == Severity::Error);
                wrong += usize::from(errors.count() > 0);
                for finding in &findings {
                    println!("{finding}");
                }
            }
            Ok(_) => {}
            Err(error) => {
                refused += 1;
                println!("{error}");
            }
        }
    }
    println!(
        "{} files, {refused} refused, {wrong} with errors",
        paths.len()
    );
}
