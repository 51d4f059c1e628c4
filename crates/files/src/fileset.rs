//! A fileset as it is on disk: made, or found as it was made before.

use std::ffi::{CString, OsStr};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};

use dyno_load::{Random, mix64};
use parking_lot::Mutex;
use rustix::fs::{AtFlags, FileType, Mode, OFlags};
use rustix::io::Errno;

use crate::device;
use crate::number::{self, index};
use crate::paths::{PathBuffer, Places};
use crate::pool::Pool;
use crate::remove::remove_tree;
use crate::tree::{Shape, Tree};
use crate::verify::{self, Identity};

/// What is missing where a fileset is only looked for.
const MADE_BEFORE: &str = "; `--phase create` with the same file, values and seed makes it";
/// Files are written in pieces of that size.
const PIECE: usize = 1 << 20;
/// Random data that contents are taken from, at a random place for each piece.
const STOCK: usize = 4 * PIECE;
/// Threads that write files at once, as filebench has it.
const MOST_WRITERS: usize = 32;
/// Directories up to this number get a handle each, where that many files may be open.
const MOST_HANDLES: usize = 1024;

/// What a workload says of a fileset.
#[derive(Clone, Debug)]
#[allow(clippy::struct_excessive_bools)] // the language's attributes
pub struct Plan {
    /// Its name.
    pub name: String,
    /// Where its tree is made: the path in the workload and the name.
    pub path: PathBuf,
    /// Its shape.
    pub shape: Shape,
    /// `define file`, which may be a block device.
    pub single: bool,
    /// How many of a hundred files are there at the start.
    pub prealloc: f64,
    /// Written by several threads.
    pub paralloc: bool,
    /// What is there is kept where it fits.
    pub reuse: bool,
    /// The same without looking at sizes.
    pub trust: bool,
    /// Files are opened to be read only.
    pub read_only: bool,
    /// Files are opened to be written only.
    pub write_only: bool,
    /// Bits of information in each byte of its data; as random as can be where nothing is said.
    pub entropy: Option<f64>,
    /// The stream of the seed that it is drawn from.
    pub stream: u64,
}

/// How filesets are made.
#[allow(clippy::struct_excessive_bools)] // each is a choice of its own
#[derive(Clone, Copy, Debug)]
pub struct Making<'a> {
    /// The run's seed.
    pub seed: u64,
    /// Whether blocks carry their identity.
    pub verify: bool,
    /// Whether files are zeros, as filebench's.
    pub zeros: bool,
    /// Whether it was made before and is only looked for.
    pub find: bool,
    /// Whether block devices may be written over.
    pub allow_device: bool,
    /// Open files that directories may take.
    pub handles: usize,
    /// Ends it early.
    pub halt: &'a AtomicBool,
}

/// What was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Made {
    /// Files.
    pub files: u64,
    /// Directories, leaf directories included.
    pub directories: u64,
    /// Bytes in the files.
    pub bytes: u64,
}

impl Made {
    /// Adds `other`.
    pub const fn add(&mut self, other: Self) {
        self.files += other.files;
        self.directories += other.directories;
        self.bytes += other.bytes;
    }
}

/// Where its files are.
#[derive(Debug)]
pub enum Store {
    /// In directories.
    Tree(Places),
    /// On a block device, as one file.
    Device {
        /// Its path.
        path: CString,
        /// Bytes.
        size: u64,
        /// Keeps others from it, where it is written.
        _claim: Option<OwnedFd>,
    },
}

/// A fileset that flowops work on.
#[derive(Debug)]
pub struct Fileset {
    /// What the workload says of it.
    pub plan: Plan,
    /// Its files and directories.
    pub tree: Tree,
    /// Where they are.
    pub store: Store,
    /// Which files exist.
    pub files: Pool,
    /// Which leaf directories exist.
    pub leaf_dirs: Pool,
    /// Bytes of all files as planned.
    pub bytes: u64,
    /// Flowops may leave holes in files.
    pub holes: bool,
    /// The next directory that is listed, in filebench's order.
    pub next_dir: AtomicUsize,
    kept: Box<[Kept]>,
    identity: u64,
    stock: Option<Stock>,
}

