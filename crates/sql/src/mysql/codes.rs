//! What the server's error codes count as.
//!
//! Names and meanings are those that `perror` prints, `MariaDB`'s and `MySQL`'s. Up to 1899 a code means
//! the same in both; above, each has its own.

use super::packets::ServerError;
use crate::error::{Error, ErrorKind};

/// As what an error of the server counts.
pub fn kind(error: &ServerError, mariadb: bool) -> ErrorKind {
    let own = if error.code < 1900 {
        shared(error)
    } else if mariadb {
        of_mariadb(error.code)
    } else {
        of_mysql(error.code)
    };
    match own {
        // Whatever was being done: what the system said is more to the point.
        ErrorKind::Io | ErrorKind::Refused | ErrorKind::CannotOpen => {
            of_the_system(&error.message).unwrap_or(own)
        }
        _ => own,
    }
}

fn shared(error: &ServerError) -> ErrorKind {
    match error.code {
        // CON_COUNT_ERROR, SERVER_SHUTDOWN, NORMAL_SHUTDOWN, SHUTDOWN_COMPLETE, HOST_IS_BLOCKED,
        // CANT_CREATE_THREAD, TOO_MANY_USER_CONNECTIONS, USER_LIMIT_REACHED, QUERY_INTERRUPTED (of a
        // server that shuts down), TOO_MANY_CONCURRENT_TRXS
        1040 | 1053 | 1077 | 1079 | 1129 | 1135 | 1203 | 1226 | 1317 | 1637 => {
            ErrorKind::Unavailable
        }
        // UNKNOWN_COM_ERROR: Galera's answer of a node that is not in the group.
        1047 if error.message.contains("WSREP") => ErrorKind::Unavailable,
        // CHECKREAD, LOCK_DEADLOCK, XA_RBDEADLOCK
        1020 | 1213 | 1614 => ErrorKind::Conflict,
        // LOCK_WAIT_TIMEOUT, XA_RBTIMEOUT
        1205 | 1613 => ErrorKind::Busy,
        // DUP_KEY, DUP_ENTRY, DUP_UNIQUE, DUP_ENTRY_WITH_KEY_NAME, FOREIGN_DUPLICATE_KEY_WITH(OUT)_CHILD_INFO,
        // DUP_UNKNOWN_IN_INDEX
        1022 | 1062 | 1169 | 1586 | 1761 | 1762 | 1859 => ErrorKind::DuplicateKey,
        // DISK_FULL, RECORD_FILE_FULL
        1021 | 1114 => ErrorKind::DiskFull,
        // OPEN_AS_READONLY, READ_ONLY_TRANSACTION, CANT_EXECUTE_IN_READ_ONLY_TRANSACTION, READ_ONLY_MODE,
        // INNODB_READ_ONLY
        1036 | 1207 | 1792 | 1836 | 1874 => ErrorKind::ReadOnly,
        // OPTION_PREVENTS_STATEMENT: --read-only, --super-read-only, --innodb-read-only among others.
        1290 if error.message.replace('_', "-").contains("read-only") => ErrorKind::ReadOnly,
        // DBACCESS_DENIED, ACCESS_DENIED, KILL_DENIED, HOST_NOT_PRIVILEGED, TABLEACCESS_DENIED,
        // COLUMNACCESS_DENIED, SPECIFIC_ACCESS_DENIED, NOT_SUPPORTED_AUTH_MODE, SECURE_AUTH_MODE,
        // PROCACCESS_DENIED, PLUGIN_IS_NOT_LOADED, ACCESS_DENIED_NO_PASSWORD, MUST_CHANGE_PASSWORD,
        // MUST_CHANGE_PASSWORD_LOGIN, ACCESS_DENIED_CHANGE_USER
        1044 | 1045 | 1095 | 1130 | 1142 | 1143 | 1227 | 1251 | 1275 | 1370 | 1524 | 1698
        | 1820 | 1862 | 1873 => ErrorKind::AccessDenied,
        // OUTOFMEMORY, OUT_OF_SORTMEMORY, OUT_OF_RESOURCES, LOCK_TABLE_FULL (the pool has no room for
        // more locks)
        1037 | 1038 | 1041 | 1206 => ErrorKind::OutOfMemory,
        // NOT_FORM_FILE, NOT_KEYFILE, OLD_KEYFILE, CRASHED_ON_USAGE, CRASHED_ON_REPAIR, INDEX_CORRUPT,
        // TABLESPACE_MISSING, INNODB_INDEX_CORRUPT, ROW_IN_WRONG_PARTITION, TABLE_CORRUPT
        1033..=1035 | 1194 | 1195 | 1712 | 1812 | 1817 | 1863 | 1877 => ErrorKind::Corrupt,
        // CANT_OPEN_FILE, FILE_NOT_FOUND
        1016 | 1017 => ErrorKind::CannotOpen,
        // CANT_CREATE_FILE, ERROR_ON_CLOSE, ERROR_ON_READ, ERROR_ON_RENAME, ERROR_ON_WRITE,
        // TEMP_FILE_WRITE_FAILURE
        1004 | 1023..=1026 | 1878 => ErrorKind::Io,
        // GET_ERRNO, ERROR_DURING_COMMIT, ERROR_DURING_ROLLBACK, GET_ERRMSG, GET_TEMPORARY_ERRMSG
        1030 | 1180 | 1181 | 1296 | 1297 => of_an_engine(&error.message),
        // ABORTING_CONNECTION, NET_READ_ERROR, NET_READ_INTERRUPTED, NET_ERROR_ON_WRITE,
        // NET_WRITE_INTERRUPTED, NEW_ABORTING_CONNECTION
        1152 | 1158..=1161 | 1184 => ErrorKind::ConnectionLost,
        // HANDSHAKE_ERROR, NET_PACKETS_OUT_OF_ORDER, NET_UNCOMPRESS_ERROR, MALFORMED_PACKET
        1043 | 1156 | 1157 | 1835 => ErrorKind::Protocol,
        _ => ErrorKind::Refused,
    }
}

