//! Call stacks: what `perf script` prints is folded into a line a stack, and folded stacks are drawn as
//! flame graphs (Brendan Gregg, The Flame Graph, CACM 59(6), 2016), or as what changed between two.

mod draw;
mod fold;

pub use draw::{Drawn, Graph, draw};
pub use fold::fold;
