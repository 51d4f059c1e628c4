//! Network interfaces and TCP, as sar -n DEV,EDEV,TCP,ETCP tells of them.

use std::fs;
use std::time::Instant;

use super::Absent;
use crate::proc_file::{Buffer, ProcFile};
use crate::sample::{Growth, Samples, per};
use crate::text::{lines, name_of, number, words};

/// The fields of a line of `/proc/net/dev` behind the name.
const FIELDS: usize = 16;
const RECEIVED_BYTES: usize = 0;
const RECEIVED_PACKETS: usize = 1;
const SENT_BYTES: usize = 8;
const SENT_PACKETS: usize = 9;

/// Metric and field, in sar's order. Bytes are told in KiB.
const METRICS: [(&str, usize); 16] = [
    ("net.rxpck_s", RECEIVED_PACKETS),
    ("net.txpck_s", SENT_PACKETS),
    ("net.rxkB_s", RECEIVED_BYTES),
    ("net.txkB_s", SENT_BYTES),
    ("net.rxcmp_s", 6),
    ("net.txcmp_s", 15),
    ("net.rxmcst_s", 7),
    ("net.rxerr_s", 2),
    ("net.txerr_s", 10),
    ("net.coll_s", 13),
    ("net.rxdrop_s", 3),
    ("net.txdrop_s", 11),
    ("net.txcarr_s", 14),
    ("net.rxfram_s", 5),
    ("net.rxfifo_s", 4),
    ("net.txfifo_s", 12),
];

/// Metric and name in the `Tcp:` lines of `/proc/net/snmp`.
const TCP: [(&str, &str); 9] = [
    ("tcp.active_s", "ActiveOpens"),
    ("tcp.passive_s", "PassiveOpens"),
    ("tcp.iseg_s", "InSegs"),
    ("tcp.oseg_s", "OutSegs"),
    ("tcp.atmptf_s", "AttemptFails"),
    ("tcp.estres_s", "EstabResets"),
    ("tcp.retrans_s", "RetransSegs"),
    ("tcp.isegerr_s", "InErrs"),
    ("tcp.orsts_s", "OutRsts"),
];

/// The name and the counters of a line of `/proc/net/dev`. The name may hold a colon, as an alias does.
fn parse(line: &[u8]) -> Option<(&[u8], [Option<u64>; FIELDS])> {
    let colon = line.iter().rposition(|byte| *byte == b':')?;
    let (name, rest) = (line[..colon].trim_ascii(), &line[colon + 1..]);
    let mut counters = [None; FIELDS];
    let mut found = 0;
    for (counter, word) in counters.iter_mut().zip(words(rest)) {
        *counter = Some(number(word)?);
        found += 1;
    }
    (found == FIELDS && !name.is_empty()).then_some((name, counters))
}

/// The counters of [`TCP`], found by the names that stand in the line before.
fn parse_tcp(text: &[u8]) -> [Option<u64>; TCP.len()] {
    let mut counters = [None; TCP.len()];
    let mut of_tcp = lines(text).filter_map(|line| line.strip_prefix(b"Tcp:"));
    if let (Some(names), Some(values)) = (of_tcp.next(), of_tcp.next()) {
        for (name, value) in words(names).zip(words(values)) {
            if let Some(place) = TCP.iter().position(|(_, key)| key.as_bytes() == name) {
                counters[place] = number(value);
            }
        }
    }
    counters
}

/// How fast an interface can be.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Speed {
    bytes_per_s: f64,
    /// Both ways at once.
    full_duplex: bool,
}

impl Speed {
    /// What `/sys/class/net` tells of it; virtual ones tell nothing, or -1.
    fn of(name: &str) -> Option<Self> {
        let read = |file| fs::read_to_string(format!("/sys/class/net/{name}/{file}")).ok();
        let speed = number(read("speed")?.trim().as_bytes()).filter(|speed| *speed > 0)?;
        Some(Self {
            bytes_per_s: speed as f64 * 1e6 / 8.0,
            full_duplex: read("duplex").is_some_and(|duplex| duplex.trim() == "full"),
        })
    }

    /// The share that is used, in percent.
    fn used(self, received: f64, sent: f64) -> f64 {
        let both = if self.full_duplex {
            received.max(sent)
        } else {
            received + sent
        };
        100.0 * both / self.bytes_per_s
    }
}

#[derive(Debug)]
struct Interface {
    name: Vec<u8>,
    subject: String,
    watched: bool,
    speed: Option<Speed>,
    then: Option<Instant>,
    counters: Growth<FIELDS>,
}

#[derive(Debug)]
pub struct Network {
    devices: Option<ProcFile>,
    snmp: Option<ProcFile>,
    /// Those asked for; else all that ever carried a packet.
    named: Option<Vec<String>>,
    seen: Vec<Interface>,
    tcp: Growth<{ TCP.len() }>,
    before: Option<Instant>,
}

impl Network {
    pub fn open(named: Option<Vec<String>>, absent: &mut Absent) -> Self {
        Self {
            devices: super::open_list("/proc/net/dev", "network", absent),
            snmp: super::open("/proc/net/snmp", "network/tcp", absent),
            named,
            seen: Vec::new(),
            tcp: Growth::default(),
            before: None,
        }
    }

    /// Those named that were not seen.
    pub fn missing(&self) -> impl Iterator<Item = &str> {
        let seen = |name: &str| self.seen.iter().any(|interface| interface.subject == name);
        let named = self.named.iter().flatten().map(String::as_str);
        named.filter(move |name| !seen(name))
    }

