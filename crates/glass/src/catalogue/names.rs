//! Numbers by name.

/// A hash table of open addressing with linear probing (Knuth, The Art of Computer Programming 3, 6.4, algorithm L), at most half
/// full. Nothing leaves it.
#[derive(Default)]
pub(super) struct Names {
    slots: Vec<Option<Named>>,
    count: usize,
}

struct Named {
    hash: u64,
    name: Box<str>,
    id: u16,
}

/// Of a name: FNV-1a, of 64 bits (Fowler, Noll, Vo), whose lowest bits are well mixed.
#[inline]
pub(super) fn hash(name: &str) -> u64 {
    name.bytes().fold(0xCBF2_9CE4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01B3)
    })
}

impl Names {
    /// The number of a name, whose hash that is.
    #[inline]
    pub(super) fn find(&self, hash: u64, name: &str) -> Option<u16> {
        if self.slots.is_empty() {
            return None;
        }
        let named = self.slots[self.place(hash, name)].as_ref()?;
        Some(named.id)
    }

    #[expect(clippy::cast_possible_truncation, reason = "its lowest bits")]
    /// Where a name is, or the vacant slot where it would be.
    #[inline]
    fn place(&self, hash: u64, name: &str) -> usize {
        let mask = self.slots.len() - 1;
        let mut at = hash as usize & mask;
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
            let slots = (self.slots.len() * 2).max(16);
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
