//! Units in the names of columns: `Time (ms)`, `timestampMillis`, `rate_MBps`, `throughput_bytes_per_s`, `rx_kbytes`.
//!
//! A name is split into words at everything that is not a letter or a digit, and within a word at capital letters
//! (`timeMs`, `downloadMbps`) or behind a known word (`timems`, `rxbytes`). A unit must be a whole word, or a whole end of
//! one: of `linkbps`, nobody can tell whether it is in bit/s or kbit/s. What is not recognised has no unit; nothing has one
//! by default.
//!
//! Cases matter where they do among SI units: `MBps` and `MB/s` are bytes, `Mbps` and `Mb/s` bits, `KiB` is 1024 bytes and
//! `kB` 1000. `MBPS` is an acronym, mostly of bits per second, as which it is taken in a name of a column, with a note; `mb/s` and `MB/S` may be
//! either.

/// The unit of a column of rates, or of amounts of data.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Unit {
    /// Bits per second in a unit, or bits in a unit of an amount.
    pub bits: f64,
    /// Whether it is a rate; otherwise it is an amount of data.
    pub is_rate: bool,
}

impl Unit {
    /// bit/s.
    pub const BPS: Unit = Unit { bits: 1.0, is_rate: true };
    /// 10^3 bit/s.
    pub const KBPS: Unit = Unit { bits: 1e3, is_rate: true };
    /// 10^6 bit/s.
    pub const MBPS: Unit = Unit { bits: 1e6, is_rate: true };
    /// Bytes.
    pub const BYTES: Unit = Unit { bits: 8.0, is_rate: false };

    /// The units that an error names.
    pub const VALID: &'static str = "bps, kbps, Mbps, Gbps, B/s, kB/s, MB/s, KiB/s or MiB/s for a rate; bytes, kB, MB, KiB, MiB, kbit or Mbit for an amount";

    /// Returns the unit with this name, such as `kbps`, `Mbit/s`, `MB/s` or `bytes`.
    pub fn parse(name: &str) -> Option<Unit> {
        let words = words(name);
        let (first, behind) = words.split_first()?;
        let unit = whole(first.text, true, behind.first().is_some_and(|next| next.is_per))?;
        let (unit, taken) = divided(unit, behind)?;
        (taken == behind.len() && !is_shouted(first, behind) && !is_acronym(first.text)).then_some(unit)
    }
}

/// A word of a name.
#[derive(Clone, Debug, PartialEq)]
struct Word<'a> {
    text: &'a str,
    /// Whether it is within brackets or behind a slash, where units are.
    is_set_off: bool,
    /// Whether it is directly behind a slash.
    is_per: bool,
}

/// Splits a name at everything but letters, digits and the sign of what could not be decoded.
fn words(name: &str) -> Vec<Word<'_>> {
    let mut all = Vec::new();
    let (mut depth, mut slash, mut begin) = (0u32, false, None::<usize>);
    let mut starts_behind_slash = false;
    for (at, letter) in name.char_indices().chain([(name.len(), ' ')]) {
        if letter.is_alphanumeric() || letter == char::REPLACEMENT_CHARACTER {
            if begin.is_none() {
                (begin, starts_behind_slash) = (Some(at), slash);
            }
            continue;
        }
        if let Some(begin) = begin.take() {
            let is_set_off = depth > 0 || starts_behind_slash;
            all.push(Word { text: &name[begin..at], is_set_off, is_per: starts_behind_slash });
            slash = false;
        }
        match letter {
            '(' | '[' | '{' | '<' => depth += 1,
            ')' | ']' | '}' | '>' => depth = depth.saturating_sub(1),
            '/' => slash = true,
            _ => {}
        }
    }
    all
}

/// The parts of a word before and from each capital letter behind a small one or a digit; longest rest first.
fn humps(word: &str) -> impl Iterator<Item = (&str, &str)> {
    let mut before = ' ';
    word.char_indices().filter_map(move |(at, letter)| {
        let turns = (before.is_lowercase() || before.is_ascii_digit()) && letter.is_uppercase();
        before = letter;
        turns.then(|| word.split_at(at))
    })
}

