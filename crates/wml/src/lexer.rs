//! Words, numbers, variables and quoted texts.
//!
//! As filebench's, with these differences: a word is a word wherever it stands (filebench takes
//! `run` for the command even in a name or a quoted text); numbers may have upper-case suffixes,
//! fractions and `0x`; variables may have one letter; `$(dir)` and `${dir}` are `$dir`.

use crate::ast::{Note, Part, Piece, Position, Text, Variable};

/// A word, number or mark, and where it stands.
#[derive(Clone, Debug)]
pub(crate) struct Token<'a> {
    pub kind: Kind<'a>,
    pub at: Position,
    /// Its bytes.
    pub start: usize,
    pub end: usize,
}

#[derive(Clone, Debug)]
pub(crate) enum Kind<'a> {
    /// A bare text.
    Word(&'a str),
    Integer(u64),
    Float(f64),
    Variable(Variable),
    Quoted(Text),
    /// One of `{ } ( ) = , + *`.
    Mark(char),
    /// What is wrong here; nothing follows it.
    Wrong(String),
    End,
}

/// Splits a text; the last token is `End` or `Wrong`.
pub(crate) fn tokens(text: &str) -> (Vec<Token<'_>>, Vec<Note>) {
    let mut lexer = Lexer {
        text,
        bytes: text.as_bytes(),
        offset: 0,
        at: Position { line: 1, column: 1 },
        notes: Vec::new(),
    };
    let mut tokens = Vec::new();
    loop {
        let token = lexer.token();
        let last = matches!(token.kind, Kind::End | Kind::Wrong(_));
        tokens.push(token);
        if last {
            return (tokens, lexer.notes);
        }
    }
}

struct Lexer<'a> {
    text: &'a str,
    bytes: &'a [u8],
    offset: usize,
    at: Position,
    notes: Vec<Note>,
}

