//! TPC-C on `MariaDB` and on `MySQL`.

mod common;

mod on_mariadb {
    use crate::common::database::Database;
    use dyno_servers::Mariadb;
    use dyno_sql::Mysql;

    fn database() -> Database<Mariadb, Mysql> {
        let server = Mariadb::shared();
        let socket = server.socket();
        Database::new(server, socket, "root", "mysql", Mysql::connect)
    }

    crate::suite!(database());
}

mod on_mysql {
    use crate::common::database::Database;
    use dyno_sql::Mysql;

    fn database() -> Database<dyno_servers::Mysql, Mysql> {
        let server = dyno_servers::Mysql::shared();
        let socket = server.socket();
        Database::new(server, socket, "root", "mysql", Mysql::connect)
    }

    crate::suite!(database());
}
