//! Keys compared as the words that their bytes are.

use std::cmp::Ordering;

use super::{Keys, Shape};

/// One, two or three comparisons of numbers for keys of 4, 8, 12 or 16 bytes; of bytes for others. What the key means does not matter.
pub struct Words;

impl Keys for Words {
    const REAL: bool = false;

    #[inline]
    fn compare(shape: &Shape, a: &[u8], b: &[u8]) -> Ordering {
        match shape.length() {
            4 => word4(a).cmp(&word4(b)),
            8 => word8(a).cmp(&word8(b)),
            12 => (word8(a), word4(&a[8..])).cmp(&(word8(b), word4(&b[8..]))),
            16 => (word8(a), word8(&a[8..])).cmp(&(word8(b), word8(&b[8..]))),
            _ => a.cmp(b),
        }
    }
}

#[inline]
fn word4(bytes: &[u8]) -> u32 {
    let mut word = [0; 4];
    word.copy_from_slice(&bytes[..4]);
    u32::from_be_bytes(word)
}

#[inline]
fn word8(bytes: &[u8]) -> u64 {
    let mut word = [0; 8];
    word.copy_from_slice(&bytes[..8]);
    u64::from_be_bytes(word)
}