/// Words in front of a unit without a boundary (`rxbytes`, `dlmbps`).
const LEADING: [&str; 39] = [
    "dl",
    "ul",
    "rx",
    "tx",
    "down",
    "up",
    "download",
    "upload",
    "downlink",
    "uplink",
    "throughput",
    "rate",
    "bitrate",
    "datarate",
    "speed",
    "goodput",
    "bandwidth",
    "bw",
    "tput",
    "thr",
    "thput",
    "recv",
    "received",
    "sent",
    "send",
    "in",
    "out",
    "net",
    "avg",
    "mean",
    "max",
    "data",
    "cell",
    "total",
    "tcp",
    "udp",
    "app",
    "phy",
    "mac",
];
/// Words that say that a column is a rate.
const RATES: [&str; 14] = [
    "rate",
    "bitrate",
    "datarate",
    "throughput",
    "goodput",
    "speed",
    "bandwidth",
    "bw",
    "tput",
    "thr",
    "thput",
    "capacity",
    "persec",
    "persecond",
];
/// Words that say that a column is a sum since the start.
const TOTALS: [&str; 9] =
    ["total", "totals", "cumulative", "cum", "cumul", "counter", "cumsum", "accumulated", "sofar"];

/// What the name of a column says of its rates.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Rate {
    Known(Unit),
    /// It is called a rate and has the unit of an amount, or it has several units.
    Contradictory,
}

/// What a name says of a column of rates or amounts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Named {
    /// `None` if the name has several units, or that of an amount for a rate.
    pub(crate) unit: Option<Unit>,
    /// Whether it is a sum since the start.
    pub(crate) is_total: bool,
    /// Whether the unit is an acronym such as `MBPS`, in which the `B` may be that of bits or of bytes.
    is_acronym: bool,
}

impl Named {
    /// What to say if its unit is used.
    pub(crate) fn note(&self, column: &str) -> Option<String> {
        let what = "in capitals is assumed to be in bits, not bytes, per second; otherwise, give --unit (kB/s, MB/s)";
        self.is_acronym.then(|| format!("the unit of column {column} {what}"))
    }
}

/// Returns the unit of a column of rates or amounts; `None` if its name has none.
pub(crate) fn rate(name: &str) -> Option<Named> {
    let words = words(name);
    let unit = match in_words(&words)? {
        Rate::Known(unit) => Some(unit),
        Rate::Contradictory => None,
    };
    let is_total = words.iter().any(|word| is_among(word.text, &TOTALS));
    let is_acronym = words.iter().any(|word| is_acronym(word.text));
    Some(Named { unit, is_total, is_acronym })
}

/// Whether a column is called a rate, or something divided by a time, in whatever unit.
pub(crate) fn is_called_rate(name: &str) -> bool {
    words(name).iter().any(|word| is_among(word.text, &RATES) || word.is_per && period(word.text).is_some())
}

/// Whether a word, or the words that its capital letters separate, is among `list`.
fn is_among(word: &str, list: &[&str]) -> bool {
    let is = |part: &str| list.iter().any(|one| part.eq_ignore_ascii_case(one));
    let mut rest = word;
    while let Some((first, after)) = humps(rest).next() {
        if is(first) {
            return true;
        }
        rest = after;
    }
    is(rest)
}

