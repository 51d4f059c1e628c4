//! Runs of several machines that begin together: `enable multi` and `domultisync`.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::time::Duration;

const PORT: u16 = 8001;
/// Others may take their time to come so far.
const PATIENCE: Duration = Duration::from_secs(3600);

/// Tells the master that this client has come so far, and waits for its answer.
pub fn sync(master: &str, client: &str, sample: &str) -> Result<(), String> {
    sync_at(&format!("{master}:{PORT}"), client, sample)
        .map_err(|error| format!("domultisync with {master}, port {PORT}: {error}"))
}

fn sync_at(address: &str, client: &str, sample: &str) -> std::io::Result<()> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    writeln!(stream, "cmd=SYNC,id=xyzzy,name={client},sample={sample}")?;
    let mut answer = String::new();
    BufReader::new(stream).read_line(&mut answer)?;
    if answer.is_empty() {
        return Err(std::io::Error::other("it ended without an answer"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn the_master_is_told_who_has_come_how_far() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let master = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut line = String::new();
            BufReader::new(&stream).read_line(&mut line).unwrap();
            writeln!(stream, "rsp=PASS").unwrap();
            line
        });
        sync_at(&address, "here", "3").unwrap();
        assert_eq!(
            master.join().unwrap(),
            "cmd=SYNC,id=xyzzy,name=here,sample=3\n"
        );
    }
}
