//! Reads what the kernel writes: bytes in, numbers out. Nothing is allocated, and no bytes are refused.

use memchr::memchr;

/// The lines, without their ends.
pub fn lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let end = memchr(b'\n', rest).unwrap_or(rest.len());
        let line = &rest[..end];
        rest = rest.get(end + 1..).unwrap_or_default();
        Some(line)
    })
}

/// What stands between white space.
pub fn words(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    split(line, |byte| byte.is_ascii_whitespace())
}

/// What stands between such bytes. The library's own way of it takes twice as long where several of them come
/// together, as in most files.
fn split(line: &[u8], is_between: impl Fn(u8) -> bool) -> impl Iterator<Item = &[u8]> {
    let mut rest = line;
    std::iter::from_fn(move || {
        let begin = rest.iter().position(|byte| !is_between(*byte))?;
        let after = &rest[begin..];
        let end = after.iter().position(|byte| is_between(*byte));
        let (word, left) = after.split_at(end.unwrap_or(after.len()));
        rest = left;
        Some(word)
    })
}

/// A word of digits alone that is not too large.
pub fn number(word: &[u8]) -> Option<u64> {
    /// No number of so many digits is too large.
    const SAFE: usize = 19;
    if word.is_empty() {
        return None;
    }
    let mut number = 0_u64;
    for (place, byte) in word.iter().enumerate() {
        let digit = u64::from(byte.wrapping_sub(b'0'));
        if digit > 9 {
            return None;
        }
        number = if place < SAFE {
            number * 10 + digit
        } else {
            number.checked_mul(10)?.checked_add(digit)?
        };
    }
    Some(number)
}

/// A key and the number behind it: `MemFree:    42 kB`, `ctxt 7`, `cswch:\t3`.
pub fn keyed(line: &[u8]) -> Option<(&[u8], u64)> {
    let mut words = split(line, |byte| byte.is_ascii_whitespace() || byte == b':');
    Some((words.next()?, number(words.next()?)?))
}

/// The numbers behind these keys, each at the beginning of a line; the first counts.
pub fn numbers_of<const N: usize>(text: &[u8], keys: &[&str; N]) -> [Option<u64>; N] {
    let mut found = [None; N];
    let mut left = N;
    for line in lines(text) {
        // Most lines are of no interest and are told by their first letters.
        let place = keys.iter().position(|key| {
            line.get(key.len())
                .is_some_and(|end| end.is_ascii_whitespace() || *end == b':')
                && line.starts_with(key.as_bytes())
        });
        if let Some(place) = place.filter(|place| found[*place].is_none()) {
            found[place] = keyed(line).map(|(_, number)| number);
            left -= 1;
            if left == 0 {
                break;
            }
        }
    }
    found
}

/// A device's name as a subject: the samples are lines of a CSV file.
pub fn name_of(word: &[u8]) -> String {
    word.iter()
        .map(|byte| match byte {
            b'!'..=b'~' if *byte != b',' && *byte != b'"' => char::from(*byte),
            _ => '_',
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn lines_end_with_or_without_an_end() {
        let all = |text: &'static [u8]| lines(text).collect::<Vec<_>>();
        assert_eq!(all(b"a\n\nb"), [&b"a"[..], b"", b"b"]);
        assert_eq!(all(b"a\n"), [b"a"]);
        assert!(all(b"").is_empty());
    }

    #[test]
    fn numbers_are_found_by_their_whole_key() {
        let text = b"MemFreeze: 1 kB\nMemFree:    42 kB\nctxt 7\nvoluntary:\t3\nctxt 8\nhuge 99999999999999999999\n";
        let found = numbers_of(text, &["voluntary", "MemFree", "ctxt", "Mem", "huge"]);
        assert_eq!(found, [Some(3), Some(42), Some(7), None, None]);
    }

    #[test]
    fn a_number_is_digits_alone_and_as_large_as_a_counter_can_be() {
        assert_eq!(number(b"18446744073709551615"), Some(u64::MAX));
        assert_eq!(number(b"18446744073709551616"), None);
        for wrong in ["", "-1", "1.5", "1k", "+1"] {
            assert_eq!(number(wrong.as_bytes()), None, "{wrong}");
        }
    }

    #[test]
    fn a_name_that_would_break_a_line_of_samples_is_mended() {
        assert_eq!(name_of(b"eth0,\"x\"\xff"), "eth0__x__");
        assert_eq!(name_of(b"cciss/c0d0"), "cciss/c0d0");
    }

    proptest! {
        #[test]
        fn what_was_written_is_read_back(value: u64, spaces in 1_usize..20, before in "[a-z]{0,9}\n") {
            let text = format!("{before}Key:{}{value} kB\nrest", " ".repeat(spaces));
            prop_assert_eq!(numbers_of(text.as_bytes(), &["Key"]), [Some(value)]);
        }

        #[test]
        fn any_bytes_are_taken(text in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = numbers_of(&text, &["a", "cpu"]);
            for line in lines(&text) {
                let _ = keyed(line);
                prop_assert!(words(line).all(|word| !word.is_empty()));
            }
            prop_assert!(!name_of(&text).contains([',', '\n', '"']));
        }
    }
}
