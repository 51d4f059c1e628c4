//! Sectors that say what they are: of which run, which file, where in it, and from which write to it.

use dyno_load::mix64;

/// What a disk may write whole or not at all; every sector has an identity of its own, so that a block of
/// which a part was written is no riddle.
pub const SECTOR: usize = 512;

const MAGIC: &[u8; 8] = b"DYNOSECT";
const HEAD: usize = 48;

/// What a sector is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Of the run: an earlier run's data on the same disk are nobody's.
    pub run: u64,
    /// The file, by a number that is never used again.
    pub file: u64,
    /// Which sector of the file.
    pub number: u64,
    /// Which write to the file.
    pub generation: u64,
}

/// What a sector was found to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// As it was written.
    Whole(Identity),
    /// Nothing but zeros.
    Zeros,
    /// Anything else.
    Garbage,
}

/// Fills a sector.
pub fn fill(sector: &mut [u8], identity: &Identity) {
    sector[..8].copy_from_slice(MAGIC);
    let words = [
        identity.run,
        identity.file,
        identity.number,
        identity.generation,
    ];
    for (place, word) in words.into_iter().enumerate() {
        sector[8 + place * 8..16 + place * 8].copy_from_slice(&word.to_le_bytes());
    }
    let mut body = words
        .into_iter()
        .fold(0, |so_far, word| mix64(so_far ^ word));
    for word in sector[HEAD..].chunks_mut(8) {
        body = mix64(body);
        word.copy_from_slice(&body.to_le_bytes()[..word.len()]);
    }
    let sum = sum(sector);
    sector[HEAD - 8..HEAD].copy_from_slice(&u64::from(sum).to_le_bytes());
}

/// Says what a sector is.
#[must_use]
pub fn look(sector: &[u8]) -> Found {
    if sector.len() != SECTOR || !sector.starts_with(MAGIC) {
        return if sector.iter().all(|byte| *byte == 0) {
            Found::Zeros
        } else {
            Found::Garbage
        };
    }
    if word(sector, HEAD - 8) != u64::from(sum(sector)) {
        return Found::Garbage;
    }
    Found::Whole(Identity {
        run: word(sector, 8),
        file: word(sector, 16),
        number: word(sector, 24),
        generation: word(sector, 32),
    })
}

fn word(sector: &[u8], at: usize) -> u64 {
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&sector[at..at + 8]);
    u64::from_le_bytes(bytes)
}

fn sum(sector: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(&sector[..HEAD - 8]), &sector[HEAD..])
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOME: Identity = Identity {
        run: 7,
        file: 8,
        number: 9,
        generation: 10,
    };

    fn filled() -> [u8; SECTOR] {
        let mut sector = [0; SECTOR];
        fill(&mut sector, &SOME);
        sector
    }

    #[test]
    fn a_sector_says_what_it_was_filled_as() {
        assert_eq!(look(&filled()), Found::Whole(SOME));
    }

    #[test]
    fn a_sector_of_which_any_byte_changed_is_garbage() {
        for place in 0..SECTOR {
            let mut sector = filled();
            sector[place] ^= 1;
            assert_eq!(look(&sector), Found::Garbage, "byte {place}");
        }
    }

    #[test]
    fn a_sector_of_zeros_is_that_and_a_short_one_is_garbage() {
        assert_eq!(look(&[0; SECTOR]), Found::Zeros);
        assert_eq!(look(&filled()[..SECTOR - 1]), Found::Garbage);
    }
}