fn in_words(words: &[Word<'_>]) -> Option<Rate> {
    let mut found: Option<Unit> = None;
    let mut is_per_second = false;
    let mut at = 0;
    while at < words.len() {
        let word = &words[at];
        let next = words.get(at + 1);
        if word.text.eq_ignore_ascii_case("per")
            && let Some(seconds) = next.and_then(|next| period(next.text))
        {
            // `per_second_bytes`: the amount is elsewhere in the name.
            if seconds != 1.0 {
                return Some(Rate::Contradictory);
            }
            is_per_second = true;
            at += 2;
            continue;
        }
        let Some(amount) = amount(word.text, word.is_set_off, next.is_some_and(|next| next.is_per)) else {
            at += 1;
            continue;
        };
        if is_shouted(word, &words[at + 1..]) {
            return Some(Rate::Contradictory);
        }
        let (unit, taken) = divided(amount, &words[at + 1..])?;
        if found.is_some_and(|found| found != unit) {
            return Some(Rate::Contradictory);
        }
        found = Some(unit);
        at += 1 + taken;
    }
    let mut unit = found?;
    let says_rate = words.iter().any(|word| is_among(word.text, &RATES));
    let is_persec = words.iter().any(|word| is_among(word.text, &["persec", "persecond", "ps"]));
    if !unit.is_rate && (is_per_second || is_persec) {
        unit.is_rate = true;
    }
    Some(if says_rate && !unit.is_rate { Rate::Contradictory } else { Rate::Known(unit) })
}

/// Whether a unit is written as `MB/S`, where the capitals may be those of the whole name.
fn is_shouted(word: &Word<'_>, behind: &[Word<'_>]) -> bool {
    let is_capital = |text: &str| !text.contains(char::is_lowercase);
    let divides = |next: &Word<'_>| next.text == "PER" || period(next.text).is_some();
    word.text.ends_with('B')
        && is_capital(word.text)
        && behind.first().is_some_and(|next| divides(next) && is_capital(next.text))
}

/// Whether a word is or ends with a unit such as `MBPS`.
fn is_acronym(word: &str) -> bool {
    word.ends_with("BPS")
}

