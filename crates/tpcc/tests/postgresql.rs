//! TPC-C on `PostgreSQL`.

mod common;

use common::database::Database;
use dyno_sql::Postgres;

fn database() -> Database<dyno_servers::Postgres, Postgres> {
    let server = dyno_servers::Postgres::shared();
    let socket = server.socket();
    Database::new(server, socket, "dyno", "postgres", Postgres::connect)
}

suite!(database());
