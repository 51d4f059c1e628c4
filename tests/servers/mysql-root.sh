#!/usr/bin/env bash
# A folder with MySQL, for tests: Debian has it in sid only, whose libraries are newer than those of a
# machine with another release, so that it brings its own. Nothing of the machine is changed, and no
# rights are needed. About 20 s, 350 MB; nothing to do where it is there already.
#
#     tests/servers/mysql-root.sh [FOLDER]
#
# The folder is DYNO_MYSQL_ROOT, or dyno/mysql-root in the user's cache. `FOLDER/mysqld` starts the server;
# `FOLDER/data` is an empty data folder to copy, where root has no password.
set -euo pipefail

root=${1:-${DYNO_MYSQL_ROOT:-${XDG_CACHE_HOME:-$HOME/.cache}/dyno/mysql-root}}
if [[ -d $root/data ]]; then
    exit 0
fi
for program in apt-get apt-cache dpkg; do
    command -v "$program" >/dev/null || { echo "mysql-root.sh: $program is missing: this needs Debian or what is made of it" >&2; exit 2; }
done

mkdir -p "$(dirname "$root")"
work=$(mktemp -d "$root.XXXXXX")
trap 'rm -rf "$work"' EXIT

# The machine's own mirror, whatever it is.
mirror=$(apt-get indextargets --format '$(LABEL) $(REPO_URI)' | awk '$1 == "Debian" { print $2; exit }')
if [[ -z $mirror ]]; then
    echo "mysql-root.sh: apt knows no mirror of Debian here; see /etc/apt/sources.list.d" >&2
    exit 2
fi

# apt with nothing installed and nothing of the machine but its settings.
mkdir -p "$work"/apt/{lists,cache/archives}/partial "$work/root"
: >"$work/apt/status"
echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror sid main" >"$work/apt/sources.list"
apt() {
    apt-get --quiet=2 \
        -o Dir::State::status="$work/apt/status" -o Dir::State::lists="$work/apt/lists" \
        -o Dir::Cache="$work/apt/cache" -o Dir::Etc::SourceList="$work/apt/sources.list" -o Dir::Etc::SourceParts=- \
        -o APT::Sandbox::User="$(id -un)" -o APT::Install-Recommends=false -o Acquire::Languages=none \
        -o Debug::NoLocking=true -o DPkg::Post-Invoke::= -o APT::Update::Post-Invoke::= "$@" >"$work/log" 2>&1 || {
        cat "$work/log" >&2
        exit 1
    }
}
apt update
apt install --yes --download-only mysql-server-core
for package in "$work"/apt/cache/archives/*.deb; do
    dpkg --extract "$package" "$work/root"
done

# The server with the libraries of its own folder, wherever that lies. It stays the process that was started.
cat >"$work/root/mysqld" <<'WRAPPER'
#!/bin/sh
here=$(dirname "$(readlink -f "$0")")
for loader in "$here"/usr/lib/*/ld-linux*.so.* "$here"/lib/*/ld-linux*.so.*; do
    [ -f "$loader" ] && break
done
libraries=$(dirname "$loader")
case "$1" in --no-defaults) shift ;; esac
exec "$loader" --library-path "$libraries:$here/lib/${libraries##*/}:$here/usr/lib" "$here/usr/sbin/mysqld" --no-defaults \
    --basedir="$here/usr" --lc-messages-dir="$here/usr/share/mysql" --character-sets-dir="$here/usr/share/mysql/charsets" \
    --plugin-dir="$here/usr/lib/mysql/plugin" "$@"
WRAPPER
chmod +x "$work/root/mysqld"

user=()
if [[ $(id -u) == 0 ]]; then
    user=(--user=root)
fi
"$work/root/mysqld" "${user[@]}" --initialize-insecure --datadir="$work/root/data" --innodb-redo-log-capacity=8M \
    --log-error="$work/log" || { cat "$work/log" >&2; exit 1; }

# Two that make it at the same time: the second one finds it there.
mv -T "$work/root" "$root" 2>/dev/null || [[ -d $root/data ]]
