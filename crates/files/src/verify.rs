//! Data that say where they belong, and looking whether they are there.
//!
//! Files are blocks of 512 bytes. A block that is written as a whole begins with a header: its file, its number,
//! its generation (which life of the file, which write) and a checksum. All other bytes, and those of blocks of
//! which only a part is written, follow from the file, its life and their place alone: so whatever pieces a file
//! was written in, each byte says whether it belongs where it is found.

#![allow(clippy::cast_possible_truncation)] // of places within a block, and of halves of words

use dyno_load::mix64;

/// Bytes of a block.
pub const BLOCK: usize = 512;
const HEADER: usize = 32;
const MAGIC: u32 = 0x6f6e_7964;

/// A file: which, and which of its lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Of the file, different for every file and seed.
    pub file: u64,
    /// Counts from 0, one more each time the file is made anew.
    pub life: u32,
}

/// What is wrong with a piece of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Wrong {
    /// A whole block of another file, or of another place in it.
    Misplaced,
    /// A whole block of an earlier life of the file.
    Stale,
    /// Zeros where something was written.
    Zeros,
    /// A file that ends before what was written in it.
    Short,
    /// Anything else: bits that are not what was ever written here.
    Damaged,
}

impl Wrong {
    /// All of them, in order.
    pub const ALL: [Self; 5] = [
        Self::Misplaced,
        Self::Stale,
        Self::Zeros,
        Self::Short,
        Self::Damaged,
    ];

    /// Its name in results.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Misplaced => "misplaced",
            Self::Stale => "stale",
            Self::Zeros => "zeros",
            Self::Short => "short",
            Self::Damaged => "damaged",
        }
    }
}

/// Eight bytes that belong at a place that is a multiple of eight.
fn word(identity: Identity, place: u64) -> [u8; 8] {
    let key = mix64(identity.file ^ u64::from(identity.life).rotate_left(40));
    mix64(key ^ place).to_le_bytes()
}

/// Fills `data` with what belongs at `offset`, the `write`-th of all writes.
pub fn fill(identity: Identity, write: u32, offset: u64, data: &mut [u8]) {
    plain(identity, offset, data);
    let mut at = (offset.next_multiple_of(BLOCK as u64) - offset).min(data.len() as u64) as usize;
    while at + BLOCK <= data.len() {
        let number = (offset + at as u64) / BLOCK as u64;
        let block = &mut data[at..at + BLOCK];
        head(identity, write, number, block);
        at += BLOCK;
    }
}

fn plain(identity: Identity, offset: u64, data: &mut [u8]) {
    let mut place = offset / 8 * 8;
    let mut done = 0;
    let mut skip = (offset - place) as usize;
    while done < data.len() {
        let word = word(identity, place);
        let now = (8 - skip).min(data.len() - done);
        data[done..done + now].copy_from_slice(&word[skip..skip + now]);
        done += now;
        skip = 0;
        place += 8;
    }
}

fn head(identity: Identity, write: u32, number: u64, block: &mut [u8]) {
    block[0..4].copy_from_slice(&MAGIC.to_le_bytes());
    block[4..8].fill(0);
    block[8..16].copy_from_slice(&identity.file.to_le_bytes());
    block[16..24].copy_from_slice(&number.to_le_bytes());
    block[24..28].copy_from_slice(&identity.life.to_le_bytes());
    block[28..32].copy_from_slice(&write.to_le_bytes());
    let sum = crc32c::crc32c(block);
    block[4..8].copy_from_slice(&sum.to_le_bytes());
}

/// Looks whether what was read at `offset` is what belongs there: where the first wrong block begins, and what is
/// wrong with it. `holes` may be zeros.
pub fn check(
    identity: Identity,
    offset: u64,
    data: &[u8],
    holes: bool,
) -> Result<(), (u64, Wrong)> {
    let mut at = 0;
    while at < data.len() {
        let place = offset + at as u64;
        let within = (place % BLOCK as u64) as usize;
        let length = (BLOCK - within).min(data.len() - at);
        let piece = &data[at..at + length];
        if let Some(wrong) = wrong_with(identity, place, within, piece, holes) {
            return Err((place, wrong));
        }
        at += length;
    }
    Ok(())
}

