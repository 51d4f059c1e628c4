//! The versions of the program and of what is built into it.

use std::collections::BTreeMap;

/// By name.
pub fn all() -> BTreeMap<String, String> {
    [
        ("dyno-core", env!("CARGO_PKG_VERSION")),
        ("sqlite", dyno_drive::sqlite_version()),
        ("glass-assemblies", dyno_drive::glass_assemblies()),
        ("rustc", env!("DYNO_RUSTC_VERSION")),
    ]
    .map(|(name, version)| (name.to_owned(), version.to_owned()))
    .into()
}

/// Prints them.
pub fn show(json: bool) {
    if json {
        println!("{}", serde_json::json!(all()));
        return;
    }
    for (name, version) in all() {
        println!("{name} {version}");
    }
}