impl<'a> Lexer<'a> {
    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.offset).copied()
    }

    fn byte_at(&self, offset: usize) -> Option<u8> {
        self.bytes.get(offset).copied()
    }

    /// Goes on to `end`, which is at a character's start.
    fn advance_to(&mut self, end: usize) -> &'a str {
        let passed = &self.text[self.offset..end];
        for byte in passed.bytes() {
            if byte == b'\n' {
                self.at.line = self.at.line.saturating_add(1);
                self.at.column = 1;
            } else if byte & 0xc0 != 0x80 {
                self.at.column = self.at.column.saturating_add(1);
            }
        }
        self.offset = end;
        passed
    }

    /// Where the bytes that `keep` end, from `from` on.
    fn end_of(&self, from: usize, keep: impl Fn(u8) -> bool) -> usize {
        self.bytes[from..]
            .iter()
            .position(|&byte| !keep(byte))
            .map_or(self.bytes.len(), |length| from + length)
    }

    fn skip_blanks(&mut self) {
        loop {
            match self.peek() {
                Some(b' ' | b'\t' | b'\r' | b'\n' | 0x0b | 0x0c) => {
                    let end = self.end_of(self.offset, |byte| {
                        matches!(byte, b' ' | b'\t' | b'\r' | b'\n' | 0x0b | 0x0c)
                    });
                    self.advance_to(end);
                }
                Some(b'#') => {
                    let end = self.end_of(self.offset, |byte| byte != b'\n');
                    self.advance_to(end);
                }
                // What some editors put at a file's start.
                Some(0xef) if self.text[self.offset..].starts_with('\u{feff}') => {
                    self.advance_to(self.offset + '\u{feff}'.len_utf8());
                }
                _ => return,
            }
        }
    }

    fn token(&mut self) -> Token<'a> {
        loop {
            self.skip_blanks();
            let at = self.at;
            let start = self.offset;
            let kind = match self.peek() {
                None => Kind::End,
                Some(byte @ (b'{' | b'}' | b'(' | b')' | b'=' | b',' | b'+' | b'*')) => {
                    self.advance_to(start + 1);
                    Kind::Mark(char::from(byte))
                }
                Some(b'"') => self.quoted(at),
                Some(b'$') => {
                    let Some(variable) = self.variable(false) else {
                        self.stray();
                        continue;
                    };
                    Kind::Variable(variable)
                }
                Some(b'0'..=b'9') => self.number(),
                Some(b'/' | b'-' | b'_' | b'a'..=b'z' | b'A'..=b'Z') => {
                    let end = self.end_of(start, is_word);
                    Kind::Word(self.advance_to(end))
                }
                Some(_) => {
                    self.stray();
                    continue;
                }
            };
            return Token {
                kind,
                at,
                start,
                end: self.offset,
            };
        }
    }

    /// Passes over characters that mean nothing, as filebench does, and says so.
    fn stray(&mut self) {
        let at = self.at;
        let first = self.bytes[self.offset];
        let end = self.end_of(self.offset + 1, |byte| {
            if first == b'$' {
                byte == b'$'
            } else {
                !byte.is_ascii_alphanumeric()
                    && !byte.is_ascii_whitespace()
                    && !b"{}()=,+*\"$/-_#".contains(&byte)
            }
        });
        let text: String = self.advance_to(end).chars().take(20).collect();
        self.notes.push(Note {
            at,
            message: format!(
                "{} means nothing here and is passed over, as filebench does",
                quote(&text)
            ),
        });
    }

    fn number(&mut self) -> Kind<'a> {
        let end = self.end_of(self.offset, |byte| {
            byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_')
        });
        let text = self.advance_to(end);
        match number(text) {
            Some(Number::Integer(value)) => Kind::Integer(value),
            Some(Number::Float(value)) => Kind::Float(value),
            Some(Number::TooLarge) => Kind::Wrong(format!(
                "found {}, expected a number below 2^64",
                quote(text)
            )),
            None => Kind::Word(text),
        }
    }

    /// A variable at a `$`, or nothing, the offset unchanged, where none stands there.
    fn variable(&mut self, in_text: bool) -> Option<Variable> {
        let at = self.at;
        let start = self.offset;
        let closing = match self.byte_at(start + 1)? {
            b'(' => Some(b')'),
            b'{' => Some(b'}'),
            _ => None,
        };
        let first = start + 1 + usize::from(closing.is_some());
        if !matches!(self.byte_at(first)?, b'a'..=b'z' | b'A'..=b'Z' | b'_') {
            return None;
        }
        let is_name = |byte: u8| {
            byte.is_ascii_alphanumeric() || byte == b'_' || (closing.is_some() && byte == b'.')
        };
        let mut end = self.end_of(first, is_name);
        if in_text && closing.is_none() {
            // As filebench's: "$dir_" is $dir and an underscore.
            while end > first + 1 && self.bytes[end - 1] == b'_' {
                end -= 1;
            }
        }
        let mut name = &self.text[first..end];
        if let Some(closing) = closing {
            if self.byte_at(end) != Some(closing) {
                return None;
            }
            end += 1;
        }
        let mut part = None;
        if let Some((whole, last)) = name.split_once('.') {
            if let Some(found) = Part::find(last) {
                name = whole;
                part = Some(found);
            }
        } else if self.byte_at(end) == Some(b'.') {
            let after = self.end_of(end + 1, |byte| byte.is_ascii_alphanumeric());
            if let Some(found) = Part::find(&self.text[end + 1..after]) {
                part = Some(found);
                end = after;
            }
        }
        Some(Variable {
            at,
            name: name.to_owned(),
            part,
            written: self.advance_to(end).to_owned(),
        })
    }

    fn quoted(&mut self, opened: Position) -> Kind<'a> {
        self.advance_to(self.offset + 1);
        let mut pieces = Vec::new();
        loop {
            match self.peek() {
                None => {
                    self.at = opened;
                    return Kind::Wrong(
                        "found a quoted text without an end, expected `\"` after it".to_owned(),
                    );
                }
                Some(b'"') => {
                    self.advance_to(self.offset + 1);
                    return Kind::Quoted(Text { pieces });
                }
                Some(b'\\') => match self.byte_at(self.offset + 1) {
                    Some(b'n') => {
                        self.advance_to(self.offset + 2);
                        literal(&mut pieces, "\n");
                    }
                    Some(b'$') => {
                        self.advance_to(self.offset + 1);
                        let end = self
                            .end_of(self.offset + 1, |byte| !matches!(byte, b'"' | b'$' | b'\\'));
                        literal(&mut pieces, self.advance_to(end));
                    }
                    Some(b'"') if self.quote_follows(self.offset + 2) => {
                        self.advance_to(self.offset + 2);
                        literal(&mut pieces, "\"");
                    }
                    _ => literal(&mut pieces, self.advance_to(self.offset + 1)),
                },
                Some(b'$') => match self.variable(true) {
                    Some(variable) => pieces.push(Piece::Variable(variable)),
                    None => literal(&mut pieces, self.advance_to(self.offset + 1)),
                },
                Some(_) => {
                    let mut end = self.end_of(self.offset, |byte| !matches!(byte, b'"' | b'$'));
                    // A backslash before them is theirs.
                    while end > self.offset + 1 && self.bytes[end - 1] == b'\\' {
                        end -= 1;
                    }
                    literal(&mut pieces, self.advance_to(end));
                }
            }
        }
    }

    /// Whether another quote stands in the same line: then one after a backslash is part of the text.
    fn quote_follows(&self, from: usize) -> bool {
        let end = self.end_of(from, |byte| !matches!(byte, b'"' | b'\n'));
        self.byte_at(end) == Some(b'"')
    }
}

