//! The shape of a fileset: which directories and files there are, and how large the files are.
//!
//! A function of the fileset's attributes and the seed, decided without touching a disk. As filebench has it:
//! each directory draws a depth and a width; one that lies at its depth or deeper holds files, another holds
//! directories; the root holds directories, as many as are needed. Names are numbers within the directory.

use std::sync::Arc;

use dyno_load::Random;

use dyno_wml::Distribution;

use crate::number::{Number, index};

/// Deeper than this no path is short enough for the system.
const DEEPEST: u32 = 400;
/// A million entries are what filebench allows; this is only there so that a slip of a digit does not use up the memory.
const MOST_ENTRIES: u64 = 200_000_000;

/// What a fileset is to look like.
#[derive(Clone, Debug)]
pub struct Shape {
    /// How many files.
    pub entries: u64,
    /// How many empty directories.
    pub leaf_dirs: u64,
    /// Bytes of a file, drawn for each.
    pub size: Number,
    /// Mean entries of a directory.
    pub width: Number,
    /// The depth, drawn for each directory; else it follows from width and entries.
    pub depth: Option<Number>,
    /// The shape of the gamma distribution of widths and depths; 0 for none.
    pub gamma: f64,
}

/// A directory. The first is the root, and each comes after the one that it is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dir {
    /// The place of the one that it is in.
    pub parent: u32,
    /// Its name there.
    pub number: u32,
}

/// A file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The place of its directory.
    pub dir: u32,
    /// Its name there.
    pub number: u32,
    /// Bytes.
    pub size: u64,
}

/// A whole fileset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tree {
    /// Its directories.
    pub dirs: Vec<Dir>,
    /// Its files, in the order of their indices.
    pub files: Vec<Entry>,
    /// Its empty directories, which are made and removed.
    pub leaf_dirs: Vec<Dir>,
    /// How deep the deepest file lies; a file in the root would be at 1.
    pub depth: u32,
}

impl Tree {
    /// The tree of that shape.
    pub fn new(shape: &Shape, random: &mut Random) -> Result<Self, String> {
        let entries = shape.entries.saturating_add(shape.leaf_dirs);
        if entries > MOST_ENTRIES {
            return Err(format!(
                "{entries} entries, at most {MOST_ENTRIES} are possible"
            ));
        }
        let mut growth = Growth {
            shape,
            width: law_of(&shape.width, shape)?,
            depth: match &shape.depth {
                Some(depth) => depth.clone(),
                None => law_of(&Number::Fixed(mean_depth(shape)), shape)?,
            },
            tree: Self {
                dirs: vec![Dir {
                    parent: 0,
                    number: 0,
                }],
                files: room_for(shape.entries)?,
                leaf_dirs: room_for(shape.leaf_dirs)?,
                depth: 0,
            },
            random,
        };
        let mut number = 1;
        for what in [What::Files, What::LeafDirs] {
            while !growth.is_done(what) {
                growth.grow(0, number, 2, what)?;
                number += 1;
            }
        }
        Ok(growth.tree)
    }

    /// Bytes of all files.
    pub fn bytes(&self) -> u64 {
        self.files
            .iter()
            .fold(0, |sum, file| sum.saturating_add(file.size))
    }
}

/// A list with room for so many, which are more than some limits of memory allow.
fn room_for<T>(count: u64) -> Result<Vec<T>, String> {
    let mut list = Vec::new();
    list.try_reserve_exact(index(count))
        .map_err(|_| format!("{count} entries, for which there is no memory"))?;
    Ok(list)
}

fn mean_depth(shape: &Shape) -> f64 {
    let width = shape.width.mean();
    if width <= 1.0 {
        return 1.0;
    }
    ((shape.entries + shape.leaf_dirs).max(1) as f64).ln() / width.ln()
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    Files,
    LeafDirs,
}

struct Growth<'a> {
    shape: &'a Shape,
    width: Number,
    depth: Number,
    tree: Tree,
    random: &'a mut Random,
}

impl Growth<'_> {
    fn is_done(&self, what: What) -> bool {
        match what {
            What::Files => self.tree.files.len() as u64 >= self.shape.entries,
            What::LeafDirs => self.tree.leaf_dirs.len() as u64 >= self.shape.leaf_dirs,
        }
    }

    /// Adds the directory `number` of `parent`, and what is in it.
    fn grow(&mut self, parent: u32, number: u32, level: u32, what: What) -> Result<(), String> {
        if level > DEEPEST {
            return Err(format!(
                "directories more than {DEEPEST} deep; a larger dirwidth or a smaller dirdepthrv is needed"
            ));
        }
        let count = self.tree.dirs.len();
        if count as u64 > MOST_ENTRIES || self.tree.dirs.try_reserve(1).is_err() {
            return Err(format!(
                "{count} directories are not enough for {} entries, and for more there is no memory; a larger dirwidth \
                 or a smaller dirdepthrv is needed",
                self.shape.entries.saturating_add(self.shape.leaf_dirs)
            ));
        }
        let this = u32::try_from(count).map_err(|_| format!("{count} directories"))?;
        self.tree.dirs.push(Dir { parent, number });
        let is_leaf = level >= self.draw_depth();
        let width = self.draw_width();
        for number in 1..=width {
            if self.is_done(what) {
                break;
            }
            match (is_leaf, what) {
                (false, _) => self.grow(this, number, level + 1, what)?,
                (true, What::Files) => {
                    let size = self.shape.size.sample_count(self.random);
                    self.tree.files.push(Entry {
                        dir: this,
                        number,
                        size,
                    });
                    self.tree.depth = self.tree.depth.max(level);
                }
                (true, What::LeafDirs) => {
                    self.tree.leaf_dirs.push(Dir {
                        parent: this,
                        number,
                    });
                    self.tree.depth = self.tree.depth.max(level);
                }
            }
        }
        Ok(())
    }

    /// As filebench does: cut off.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // the cast saturates
    fn draw_depth(&mut self) -> u32 {
        (self.depth.sample(self.random) as u32).max(1)
    }

    /// As filebench does: rounded up.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // the cast saturates
    fn draw_width(&mut self) -> u32 {
        (self.width.sample(self.random).ceil() as u32).max(1)
    }
}

