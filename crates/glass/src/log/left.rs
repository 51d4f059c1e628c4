//! The log that was left in a folder by whoever had the store open, as one finds it who has no log.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::master::{self, Master, MasterFile};
use super::segments;
use crate::pages::disk::Folder;
use crate::{Error, Lsn, Result};

/// It, if there is any; nothing of it is needed.
pub(crate) struct Left {
    folder: Arc<dyn Folder>,
    found: Option<Found>,
}

struct Found {
    master: MasterFile,
    segments: BTreeSet<u64>,
}

impl Left {
    /// Looks for it. [`Error::Refused`] where the store was not closed, so that it is needed.
    pub fn find(folder: Arc<dyn Folder>) -> Result<Self> {
        let names = folder.names().map_err(segments::failed("looked for"))?;
        let segments = segments::present(&*folder)?;
        let has_master = names.iter().any(|name| name == master::NAME);
        if !has_master && segments.is_empty() {
            return Ok(Self {
                folder,
                found: None,
            });
        }
        let master = MasterFile::open(&*folder)?;
        // A store that was still being made is none.
        let is_needed = master
            .now()
            .is_some_and(|master| master.checkpoint != Lsn::NONE && !master.closed);
        if is_needed {
            return Err(Error::Refused(
                "the store was not closed, and there is no log here that could recover it from its own".into(),
            ));
        }
        Ok(Self {
            folder,
            found: Some(Found { master, segments }),
        })
    }

    /// Takes it away. If that is cut off, whoever has a log finds that there is none of these pages, and whoever has none
    /// takes away what is left.
    pub fn remove(self) -> Result<()> {
        let Some(Found {
            mut master,
            segments,
        }) = self.found
        else {
            return Ok(());
        };
        // First it is said that there is no log, while all of it is there.
        if let Some(now) = master.now() {
            master.set(Master {
                checkpoint: Lsn::NONE,
                ..now
            })?;
        }
        // The master record last, without which what is left of the log would be taken for damage.
        let mut names: Vec<_> = segments.into_iter().map(segments::name).collect();
        names.push(master::NAME.into());
        names.iter().try_for_each(|name| {
            let removed = self.folder.remove(name);
            removed.map_err(segments::failed("removed"))
        })
    }
}
