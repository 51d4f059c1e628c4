//! Numbers by name.

/// A hash table of open addressing with linear probing (Knuth, The Art of Computer Programming 3, 6.4, algorithm L), at most half
/// full. Nothing leaves it.
pub(super) struct Names {
    slots: Vec<Option<Named>>,
    count: usize,
}

struct Named {
    hash: u64,
    name: Box<str>,
    id: u16,
}

/// Of a name, a word at a time: each is added to what the words before gave, and both are spread by a multiplication (Knuth, The
/// Art of Computer Programming 3, 6.4), whose highest bits are the well mixed ones. The last word ends with the name, whatever
/// it has in common with the one before.
#[inline]
pub(super) fn hash(name: &str) -> u64 {
    const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;
    let mix = |hash: u64, word: u64| (hash.rotate_left(5) ^ word).wrapping_mul(GOLDEN);
    let bytes = name.as_bytes();
    let length = bytes.len() as u64;
    if let Some(last) = bytes.last_chunk() {
        let words = bytes.as_chunks().0.iter().chain([last]);
        words.fold(length, |hash, word| mix(hash, u64::from_le_bytes(*word)))
    } else if let (Some(first), Some(last)) = (bytes.first_chunk(), bytes.last_chunk()) {
        let half = |bytes: &[u8; 4]| u64::from(u32::from_le_bytes(*bytes));
        mix(length, half(first) | half(last) << 32)
    } else {
        let all = bytes.iter();
        all.fold(length, |hash, byte| mix(hash, u64::from(*byte)))
    }
}

impl Default for Names {
    fn default() -> Self {
        Self {
            slots: (0..16).map(|_| None).collect(),
            count: 0,
        }
    }
}

impl Names {
    /// The number of a name, whose hash that is.
    #[inline]
    pub(super) fn find(&self, hash: u64, name: &str) -> Option<u16> {
        let named = self.slots[self.place(hash, name)].as_ref();
        named.map(|named| named.id)
    }

    /// Where a name is, or the vacant slot where it would be.
    #[inline]
    fn place(&self, hash: u64, name: &str) -> usize {
        let mask = self.slots.len() - 1;
        let mut at = (hash >> 48) as usize & mask;
        while let Some(named) = &self.slots[at] {
            if named.hash == hash && *named.name == *name {
                break;
            }
            at = (at + 1) & mask;
        }
        at
    }

    /// Adds a name that is not there.
    pub(super) fn add(&mut self, name: &str, id: u16) {
        if (self.count + 1) * 2 > self.slots.len() {
            let slots = self.slots.len() * 2;
            let old = std::mem::replace(&mut self.slots, (0..slots).map(|_| None).collect());
            for named in old.into_iter().flatten() {
                let at = self.place(named.hash, &named.name);
                self.slots[at] = Some(named);
            }
        }
        let hash = hash(name);
        let at = self.place(hash, name);
        self.slots[at] = Some(Named {
            hash,
            name: name.into(),
            id,
        });
        self.count += 1;
    }
}
