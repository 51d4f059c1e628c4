//! Reads a job and says what is wrong with it: where it stands, what it is, what would be right.

use serde::de::DeserializeOwned;
use serde_json::Value;

/// The version of the jobs' format that this program reads.
const FORMAT: u64 = 1;

/// What is wrong with a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobError {
    /// Where: keys joined by dots, such as `backend.config.journal_mode`.
    pub path: String,
    /// What is wrong and what would be right, in one line.
    pub message: String,
}

impl JobError {
    /// An error at `path`.
    pub fn new(path: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            path: path.into(),
            message: message.into(),
        }
    }
}

impl std::fmt::Display for JobError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.path, self.message)
    }
}

impl std::error::Error for JobError {}

/// Parses a job's text into JSON, of the one format that is known.
pub fn parse(text: &str) -> Result<Value, JobError> {
    let mut job: Value = serde_json::from_str(text).map_err(|error| {
        let place = format!("line {} column {}", error.line(), error.column());
        JobError::new(place, format!("is not JSON ({error}), expected one object"))
    })?;
    let Some(members) = job.as_object_mut() else {
        return Err(JobError::new("job", "expected an object"));
    };
    match members.remove("format") {
        Some(format) if format.as_u64() == Some(FORMAT) => Ok(job),
        Some(format) => Err(JobError::new(
            "format",
            format!("{format} is not known to this version, expected {FORMAT}"),
        )),
        None => Err(JobError::new(
            "format",
            format!("is missing, expected {FORMAT}"),
        )),
    }
}

/// Reads the part of a job that stands at `path` (empty for the whole).
pub fn read<T: DeserializeOwned>(part: Value, path: &str) -> Result<T, JobError> {
    serde_path_to_error::deserialize(part).map_err(|error| {
        let inner = error.path().to_string();
        let message = error.into_inner().to_string();
        let key = if inner == "." { "" } else { &inner };
        // Serde puts a missing key at its parent; the reader looks for the key.
        match message
            .strip_prefix("missing field `")
            .and_then(|rest| rest.strip_suffix('`'))
        {
            Some(missing) => JobError::new(join([path, key, missing]), "is missing"),
            None => JobError::new(join([path, key, ""]), message),
        }
    })
}

/// Takes the `kind` out of a part that comes in several kinds: gives the kind's place in `kinds`, and
/// the rest.
pub fn split_kind(mut part: Value, path: &str, kinds: &[&str]) -> Result<(usize, Value), JobError> {
    let expected = format!("expected one of {}", kinds.join(", "));
    let Some(members) = part.as_object_mut() else {
        return Err(JobError::new(path, "expected an object with a kind"));
    };
    let Some(kind) = members.remove("kind") else {
        return Err(JobError::new(
            join([path, "kind", ""]),
            format!("is missing, {expected}"),
        ));
    };
    match kinds.iter().position(|known| kind.as_str() == Some(*known)) {
        Some(index) => Ok((index, part)),
        None => Err(JobError::new(
            join([path, "kind", ""]),
            format!("{kind} is not known, {expected}"),
        )),
    }
}

/// Refuses a number outside its bounds.
pub fn check_range<T: PartialOrd + Copy + std::fmt::Display>(
    path: &str,
    value: T,
    least: T,
    most: T,
) -> Result<(), JobError> {
    if value >= least && value <= most {
        return Ok(());
    }
    Err(JobError::new(
        path,
        format!("{value} is out of range, expected {least} to {most}"),
    ))
}

/// Refuses what is not above 0, or above `most`.
pub fn check_above_0(path: &str, value: f64, most: f64) -> Result<(), JobError> {
    if value > 0.0 && value <= most {
        return Ok(());
    }
    Err(JobError::new(
        path,
        format!("{value} is out of range, expected a number above 0 and at most {most}"),
    ))
}

/// The keys that are there, joined; the whole job is called `job`.
fn join(keys: [&str; 3]) -> String {
    let keys: Vec<&str> = keys.into_iter().filter(|key| !key.is_empty()).collect();
    if keys.is_empty() {
        "job".to_owned()
    } else {
        keys.join(".")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, serde::Deserialize)]
    #[serde(deny_unknown_fields)]
    #[allow(dead_code)]
    struct Part {
        size: u32,
        inner: Option<Box<Part>>,
    }

    fn error(text: &str) -> String {
        parse(text)
            .and_then(|job| read::<Part>(job, "part"))
            .unwrap_err()
            .to_string()
    }

    #[test]
    fn errors_name_the_key_wherever_it_stands() {
        assert_eq!(
            error(r#"{"format": 1, "size": "a"}"#),
            r#"part.size: invalid type: string "a", expected u32"#
        );
        assert_eq!(error(r#"{"format": 1}"#), "part.size: is missing");
        let whole = read::<Part>(Value::Object(serde_json::Map::new()), "");
        assert_eq!(whole.unwrap_err().to_string(), "size: is missing");
        assert_eq!(
            error(r#"{"format": 1, "size": 1, "inner": {}}"#),
            "part.inner.size: is missing"
        );
        assert!(
            error(r#"{"format": 1, "size": 1, "inner": {"siez": 1}}"#)
                .starts_with("part.inner.siez: unknown field `siez`, expected `size` or `inner`")
        );
    }

    #[test]
    fn a_format_of_the_future_is_refused_before_its_keys() {
        assert!(error(r#"{"format": 2, "new": 1}"#).starts_with("format: 2 is not known"));
        assert!(error("{}").starts_with("format: is missing"));
        assert!(error("[]").starts_with("job: expected an object"));
        assert!(error("{").starts_with("line 1 column 1: is not JSON"));
    }
}