/// What is kept of a file whose data are looked at.
#[derive(Debug, Default)]
struct Kept {
    life: AtomicU32,
    /// Bytes that it has at the least: those that it began with, and those up to where a write has ended.
    length: AtomicU64,
}

impl Fileset {
    /// Who a file's blocks say they are, in the life that it has now.
    pub fn identity(&self, file: usize) -> Identity {
        Identity {
            file: mix64(self.identity ^ file as u64),
            life: self
                .kept
                .get(file)
                .map_or(0, |kept| kept.life.load(Ordering::Relaxed)),
        }
    }

    /// The file begins a new life, with nothing in it.
    pub fn reborn(&self, file: usize) {
        if let Some(kept) = self.kept.get(file) {
            kept.life.fetch_add(1, Ordering::Relaxed);
            kept.length.store(0, Ordering::Relaxed);
        }
    }

    /// Something was written in the file up to there.
    pub fn reaches(&self, file: usize, end: u64) {
        if let Some(kept) = self.kept.get(file) {
            kept.length.fetch_max(end, Ordering::Relaxed);
        }
    }

    /// Bytes that the file has at the least, as far as is known.
    pub fn least(&self, file: usize) -> u64 {
        let kept = self.kept.get(file);
        kept.map_or(0, |kept| kept.length.load(Ordering::Relaxed))
    }

    /// Puts data of the fileset's entropy in place of `data`; whether there was something to do.
    pub fn fill(&self, data: &mut [u8], random: &mut Random) -> bool {
        let Some(stock) = &self.stock else {
            return false;
        };
        for piece in data.chunks_mut(PIECE) {
            piece.copy_from_slice(stock.piece(piece.len(), random));
        }
        true
    }

    /// The planned size of a file.
    pub fn size(&self, file: usize) -> u64 {
        match &self.store {
            Store::Tree(_) => self.tree.files[file].size,
            Store::Device { size, .. } => *size,
        }
    }

    /// Opens a file, or the device.
    #[inline]
    pub fn open(
        &self,
        file: usize,
        flags: OFlags,
        buffer: &mut PathBuffer,
    ) -> Result<OwnedFd, Errno> {
        match &self.store {
            Store::Tree(places) => {
                let entry = &self.tree.files[file];
                places.open((entry.dir, entry.number), flags, 0o666, buffer)
            }
            Store::Device { path, .. } => rustix::fs::open(
                path.as_c_str(),
                flags.difference(OFlags::CREATE),
                Mode::empty(),
            ),
        }
    }

    /// A file's path, for people.
    pub fn describe(&self, file: usize) -> String {
        match &self.store {
            Store::Tree(places) => {
                let entry = &self.tree.files[file];
                let path = self
                    .plan
                    .path
                    .join(places.describe((entry.dir, entry.number)));
                path.display().to_string()
            }
            Store::Device { .. } => self.plan.path.display().to_string(),
        }
    }

