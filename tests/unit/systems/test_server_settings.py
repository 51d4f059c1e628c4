"""What a study asks of a server, and what the server says it has, in the same terms."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from dyno.hosts import LocalHost
from dyno.hosts.accounts import Account
from dyno.model.base import RunError
from dyno.systems import innodb, mysql, postgresql
from dyno.systems.base import Place
from dyno.systems.mariadb import MariadbOptions, MariadbSystem
from dyno.systems.mysql import MysqlOptions, MysqlSystem
from dyno.systems.postgresql import PostgresqlOptions, PostgresqlSystem
from dyno.systems.server import _REFUSES_SETTING, ServerOptions, newest

# The rows are as MariaDB 10.11's information_schema.SYSTEM_VARIABLES has them.
FLUSH_METHODS = "fsync,O_DSYNC,littlesync,nosync,O_DIRECT,O_DIRECT_NO_FSYNC"
SWITCHES = "index_merge=on,index_merge_union=on,mrr=off"


@pytest.mark.parametrize(
    ("wish", "row", "same"),
    [
        ("128M", ("134217728", "BIGINT UNSIGNED", ""), True),
        ("128m", ("134217728", "BIGINT UNSIGNED", ""), True),
        (134217728, ("134217728", "BIGINT UNSIGNED", ""), True),
        ("100M", ("134217728", "BIGINT UNSIGNED", ""), False),
        ("128 MiB", ("134217728", "BIGINT UNSIGNED", ""), False),
        (True, ("1", "INT UNSIGNED", ""), True),
        (False, ("OFF", "BOOLEAN", ""), True),
        ("off", ("OFF", "BOOLEAN", ""), True),
        (1, ("OFF", "BOOLEAN", ""), False),
        ("O_DIRECT", ("O_DIRECT", "ENUM", FLUSH_METHODS), True),
        ("o_direct", ("O_DIRECT", "ENUM", FLUSH_METHODS), True),
        (4, ("O_DIRECT", "ENUM", FLUSH_METHODS), True),
        ("fsync", ("O_DIRECT", "ENUM", FLUSH_METHODS), False),
        (1.5, ("1.500000", "DOUBLE", ""), True),
        ("fast", ("1.500000", "DOUBLE", ""), False),
        ("index_merge=off", (SWITCHES, "FLAGSET", ""), False),
        ("mrr=off, index_merge=on", (SWITCHES, "FLAGSET", ""), True),
        ("no_such=on", (SWITCHES, "FLAGSET", ""), False),
        ("ANSI", ("REAL_AS_FLOAT,PIPES_AS_CONCAT,ANSI", "SET", ""), True),
        ("STRICT_ALL_TABLES", ("ANSI", "SET", ""), False),
        ("utf8mb4", ("utf8mb4", "VARCHAR", ""), True),
        ("utf8mb4", ("latin1", "VARCHAR", ""), False),
    ],
)
def test_mariadb_has_a_setting_where_its_variable_says_the_same(wish: Any, row: Any, same: bool) -> None:
    asked, effective = innodb.canonical(wish, *row)
    assert (asked == effective) is same


# MySQL does not say of what type a variable is.
@pytest.mark.parametrize(
    ("name", "wish", "value", "same"),
    [
        ("innodb_buffer_pool_size", "64M", "67108864", True),
        ("innodb_buffer_pool_size", "3M", "5242880", False),
        ("innodb_max_dirty_pages_pct", 90, "90.000000", True),
        ("innodb_doublewrite", False, "OFF", True),
        ("innodb_doublewrite", "DETECT_ONLY", "ON", False),
        ("innodb_flush_method", "o_direct", "O_DIRECT", True),
        ("innodb_flush_method", "fsync", "O_DIRECT", False),
        ("transaction_isolation", "READ-COMMITTED", "REPEATABLE-READ", False),
        ("optimizer_switch", "mrr=off", SWITCHES, True),
        ("optimizer_switch", "index_merge=off", SWITCHES, False),
        ("sql_mode", "ANSI", "REAL_AS_FLOAT,PIPES_AS_CONCAT,ANSI", True),
        ("sql_mode", "STRICT_ALL_TABLES", "ANSI", False),
    ],
)
def test_mysql_has_a_setting_where_its_variable_says_the_same(name: str, wish: Any, value: str, same: bool) -> None:
    asked, effective = innodb.canonical(wish, value, mysql.kind_of(name, value), "")
    assert (asked == effective) is same


def test_what_mariadb_calls_mysqld_is_not_taken_for_mysql(
    host: LocalHost, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mariadbd").touch(mode=0o755)
    for name in ("mysqld", "innochecksum"):
        (tmp_path / name).symlink_to("mariadbd")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("DYNO_MYSQL_ROOT", raising=False)
    place = Place(host, tmp_path / "live", tmp_path / "logs", "")
    with pytest.raises(RunError, match=r"mysqld, innochecksum not found: install MySQL's server .*`dyno get mysql`"):
        MysqlSystem(MysqlOptions(), place).programs()


@pytest.mark.parametrize(
    ("wish", "row", "same"),
    [
        ("32MB", ("4096", "8kB", "integer"), True),
        (4096, ("4096", "8kB", "integer"), True),
        ("1001kB", ("125", "8kB", "integer"), False),
        ("10min", ("600", "s", "integer"), True),
        (600, ("600", "s", "integer"), True),
        ("200ms", ("200", "ms", "integer"), True),
        ("1GB", ("1024", "MB", "integer"), True),
        ("1GiB", ("1024", "MB", "integer"), False),
        (-1, ("-1", "8kB", "integer"), True),
        (1.1, ("1.1", "", "real"), True),
        (True, ("on", "", "bool"), True),
        ("no", ("off", "", "bool"), True),
        ("maybe", ("off", "", "bool"), False),
        ("Local", ("local", "", "enum"), True),
        ("on", ("local", "", "enum"), False),
        ("C", ("C", "", "string"), True),
        ("d", ("4", "", "integer"), False),
    ],
)
def test_postgresql_has_a_setting_where_its_parameter_says_the_same(wish: Any, row: Any, same: bool) -> None:
    asked, effective = postgresql.canonical(wish, *row)
    assert (asked == effective) is same


@pytest.mark.parametrize("options", [MariadbOptions, MysqlOptions, PostgresqlOptions])
@pytest.mark.parametrize("name", ["Work_mem", "a-b", "a b", "--x", "a.b.c", "", "x;y"])
def test_what_cannot_be_a_settings_name_is_refused(options: type[ServerOptions], name: str) -> None:
    with pytest.raises(ValidationError, match="no name of a server's setting"):
        options.model_validate({name: 1})


@pytest.mark.parametrize(
    ("options", "name"),
    [
        (MariadbOptions, "datadir"),
        (MysqlOptions, "log_error_verbosity"),
        (PostgresqlOptions, "unix_socket_directories"),
    ],
)
def test_what_dyno_sets_itself_is_refused(options: type[ServerOptions], name: str) -> None:
    with pytest.raises(ValidationError, match=f"{name} is dyno's own to set"):
        options.model_validate({name: "x"})


def test_a_setting_that_leaves_the_data_alone_shares_a_data_set_and_another_does_not() -> None:
    def key(kind: Any, **options: Any) -> Any:
        return kind(kind.Options.model_validate(options), None).data_key()

    assert key(MariadbSystem, innodb_buffer_pool_size="1G") == key(MariadbSystem, connect="tcp")
    assert key(MariadbSystem, innodb_page_size="4k") != key(MariadbSystem)
    assert key(MariadbSystem, innodb_log_file_buffering=False, stop="kill") == key(MariadbSystem)
    assert key(MysqlSystem, innodb_flush_method="fsync") == key(MysqlSystem)
    assert key(MysqlSystem, innodb_redo_log_capacity="8M") != key(MysqlSystem)
    assert key(PostgresqlSystem, shared_buffers="1GB", fsync=False) == key(PostgresqlSystem)
    assert key(PostgresqlSystem, data_checksums=True) != key(PostgresqlSystem)
    assert key(PostgresqlSystem, default_toast_compression="lz4") != key(PostgresqlSystem)


def test_a_server_lets_in_as_many_clients_as_it_has_connections() -> None:
    assert MariadbSystem.most_clients(MariadbOptions()) == 151
    assert MariadbSystem.most_clients(MariadbOptions.model_validate({"max_connections": 10})) == 10
    assert PostgresqlSystem.most_clients(PostgresqlOptions()) == 97
    assert PostgresqlSystem.most_clients(PostgresqlOptions.model_validate({"max_connections": 20})) == 17


def test_the_newest_version_is_chosen_by_its_number_and_not_by_its_spelling(tmp_path: Path) -> None:
    for version in ("9.6", "15", "13"):
        (tmp_path / version / "bin").mkdir(parents=True)
        (tmp_path / version / "bin" / "postgres").touch()
    assert newest("*/bin/postgres", str(tmp_path)) == tmp_path / "15" / "bin" / "postgres"
    assert newest("*/bin/nothing", str(tmp_path)) is None


@pytest.mark.parametrize(("kind", "package"), [(MariadbSystem, "mariadb-server"), (PostgresqlSystem, "postgresql")])
def test_a_missing_program_is_one_line_that_names_the_package(
    kind: Any, package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shutil.which", lambda *_words, **_more: None)
    monkeypatch.setattr(postgresql, "newest", lambda _pattern: None)
    with pytest.raises(RunError, match=f"not found.*: apt-get install {package}$"):
        kind(kind.Options(), None).programs()


def test_the_folder_that_keeps_an_account_out_is_named() -> None:
    account = Account("nobody", 65534, 65534, ())
    with tempfile.TemporaryDirectory() as folder:
        below = Path(folder, "closed", "below")
        below.mkdir(parents=True)
        Path(folder).chmod(0o755)
        below.parent.chmod(0o700)
        assert account.barrier(below / "data") == below.parent
        below.parent.chmod(0o701)
        assert account.barrier(below / "data") is None
        assert Account("member", 1, below.stat().st_gid, ()).barrier(below / "data") == below.parent


@pytest.mark.parametrize(
    "said",
    [
        "[ERROR] [MY-000067] [Server] unknown variable 'foo=1'.",
        "[ERROR] /usr/sbin/mariadbd: unknown variable 'foo=1'",
        "[ERROR] Unknown suffix 'i' used for variable 'innodb_buffer_pool_size' (value '64MiB').",
        "[ERROR] [MY-000077] [Server] mysqld: Error while setting value 'BEFOR' to 'group_replication_consistency'.",
        'FATAL:  unrecognized configuration parameter "foo"',
        'FATAL:  invalid value for parameter "shared_buffers": "64 MiB"',
        'FATAL:  -1 is outside the valid range for parameter "max_connections" (1 .. 262143)',
    ],
)
def test_a_server_that_refuses_a_setting_is_known_by_what_it_says(said: str) -> None:
    assert _REFUSES_SETTING.search(said)
    assert not _REFUSES_SETTING.search(
        "[ERROR] [MY-010259] [Server] Another process with pid 7 is using unix socket file."
    )