/// What is drawn for each directory where the mean is a constant: numbers with the gamma distribution, if there is
/// to be randomness.
fn law_of(mean: &Number, shape: &Shape) -> Result<Number, String> {
    match mean.fixed() {
        Some(mean) if mean > 0.0 && shape.gamma > 0.0 => {
            Distribution::gamma(mean, shape.gamma).map(|law| Number::Random(Arc::new(law)))
        }
        _ => Ok(mean.clone()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(entries: u64, width: u64, gamma: f64) -> Shape {
        Shape {
            entries,
            leaf_dirs: 0,
            size: Number::Fixed(1000.0),
            width: Number::Fixed(width as f64),
            depth: None,
            gamma,
        }
    }

    fn tree(shape: &Shape) -> Tree {
        Tree::new(shape, &mut Random::new(1, 0)).unwrap()
    }

    #[test]
    fn a_single_file_lies_in_a_directory_of_its_own() {
        let tree = tree(&shape(1, 10, 0.0));
        assert_eq!(tree.dirs.len(), 2);
        assert_eq!((tree.files[0].dir, tree.files[0].number), (1, 1));
    }

    #[test]
    fn without_randomness_directories_are_full_and_as_deep_as_their_number_says() {
        // ln 10,000 / ln 10 is 4: files at level 4, the root is at 1.
        let tree = tree(&shape(10_000, 10, 0.0));
        assert_eq!((tree.depth, tree.files.len()), (4, 10_000));
        let full = |dir: u32| tree.files.iter().filter(|file| file.dir == dir).count();
        let last = tree.files[9999].dir;
        assert_eq!((full(tree.files[0].dir), full(last)), (10, 10));
    }

    #[test]
    fn widths_are_gamma_distributed_about_their_mean() {
        // Two levels below the root, so that all files lie in directories of which each drew a width.
        let mut shape = shape(200_000, 20, 1.5);
        shape.depth = Some(Number::Fixed(2.0));
        let tree = tree(&shape);
        let mut widths = vec![0_u32; tree.dirs.len()];
        tree.files
            .iter()
            .for_each(|file| widths[file.dir as usize] += 1);
        let widths: Vec<f64> = widths[1..].iter().map(|&width| f64::from(width)).collect();
        let mean = widths.iter().sum::<f64>() / widths.len() as f64;
        let variance = widths
            .iter()
            .map(|width| (width - mean).powi(2))
            .sum::<f64>()
            / widths.len() as f64;
        // Rounded up, so half a file more than the mean of 20; the variance is 20^2 / 1.5.
        assert!((mean - 20.5).abs() < 0.6, "{mean}");
        assert!((variance / 266.7 - 1.0).abs() < 0.1, "{variance}");
    }

    #[test]
    fn the_same_seed_gives_the_same_tree_and_another_another() {
        let shape = shape(5000, 20, 1.5);
        let of = |seed| Tree::new(&shape, &mut Random::new(seed, 0)).unwrap();
        assert_eq!(of(1), of(1));
        assert_ne!(of(1), of(2));
    }

    #[test]
    fn no_two_things_have_the_same_path() {
        let mut shape = shape(2000, 5, 1.5);
        shape.leaf_dirs = 1000;
        let tree = tree(&shape);
        let mut paths: Vec<(u32, u32)> = tree.dirs[1..]
            .iter()
            .chain(&tree.leaf_dirs)
            .map(|dir| (dir.parent, dir.number))
            .chain(tree.files.iter().map(|file| (file.dir, file.number)))
            .collect();
        let count = paths.len();
        paths.sort_unstable();
        paths.dedup();
        assert_eq!((paths.len(), tree.leaf_dirs.len()), (count, 1000));
    }

    #[test]
    fn no_width_gives_a_directory_for_each_file_and_endless_depth_is_refused() {
        let flat = tree(&shape(7, 0, 1.5));
        assert_eq!((flat.dirs.len(), flat.depth), (8, 2));
        let mut deep = shape(10, 2, 0.0);
        deep.depth = Some(Number::Fixed(100_000.0));
        assert!(
            Tree::new(&deep, &mut Random::new(1, 0))
                .unwrap_err()
                .contains("deep")
        );
    }

    #[test]
    fn a_million_files_are_planned_in_a_second_or_two() {
        let begun = std::time::Instant::now();
        assert_eq!(tree(&shape(1_000_000, 20, 1.5)).files.len(), 1_000_000);
        assert!(begun.elapsed().as_secs() < 5);
    }
}