    /// Makes it, or finds it as it was made.
    pub fn make(plan: Plan, making: Making) -> Result<(Self, Made), String> {
        if let Some(size) = device::size_at(&plan)? {
            return Self::on_device(plan, size, making);
        }
        let tree = plan_tree(&plan, making.seed)?;
        let (parent, name) = open_parent(&plan.path, making.find)?;
        if !making.find && !plan.reuse && !plan.trust || making.verify && !making.find {
            remove_tree(&parent, &name, &plan.path, making.halt)?;
        }
        let root = open_root(&parent, &name, &plan.path, making.find)?;
        let mut places = Places::new(&tree, root);
        let mut made = Made::default();
        if !making.find {
            make_dirs(&tree, &places, &plan, making.halt)?;
            made.directories = tree.dirs.len() as u64;
        }
        places
            .open_handles(MOST_HANDLES.min(making.handles))
            .map_err(|error| {
                let hint = if making.find { MADE_BEFORE } else { "" };
                format!(
                    "opening the directories of {}: {error}{hint}",
                    plan.path.display()
                )
            })?;
        let mut random = Random::new(making.seed, plan.stream ^ 1);
        let order = permutation(tree.files.len(), &mut random);
        let (there, absent) = order.split_at(share_of(order.len(), plan.prealloc));
        let dir_order = permutation(tree.leaf_dirs.len(), &mut random);
        let dirs_there = &dir_order[..share_of(dir_order.len(), plan.prealloc)];
        let files = Pool::new(marks(tree.files.len(), there).into_iter());
        let leaf_dirs = Pool::new(marks(tree.leaf_dirs.len(), dirs_there).into_iter());
        let kept = if making.verify { tree.files.len() } else { 0 };
        let fileset = Self {
            bytes: tree.bytes(),
            store: Store::Tree(places),
            files,
            leaf_dirs,
            holes: false,
            next_dir: AtomicUsize::new(0),
            kept: (0..kept).map(|_| Kept::default()).collect(),
            identity: mix64(making.seed) ^ mix64(plan.stream),
            stock: stock_of(&plan, making),
            plan,
            tree,
        };
        if making.find {
            fileset.check(there, making.halt)?;
        } else {
            made.add(fileset.write_all(there, absent, making)?);
            made.directories += fileset.make_leaf_dirs(dirs_there)?;
        }
        // Of files that are found and trusted nobody knows how long they are.
        if !making.find || !fileset.plan.trust {
            for &file in there {
                fileset.reaches(file as usize, fileset.tree.files[file as usize].size);
            }
        }
        Ok((fileset, made))
    }

    fn on_device(plan: Plan, size: u64, making: Making) -> Result<(Self, Made), String> {
        let path = CString::new(plan.path.as_os_str().as_bytes())
            .map_err(|_| format!("{}: no path has a zero in it", plan.path.display()))?;
        let tree = plan_tree(&plan, making.seed)?;
        if making.verify {
            return Err(format!(
                "{}: is a block device; --verify is for files, whose blocks were all written",
                plan.path.display()
            ));
        }
        if !plan.read_only && !making.allow_device {
            return Err(format!(
                "{}: is a block device, which is written over only with --allow-device",
                plan.path.display()
            ));
        }
        let claim = if plan.read_only {
            None
        } else {
            Some(device::claim(&path)?)
        };
        let fileset = Self {
            bytes: size,
            store: Store::Device {
                path,
                size,
                _claim: claim,
            },
            files: Pool::new(std::iter::once(true)),
            leaf_dirs: Pool::new(std::iter::empty()),
            holes: false,
            next_dir: AtomicUsize::new(0),
            kept: Box::default(),
            identity: 0,
            stock: stock_of(&plan, making),
            plan,
            tree,
        };
        Ok((fileset, Made::default()))
    }

    fn places(&self) -> Option<&Places> {
        match &self.store {
            Store::Tree(places) => Some(places),
            Store::Device { .. } => None,
        }
    }

