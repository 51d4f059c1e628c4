//! The workload files that come with dyno.

macro_rules! built_in {
    ($($name:literal),+ $(,)?) => {
        const ALL: &[(&str, &str)] = &[
            $(($name, include_str!(concat!("../workloads/", $name, ".f")))),+
        ];
    };
}

built_in!(
    "fileserver",
    "oltp",
    "oltp-study",
    "varmail",
    "videoserver",
    "videoserver-study",
    "webproxy",
    "webserver",
    "webserver-study",
);

/// Their names.
pub fn names() -> impl Iterator<Item = &'static str> {
    ALL.iter().map(|(name, _)| *name)
}

/// The text of one.
#[must_use]
pub fn text(name: &str) -> Option<&'static str> {
    ALL.iter()
        .find(|(known, _)| *known == name)
        .map(|(_, text)| *text)
}

/// What one is for: the comment that it begins with.
#[must_use]
pub fn purpose(text: &str) -> String {
    text.lines()
        .map_while(|line| line.strip_prefix('#'))
        .map(str::trim)
        .collect::<Vec<_>>()
        .join(" ")
}
