//! filebench's Workload Model Language: what a workload file says and what is wrong with it.

pub mod ast;

/// What is wrong with a workload file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// What the file is called.
    pub name: String,
    /// Where, from 1.
    pub line: u32,
    /// Where in the line, in characters, from 1.
    pub column: u32,
    /// What is wrong and what would be right, in one line.
    pub message: String,
}

/// Reads a workload file's text; `name` is what the file is called in messages.
pub fn parse(_text: &str, name: &str) -> Result<ast::Script, Error> {
    Ok(ast::Script {
        name: name.to_owned(),
        commands: Vec::new(),
        notes: Vec::new(),
    })
}