    /// Writes the files that are there at the start.
    fn write_all(&self, there: &[u32], absent: &[u32], making: Making) -> Result<Made, String> {
        let Some(places) = self.places() else {
            return Ok(Made::default());
        };
        let made;
        let stock = if let Some(stock) = &self.stock {
            stock
        } else {
            made = if making.verify || making.zeros {
                Stock(vec![0; PIECE])
            } else {
                Stock::new(8.0, making.seed, self.plan.stream)
            };
            &made
        };
        let writers = if self.plan.paralloc {
            MOST_WRITERS.min(there.len()).max(1)
        } else {
            1
        };
        let (next, bytes) = (AtomicUsize::new(0), AtomicU64::new(0));
        let failed: Mutex<Option<String>> = Mutex::new(None);
        let write = |writer: usize| {
            let mut writer = Writer {
                fileset: self,
                places,
                stock,
                own: if making.verify {
                    vec![0; PIECE]
                } else {
                    Vec::new()
                },
                random: Random::new(making.seed, self.plan.stream ^ (16 + writer as u64)),
                paths: PathBuffer::default(),
            };
            while !making.halt.load(Ordering::Relaxed) && failed.lock().is_none() {
                let Some(&file) = there.get(next.fetch_add(1, Ordering::Relaxed)) else {
                    return;
                };
                match writer.write(file) {
                    Ok(written) => {
                        bytes.fetch_add(written, Ordering::Relaxed);
                    }
                    Err(error) => {
                        let message = format!("making {}: {error}", self.describe(file as usize));
                        failed.lock().get_or_insert(message);
                    }
                }
            }
        };
        std::thread::scope(|scope| {
            for writer in 1..writers {
                // With fewer threads it takes longer, that is all.
                let _ = std::thread::Builder::new()
                    .stack_size(256 * 1024)
                    .spawn_scoped(scope, move || write(writer));
            }
            write(0);
        });
        if let Some(message) = failed.into_inner() {
            return Err(message);
        }
        if making.halt.load(Ordering::Relaxed) {
            return Err("interrupted".to_owned());
        }
        // A tree that is kept may have files that are not to be there yet.
        if self.plan.reuse || self.plan.trust {
            let mut paths = PathBuffer::default();
            for &file in absent {
                let entry = &self.tree.files[file as usize];
                match places.remove((entry.dir, entry.number), AtFlags::empty(), &mut paths) {
                    Ok(()) | Err(Errno::NOENT) => {}
                    Err(error) => {
                        return Err(format!(
                            "removing {}: {error}",
                            self.describe(file as usize)
                        ));
                    }
                }
            }
        }
        Ok(Made {
            files: there.len() as u64,
            directories: 0,
            bytes: bytes.into_inner(),
        })
    }

    fn make_leaf_dirs(&self, there: &[u32]) -> Result<u64, String> {
        let Some(places) = self.places() else {
            return Ok(0);
        };
        let mut paths = PathBuffer::default();
        for &dir in there {
            let dir = &self.tree.leaf_dirs[dir as usize];
            match places.make_dir((dir.parent, dir.number), &mut paths) {
                Ok(()) => {}
                Err(Errno::EXIST) if self.plan.reuse || self.plan.trust => {}
                Err(error) => {
                    let path = self
                        .plan
                        .path
                        .join(places.describe((dir.parent, dir.number)));
                    return Err(format!("making {}: {error}", path.display()));
                }
            }
        }
        Ok(there.len() as u64)
    }

    /// Looks whether every file is there and as large as it was made.
    fn check(&self, there: &[u32], halt: &AtomicBool) -> Result<(), String> {
        let Some(places) = self.places() else {
            return Ok(());
        };
        let mut paths = PathBuffer::default();
        for &file in there {
            if halt.load(Ordering::Relaxed) {
                return Err("interrupted".to_owned());
            }
            let entry = &self.tree.files[file as usize];
            let expected = format!(
                "expected {} bytes as `--phase create` with the same file, values and seed makes them",
                entry.size
            );
            match places.status((entry.dir, entry.number), &mut paths) {
                Ok(status) => {
                    let size = u64::try_from(status.st_size).unwrap_or(0);
                    if FileType::from_raw_mode(status.st_mode) != FileType::RegularFile {
                        return Err(format!(
                            "{}: is no file, {expected}",
                            self.describe(file as usize)
                        ));
                    }
                    if size != entry.size && !self.plan.trust {
                        return Err(format!(
                            "{}: has {size} bytes, {expected}",
                            self.describe(file as usize)
                        ));
                    }
                }
                Err(Errno::NOENT) => {
                    return Err(format!(
                        "{}: is not there, {expected}",
                        self.describe(file as usize)
                    ));
                }
                Err(error) => {
                    return Err(format!(
                        "looking at {}: {error}",
                        self.describe(file as usize)
                    ));
                }
            }
        }
        Ok(())
    }
}