/// Divides a unit by the time that follows it (`/s`, `per_s`, `_sec`), and says how many words that took. `None` if it is
/// divided by something else.
fn divided(amount: Unit, behind: &[Word<'_>]) -> Option<(Unit, usize)> {
    if amount.is_rate {
        return Some((amount, 0));
    }
    let over = |seconds: f64| Unit { bits: amount.bits / seconds, is_rate: true };
    match behind {
        [word, ..] if word.is_per => Some((over(period(word.text)?), 1)),
        [per, word, ..] if per.text.eq_ignore_ascii_case("per") => Some((over(period(word.text)?), 2)),
        // `bytes_sec`, `kbit_s`. Milliseconds behind a unit may be another thing's.
        [word, ..] if period(word.text) == Some(1.0) => Some((over(1.0), 1)),
        _ => Some((amount, 0)),
    }
}

/// Seconds in a unit of time.
fn period(word: &str) -> Option<f64> {
    let is = |list: &[&str]| list.iter().any(|one| word.eq_ignore_ascii_case(one));
    match () {
        () if is(&["s", "sec", "secs", "second", "seconds"]) => Some(1.0),
        () if is(&[
            "ms",
            "msec",
            "msecs",
            "milli",
            "millis",
            "millisec",
            "millisecs",
            "millisecond",
            "milliseconds",
        ]) =>
        {
            Some(1e-3)
        }
        () if is(&["us", "usec", "usecs", "µs", "μs", "µsec", "μsec"])
            || is(&["micro", "micros", "microsec", "microsecs", "microsecond", "microseconds"]) =>
        {
            Some(1e-6)
        }
        () if is(&["ns", "nsec", "nsecs", "nano", "nanos", "nanosec", "nanosecs", "nanosecond", "nanoseconds"]) => {
            Some(1e-9)
        }
        () if is(&["min", "mins", "minute", "minutes"]) => Some(60.0),
        () if is(&["h", "hr", "hrs", "hour", "hours"]) => Some(3600.0),
        () => None,
    }
}

/// Returns the unit that a word is or ends with. `is_set_off` if it is where units are; `is_divided` if a slash follows.
fn amount(word: &str, is_set_off: bool, is_divided: bool) -> Option<Unit> {
    if let Some(unit) = whole(word, is_set_off, is_divided) {
        return Some(unit);
    }
    for (front, rest) in humps(word) {
        // Of `ratekBps`, the prefix may be lost.
        let may_be_prefix = front.ends_with(['k', 'm', 'g', 'i']) && rest.starts_with(['b', 'B']);
        if let Some(unit) = whole(rest, is_set_off, is_divided).filter(|_| !may_be_prefix || is_among(front, &LEADING))
        {
            return Some(unit);
        }
    }
    word.char_indices().skip(1).find_map(|(at, _)| {
        let (front, rest) = word.split_at(at);
        let unit = whole(rest, is_set_off, is_divided)?;
        LEADING.iter().any(|one| front.eq_ignore_ascii_case(one)).then_some(unit)
    })
}

/// The prefix that a unit's name begins with: its factor and the rest. Binary ones are IEC 80000-13.
fn prefixed(word: &str) -> impl Iterator<Item = (f64, &str, bool)> {
    const PREFIXES: [(&str, f64); 20] = [
        ("", 1.0),
        ("ki", 1024.0),
        ("mi", 1_048_576.0),
        ("gi", 1_073_741_824.0),
        ("ti", 1_099_511_627_776.0),
        ("k", 1e3),
        ("m", 1e6),
        ("g", 1e9),
        ("t", 1e12),
        ("kilo", 1e3),
        ("mega", 1e6),
        ("giga", 1e9),
        ("tera", 1e12),
        ("kibi", 1024.0),
        ("mebi", 1_048_576.0),
        ("gibi", 1_073_741_824.0),
        ("tebi", 1_099_511_627_776.0),
        ("hundred", 1e2),
        ("thousand", 1e3),
        ("million", 1e6),
    ];
    PREFIXES.iter().filter_map(move |(prefix, factor)| {
        let front = word.get(..prefix.len())?;
        let is_careless = prefix.len() <= 2 && matches!(front.as_bytes().first(), Some(b'm' | b'g' | b't'))
            || prefix.len() == 2 && front.as_bytes()[0] == b'k';
        front.eq_ignore_ascii_case(prefix).then(|| (*factor, &word[prefix.len()..], is_careless))
    })
}

/// Returns the unit that a whole word is.
fn whole(word: &str, is_set_off: bool, is_divided: bool) -> Option<Unit> {
    prefixed(word).find_map(|(factor, rest, is_careless)| {
        let has_prefix = rest.len() < word.len();
        let unit = |bits: f64, is_rate| Some(Unit { bits: bits * factor, is_rate });
        let lower = rest.to_ascii_lowercase();
        match lower.as_str() {
            "bit" | "bits" => return unit(1.0, false),
            "byte" | "bytes" | "octet" | "octets" => return unit(8.0, false),
            "bitps" | "bitsps" | "bitpersec" | "bitspersec" | "bitpersecond" | "bitspersecond" => {
                return unit(1.0, true);
            }
            "byteps" | "bytesps" | "bytespersec" | "bytepersec" | "bytespersecond" | "bytepersecond" => {
                return unit(8.0, true);
            }
            _ => {}
        }
        match rest {
            // `Bps` tells bytes from bits, `BPS` does not: [`is_acronym`].
            "Bps" => unit(8.0, true),
            "bps" | "BPS" => unit(1.0, true),
            // `MB`, `kB`, `KiB`; `B` alone only where a unit is expected. Of `MB/S`, the case tells nothing: [`is_shouted`].
            "B" if has_prefix && !is_careless || is_set_off || is_divided => unit(8.0, false),
            // `Mb/s`, `kb/s`: but of `mb/s`, the case tells nothing, and `kb` alone is often in bytes.
            "b" if is_divided && !is_careless => unit(1.0, false),
            _ => None,
        }
    })
}

/// Words of a name of a time that say nothing of its unit.
const OF_TIMES: [&str; 62] = [
    "time",
    "times",
    "timestamp",
    "timestamps",
    "stamp",
    "ts",
    "t",
    "date",
    "datetime",
    "utc",
    "gmt",
    "local",
    "unix",
    "posix",
    "epoch",
    "rel",
    "relative",
    "abs",
    "absolute",
    "elapsed",
    "since",
    "start",
    "started",
    "begin",
    "wall",
    "clock",
    "device",
    "gps",
    "system",
    "sys",
    "at",
    "of",
    "day",
    "log",
    "logged",
    "sample",
    "rx",
    "tx",
    "recv",
    "arrival",
    "arrivals",
    "packet",
    "test",
    "x",
    "measurement",
    "measurements",
    "event",
    "the",
    "run",
    "sim",
    "simulation",
    "iso",
    "realtime",
    "monotonic",
    "boot",
    "frame",
    "server",
    "client",
    "ue",
    "host",
    "capture",
    "report",
];

/// What the name of a column of times says of its unit.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum TimeName {
    /// Seconds in a unit.
    Known(f64),
    /// It has none.
    Bare,
    /// It has one that is not known, or several.
    Unknown,
}

