//! Names of hosts: `/etc/hosts` of each, and a name server for programs that ask one instead.
//!
//! The server answers at 127.0.0.1 in every host, without the network's delay, as a stub resolver on a phone would after the
//! first time. It knows the hosts' names and no others: of these it says at once that they do not exist.

use std::fmt::Write as _;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, UdpSocket};
use std::os::fd::AsFd as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use domain::base::iana::{Class, Rcode, Rtype};
use domain::base::{Message, MessageBuilder, Ttl};
use domain::rdata::{A, Aaaa};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use crate::Error;

/// The longest query that is read: RFC 1035, section 4.2.1.
const LONGEST: usize = 512;
/// How long programs may keep an answer: the names are those of this emulation.
const TTL: Ttl = Ttl::from_secs(5);
/// Where a resolver asks.
const PORT: u16 = 53;
/// How often the thread looks whether to end.
const LOOKS_MS: u16 = 200;
/// Letters of a name, and of a part of it, at most: RFC 1035, section 2.3.4.
const NAME_MAX: usize = 253;
const LABEL_MAX: usize = 63;

/// A name that the user gives to a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GivenName {
    /// The name, such as `api.example.com`.
    pub name: String,
    /// The host, by its node in the scenario, or `server`, `ue`, `ue2`, `router`.
    pub host: String,
}

impl GivenName {
    /// Parses `NAME=HOST`.
    ///
    /// # Errors
    /// What would be valid.
    pub fn parse(text: &str) -> Result<GivenName, String> {
        let is_name = |name: &str| {
            let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
            let is_label = |label: &str| (1..=LABEL_MAX).contains(&label.len()) && label.chars().all(plain);
            name.len() <= NAME_MAX && name.split('.').all(is_label)
        };
        match text.split_once('=') {
            Some((name, host)) if is_name(name) && !host.is_empty() => {
                Ok(GivenName { name: name.to_owned(), host: host.to_owned() })
            }
            _ => Err("expected a name and a host, such as api.example.com=server".to_owned()),
        }
    }
}

/// The addresses of hosts, and their names in the order of the hosts.
#[derive(Clone, Debug, Default)]
pub(crate) struct Names {
    hosts: Vec<(Ipv4Addr, Ipv6Addr, Vec<String>)>,
}

impl Names {
    /// Adds a host with these names.
    pub(crate) fn add(&mut self, (v4, v6): (Ipv4Addr, Ipv6Addr), names: Vec<String>) {
        self.hosts.push((v4, v6, names));
    }

    /// Gives a name to a host that one of its names tells.
    ///
    /// # Errors
    /// [`Error::Wrong`] if there is no such host, or if the name is taken.
    pub(crate) fn give(&mut self, given: &GivenName) -> Result<(), Error> {
        let GivenName { name, host } = given;
        if self.of(name).is_some() {
            return Err(Error::Wrong(format!("the name `{name}` is that of a host already")));
        }
        let is_host = |(_, _, names): &&mut (_, _, Vec<String>)| names.iter().any(|own| own.eq_ignore_ascii_case(host));
        let Some((_, _, names)) = self.hosts.iter_mut().find(is_host) else {
            let all: Vec<&str> = self.hosts.iter().flat_map(|(_, _, names)| names).map(String::as_str).collect();
            return Err(Error::Wrong(format!(
                "name `{name}`: there is no host `{host}`; the hosts are {}",
                all.join(", ")
            )));
        };
        names.push(name.clone());
        Ok(())
    }

    /// The /etc/hosts of every host.
    pub(crate) fn hosts_file(&self) -> String {
        let mut file = String::from("127.0.0.1 localhost\n::1 localhost\n");
        for (v4, v6, names) in &self.hosts {
            let names = names.join(" ");
            let _ = writeln!(file, "{v4} {names}\n{v6} {names}");
        }
        file
    }

    fn of(&self, name: &str) -> Option<(Ipv4Addr, Ipv6Addr)> {
        let has = |(_, _, names): &&(_, _, Vec<String>)| names.iter().any(|own| own.eq_ignore_ascii_case(name));
        self.hosts.iter().find(has).map(|(v4, v6, _)| (*v4, *v6))
    }

    /// Returns the answer to a query; `None` to what is none.
    fn answer(&self, query: &[u8]) -> Option<Vec<u8>> {
        let query = Message::from_octets(query).ok()?;
        if query.header().qr() {
            return None;
        }
        let question = query.sole_question().ok()?;
        let name = question.qname().to_string();
        let known = self.of(name.trim_end_matches('.')).filter(|_| question.qclass() == Class::IN);
        let rcode = if known.is_some() { Rcode::NOERROR } else { Rcode::NXDOMAIN };
        let mut answer = MessageBuilder::new_vec().start_answer(&query, rcode).ok()?;
        answer.header_mut().set_aa(true);
        answer.header_mut().set_ra(true);
        if let Some((v4, v6)) = known {
            let all = question.qtype() == Rtype::ANY;
            if all || question.qtype() == Rtype::A {
                answer.push((question.qname(), TTL, A::new(v4))).ok()?;
            }
            if all || question.qtype() == Rtype::AAAA {
                answer.push((question.qname(), TTL, Aaaa::new(v6))).ok()?;
            }
        }
        Some(answer.finish())
    }
}