struct Writer<'a> {
    fileset: &'a Fileset,
    places: &'a Places,
    stock: &'a Stock,
    own: Vec<u8>,
    random: Random,
    paths: PathBuffer,
}

impl Writer<'_> {
    /// Makes one file; gives the bytes that were written.
    fn write(&mut self, file: u32) -> Result<u64, String> {
        let entry = &self.fileset.tree.files[file as usize];
        let at = (entry.dir, entry.number);
        let told = |error: Errno| error.to_string();
        let plan = &self.fileset.plan;
        if (plan.reuse || plan.trust) && self.own.is_empty() {
            match self.places.status(at, &mut self.paths) {
                Ok(status) => {
                    let size = u64::try_from(status.st_size).unwrap_or(0);
                    if plan.trust || size == entry.size {
                        return Ok(0);
                    }
                    if size > entry.size {
                        let flags = OFlags::WRONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
                        let open = self
                            .places
                            .open(at, flags, 0, &mut self.paths)
                            .map_err(told)?;
                        rustix::fs::ftruncate(&open, entry.size).map_err(told)?;
                        return Ok(0);
                    }
                }
                Err(Errno::NOENT) if plan.trust => {
                    return Err("is not there, expected with trusttree".to_owned());
                }
                Err(Errno::NOENT) => {}
                Err(error) => return Err(told(error)),
            }
        }
        let flags =
            OFlags::WRONLY | OFlags::CREATE | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::TRUNC;
        let open = self
            .places
            .open(at, flags, 0o644, &mut self.paths)
            .map_err(told)?;
        let identity = self.fileset.identity(file as usize);
        let mut offset = 0;
        while offset < entry.size {
            let length = PIECE.min(index(entry.size - offset));
            let piece = if self.own.is_empty() {
                self.stock.piece(length, &mut self.random)
            } else {
                verify::fill(identity, 0, offset, &mut self.own[..length]);
                &self.own[..length]
            };
            match rustix::io::write(&open, piece) {
                Ok(0) => return Err("nothing was written".to_owned()),
                Ok(written) => offset += written as u64,
                Err(Errno::INTR) => {}
                Err(error) => return Err(told(error)),
            }
        }
        Ok(entry.size)
    }
}

/// The tree of a fileset, which follows from its plan and the seed.
pub fn plan_tree(plan: &Plan, seed: u64) -> Result<Tree, String> {
    Tree::new(&plan.shape, &mut Random::new(seed, plan.stream))
        .map_err(|error| format!("fileset {}: {error}", plan.name))
}

/// How many of `count` a percentage is; exactly, rounded to the nearest.
pub fn share_of(count: usize, percentage: f64) -> usize {
    let share = (count as f64 * percentage / 100.0).round();
    index(number::count(share)).min(count)
}

fn stock_of(plan: &Plan, making: Making) -> Option<Stock> {
    // Blocks that say where they belong are nothing else.
    let entropy = plan.entropy.filter(|_| !making.verify)?;
    Some(Stock::new(entropy, making.seed, plan.stream))
}

/// Data that files are written from, any piece of them.
#[derive(Debug)]
struct Stock(Vec<u8>);

impl Stock {
    /// Of so many bits of information a byte, 0 to 8.
    fn new(entropy: f64, seed: u64, stream: u64) -> Self {
        let mut bytes = vec![0; STOCK];
        let mut random = Random::new(seed, stream ^ 2);
        fill_random(&mut bytes, &mut random);
        let share = share_of_entropy(entropy);
        if share < 1.0 {
            for byte in &mut bytes {
                if random.next_f64() >= share {
                    *byte = 0;
                }
            }
        }
        Self(bytes)
    }

