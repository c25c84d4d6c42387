//! The lines of the protocol, without their `\n`.

use std::fmt;
use std::str::FromStr;
use units::Span;

/// The version of the protocol in a greeting.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version {
    /// The first number.
    pub major: u16,
    /// The second number.
    pub minor: u16,
    /// The third number, 0 if there is none.
    pub patch: u16,
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)
    }
}

impl FromStr for Version {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Version, Invalid> {
        let mut parts = text.split('.');
        let mut part = || parts.next().map(number).transpose();
        let version = (part()?, part()?, part()?);
        match (version, parts.next()) {
            ((Some(major), Some(minor), patch), None) => Ok(Version { major, minor, patch: patch.unwrap_or(0) }),
            _ => Err(Invalid),
        }
    }
}

/// A line that is not part of the grammar.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the line is not part of the protocol")]
pub struct Invalid;

/// Parses digits; signs and spaces are not digits.
fn number<T: FromStr>(text: &str) -> Result<T, Invalid> {
    if text.bytes().all(|byte| byte.is_ascii_digit()) { text.parse().map_err(|_| Invalid) } else { Err(Invalid) }
}

/// A line of the client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// Presents a token.
    Token(String),
    /// Requests a number of chunks, and sets the size of chunks if there is one.
    GetChunks(u32, Option<usize>),
    /// Requests chunks for a number of seconds, and sets the size of chunks if there is one.
    GetTime(u32, Option<usize>),
    /// Announces chunks, and wants reports; sets the size of chunks if there is one.
    Put(Option<usize>),
    /// Announces chunks, and wants no reports; sets the size of chunks if there is one.
    PutNoResult(Option<usize>),
    /// Asks for `PONG`.
    Ping,
    /// Confirms `PONG`, or all chunks.
    Ok,
    /// Reports a failure.
    Err,
    /// Ends the connection.
    Quit,
}

impl FromStr for Command {
    type Err = Invalid;

    fn from_str(line: &str) -> Result<Command, Invalid> {
        let mut words = line.split(' ').filter(|word| !word.is_empty());
        let verb = words.next().ok_or(Invalid)?;
        let (first, second, rest) = (words.next(), words.next(), words.next());
        let chunk = |word: Option<&str>| word.map(number).transpose();
        let command = match (verb, first, second) {
            ("TOKEN", Some(token), None) => Command::Token(token.to_owned()),
            ("GETCHUNKS", Some(count), size) => Command::GetChunks(number(count)?, chunk(size)?),
            ("GETTIME", Some(seconds), size) => Command::GetTime(number(seconds)?, chunk(size)?),
            ("PUT", size, None) => Command::Put(chunk(size)?),
            ("PUTNORESULT", size, None) => Command::PutNoResult(chunk(size)?),
            ("PING", None, None) => Command::Ping,
            ("OK", None, None) => Command::Ok,
            ("ERR", _, _) => return Ok(Command::Err),
            ("QUIT", None, None) => Command::Quit,
            _ => return Err(Invalid),
        };
        if rest.is_none() { Ok(command) } else { Err(Invalid) }
    }
}

impl fmt::Display for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let size = match self {
            Command::GetChunks(_, size)
            | Command::GetTime(_, size)
            | Command::Put(size)
            | Command::PutNoResult(size) => *size,
            _ => None,
        };
        match self {
            Command::Token(token) => write!(f, "TOKEN {token}")?,
            Command::GetChunks(count, _) => write!(f, "GETCHUNKS {count}")?,
            Command::GetTime(seconds, _) => write!(f, "GETTIME {seconds}")?,
            Command::Put(_) => f.write_str("PUT")?,
            Command::PutNoResult(_) => f.write_str("PUTNORESULT")?,
            Command::Ping => f.write_str("PING")?,
            Command::Ok => f.write_str("OK")?,
            Command::Err => f.write_str("ERR")?,
            Command::Quit => f.write_str("QUIT")?,
        }
        size.map_or(Ok(()), |size| write!(f, " {size}"))
    }
}

/// A line of the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// The greeting.
    Greeting(Version),
    /// The commands that the server takes now, in any order.
    Accept(Vec<String>),
    /// The request is accepted.
    Ok,
    /// The request is refused; the words say why, if there are any. The specification has none.
    Err(String),
    /// The size of chunks, and the range in which a command may set it, in bytes.
    ChunkSize {
        /// The size.
        size: usize,
        /// The smallest size.
        min: usize,
        /// The largest size.
        max: usize,
    },
    /// The answer to `PING`.
    Pong,
    /// Time since the start.
    Time(Span),
    /// Time since the start and the bytes received by then.
    TimeBytes(Span, u64),
    /// The end.
    Bye,
}

impl FromStr for Reply {
    type Err = Invalid;

