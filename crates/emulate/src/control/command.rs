//! What may be said to a running emulation: words with spaces between them; a name that has spaces stands in quotes.

use units::Rate;

/// Least and most SINR in dB, as of recorded channels.
const SINR_DB: core::ops::RangeInclusive<f64> = -100.0..=100.0;
/// Highest rate, as of links in scenarios.
const MAX_RATE: Rate = Rate::from_mbps(10_000_000);
/// Most of what was said that an error repeats, in characters.
const REPEATED: usize = 40;

/// A command. Names are as they were written: whoever carries it out knows what there is.
#[derive(Clone, Debug, PartialEq)]
pub enum Command {
    /// From now on a UE hears its cell with this mean SINR.
    Sinr {
        /// The UE.
        ue: String,
        /// In dB; `None` goes back to the scenario's channel.
        db: Option<f64>,
    },
    /// Hand a UE over.
    Handover {
        /// The UE.
        ue: String,
        /// To this cell.
        cell: String,
    },
    /// UEs of other cells hear a cell on this share of its resource blocks.
    Load {
        /// The cell.
        cell: String,
        /// 0 to 1.
        share: f32,
    },
    /// Give a link another rate.
    Rate {
        /// The link.
        link: String,
        /// The rate; zero is an outage.
        rate: Rate,
    },
    /// Say how things are, as JSON.
    Status,
    /// End the emulation.
    Stop,
    /// Say what can be said.
    Help,
}

/// How each command is written, with an example.
const USAGE: [(&str, &str); 7] = [
    ("sinr UE DB|off", "sinr phone 12.5"),
    ("handover UE CELL", "handover phone cell-2"),
    ("load CELL SHARE", "load cell-2 0.5"),
    ("rate LINK RATE", "rate bottleneck 10 Mbit/s"),
    ("status", "status"),
    ("stop", "stop"),
    ("help", "help"),
];

impl Command {
    /// Reads a line without its end. The error says what would be right.
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
            ("load", [cell, share]) => Ok(Command::Load { cell: named(cell)?, share: load(share)? }),
            // An amount may have a space before its unit.
            ("rate", [link, amount @ ..]) if !amount.is_empty() => {
                Ok(Command::Rate { link: named(link)?, rate: rate(&amount.join(" "))? })
            }
            ("status", []) => Ok(Command::Status),
            ("stop", []) => Ok(Command::Stop),
            ("help", []) => Ok(Command::Help),
            _ => Err(format!("`{name}` is written `{usage}`, as in `{example}`")),
        }
    }

    /// How all commands are written.
    pub fn help() -> String {
        known()
    }
}

/// One line of `words`, from which [`Command::parse`] takes the same words.
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

fn load(text: &str) -> Result<f32, String> {
    let share = text.parse().ok().filter(|share| (0.0..=1.0).contains(share));
    share.ok_or_else(|| format!("`{}` is no load: a share from 0 to 1", short(text)))
}

fn rate(text: &str) -> Result<Rate, String> {
    let rate: Rate = short(text).parse().map_err(|e: units::ParseUnitError| e.to_string())?;
    if rate > MAX_RATE { Err(format!("{rate} is out of range: at most {MAX_RATE}")) } else { Ok(rate) }
}

/// The beginning of `text`.
fn short(text: &str) -> &str {
    text.char_indices().nth(REPEATED).map_or(text, |(end, _)| &text[..end])
}