/// Returns the unit of a column of times.
pub(crate) fn time(name: &str) -> TimeName {
    let mut found = None;
    for word in words(name) {
        match time_word(word.text) {
            TimeName::Known(seconds) if found.is_none_or(|found| found == seconds) => found = Some(seconds),
            TimeName::Bare => {}
            _ => return TimeName::Unknown,
        }
    }
    found.map_or(TimeName::Bare, TimeName::Known)
}

fn time_word(word: &str) -> TimeName {
    if let Some(seconds) = period(word) {
        return TimeName::Known(seconds);
    }
    let says_nothing = |word: &str| {
        word.bytes().all(|byte| byte.is_ascii_digit()) || OF_TIMES.iter().any(|one| word.eq_ignore_ascii_case(one))
    };
    if says_nothing(word) {
        return TimeName::Bare;
    }
    for (front, rest) in humps(word) {
        match (time_word(front), time_word(rest)) {
            (TimeName::Bare, other) | (other, TimeName::Bare) if other != TimeName::Unknown => return other,
            _ => {}
        }
    }
    for at in word.char_indices().skip(1).map(|(at, _)| at) {
        let (front, rest) = word.split_at(at);
        if let Some(seconds) = period(rest).filter(|_| says_nothing(front)) {
            return TimeName::Known(seconds);
        }
    }
    TimeName::Unknown
}

