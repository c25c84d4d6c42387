//! The commands of the control socket: words separated by spaces; a name with spaces is quoted.

use std::str::FromStr;
use units::{Rate, Span};

/// Lowest and highest SINR in dB, as in recorded channels.
const SINR_DB: core::ops::RangeInclusive<f64> = -100.0..=100.0;
/// Longest outage.
const LONGEST_OUTAGE: Span = Span::from_secs(86_400);
/// Highest rate, as for links in scenarios.
const MAX_RATE: Rate = Rate::from_mbps(10_000_000);
/// Most characters of the input that an error repeats.
const REPEATED: usize = 40;

/// A command. Names are unchecked; the engine, which knows the network, checks them.
#[derive(Clone, Debug, PartialEq)]
pub enum Command {
    /// Set the mean SINR at which a UE receives its cell.
    Sinr {
        /// The UE.
        ue: String,
        /// In dB; `None` restores the scenario's channel.
        db: Option<f64>,
    },
    /// Hand a UE over.
    Handover {
        /// The UE.
        ue: String,
        /// The target cell.
        cell: String,
    },
    /// Set the share of its resource blocks on which a cell interferes with others.
    Load {
        /// The cell.
        cell: String,
        /// 0 to 1.
        share: f32,
    },
    /// Change the rate of a link.
    Rate {
        /// The link.
        link: String,
        /// The rate; at zero (`off`), packets wait.
        rate: Rate,
    },
    /// Stop the service of links for a time.
    Outage {
        /// The link; all links if there is none.
        link: Option<String>,
        /// For how long.
        span: Span,
    },
    /// Set the share of packets that a link loses.
    Loss {
        /// The link.
        link: String,
        /// 0 to 1; each packet is lost independently of the others.
        share: f64,
    },
    /// Report the state as JSON.
    Status,
    /// End the emulation.
    Stop,
    /// List the commands.
    Help,
}

/// The syntax of each command, with an example.
const USAGE: [(&str, &str); 9] = [
    ("sinr UE DB|off", "sinr phone 12.5"),
    ("handover UE CELL", "handover phone cell-2"),
    ("load CELL SHARE", "load cell-2 0.5"),
    ("rate LINK RATE|off", "rate bottleneck 10 Mbit/s"),
    ("outage [LINK] TIME", "outage 10 s"),
    ("loss LINK SHARE", "loss bottleneck 0.01"),
    ("status", "status"),
    ("stop", "stop"),
    ("help", "help"),
];

impl Command {
    /// Parses a line without its end.
    ///
    /// # Errors
    /// A message with what would be valid.
    pub fn parse(line: &str) -> Result<Command, String> {
        let words = words(line)?;
        let Some((&name, rest)) = words.split_first() else {
            return Err(format!("a command is needed: {}", known()));
        };
        let right = USAGE.iter().find(|(usage, _)| usage.split(' ').next() == Some(name));
        let Some((usage, example)) = right else {
            return Err(format!("there is no command `{}`; known: {}", short(name), known()));
        };
        match (name, rest) {
            ("sinr", [ue, db]) => Ok(Command::Sinr { ue: named(ue)?, db: sinr(db)? }),
            ("handover", [ue, cell]) => Ok(Command::Handover { ue: named(ue)?, cell: named(cell)? }),
            ("load", [cell, share]) => Ok(Command::Load { cell: named(cell)?, share: shared("load", share)? }),
            // An amount may have a space before its unit.
            ("rate", [link, amount @ ..]) if !amount.is_empty() => {
                Ok(Command::Rate { link: named(link)?, rate: rate(&amount.join(" "))? })
            }
            ("outage", [_, ..]) => outage(rest),
            ("loss", [link, share]) => Ok(Command::Loss { link: named(link)?, share: shared("loss", share)? }),
            ("status", []) => Ok(Command::Status),
            ("stop", []) => Ok(Command::Stop),
            ("help", []) => Ok(Command::Help),
            _ => Err(format!("`{name}` is written `{usage}`, as in `{example}`")),
        }
    }

    /// Returns the syntax of all commands.
    pub fn help() -> String {
        known()
    }
}

/// Joins `words` to a line that [`Command::parse`] splits into the same words.
pub fn line<'a>(words: impl IntoIterator<Item = &'a str>) -> String {
    let quoted = |word: &str| {
        let plain = !word.is_empty() && !word.contains(char::is_whitespace);
        if plain { word.to_owned() } else { format!("\"{word}\"") }
    };
    words.into_iter().map(quoted).collect::<Vec<_>>().join(" ")
}

fn words(line: &str) -> Result<Vec<&str>, String> {
    let mut words = Vec::new();
    let mut rest = line.trim_start();
    while !rest.is_empty() {
        let (word, after) = match rest.strip_prefix('"') {
            Some(quoted) => quoted.split_once('"').ok_or("a `\"` is missing at the end of a name")?,
            None => rest.split_at(rest.find(char::is_whitespace).unwrap_or(rest.len())),
        };
        words.push(word);
        rest = after.trim_start();
    }
    Ok(words)
}

fn known() -> String {
    USAGE.map(|(usage, _)| usage).join(", ")
}

fn named(name: &str) -> Result<String, String> {
    if name.is_empty() { Err("a name is empty".to_owned()) } else { Ok(name.to_owned()) }
}

fn sinr(text: &str) -> Result<Option<f64>, String> {
    if text == "off" {
        return Ok(None);
    }
    let db = text.parse().ok().filter(|db| SINR_DB.contains(db));
    db.map(Some).ok_or_else(|| {
        format!("`{}` is no SINR: a number from {} to {} (dB), or `off`", short(text), SINR_DB.start(), SINR_DB.end())
    })
}

/// Reads a share, which says how much of `what` there is.
fn shared<T: FromStr + PartialOrd + From<u8>>(what: &str, text: &str) -> Result<T, String> {
    let share = text.parse().ok().filter(|share| (T::from(0)..=T::from(1)).contains(share));
    share.ok_or_else(|| format!("`{}` is no {what}: a share from 0 to 1", short(text)))
}

/// Reads the time of an outage, and the link before it if there is one. An amount may have a space before its unit.
fn outage(words: &[&str]) -> Result<Command, String> {
    let is_time = |words: &[&str]| words.join(" ").parse::<Span>().is_ok();
    let (link, time) = match words {
        [_] => (None, words),
        _ if is_time(words) => (None, words),
        [link, time @ ..] => (Some(named(link)?), time),
        [] => unreachable!("a time was given"),
    };
    let time = time.join(" ");
    let span: Span = short(&time).parse().map_err(|e: units::ParseUnitError| e.to_string())?;
    if span == Span::ZERO || span > LONGEST_OUTAGE {
        return Err(format!("{span} is out of range: more than 0 and at most {LONGEST_OUTAGE}"));
    }
    Ok(Command::Outage { link, span })
}

fn rate(text: &str) -> Result<Rate, String> {
    if text == "off" {
        return Ok(Rate::default());
    }
    let rate: Rate = short(text).parse().map_err(|e: units::ParseUnitError| e.to_string())?;
    if rate > MAX_RATE { Err(format!("{rate} is out of range: at most {MAX_RATE}")) } else { Ok(rate) }
}

/// Returns the beginning of `text`.
fn short(text: &str) -> &str {
    text.char_indices().nth(REPEATED).map_or(text, |(end, _)| &text[..end])
}