fn of_mariadb(code: u16) -> ErrorKind {
    match code {
        // CONNECTION_KILLED
        1927 => ErrorKind::ConnectionLost,
        // NO_SUCH_TABLE_IN_ENGINE
        1932 => ErrorKind::Corrupt,
        // STATEMENT_TIMEOUT
        1969 => ErrorKind::Timeout,
        // SERVER_OFFLINE_MODE
        3032 => ErrorKind::Unavailable,
        // USER_LOCK_DEADLOCK
        3058 => ErrorKind::Conflict,
        // ACCOUNT_HAS_BEEN_LOCKED
        4151 => ErrorKind::AccessDenied,
        _ => ErrorKind::Refused,
    }
}

fn of_mysql(code: u16) -> ErrorKind {
    match code {
        // QUERY_TIMEOUT
        3024 => ErrorKind::Timeout,
        // SERVER_OFFLINE_MODE, RUN_HOOK_ERROR (a node of a group that cannot reach the others),
        // SERVER_ISNT_AVAILABLE
        3032 | 3100 | 3168 => ErrorKind::Unavailable,
        // USER_LOCK_DEADLOCK, TRANSACTION_ROLLBACK_DURING_COMMIT (another node was first),
        // LOCKING_SERVICE_DEADLOCK
        3058 | 3101 | 3132 => ErrorKind::Conflict,
        // ACCOUNT_HAS_BEEN_LOCKED, SECURE_TRANSPORT_REQUIRED
        3118 | 3159 => ErrorKind::AccessDenied,
        // SESSION_WAS_KILLED, CLIENT_INTERACTION_TIMEOUT
        3169 | 4031 => ErrorKind::ConnectionLost,
        // LOCK_NOWAIT
        3572 => ErrorKind::Busy,
        // DISK_FULL_NOWAIT
        3675 => ErrorKind::DiskFull,
        _ => ErrorKind::Refused,
    }
}

/// What a storage engine's error counts as, of which the message has the number behind "error".
fn of_an_engine(message: &str) -> ErrorKind {
    let number: String = message
        .split_once("error ")
        .map_or("", |(_, rest)| rest)
        .chars()
        .take_while(char::is_ascii_digit)
        .collect();
    match number.as_str() {
        // Index or table file corrupted or crashed, in several degrees.
        "126" | "127" | "144" | "145" | "180" => ErrorKind::Corrupt,
        // Out of memory, in the engine.
        "128" => ErrorKind::OutOfMemory,
        "135" => ErrorKind::DiskFull,
        "146" => ErrorKind::Busy,
        // A deadlock; Galera's failed certification comes as one too.
        "149" => ErrorKind::Conflict,
        _ => ErrorKind::Io,
    }
}

