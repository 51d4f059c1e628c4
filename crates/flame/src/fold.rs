//! From what `perf script` prints to a line a stack: `thread;outermost;...;innermost COUNT`.

use std::borrow::Cow;
use std::io::{self, BufRead, Write};
use std::path::Path;

use inferno::collapse::Collapse;
use inferno::collapse::perf::{Folder, Options};

/// Names of maps that have brackets as the kernel's modules have, and are none of them.
const NOT_OF_THE_KERNEL: [&str; 5] = ["[vdso]", "[vsyscall]", "[heap]", "[stack]", "[unknown]"];

/// Folds the samples of `perf script -F comm,pid,tid,time,event,ip,sym,dso`, each counting once; the lines come sorted.
///
/// A frame is `symbol_[k]` in the kernel, `symbol_[j]` in code that was made at run time, `symbol@file` in a program or
/// library of which the symbol is known and `[file]` where it is not.
pub fn fold(mut script: impl BufRead, mut folded: impl Write) -> io::Result<()> {
    let mut named = Vec::new();
    let mut line = Vec::new();
    while script.read_until(b'\n', &mut line)? > 0 {
        named.extend_from_slice(with_file(&String::from_utf8_lossy(&line)).as_bytes());
        line.clear();
    }
    let mut options = Options::default();
    options.annotate_kernel = true;
    options.annotate_jit = true;
    let mut unsorted = Vec::new();
    Folder::from(options).collapse(named.as_slice(), &mut unsorted)?;
    let text = String::from_utf8_lossy(&unsorted);
    let mut lines: Vec<&str> = text.lines().collect();
    lines.sort_unstable();
    for line in lines {
        writeln!(folded, "{line}")?;
    }
    Ok(())
}

/// A line of a stack with the file in the symbol's name, since only the names outlive folding.
///
/// `  55d0 memcpy (/usr/lib/libc.so.6)` becomes `  55d0 memcpy@libc.so.6 (/usr/lib/libc.so.6)`.
fn with_file(line: &str) -> Cow<'_, str> {
    let end = line.trim_end();
    let Some((stack, file)) = end
        .strip_suffix(')')
        .and_then(|rest| rest.rsplit_once(" ("))
        .filter(|_| line.starts_with([' ', '\t']))
    else {
        return Cow::Borrowed(line);
    };
    let Some((address, symbol)) = stack.trim_start().split_once(' ') else {
        return Cow::Borrowed(line);
    };
    let plain = if NOT_OF_THE_KERNEL.contains(&file) {
        file.trim_matches(['[', ']'])
    } else {
        file
    };
    let of_kernel = plain.starts_with('[')
        || Path::new(plain).extension().is_some_and(|end| end == "ko")
        || plain.contains("vmlinux");
    let made_at_run_time = plain.starts_with("/tmp/perf-") || plain.contains("/jitted-");
    let name = plain.rsplit('/').next().unwrap_or(plain);
    if symbol == "[unknown]" || of_kernel || made_at_run_time || symbol.contains('(') {
        // Of a symbol with arguments all that follows them would be cut off.
        return Cow::Owned(format!("\t{address} {symbol} ({plain})\n"));
    }
    Cow::Owned(format!("\t{address} {symbol}@{name} ({plain})\n"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn folded(script: &str) -> String {
        let mut out = Vec::new();
        fold(script.as_bytes(), &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    const SAMPLE: &str = "\
mariadbd   100/104   12.500000: cpu-clock: 
\tffffffff81a0 copy_user_generic ([kernel.kallsyms])
\tffffffff81b0 ext4_file_write_iter ([ext4])
\t    7f00aa10 __write (/usr/lib/x86_64-linux-gnu/libc.so.6)
\t    55d0aa10 [unknown] (/usr/sbin/mariadbd)
\t    55d0aa20 std::vector<int, int>::push_back (/usr/sbin/mariadbd)

";

    #[test]
    fn a_frame_says_where_it_is_from() {
        assert_eq!(
            folded(SAMPLE),
            "mariadbd;std::vector<int, int>::push_back@mariadbd;[mariadbd];__write@libc.so.6;\
             ext4_file_write_iter_[k];copy_user_generic_[k] 1\n"
        );
    }

    #[test]
    fn like_stacks_are_counted_and_come_in_order() {
        let other = SAMPLE.replace("mariadbd   100", "background 100");
        assert_eq!(
            folded(&format!("{SAMPLE}{other}{SAMPLE}"))
                .lines()
                .map(|line| (
                    line.split(';').next().unwrap(),
                    line.rsplit(' ').next().unwrap()
                ))
                .collect::<Vec<_>>(),
            [("background", "1"), ("mariadbd", "2")]
        );
    }

    #[test]
    fn what_was_made_at_run_time_and_what_the_kernel_lends_are_not_the_kernel() {
        let script = "\
java  7/8  1.0: cycles: 
\t    7f11 __vdso_clock_gettime ([vdso])
\t    7f12 Lorg/Store;::get (/tmp/perf-7.map)
\t    7f13 [unknown] ([unknown])

";
        assert_eq!(
            folded(script),
            "java;[unknown];org/Store:::get_[j];__vdso_clock_gettime@vdso 1\n"
        );
    }

    #[test]
    fn nothing_sampled_folds_to_nothing() {
        assert_eq!(folded(""), "");
    }
}
