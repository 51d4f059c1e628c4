//! The log that was left in a folder by whoever had the store open, as one finds it who has no log.

use std::sync::Arc;

use super::master::{self, MasterFile};
use super::segments;
use crate::pages::disk::Folder;
use crate::{Error, Lsn, Result};

/// It, if there is any; nothing of it is needed.
pub(crate) struct Left {
    folder: Arc<dyn Folder>,
    names: Vec<String>,
}

impl Left {
    /// Looks for it. [`Error::Refused`] where the store was not closed, so that it is needed.
    pub fn find(folder: Arc<dyn Folder>) -> Result<Self> {
        let names = folder.names().map_err(segments::failed("looked for"))?;
        let segments = segments::present(&*folder)?;
        let has_master = names.iter().any(|name| name == master::NAME);
        if !has_master && segments.is_empty() {
            let names = Vec::new();
            return Ok(Self { folder, names });
        }
        // A store that was still being made is none.
        let is_needed = MasterFile::open(&*folder)?
            .now()
            .is_some_and(|master| master.checkpoint != Lsn::NONE && !master.closed);
        if is_needed {
            return Err(Error::Refused(
                "the store was not closed, and there is no log here that could recover it from its own".into(),
            ));
        }
        // The master record last, without which what is left of the log would be taken for damage.
        let mut names: Vec<_> = segments.into_iter().map(segments::name).collect();
        names.push(master::NAME.into());
        Ok(Self { folder, names })
    }

    /// Takes it away.
    pub fn remove(self) -> Result<()> {
        (self.names.iter()).try_for_each(|name| {
            let removed = self.folder.remove(name);
            removed.map_err(segments::failed("removed"))
        })
    }
}
