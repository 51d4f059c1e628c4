//! Keys compared as the words that their bytes are.

use std::cmp::Ordering;

use super::{Keys, Shape};

/// A comparison of two numbers, of up to 128 bits, for keys of 4, 8, 12 or 16 bytes; of bytes for others. What the key means does
/// not matter.
pub struct Words;

impl Keys for Words {
    const REAL: bool = false;

    #[inline]
    fn compare(shape: &Shape, a: &[u8], b: &[u8]) -> Ordering {
        match shape.length() {
            4 => word4(a).cmp(&word4(b)),
            8 => word8(a).cmp(&word8(b)),
            12 => word12(a).cmp(&word12(b)),
            16 => word16(a).cmp(&word16(b)),
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

#[inline]
fn word12(bytes: &[u8]) -> u128 {
    u128::from(word8(bytes)) << 32 | u128::from(word4(&bytes[8..]))
}

#[inline]
fn word16(bytes: &[u8]) -> u128 {
    let mut word = [0; 16];
    word.copy_from_slice(&bytes[..16]);
    u128::from_be_bytes(word)
}
