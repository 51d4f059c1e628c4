//! What a program may ask of the valgrind that runs it ("client requests").
//!
//! A request is a sequence of instructions that does nothing on a machine and that no compiler makes: valgrind knows it
//! when it translates the program, looks at the six words that a register points to, and leaves its answer in another
//! register. The sequences and numbers are those that valgrind's manual and its headers document for all time.

#![allow(unsafe_code)]

use std::ffi::CStr;

const RUNNING_ON_VALGRIND: usize = 0x1001;
/// Requests to a tool have its two letters above; callgrind's are those of its former name.
const CALLGRIND: usize = (b'C' as usize) << 24 | (b'T' as usize) << 16;
const ZERO_STATS: usize = CALLGRIND + 1;
const TOGGLE_COLLECT: usize = CALLGRIND + 2;
const DUMP_STATS_AT: usize = CALLGRIND + 3;
const START_INSTRUMENTATION: usize = CALLGRIND + 4;
const STOP_INSTRUMENTATION: usize = CALLGRIND + 5;

/// Whether the program runs under valgrind, with whichever tool.
#[must_use]
pub fn is_there() -> bool {
    ask(RUNNING_ON_VALGRIND, 0) > 0
}

/// Has callgrind instrument what is executed from now on, by all threads. All translations made so far are thrown away.
pub fn start_instrumentation() {
    ask(START_INSTRUMENTATION, 0);
}

/// Lets the program run uninstrumented, several times as fast.
pub fn stop_instrumentation() {
    ask(STOP_INSTRUMENTATION, 0);
}

/// Forgets what was counted.
pub fn forget() {
    ask(ZERO_STATS, 0);
}

/// Counts from now on where it did not, and no longer where it did: for this thread, at next to no cost.
#[inline]
pub fn toggle() {
    ask(TOGGLE_COLLECT, 0);
}

/// Writes what was counted to a file of its own, that has this word in it, and forgets it.
pub fn dump(word: &CStr) {
    ask(DUMP_STATS_AT, word.as_ptr() as usize);
}

/// Valgrind's answer; 0 where the program runs by itself, or the tool does not know the request.
#[cfg(target_arch = "x86_64")]
#[inline]
fn ask(request: usize, argument: usize) -> usize {
    let words = [request, argument, 0, 0, 0, 0];
    let mut answer: usize = 0;
    // SAFETY: on a machine `rdi` is rotated by 128 in all, and a register is exchanged with itself: nothing changes but
    // the flags. Valgrind reads the six words, which live until then, and writes `rdx` alone.
    unsafe {
        std::arch::asm!(
            "rol rdi, 3",
            "rol rdi, 13",
            "rol rdi, 61",
            "rol rdi, 51",
            "xchg rbx, rbx",
            in("rax") words.as_ptr(),
            inout("rdx") answer,
            options(nostack),
        );
    }
    answer
}

/// Valgrind's answer; 0 where the program runs by itself, or the tool does not know the request.
#[cfg(target_arch = "aarch64")]
#[inline]
fn ask(request: usize, argument: usize) -> usize {
    let words = [request, argument, 0, 0, 0, 0];
    let mut answer: usize = 0;
    // SAFETY: on a machine `x12` is rotated by 128 in all, and `x10` becomes what it is: nothing changes. Valgrind reads
    // the six words, which live until then, and writes `x3` alone.
    unsafe {
        std::arch::asm!(
            "ror x12, x12, #3",
            "ror x12, x12, #13",
            "ror x12, x12, #51",
            "ror x12, x12, #61",
            "orr x10, x10, x10",
            in("x4") words.as_ptr(),
            inout("x3") answer,
            options(nostack),
        );
    }
    answer
}

/// There is no valgrind for this kind of machine that is asked here.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
#[inline]
fn ask(_: usize, _: usize) -> usize {
    0
}