    /// A piece of at most [`PIECE`] bytes, from any multiple of eight on.
    fn piece(&self, length: usize, random: &mut Random) -> &[u8] {
        let places = (self.0.len() - length) as u64 / 8 + 1;
        let begin = index(random.below(places)) * 8;
        &self.0[begin..begin + length]
    }
}

/// The share of bytes to draw evenly from all 256, the others being 0, for an entropy of so many bits a byte.
///
/// Shannon's entropy of such a byte grows with that share, from 0 to 8: found by halving.
fn share_of_entropy(entropy: f64) -> f64 {
    let bits = |probability: f64| {
        if probability > 0.0 {
            -probability * probability.log2()
        } else {
            0.0
        }
    };
    let of = |share: f64| bits(1.0 - share * 255.0 / 256.0) + 255.0 * bits(share / 256.0);
    let (mut low, mut high) = (0.0, 1.0);
    if entropy >= 8.0 {
        return high;
    }
    // As near as a double tells.
    for _ in 0..60 {
        let middle = f64::midpoint(low, high);
        if of(middle) < entropy {
            low = middle;
        } else {
            high = middle;
        }
    }
    low
}

/// Fills memory with random bytes.
pub fn fill_random(bytes: &mut [u8], random: &mut Random) {
    let (eights, rest) = bytes.as_chunks_mut::<8>();
    for eight in eights {
        *eight = random.next_u64().to_le_bytes();
    }
    let last = random.next_u64().to_le_bytes();
    rest.copy_from_slice(&last[..rest.len()]);
}

/// Fisher and Yates's shuffle of all indices.
fn permutation(count: usize, random: &mut Random) -> Vec<u32> {
    let mut order: Vec<u32> = (0..u32::try_from(count).unwrap_or(u32::MAX)).collect();
    for last in (1..order.len()).rev() {
        order.swap(last, index(random.below(last as u64 + 1)));
    }
    order
}

fn marks(count: usize, marked: &[u32]) -> Vec<bool> {
    let mut marks = vec![false; count];
    marked
        .iter()
        .for_each(|&index| marks[index as usize] = true);
    marks
}

/// Opens the directory that a fileset's tree is in, which is made if need be, and gives the tree's name there.
fn open_parent(path: &Path, find: bool) -> Result<(OwnedFd, CString), String> {
    let shown = path.display();
    let Some(Component::Normal(name)) = path.components().next_back() else {
        return Err(format!("{shown}: is no place for a fileset"));
    };
    let parent = path.parent().unwrap_or(Path::new("/"));
    if !find {
        std::fs::create_dir_all(parent)
            .map_err(|error| format!("making {}: {error}", parent.display()))?;
    }
    let real = parent
        .canonicalize()
        .map_err(|error| format!("looking at {}: {error}", parent.display()))?;
    refuse_precious(&real.join(name))?;
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let open = rustix::fs::open(&real, flags, Mode::empty())
        .map_err(|error| format!("opening {}: {error}", real.display()))?;
    let name =
        CString::new(name.as_bytes()).map_err(|_| format!("{shown}: no path has a zero in it"))?;
    Ok((open, name))
}

/// Refuses to make a fileset where a slip would cost somebody a system or a home.
fn refuse_precious(root: &Path) -> Result<(), String> {
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let home = home.and_then(|home| home.canonicalize().ok());
    let is_home = home.is_some_and(|home| home.starts_with(root));
    let of_system = [
        "bin", "boot", "dev", "etc", "home", "lib", "lib64", "proc", "root", "run", "sbin", "sys",
        "usr", "var",
    ];
    let is_system = root.parent() == Some(Path::new("/"))
        && root
            .file_name()
            .is_some_and(|name| of_system.iter().any(|one| OsStr::new(one) == name));
    if is_home || is_system || root == Path::new("/") {
        return Err(format!(
            "{}: no fileset is made in place of it; choose a path below a directory of its own",
            root.display()
        ));
    }
    Ok(())
}