fn literal(pieces: &mut Vec<Piece>, text: &str) {
    if let Some(Piece::Literal(last)) = pieces.last_mut() {
        last.push_str(text);
    } else {
        pieces.push(Piece::Literal(text.to_owned()));
    }
}

const fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'/' | b'.' | b'_' | b':' | b';' | b'-')
}

/// A text as a message shows it: short, in one line.
pub(crate) fn quote(text: &str) -> String {
    const LONGEST: usize = 40;
    let mut shown: String = text
        .chars()
        .take(LONGEST)
        .map(|c| if c.is_control() { '\u{fffd}' } else { c })
        .collect();
    if text.chars().nth(LONGEST).is_some() {
        shown.push_str("...");
    }
    format!("`{shown}`")
}

/// A number as it is written.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Number {
    Integer(u64),
    Float(f64),
    TooLarge,
}

/// Reads `16`, `16k`, `1.5m`, `0x10`; suffixes are powers of 1024, in either case, with or without a `b` or `ib`.
pub(crate) fn number(text: &str) -> Option<Number> {
    if let Some(digits) = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return None;
        }
        return Some(u64::from_str_radix(digits, 16).map_or(Number::TooLarge, Number::Integer));
    }
    let end = text
        .bytes()
        .position(|byte| !byte.is_ascii_digit() && byte != b'.')
        .unwrap_or(text.len());
    let (digits, suffix) = text.split_at(end);
    if !digits.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    let power = match suffix.to_ascii_lowercase().as_str() {
        "" | "b" => 0,
        "k" | "kb" | "kib" => 1,
        "m" | "mb" | "mib" => 2,
        "g" | "gb" | "gib" => 3,
        "t" | "tb" | "tib" => 4,
        "p" | "pb" | "pib" => 5,
        _ => return None,
    };
    let unit = 1u64 << (10 * power);
    if digits.contains('.') {
        if digits.ends_with('.') {
            return None;
        }
        let value = digits.parse::<f64>().ok()? * unit as f64;
        return Some(Number::Float(value));
    }
    Some(
        digits
            .parse::<u64>()
            .ok()
            .and_then(|value| value.checked_mul(unit))
            .map_or(Number::TooLarge, Number::Integer),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_suffixes_fractions_and_bases() {
        assert_eq!(number("16"), Some(Number::Integer(16)));
        assert_eq!(number("08"), Some(Number::Integer(8)));
        assert_eq!(number("16k"), Some(Number::Integer(16_384)));
        assert_eq!(number("16K"), Some(Number::Integer(16_384)));
        assert_eq!(number("2MB"), Some(Number::Integer(2 << 20)));
        assert_eq!(number("1.5k"), Some(Number::Float(1536.0)));
        assert_eq!(number("0x10"), Some(Number::Integer(16)));
        assert_eq!(
            number("18446744073709551615"),
            Some(Number::Integer(u64::MAX))
        );
        assert_eq!(number("18446744073709551616"), Some(Number::TooLarge));
        assert_eq!(number("18014398509481984k"), Some(Number::TooLarge));
        for text in ["", "k", "1.2.3", "1.", "5x", "0x", "0xg", ".5"] {
            assert_eq!(number(text), None, "{text}");
        }
    }

    fn pieces(text: &str) -> Vec<Piece> {
        match &tokens(text).0[0].kind {
            Kind::Quoted(text) => text.pieces.clone(),
            other => panic!("{other:?}"),
        }
    }

    fn joined(text: &str) -> String {
        pieces(text)
            .iter()
            .map(|piece| match piece {
                Piece::Literal(text) => text.clone(),
                Piece::Variable(variable) => format!("<{}>", variable.name),
            })
            .collect()
    }

    #[test]
    fn a_backslash_in_a_quoted_text_means_what_it_means_to_filebench() {
        assert_eq!(joined(r#""\n""#), "\n");
        assert_eq!(joined(r#""one\ntwo""#), r"one\ntwo");
        assert_eq!(joined(r#""$dir\n""#), "<dir>\n");
        assert_eq!(joined(r#""set \$dir=<dir>\n""#), "set $dir=<dir>\n");
        assert_eq!(joined(r#""say \"hello\" twice""#), r#"say "hello" twice"#);
        assert_eq!(joined(r#""C:\" "#), r"C:\");
    }

    #[test]
    fn a_dollar_without_a_name_is_part_of_a_quoted_text() {
        assert_eq!(
            joined(r#""awk '{print $1}' $((1+2)) $""#),
            "awk '{print $1}' $((1+2)) $"
        );
        assert_eq!(
            joined(r#""$(date) ${dir}/$dir_ $n""#),
            "<date> <dir>/<dir>_ <n>"
        );
    }
}