    fn from_str(line: &str) -> Result<Reply, Invalid> {
        if let Some(version) = line.strip_prefix("RMBTv") {
            return Ok(Reply::Greeting(version.trim().parse()?));
        }
        let mut words = line.split(' ').filter(|word| !word.is_empty());
        let verb = words.next().ok_or(Invalid)?;
        if verb == "ACCEPT" {
            return Ok(Reply::Accept(words.map(ToOwned::to_owned).collect()));
        }
        if verb == "ERR" {
            return Ok(Reply::Err(words.collect::<Vec<_>>().join(" ")));
        }
        let words: Vec<&str> = words.collect();
        match (verb, &words[..]) {
            ("OK", []) => Ok(Reply::Ok),
            ("PONG", []) => Ok(Reply::Pong),
            ("BYE", []) => Ok(Reply::Bye),
            ("CHUNKSIZE", [size]) => {
                let size = number(size)?;
                Ok(Reply::ChunkSize { size, min: size, max: size })
            }
            ("CHUNKSIZE", [size, min, max]) => {
                let (size, min, max) = (number(size)?, number(min)?, number(max)?);
                if min <= size && size <= max { Ok(Reply::ChunkSize { size, min, max }) } else { Err(Invalid) }
            }
            ("TIME", [time]) => Ok(Reply::Time(Span::from_nanos(number(time)?))),
            ("TIME", [time, "BYTES", bytes]) => Ok(Reply::TimeBytes(Span::from_nanos(number(time)?), number(bytes)?)),
            _ => Err(Invalid),
        }
    }
}

impl fmt::Display for Reply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reply::Greeting(version) => write!(f, "RMBTv{version}"),
            Reply::Accept(commands) => {
                f.write_str("ACCEPT")?;
                commands.iter().try_for_each(|command| write!(f, " {command}"))
            }
            Reply::Ok => f.write_str("OK"),
            Reply::Err(why) if why.is_empty() => f.write_str("ERR"),
            Reply::Err(why) => write!(f, "ERR {why}"),
            Reply::ChunkSize { size, min, max } => write!(f, "CHUNKSIZE {size} {min} {max}"),
            Reply::Pong => f.write_str("PONG"),
            Reply::Time(time) => write!(f, "TIME {}", time.as_nanos()),
            Reply::TimeBytes(time, bytes) => write!(f, "TIME {} BYTES {bytes}", time.as_nanos()),
            Reply::Bye => f.write_str("BYE"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_line_of_the_specification_is_read_and_written_alike() {
        for line in [
            "TOKEN 629786f4-1111-2222-3333-444444444444_1_aa=",
            "GETCHUNKS 1",
            "GETCHUNKS 4 4096",
            "GETTIME 7 16384",
            "PUT",
            "PUT 131072",
            "PUTNORESULT 4096",
            "PING",
            "OK",
            "QUIT",
            "ERR",
        ] {
            assert_eq!(line.parse::<Command>().map(|command| command.to_string()), Ok(line.to_owned()));
        }
        for line in [
            "RMBTv1.3.4",
            "ACCEPT TOKEN QUIT",
            "ACCEPT GETCHUNKS GETTIME PUT PUTNORESULT PING QUIT",
            "CHUNKSIZE 4096 4096 4194304",
            "PONG",
            "TIME 2888162",
            "TIME 825324442 BYTES 1441792",
            "OK",
            "ERR",
            "ERR busy, retry after 5 s",
            "BYE",
        ] {
            assert_eq!(line.parse::<Reply>().map(|reply| reply.to_string()), Ok(line.to_owned()));
        }
    }

    #[test]
    fn what_is_close_to_a_line_is_none() {
        for line in [
            "",
            " ",
            "ping",
            "PING 1",
            "TOKEN",
            "TOKEN a b",
            "GETTIME",
            "GETTIME -1",
            "GETTIME +1",
            "GETTIME 1 2 3",
            "PUT x",
            "GETCHUNKS 99999999999",
            "QUIT now",
            "TIME 5",
        ] {
            assert_eq!(line.parse::<Command>(), Err(Invalid), "{line}");
        }
        for line in [
            "",
            "RMBTv1",
            "RMBTv1.2.3.4",
            "RMBTv70000.1",
            "CHUNKSIZE",
            "CHUNKSIZE 1 2",
            "CHUNKSIZE 4096 8192 9000",
            "TIME",
            "TIME -1",
            "TIME 1 BYTE 2",
            "TIME 1 BYTES",
            "PUT",
        ] {
            assert_eq!(line.parse::<Reply>(), Err(Invalid), "{line}");
        }
    }

    #[test]
    fn an_old_server_names_one_chunk_size_and_two_numbers_of_version() {
        assert_eq!("CHUNKSIZE 8192".parse(), Ok(Reply::ChunkSize { size: 8192, min: 8192, max: 8192 }));
        assert_eq!("RMBTv0.3".parse(), Ok(Reply::Greeting(Version { major: 0, minor: 3, patch: 0 })));
    }
}
