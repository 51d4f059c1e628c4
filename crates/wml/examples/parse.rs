//! Parses workload files and says what is wrong with each: `cargo run -p dyno-wml --example parse -- FILE...`.

fn main() {
    let mut failed = 0;
    let paths: Vec<String> = std::env::args().skip(1).collect();
    for path in &paths {
        match std::fs::read(path) {
            Ok(bytes) => match dyno_wml::parse_bytes(&bytes, path) {
                Ok(_) => {}
                Err(error) => {
                    failed += 1;
                    println!("{error}");
                }
            },
            Err(error) => println!("{path}: {error}"),
        }
    }
    println!("{} files, {failed} refused", paths.len());
}