/// A name server in all hosts, in a thread of its own. Dropping it ends it.
#[derive(Debug)]
pub(crate) struct NameServer {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl NameServer {
    /// Opens the port at which it answers in the host that this thread is in.
    pub(crate) fn open() -> io::Result<UdpSocket> {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, PORT))?;
        socket.set_nonblocking(true)?;
        Ok(socket)
    }

    /// Answers at these ports, one of each host.
    pub(crate) fn start(sockets: Vec<UdpSocket>, names: Names) -> Result<NameServer, Error> {
        let stop = Arc::new(AtomicBool::new(false));
        let (stopped, thread) = (Arc::clone(&stop), std::thread::Builder::new().name("names".to_owned()));
        let serve = move || {
            while !stopped.load(Ordering::Relaxed) {
                serve(&sockets, &names);
            }
        };
        let thread = thread.spawn(serve).map_err(Error::system("start the name server"))?;
        Ok(NameServer { stop, thread: Some(thread) })
    }
}

impl Drop for NameServer {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // A panic there has been printed, and ends nothing else.
            let _ = thread.join();
        }
    }
}

/// Waits for queries, and answers those that are there.
fn serve(sockets: &[UdpSocket], names: &Names) {
    let mut waiting: Vec<PollFd<'_>> =
        sockets.iter().map(|socket| PollFd::new(socket.as_fd(), PollFlags::POLLIN)).collect();
    if poll(&mut waiting, PollTimeout::from(LOOKS_MS)).is_err() {
        return;
    }
    let mut query = [0; LONGEST];
    for (socket, waiting) in sockets.iter().zip(&waiting) {
        if !waiting.any().unwrap_or(false) {
            continue;
        }
        // One of each, so that a flood in one host keeps no other waiting.
        if let Ok((length, from)) = socket.recv_from(&mut query)
            && let Some(answer) = names.answer(&query[..length])
        {
            // Who has gone does not want it.
            let _ = socket.send_to(&answer, from);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bolero::check;
    use domain::base::Name;

    fn names() -> Names {
        let mut names = Names::default();
        let address = |n: u8| (Ipv4Addr::new(10, 0, 0, n), Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, n.into()));
        names.add(address(1), vec!["server".to_owned()]);
        names.add(address(2), vec!["phone".to_owned(), "ue".to_owned()]);
        names
    }

    fn asked(names: &Names, name: &str, kind: Rtype) -> (Rcode, Vec<String>) {
        let mut query = MessageBuilder::new_vec().question();
        query.push((name.parse::<Name<Vec<u8>>>().unwrap(), kind)).unwrap();
        let answer = names.answer(&query.finish()).expect("an answer");
        let answer = Message::from_octets(answer).unwrap();
        let records = answer.answer().unwrap().limit_to::<domain::rdata::AllRecordData<_, _>>();
        (answer.header().rcode(), records.map(|record| record.unwrap().data().to_string()).collect())
    }

    #[test]
    fn names_have_their_addresses_and_others_do_not_exist() {
        let mut names = names();
        names.give(&GivenName::parse("api.example.com=Server").unwrap()).unwrap();
        let found = |address: &str| (Rcode::NOERROR, vec![address.to_owned()]);
        assert_eq!(asked(&names, "server", Rtype::A), found("10.0.0.1"));
        assert_eq!(asked(&names, "API.example.com.", Rtype::A), found("10.0.0.1"));
        assert_eq!(asked(&names, "ue", Rtype::AAAA), found("fd00::2"));
        assert_eq!(asked(&names, "ue", Rtype::MX), (Rcode::NOERROR, vec![]));
        assert_eq!(asked(&names, "example.com", Rtype::A), (Rcode::NXDOMAIN, vec![]));
        assert!(names.hosts_file().contains("10.0.0.1 server api.example.com\n"));
    }

    #[test]
    fn a_name_that_is_none_or_of_nobody_is_refused() {
        for text in ["server", "=server", "a b=server", "a..b=server", "a=", "-", &format!("{}=ue", "a".repeat(64))] {
            assert!(GivenName::parse(text).unwrap_err().contains("such as api.example.com=server"), "{text}");
        }
        let refused = |text: &str| names().give(&GivenName::parse(text).unwrap()).unwrap_err().to_string();
        assert_eq!(refused("x=tablet"), "name `x`: there is no host `tablet`; the hosts are server, phone, ue");
        assert_eq!(refused("UE=server"), "the name `UE` is that of a host already");
    }

    #[test]
    fn any_bytes_are_a_query_or_none() {
        let names = names();
        check!().for_each(|bytes: &[u8]| {
            let _ = names.answer(&bytes[..bytes.len().min(LONGEST)]);
        });
    }
}
