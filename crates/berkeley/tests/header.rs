//! What is declared of the library, beside its own header.

#![allow(clippy::unwrap_used, clippy::expect_used)] // a test that cannot go on fails

use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use dyno_berkeley::layout::{COUNTER_BYTES, DBT_BYTES, NUMBERS, PLACES};

/// The members that are read as numbers of one length.
fn counters() -> impl Iterator<Item = (&'static str, &'static str)> {
    let counters = PLACES.iter().filter(|(name, ..)| name.ends_with("_STAT"));
    counters.map(|(structure, member, _)| (*structure, *member))
}

/// What a C compiler says of the header: a line a place or number.
fn said_by_the_header() -> String {
    let mut program = String::from(
        "#include <db.h>\n#include <stddef.h>\n#include <stdio.h>\nint main(void) {\n",
    );
    for (structure, member, _) in PLACES {
        writeln!(
            program,
            "printf(\"{structure} {member} %zu\\n\", offsetof({structure}, {member}));"
        )
        .unwrap();
    }
    program.push_str("printf(\"DBT %zu\\n\", sizeof(DBT));\n");
    for (structure, member) in counters() {
        writeln!(
            program,
            "printf(\"{structure} {member} %zu\\n\", sizeof((({structure} *)0)->{member}));"
        )
        .unwrap();
    }
    for (name, _) in NUMBERS {
        writeln!(program, "printf(\"{name} %d\\n\", (int){name});").unwrap();
    }
    program.push_str("printf(\"%d.%d.%d\\n\", DB_VERSION_MAJOR, DB_VERSION_MINOR, DB_VERSION_PATCH);\nreturn 0;\n}\n");
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let built = folder.join("berkeley-header");
    let source = folder.join("berkeley-header.c");
    std::fs::write(&source, program).unwrap();
    let compiled = Command::new("cc")
        .arg("-o")
        .arg(&built)
        .arg(&source)
        .stdin(Stdio::null())
        .output()
        .expect("a C compiler");
    assert!(
        compiled.status.success(),
        "tests/install-servers installs the header (libdb5.3-dev): {}",
        String::from_utf8_lossy(&compiled.stderr)
    );
    String::from_utf8(Command::new(&built).output().unwrap().stdout).unwrap()
}

#[test]
fn places_and_numbers_are_those_of_the_header() {
    let mut declared = String::new();
    for (structure, member, offset) in PLACES {
        writeln!(declared, "{structure} {member} {offset}").unwrap();
    }
    writeln!(declared, "DBT {DBT_BYTES}").unwrap();
    for (structure, member) in counters() {
        writeln!(declared, "{structure} {member} {COUNTER_BYTES}").unwrap();
    }
    for (name, number) in NUMBERS {
        writeln!(declared, "{name} {number}").unwrap();
    }
    let (major, minor, patch) = dyno_berkeley::VERSION;
    writeln!(declared, "{major}.{minor}.{patch}").unwrap();
    let said = said_by_the_header();
    for (declared, said) in declared.lines().zip(said.lines()) {
        assert_eq!(declared, said);
    }
    assert_eq!(declared.lines().count(), said.lines().count());
}
