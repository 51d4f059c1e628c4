"""What a process is held to from its first instruction on: control groups, CPUs, an account, a tracer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from dyno.hosts.accounts import Account

# Joined before the program is there, so that nothing of it is ever outside; the shell becomes the program.
_JOIN = 'while [ "$1" != -- ]; do echo $$ >"$1" || exit 126; shift; done; shift; exec "$@"'
# What shells add to the environment, so that a server would differ by it from one that no shell started.
_UNSHELLED = ["env", "--unset=PWD", "--unset=OLDPWD", "--unset=SHLVL", "--unset=_"]


@dataclass(frozen=True)
class Confinement:
    """`procs` are the `cgroup.procs` files of the groups to join; `group` names their common parent, for engines.

    `under` are the words that the command is started under, such as those of a tracer, which stays the present user's.
    """

    procs: tuple[Path, ...] = ()
    group: str | None = None
    cpus: str | None = None
    under: tuple[str, ...] = ()

    def holds(self, pid: int) -> bool:
        """Whether a process has joined all of the groups by now."""
        return all(str(pid) in procs.read_text().split() for procs in self.procs)

    def around(self, argv: Sequence[str], account: Account | None) -> tuple[list[str], Account | None]:
        """The command that becomes `argv` within it, and the account to start that command as."""
        words = list(argv)
        if self.cpus is not None:
            words = ["taskset", "--cpu-list", self.cpus, *words]
        if not self.procs and not self.under:
            return words, account
        if account is not None:
            # Joining and tracing take root, so the account is taken on by the command itself.
            groups = ",".join(map(str, account.groups))
            who = [f"--reuid={account.uid}", f"--regid={account.gid}"]
            words = ["setpriv", *who, f"--groups={groups}" if groups else "--clear-groups", *words]
            # As without groups: another user may not be let into the present folder.
            words = ["env", "--chdir=/", *words]
        words = [*self.under, *words]
        if not self.procs:
            return words, None
        return ["sh", "-c", _JOIN, "sh", *map(str, self.procs), "--", *_UNSHELLED, *words], None
