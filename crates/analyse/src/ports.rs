//! Names of ports as `ss` prints them without `-n`.
//!
//! Sources: IANA's Service Name and Transport Protocol Port Number Registry, and `/etc/services` of Debian 12 (package netbase) and
//! Fedora 40 (package setup), which decide what ss prints. Names that stand for different ports in these are left out.

/// The ports of TCP with these names, in the order of the names.
const PORTS: [(&str, u16); 92] = [
    ("afpovertcp", 548),
    ("amqp", 5672),
    ("amqps", 5671),
    ("auth", 113),
    ("bgp", 179),
    ("chargen", 19),
    ("commplex-link", 5001),
    ("commplex-main", 5000),
    ("cvspserver", 2401),
    ("daytime", 13),
    ("discard", 9),
    ("distcc", 3632),
    ("domain", 53),
    ("domain-s", 853),
    ("echo", 7),
    ("epmap", 135),
    ("epmd", 4369),
    ("exec", 512),
    ("finger", 79),
    ("ftp", 21),
    ("ftp-data", 20),
    ("ftps", 990),
    ("ftps-data", 989),
    ("git", 9418),
    ("gopher", 70),
    ("http", 80),
    ("https", 443),
    ("imap", 143),
    ("imap2", 143),
    ("imaps", 993),
    ("ipp", 631),
    ("ircd", 6667),
    ("iscsi-target", 3260),
    ("iso-tsap", 102),
    ("kerberos", 88),
    ("kerberos-adm", 749),
    ("kpasswd", 464),
    ("ldap", 389),
    ("ldaps", 636),
    ("login", 513),
    ("microsoft-ds", 445),
    ("mqtt", 1883),
    ("ms-sql-s", 1433),
    ("ms-wbt-server", 3389),
    ("munin", 4949),
    ("mysql", 3306),
    ("nbd", 10_809),
    ("netbios-ns", 137),
    ("netbios-ssn", 139),
    ("netconf-ssh", 830),
    ("nfs", 2049),
    ("nntp", 119),
    ("nntps", 563),
    ("nrpe", 5666),
    ("openvpn", 1194),
    ("pcsync-https", 8443),
    ("pop3", 110),
    ("pop3s", 995),
    ("postgres", 5432),
    ("postgresql", 5432),
    ("printer", 515),
    ("qotd", 17),
    ("radius", 1812),
    ("radius-acct", 1813),
    ("redis", 6379),
    ("rsync", 873),
    ("rtsp", 554),
    ("secure-mqtt", 8883),
    ("shell", 514),
    ("sieve", 4190),
    ("sip", 5060),
    ("sip-tls", 5061),
    ("sips", 5061),
    ("smtp", 25),
    ("smtps", 465),
    ("snmp", 161),
    ("socks", 1080),
    ("ssh", 22),
    ("submission", 587),
    ("submissions", 465),
    ("sunrpc", 111),
    ("svn", 3690),
    ("syslog-tls", 6514),
    ("tacacs", 49),
    ("targus-getdata1", 5201),
    ("telnet", 23),
    ("telnets", 992),
    ("time", 37),
    ("webcache", 8080),
    ("whois", 43),
    ("xmpp-client", 5222),
    ("xmpp-server", 5269),
];

/// The port of a number or a name that stands for no other.
pub(crate) fn port(text: &str) -> Option<u16> {
    if let Ok(number) = text.parse() {
        return Some(number);
    }
    PORTS.binary_search_by_key(&text, |(name, _)| name).ok().map(|at| PORTS[at].1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_in_order_and_numbers_are_themselves() {
        assert!(PORTS.is_sorted_by(|one, next| one.0 < next.0));
        assert_eq!(
            (port("https"), port("ssh"), port("5201"), port("xmpp-server")),
            (Some(443), Some(22), Some(5201), Some(5269))
        );
        // Of 591 and 8080.
        assert_eq!((port("http-alt"), port("65536"), port("")), (None, None, None));
    }
}