/// What an error of the operating system counts as, which the server passes on in its own message.
fn of_the_system(message: &str) -> Option<ErrorKind> {
    let says = |text| message.contains(text);
    if says("No space left on device") || says("Disk quota exceeded") || says("rror 28 ") {
        Some(ErrorKind::DiskFull)
    } else if says("Cannot allocate memory") {
        Some(ErrorKind::OutOfMemory)
    } else if says("Read-only file system") {
        Some(ErrorKind::ReadOnly)
    } else if says("Input/output error") {
        Some(ErrorKind::Io)
    } else {
        None
    }
}

/// Whether the server closes the connection after it, whatever it counts as: `NET_PACKET_TOO_LARGE` leaves
/// the rest of the request unread.
pub fn closes(error: &ServerError) -> bool {
    error.code == 1153
}

/// The error as it is given to the caller.
pub fn describe(error: &ServerError, mariadb: bool) -> Error {
    let state = match &*error.state {
        "" => String::new(),
        state => format!(", SQLSTATE {state}"),
    };
    let remedy = match error.code {
        3159 => "; dyno speaks no TLS: let the server do without",
        _ => "",
    };
    let message = format!(
        "the server says: {} ({}{state}){remedy}",
        error.message, error.code
    );
    Error::new(kind(error, mariadb), message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(code: u16, message: &str) -> ServerError {
        ServerError {
            code,
            state: "HY000".into(),
            message: message.into(),
        }
    }

    #[test]
    fn a_code_means_what_its_own_server_means_by_it() {
        assert_eq!(kind(&said(4031, ""), true), ErrorKind::Refused);
        assert_eq!(kind(&said(4031, ""), false), ErrorKind::ConnectionLost);
        assert_eq!(kind(&said(1927, ""), true), ErrorKind::ConnectionLost);
        assert_eq!(kind(&said(3101, ""), false), ErrorKind::Conflict);
        for mariadb in [true, false] {
            assert_eq!(kind(&said(1213, ""), mariadb), ErrorKind::Conflict);
            assert_eq!(kind(&said(1146, ""), mariadb), ErrorKind::Refused);
            for full in [1021, 1114] {
                assert_eq!(kind(&said(full, ""), mariadb), ErrorKind::DiskFull);
            }
        }
    }

    #[test]
    fn the_message_decides_where_a_code_stands_for_many_things() {
        let cases = [
            (
                1030,
                "Got error 28 \"No space left on device\" from storage engine InnoDB",
                ErrorKind::DiskFull,
            ),
            (
                1030,
                "Got error 28 - 'No space left on device' from storage engine",
                ErrorKind::DiskFull,
            ),
            (
                1026,
                "Error writing file 'a' (errno: 28 \"No space left on device\")",
                ErrorKind::DiskFull,
            ),
            (
                3,
                "Error writing file './a' (Errcode: 28 \"No space left on device\")",
                ErrorKind::DiskFull,
            ),
            (
                1005,
                "Can't create table `a`.`b` (errno: 28 \"No space left on device\")",
                ErrorKind::DiskFull,
            ),
            (
                1026,
                "Error writing file 'a' (errno: 5 \"Input/output error\")",
                ErrorKind::Io,
            ),
            (
                1030,
                "Got error 180 \"Index corrupted\" from storage engine InnoDB",
                ErrorKind::Corrupt,
            ),
            (
                1180,
                "Got error 149 \"Lock deadlock; Retry transaction\" during COMMIT",
                ErrorKind::Conflict,
            ),
            (
                1290,
                "The MariaDB server is running with the --read-only option so it cannot execute this statement",
                ErrorKind::ReadOnly,
            ),
            (
                1290,
                "The MySQL server is running with the --super-read-only option so ...",
                ErrorKind::ReadOnly,
            ),
            (
                1290,
                "The MariaDB server is running with the --secure-file-priv option so ...",
                ErrorKind::Refused,
            ),
            (
                1047,
                "WSREP has not yet prepared node for application use",
                ErrorKind::Unavailable,
            ),
            (1047, "Unknown command", ErrorKind::Refused),
        ];
        for (code, message, expected) in cases {
            assert_eq!(kind(&said(code, message), true), expected, "{message}");
        }
    }

    #[test]
    fn the_description_has_the_servers_own_words_and_code() {
        let error = describe(&said(1213, "Deadlock found"), true);
        assert_eq!(
            error.message,
            "the server says: Deadlock found (1213, SQLSTATE HY000)"
        );
        let error = describe(&said(3159, "Connections using insecure ..."), false);
        assert!(error.message.contains("no TLS"), "{}", error.message);
    }
}