    pub fn sample(&mut self, now: Instant, buffer: &mut Buffer, samples: &mut Samples) {
        let before = self.before.replace(now);
        let seconds = before.map_or(0.0, |before| (now - before).as_secs_f64());
        if let Some(Ok(text)) = self.snmp.as_ref().map(|file| file.read(buffer)) {
            let grown = self.tcp.next(parse_tcp(text));
            for ((metric, _), count) in TCP.into_iter().zip(grown) {
                samples.add_machine(metric, per(count, seconds));
            }
        }
        if let Some(Ok(text)) = self.devices.as_ref().map(|file| file.read(buffer)) {
            let all = lines(text).filter_map(parse);
            for (guess, (name, counters)) in all.enumerate() {
                let named = self.named.as_deref();
                known(&mut self.seen, guess, name, named).sample(now, counters, named, samples);
            }
        }
    }
}

impl Interface {
    fn sample(
        &mut self,
        now: Instant,
        counters: [Option<u64>; FIELDS],
        named: Option<&[String]>,
        samples: &mut Samples,
    ) {
        if !self.watched {
            return;
        }
        let grown = self.counters.next(counters);
        let then = self.then.replace(now);
        let carried = [RECEIVED_PACKETS, SENT_PACKETS].map(|place| counters[place]);
        if named.is_none() && carried == [Some(0); 2] {
            return;
        }
        let seconds = then.map_or(0.0, |then| (now - then).as_secs_f64());
        let mut of_interface = samples.of("machine", &self.subject);
        for (metric, place) in METRICS {
            let unit = match place {
                RECEIVED_BYTES | SENT_BYTES => 1024.0,
                _ => 1.0,
            };
            let value = per(grown[place].map(|count| count / unit), seconds);
            of_interface.add(metric, value);
        }
        let bytes = [RECEIVED_BYTES, SENT_BYTES].map(|place| per(grown[place], seconds));
        if let (Some(speed), [Some(received), Some(sent)]) = (self.speed, bytes) {
            let used = Some(speed.used(received, sent));
            of_interface.add("net.ifutil", used);
        }
    }
}

/// The interface of that name, which nearly always stands where its line does.
fn known<'i>(
    seen: &'i mut Vec<Interface>,
    guess: usize,
    name: &[u8],
    named: Option<&[String]>,
) -> &'i mut Interface {
    let is_it = |interface: &Interface| interface.name == name;
    let place = if seen.get(guess).is_some_and(is_it) {
        guess
    } else {
        seen.iter().position(is_it).unwrap_or_else(|| {
            let subject = name_of(name);
            seen.push(Interface {
                name: name.to_owned(),
                watched: named.is_none_or(|named| named.contains(&subject)),
                speed: Speed::of(&subject),
                subject,
                then: None,
                counters: Growth::default(),
            });
            seen.len() - 1
        })
    };
    &mut seen[place]
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn an_interface_is_read_whatever_its_name() {
        let (name, counters) =
            parse(b"  eth0: 748896401   29762    1    2    3     4          5         6  2029645   19943    7    8    9    10       11          12").unwrap();
        assert_eq!(name, b"eth0");
        assert_eq!(counters[RECEIVED_BYTES], Some(748_896_401));
        assert_eq!(counters[SENT_PACKETS], Some(19943));
        // Large counters leave no space behind the colon, and aliases have colons of their own.
        let (name, counters) = parse(b"eth0:1:7 1 0 0 0 0 0 0 9 2 0 0 0 0 0 0").unwrap();
        assert_eq!((name, counters[0]), (&b"eth0:1"[..], Some(7)));
        assert_eq!(
            parse(b" face |bytes    packets errs drop fifo frame compressed multicast|bytes"),
            None
        );
        assert_eq!(parse(b"eth0: 1 2 3"), None);
    }

    #[test]
    fn tcp_is_found_by_the_names_in_the_line_before() {
        let text = b"Ip: Forwarding\nIp: 2\nTcp: RtoMin MaxConn ActiveOpens InSegs RetransSegs\nTcp: 200 -1 30 29731 5\nUdp: InDatagrams\nUdp: 51\n";
        let counters = parse_tcp(text);
        assert_eq!(counters[0], Some(30));
        assert_eq!(counters[2], Some(29731));
        assert_eq!(counters[6], Some(5));
        assert_eq!(counters[1], None, "this kernel does not tell it");
        assert_eq!(parse_tcp(b"Tcp: ActiveOpens\n"), [None; TCP.len()]);
    }

    #[test]
    fn use_is_of_the_busier_way_where_both_go_at_once() {
        let speed = |full_duplex| Speed {
            bytes_per_s: 1e6,
            full_duplex,
        };
        assert!((speed(true).used(5e5, 2e5) - 50.0).abs() < 1e-9);
        assert!((speed(false).used(5e5, 2e5) - 70.0).abs() < 1e-9);
    }

    proptest! {
        #[test]
        fn any_bytes_are_taken(text in proptest::collection::vec(any::<u8>(), 0..99), line in "[a-z:0-9]{0,9}:( [0-9]{0,21}){0,18}") {
            for text in [&text[..], line.as_bytes()] {
                let _ = parse(text);
                let _ = parse_tcp(text);
            }
        }
    }
}