/// Whether a name is that of a column of times.
pub(crate) fn is_time(name: &str) -> bool {
    let lower = name.to_lowercase();
    let first = words(&lower).first().map_or("", |word| word.text).to_owned();
    lower.contains("time") && time(name) != TimeName::Unknown
        || matches!(first.as_str(), "t" | "ts" | "epoch" | "elapsed" | "date") && time(name) != TimeName::Unknown
        || words(&lower).len() == 1 && period(&lower).is_some_and(|seconds| seconds <= 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_of_rates_are_whole_words_with_their_prefix_and_their_case() {
        let rate_of = |bits: f64| Some(Unit { bits, is_rate: true });
        for (name, unit) in [
            ("rate_gbps", rate_of(1e9)),
            ("rate_MBps", rate_of(8e6)),
            ("rate_kBps", rate_of(8e3)),
            ("rate_KBps", rate_of(8e3)),
            ("throughput (Mbps)", rate_of(1e6)),
            ("Throughput[kbit/s]", rate_of(1e3)),
            ("THROUGHPUT_MBPS", rate_of(1e6)),
            ("THROUGHPUT (KBIT/S)", rate_of(1e3)),
            ("Tput Mbits/sec", rate_of(1e6)),
            ("rate [MB/s]", rate_of(8e6)),
            ("rate [Mb/s]", rate_of(1e6)),
            ("rate (KiB/s)", rate_of(8.0 * 1024.0)),
            ("rate_MiBps", rate_of(8.0 * 1_048_576.0)),
            ("rate_Mibps", rate_of(1_048_576.0)),
            ("rate_Kibit_s", rate_of(1024.0)),
            ("throughput_bytes_per_s", rate_of(8.0)),
            ("bytes_sec", rate_of(8.0)),
            ("bits_per_second", rate_of(1.0)),
            ("per_second_bytes", rate_of(8.0)),
            ("bytes/ms", rate_of(8e3)),
            ("MBytes per min", rate_of(8e6 / 60.0)),
            ("downloadMbps", rate_of(1e6)),
            ("dlkbps", rate_of(1e3)),
            ("goodputBytesPerSecond", rate_of(8.0)),
            ("link_bps", rate_of(1.0)),
            ("ratekBps", rate_of(8e3)),
            ("rate_B/s", rate_of(8.0)),
        ] {
            let named = rate(name);
            assert_eq!(named.and_then(|named| named.unit), unit, "{name}");
        }
    }

    #[test]
    fn an_acronym_in_capitals_is_noted_in_names_and_refused_as_an_option() {
        for name in ["THROUGHPUT_MBPS", "Throughput_KBPS", "rateMBPS", "GBPS"] {
            assert!(
                rate(name).unwrap().note("`x`").unwrap().starts_with("the unit of column `x` in capitals"),
                "{name}"
            );
        }
        assert_eq!(rate("THROUGHPUT_Mbps").unwrap().note("x"), None);
        assert_eq!((Unit::parse("MBPS"), Unit::parse("KBPS"), Unit::parse("BPS")), (None, None, None));
        assert_eq!((Unit::parse("mbps"), Unit::parse("MBps").map(|unit| unit.bits)), (Some(Unit::MBPS), Some(8e6)));
    }

    #[test]
    fn amounts_are_not_rates_and_counters_not_amounts_of_an_interval() {
        for (name, bits, is_total) in [
            ("kbytes", 8e3, false),
            ("KiB", 8192.0, false),
            ("rx_MB", 8e6, false),
            ("rxBytes", 8.0, false),
            ("size [B]", 8.0, false),
            ("rx_bytes_total", 8.0, true),
            ("totalBytes", 8.0, true),
            ("bits", 1.0, false),
        ] {
            let named = rate(name).unwrap();
            assert_eq!((named.unit, named.is_total), (Some(Unit { bits, is_rate: false }), is_total), "{name}");
        }
    }

    #[test]
    fn what_may_be_two_units_is_none() {
        for name in [
            "rate [mb/s]",
            "rate [MB/S]",
            "linkbps",
            "trekBps",
            "throughput (MB)",
            "throughput_bytes",
            "dl_mb",
            "DL_bitrate",
            "rate_bytes_per_frame",
            "kbps_or_mbps",
            "UE_B",
            "numbers",
            "mib",
            "packets",
            "bytes per packet",
        ] {
            assert_eq!(rate(name).and_then(|named| named.unit), None, "{name}");
        }
    }

    #[test]
    fn units_of_times_are_words_of_any_case() {
        use TimeName::{Bare, Known, Unknown};
        for (name, unit) in [
            ("time_s", Known(1.0)),
            ("Time (ms)", Known(1e-3)),
            ("time[ms]", Known(1e-3)),
            ("TIME_MS", Known(1e-3)),
            ("TIMEMS", Known(1e-3)),
            ("time (us)", Known(1e-6)),
            ("time (µs)", Known(1e-6)),
            ("timestamp_ms_utc", Known(1e-3)),
            ("timestampMillis", Known(1e-3)),
            ("elapsedRealtimeNanos", Known(1e-9)),
            ("elapsedNanos", Known(1e-9)),
            ("t/ms", Known(1e-3)),
            ("time since start [minutes]", Known(60.0)),
            ("ms", Known(1e-3)),
            ("Timestamp", Bare),
            ("times", Bare),
            ("ts", Bare),
            ("t", Bare),
            ("time_0", Bare),
            ("time (ticks)", Unknown),
            ("time [slots]", Unknown),
            ("time_s_ms", Unknown),
            ("time (\u{fffd}s)", Unknown),
            ("seq_num", Unknown),
        ] {
            assert_eq!(time(name), unit, "{name}");
        }
    }
}