fn wrong_with(
    identity: Identity,
    place: u64,
    within: usize,
    piece: &[u8],
    holes: bool,
) -> Option<Wrong> {
    let mut expected = [0; BLOCK];
    let expected = &mut expected[..piece.len()];
    plain(identity, place, expected);
    // Most blocks were written whole.
    if piece.len() == BLOCK && number_at(piece, 0) as u32 == MAGIC {
        let mut copy = [0; BLOCK];
        copy.copy_from_slice(piece);
        copy[4..8].fill(0);
        if crc32c::crc32c(&copy).to_le_bytes() == piece[4..8] {
            let belongs = number_at(piece, 8) == identity.file
                && number_at(piece, 16) == place / BLOCK as u64;
            if !belongs {
                return Some(Wrong::Misplaced);
            }
            if (number_at(piece, 24) as u32) != identity.life {
                return Some(Wrong::Stale);
            }
            return (piece[HEADER..] != expected[HEADER..]).then_some(Wrong::Damaged);
        }
    }
    if piece == expected {
        return None;
    }
    // A part of a block, or a block of which a part was overwritten: what is of the header may be of any write, and
    // the rest must be what belongs there. Of the header nothing more is known than that the sum cannot be right.
    let body = HEADER.saturating_sub(within).min(piece.len());
    if piece[body..] == expected[body..]
        && header_may_be(identity, place, within, &piece[..body], expected)
    {
        return None;
    }
    if piece.iter().all(|&byte| byte == 0) {
        return (!holes).then_some(Wrong::Zeros);
    }
    Some(Wrong::Damaged)
}

/// Whether each byte of (a part of) a header is the plain one or one that a header has there.
fn header_may_be(
    identity: Identity,
    place: u64,
    within: usize,
    found: &[u8],
    plain: &[u8],
) -> bool {
    let mut header = [0; BLOCK];
    head(identity, 0, place / BLOCK as u64, &mut header);
    found.iter().enumerate().all(|(at, byte)| {
        let of = within + at;
        let is_free = (4..8).contains(&of) || (28..32).contains(&of); // the sum and the write
        is_free || *byte == header[of] || *byte == plain[at]
    })
}

fn number_at(bytes: &[u8], at: usize) -> u64 {
    let mut number = [0; 8];
    number.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(number)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const FILE: Identity = Identity { file: 77, life: 2 };

    proptest! {
        /// However it was written, in whatever pieces, each piece read back is right.
        #[test]
        fn what_was_written_in_any_pieces_is_right_in_any_pieces(
            writes in prop::collection::vec((0_usize..6000, 1_usize..3000), 0..12),
            reads in prop::collection::vec((0_usize..8000, 1_usize..4000), 1..6),
        ) {
            let mut file = vec![0; 9000];
            fill(FILE, 0, 0, &mut file);
            for (write, (offset, length)) in (1..).zip(writes) {
                fill(FILE, write, offset as u64, &mut file[offset..offset + length]);
            }
            for (offset, length) in reads {
                let end = (offset + length).min(file.len());
                prop_assert_eq!(check(FILE, offset as u64, &file[offset..end], false), Ok(()));
            }
        }

        /// A bit that flips anywhere but in a header that is only known in part is found.
        #[test]
        fn a_flipped_bit_is_found(at in 0_usize..4096, bit in 0_u8..8) {
            let mut file = vec![0; 4096];
            fill(FILE, 5, 0, &mut file);
            file[at] ^= 1 << bit;
            // The sum and the number of the write can be of any write once the sum is wrong.
            let free = (4..8).contains(&(at % BLOCK)) || (28..32).contains(&(at % BLOCK));
            // So may any of its bytes be that of a part which was overwritten.
            let mut parts = vec![0; 4096];
            plain(FILE, 0, &mut parts);
            let free = free || (at % BLOCK < HEADER && file[at] == parts[at]);
            prop_assert_eq!(check(FILE, 0, &file, false).is_err(), !free);
        }
    }

    #[test]
    fn blocks_of_other_places_files_and_lives_are_told_apart() {
        let mut file = vec![0; 2048];
        let wrong = |file: &[u8]| check(FILE, 0, file, false);
        fill(FILE, 0, 512, &mut file);
        assert_eq!(wrong(&file), Err((0, Wrong::Misplaced)));
        fill(Identity { file: 78, ..FILE }, 0, 0, &mut file);
        assert_eq!(wrong(&file), Err((0, Wrong::Misplaced)));
        fill(FILE, 0, 0, &mut file);
        fill(Identity { life: 1, ..FILE }, 0, 1024, &mut file[1024..1536]);
        assert_eq!(wrong(&file), Err((1024, Wrong::Stale)));
        fill(FILE, 0, 0, &mut file);
        file[512..1024].fill(0);
        assert_eq!(wrong(&file), Err((512, Wrong::Zeros)));
        assert_eq!(check(FILE, 0, &file, true), Ok(()));
    }
}
