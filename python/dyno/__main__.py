"""`python -m dyno` and the `dyno` command: Ctrl-C is heard from the first import on."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line."""
    try:
        for stream in (sys.stdout, sys.stderr):
            # A terminal that cannot show a sign gets its escape, not a traceback.
            stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]  # a TextIOWrapper at start-up
        from dyno.cli import main as command_line
    except KeyboardInterrupt:
        print("dyno: interrupted", file=sys.stderr)
        sys.exit(130)
    command_line()


if __name__ == "__main__":
    main()
