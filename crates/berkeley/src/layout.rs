//! Facts of the interface of Berkeley DB 5.3.28 (`db.h`): numbers of its flags and errors, and where in its structures the
//! functions and counters are that are used here, in bytes, where pointers have 64 bits.
//!
//! The test `header` compares each of them with the header itself.

/// A structure, a member of it, and the member's offset.
pub type Place = (&'static str, &'static str, usize);

/// Makes a module a structure, with a constant a member, and the list of them all.
macro_rules! structures {
    ($($(#[$doc:meta])* $module:ident $structure:literal { $($name:ident $member:literal $offset:literal)* })*) => {
        $(
            $(#[$doc])*
            #[allow(missing_docs)] // named as in the header
            pub mod $module {
                $(pub const $name: usize = $offset;)*
            }
        )*

        /// Every place that is used.
        pub const PLACES: &[Place] = &[$($(($structure, $member, $offset),)*)*];
    };
}

/// Makes a constant a number of the header, and the list of them all.
macro_rules! numbers {
    ($($name:ident $value:literal)*) => {
        /// Flags, kinds and errors, named as in the header.
        #[allow(missing_docs)]
        pub mod number {
            $(pub const $name: i32 = $value;)*
        }

        /// Every number that is used, by its name in the header.
        pub const NUMBERS: &[(&str, i32)] = &[$((stringify!($name), $value),)*];
    };
}

structures! {
    /// An environment.
    env "DB_ENV" {
        CLOSE "close" 488
        GET_CACHESIZE "get_cachesize" 576
        GET_FLAGS "get_flags" 656
        GET_OPEN_FLAGS "get_open_flags" 888
        LOG_GET_CONFIG "log_get_config" 1072
        LOG_SET_CONFIG "log_set_config" 1112
        LOG_STAT "log_stat" 1120
        LSN_RESET "lsn_reset" 1144
        MEMP_STAT "memp_stat" 1168
        OPEN "open" 1328
        SET_CACHESIZE "set_cachesize" 1632
        SET_ERRCALL "set_errcall" 1688
        SET_FLAGS "set_flags" 1728
        SET_LG_BSIZE "set_lg_bsize" 1752
        SET_LG_MAX "set_lg_max" 1776
        SET_LK_DETECT "set_lk_detect" 1800
        SET_LK_MAX_LOCKERS "set_lk_max_lockers" 1808
        SET_LK_MAX_LOCKS "set_lk_max_locks" 1816
        SET_LK_MAX_OBJECTS "set_lk_max_objects" 1824
        SET_TIMEOUT "set_timeout" 1984
        TXN_BEGIN "txn_begin" 2040
        TXN_CHECKPOINT "txn_checkpoint" 2048
    }
    /// A database: one B-tree.
    db "DB" {
        CLOSE "close" 568
        CURSOR "cursor" 584
        DEL "del" 592
        GET "get" 632
        GET_FLAGS "get_flags" 784
        GET_PAGESIZE "get_pagesize" 896
        OPEN "open" 1008
        PUT "put" 1024
        SET_FLAGS "set_flags" 1160
        SET_PAGESIZE "set_pagesize" 1248
        STAT "stat" 1336
    }
    /// A cursor.
    dbc "DBC" {
        CLOSE "close" 352
        GET "get" 392
    }
    /// A transaction.
    txn "DB_TXN" {
        ABORT "abort" 232
        COMMIT "commit" 240
    }
    /// A key or a value.
    dbt "DBT" {
        DATA "data" 0
        SIZE "size" 8
        ULEN "ulen" 12
        DLEN "dlen" 16
        DOFF "doff" 20
        APP_DATA "app_data" 24
        FLAGS "flags" 32
    }
    /// Counters of the page cache.
    mpool_stat "DB_MPOOL_STAT" {
        PAGE_IN "st_page_in" 72
        PAGE_OUT "st_page_out" 80
    }
    /// Counters of the log.
    log_stat "DB_LOG_STAT" {
        RECORDS "st_record" 40
        WRITES "st_wcount" 56
        SYNCS "st_scount" 80
    }
}

numbers! {
    DB_CREATE 0x1
    DB_RECOVER 0x2
    DB_THREAD 0x20
    DB_INIT_CDB 0x80
    DB_INIT_LOCK 0x100
    DB_INIT_LOG 0x200
    DB_INIT_MPOOL 0x400
    DB_INIT_TXN 0x2000
    DB_PRIVATE 0x10000
    DB_AUTO_COMMIT 0x100
    DB_RDONLY 0x400
    DB_CHKSUM 0x8
    DB_BTREE 1
    DB_NOSYNC 1
    DB_FORCE 1
    DB_TXN_NOSYNC 0x1
    DB_TXN_WRITE_NOSYNC 0x20
    DB_TIME_NOTGRANTED 0x40000
    DB_SET_LOCK_TIMEOUT 0x1
    DB_LOG_IN_MEMORY 0x8
    DB_LOCK_DEFAULT 1
    DB_RMW 0x2000
    DB_DBT_USERMEM 0x800
    DB_NOOVERWRITE 20
    DB_LAST 15
    DB_NEXT 16
    DB_PREV 23
    DB_SET_RANGE 27
    DB_BUFFER_SMALL -30999
    DB_KEYEXIST -30994
    DB_LOCK_DEADLOCK -30993
    DB_LOCK_NOTGRANTED -30992
    DB_LOG_BUFFER_FULL -30991
    DB_NOTFOUND -30988
    DB_PAGE_NOTFOUND -30986
    DB_RUNRECOVERY -30973
}

/// Bytes of a `DBT`.
pub const DBT_BYTES: usize = 40;

/// Bytes of each of the counters.
pub const COUNTER_BYTES: usize = 8;