fn open_root(
    parent: impl AsFd,
    name: &CString,
    shown: &Path,
    find: bool,
) -> Result<OwnedFd, String> {
    let parent = parent.as_fd();
    if !find {
        match rustix::fs::mkdirat(parent, name.as_c_str(), Mode::from_raw_mode(0o755)) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) => return Err(format!("making {}: {error}", shown.display())),
        }
    }
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::openat(parent, name.as_c_str(), flags, Mode::empty()).map_err(|error| {
        let hint = if find { MADE_BEFORE } else { "" };
        format!(
            "opening the fileset's directory {}: {error}{hint}",
            shown.display()
        )
    })
}

fn make_dirs(tree: &Tree, places: &Places, plan: &Plan, halt: &AtomicBool) -> Result<(), String> {
    let mut paths = PathBuffer::default();
    for dir in &tree.dirs[1..] {
        if halt.load(Ordering::Relaxed) {
            return Err("interrupted".to_owned());
        }
        match places.make_dir((dir.parent, dir.number), &mut paths) {
            Ok(()) => {}
            Err(Errno::EXIST) if plan.reuse || plan.trust => {}
            Err(error) => {
                let path = plan.path.join(places.describe((dir.parent, dir.number)));
                return Err(format!("making {}: {error}", path.display()));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::number::Number;
    use crate::testing::Folder;

    fn plan(folder: &Folder) -> Plan {
        Plan {
            name: "set".to_owned(),
            path: folder.path().join("set"),
            shape: Shape {
                entries: 200,
                leaf_dirs: 10,
                size: Number::Fixed(3000.0),
                width: Number::Fixed(5.0),
                depth: None,
                gamma: 1.5,
            },
            single: false,
            prealloc: 80.0,
            paralloc: true,
            reuse: false,
            trust: false,
            read_only: false,
            write_only: false,
            entropy: None,
            stream: 1 << 32,
        }
    }

    fn making(halt: &AtomicBool) -> Making<'_> {
        Making {
            seed: 4,
            verify: false,
            zeros: false,
            find: false,
            allow_device: false,
            handles: 1000,
            halt,
        }
    }

    fn files(path: &Path) -> Vec<(PathBuf, u64)> {
        let mut found = Vec::new();
        for entry in fs::read_dir(path).unwrap() {
            let entry = entry.unwrap();
            if entry.metadata().unwrap().is_dir() {
                found.extend(files(&entry.path()));
            } else {
                found.push((entry.path(), entry.metadata().unwrap().len()));
            }
        }
        found.sort();
        found
    }

    /// Shannon's entropy of the bytes themselves, in bits a byte.
    fn entropy_of(bytes: &[u8]) -> f64 {
        let mut counts = [0u32; 256];
        for &byte in bytes {
            counts[usize::from(byte)] += 1;
        }
        counts
            .iter()
            .filter(|&&count| count > 0)
            .map(|&count| f64::from(count) / bytes.len() as f64)
            .map(|share| -share * share.log2())
            .sum()
    }

    #[test]
    fn data_have_the_entropy_that_is_asked_for() {
        for asked in [0.0, 0.5, 1.0, 3.4, 7.41, 8.0] {
            let stock = Stock::new(asked, 1, 2);
            let found = entropy_of(&stock.0);
            assert!((found - asked).abs() < 0.01, "{found} for {asked}");
        }
        let folder = Folder::new("entropy");
        let halt = AtomicBool::new(false);
        let low = Plan {
            entropy: Some(2.0),
            shape: Shape {
                size: Number::Fixed(100_000.0),
                entries: 3,
                ..plan(&folder).shape
            },
            ..plan(&folder)
        };
        let (fileset, _) = Fileset::make(low, making(&halt)).unwrap();
        let mut written = vec![0; 3 << 20];
        assert!(fileset.fill(&mut written, &mut Random::new(5, 6)));
        let there = (0..3).find(|&file| fs::metadata(fileset.describe(file)).is_ok());
        let made = fs::read(fileset.describe(there.unwrap())).unwrap();
        for bytes in [&made[..], &written[..]] {
            let found = entropy_of(bytes);
            assert!((found - 2.0).abs() < 0.05, "{found}");
        }
    }

    #[test]
    fn exactly_the_share_asked_for_is_made_with_exact_sizes_and_the_same_again() {
        let (folder, halt) = (Folder::new("made"), AtomicBool::new(false));
        let (fileset, made) = Fileset::make(plan(&folder), making(&halt)).unwrap();
        assert_eq!((made.files, made.bytes), (160, 480_000));
        let first = files(&folder.path().join("set"));
        assert_eq!(first.len(), 160);
        assert!(first.iter().all(|(_, size)| *size == 3000));
        assert_eq!(
            (
                fileset.files.count_existing(),
                fileset.leaf_dirs.count_existing()
            ),
            (160, 8)
        );
        Fileset::make(plan(&folder), making(&halt)).unwrap();
        assert_eq!(files(&folder.path().join("set")), first);
    }

    #[test]
    fn what_was_made_is_found_and_what_is_missing_or_of_another_size_is_told() {
        let (folder, halt) = (Folder::new("found"), AtomicBool::new(false));
        let find = Making {
            find: true,
            ..making(&halt)
        };
        let told = |what: &str| {
            let message = Fileset::make(plan(&folder), find).unwrap_err();
            assert!(message.contains(what), "{message}");
        };
        told("--phase create");
        Fileset::make(plan(&folder), making(&halt)).unwrap();
        Fileset::make(plan(&folder), find).unwrap();
        let (path, _) = files(&folder.path().join("set")).swap_remove(7);
        fs::write(&path, "short").unwrap();
        told("has 5 bytes, expected 3000");
        fs::remove_file(&path).unwrap();
        told("is not there");
        assert!(!path.exists());
    }

    #[test]
    fn a_tree_that_is_kept_is_mended() {
        let (folder, halt) = (Folder::new("reuse"), AtomicBool::new(false));
        let keep = || Plan {
            reuse: true,
            ..plan(&folder)
        };
        Fileset::make(keep(), making(&halt)).unwrap();
        let before = files(&folder.path().join("set"));
        fs::remove_file(&before[0].0).unwrap();
        fs::write(&before[1].0, "short").unwrap();
        fs::write(&before[2].0, vec![7; 5000]).unwrap();
        let kept = fs::read(&before[3].0).unwrap();
        let (_, made) = Fileset::make(keep(), making(&halt)).unwrap();
        assert_eq!(made.bytes, 6000, "only two had to be written");
        assert_eq!(files(&folder.path().join("set")), before);
        assert_eq!(fs::read(&before[3].0).unwrap(), kept);
    }

    #[test]
    fn contents_cannot_be_compressed_but_in_filebenchs_manner_they_are_zeros() {
        let (folder, halt) = (Folder::new("contents"), AtomicBool::new(false));
        let distinct = |zeros: bool| {
            let making = Making {
                zeros,
                ..making(&halt)
            };
            Fileset::make(plan(&folder), making).unwrap();
            let bytes = fs::read(&files(&folder.path().join("set"))[0].0).unwrap();
            bytes
                .iter()
                .collect::<std::collections::BTreeSet<_>>()
                .len()
        };
        assert!(distinct(false) > 200);
        assert_eq!(distinct(true), 1);
    }

    #[test]
    fn no_fileset_is_made_in_place_of_a_home_or_of_the_system() {
        for path in ["/", "/etc", "/usr", "/home"] {
            assert!(refuse_precious(Path::new(path)).is_err(), "{path}");
        }
        assert!(refuse_precious(Path::new("/tmp/bigfileset")).is_ok());
    }
}
