//! Vectors that OMNeT++ recorded.

use std::collections::BTreeMap;
use std::io::Read;

use csv::{ByteRecord, ReaderBuilder};

use super::{Channel, MAX_SAMPLES, Quantity, UPLINK};
use crate::{Error, MAX_SECONDS, Noted, choose, shown, text};

/// Selects a vector of an OMNeT++ export.
#[derive(Clone, Debug, Default)]
pub struct Omnet {
    /// Text contained in the module's path; a path that is this text wins.
    pub module: Option<String>,
    /// The vector's name, with or without `:vector`. Default: a vector whose name indicates SINR, CQI or RSRP.
    pub vector: Option<String>,
    /// Text contained in the run's name; a name that is this text wins.
    pub run: Option<String>,
}

/// The units of an SINR and a received power, in small letters.
const DECIBELS: &str = "db";
const DECIBEL_MILLIWATTS: &str = "dbm";

/// A vector that matches.
struct Vector {
    /// The options that select it.
    options: String,
    name: String,
    quantity: Quantity,
    /// The number of its run, module and name, by which attributes name it.
    id: [Vec<u8>; 3],
    record: ByteRecord,
}

/// Reads vectors exported by `opp_scavetool export -F CSV-R`, such as Simu5G's `measuredSinrDl:vector` (dB) or
/// `averageCqiDl:vector`. Vectors of the uplink and of sidelinks, which no UE hears of its cell, are refused, or left out if
/// none was selected.
///
/// # Errors
/// [`Error::Choose`] if several vectors match; [`Error::Line`], [`Error::File`], also for a unit that is not the quantity's;
/// [`Error::Io`].
pub fn omnet(from: impl Read, which: &Omnet) -> Result<Noted<Channel>, Error> {
    let text = text(from)?;
    let mut reader = ReaderBuilder::new().flexible(true).from_reader(&text[..]);
    let head = reader.byte_headers().map_err(|error| Error::File(error.to_string()))?.clone();
    let place = |name: &str| {
        head.iter().position(|one| one == name.as_bytes()).ok_or_else(|| {
            Error::line(1, format!("has no column `{name}`: export vectors with `opp_scavetool export -F CSV-R`"))
        })
    };
    let [run, kind, module, name] = [place("run")?, place("type")?, place("module")?, place("name")?];
    let [times, values] = [place("vectime")?, place("vecvalue")?];
    let attribute = place("attrname").ok().zip(place("attrvalue").ok());
    let mut units: BTreeMap<[Vec<u8>; 3], String> = BTreeMap::new();
    let (mut found, mut others) = (Vec::new(), Vec::new());
    let mut record = ByteRecord::new();
    while reader.read_byte_record(&mut record).map_err(|error| Error::File(error.to_string()))? {
        let field = |column: usize| String::from_utf8_lossy(record.get(column).unwrap_or_default()).into_owned();
        let id = [run, module, name].map(|column| record.get(column).unwrap_or_default().to_vec());
        if let ("attr", Some((attribute, value))) = (field(kind).as_str(), attribute)
            && field(attribute) == "unit"
        {
            units.insert(id, field(value));
            continue;
        }
        if field(kind) != "vector" {
            continue;
        }
        let bare = field(name).trim_end_matches(":vector").to_owned();
        let wanted = which.vector.as_ref().is_none_or(|vector| bare == vector.trim_end_matches(":vector"))
            && which.module.as_ref().is_none_or(|part| field(module).contains(part.as_str()))
            && which.run.as_ref().is_none_or(|part| field(run).contains(part.as_str()));
        if let (true, Some(quantity)) = (wanted, quantity_of(&bare, which.vector.is_some())) {
            let part = |column: usize| shown(record.get(column).unwrap_or_default());
            let options = format!("--run {} --module {} --vector {}", part(run), part(module), shown(bare.as_bytes()));
            let is_other = matches!(way(&bare), Some(Way::Up | Way::Side));
            let vector = Vector { options, name: bare, quantity, id, record: record.clone() };
            if is_other { &mut others } else { &mut found }.push(vector);
        }
    }
    for vectors in [&mut found, &mut others] {
        for (part, text) in [(0, &which.run), (1, &which.module)] {
            keep_exact(vectors, part, text.as_deref());
        }
    }
    match &found[..] {
        [] => Err(Error::File(match others.first() {
            Some(other) => format!("{}: {}", shown(other.name.as_bytes()), refused(&other.name)),
            None => "contains no matching vector of SINR, CQI or RSRP".to_owned(),
        })),
        [vector] => {
            let mut notes = notes(vector, units.get(&vector.id).map(String::as_str))?;
            if !others.is_empty() {
                notes.push(format!("{} vectors of the uplink or of sidelinks are left out", others.len()));
            }
            let channel = channel(vector, (times, values), &mut notes)?;
            Ok(Noted { value: channel, notes })
        }
        several => Err(choose("several vectors match", several.iter().map(|one| one.options.clone()).collect())),
    }
}

/// Of vectors that have a text in their run's or module's name, keeps those of which it is the whole name, if there are any.
fn keep_exact(vectors: &mut Vec<Vector>, part: usize, text: Option<&str>) {
    let is_exact = |vector: &Vector| text.is_some_and(|text| vector.id[part] == text.as_bytes());
    if vectors.iter().any(is_exact) {
        vectors.retain(is_exact);
    }
}

/// Why a vector is refused that is not of the downlink.
fn refused(name: &str) -> String {
    match way(name) {
        Some(Way::Side) => "it is of a sidelink, and a recorded channel is what a UE hears of a cell".to_owned(),
        _ => format!("{UPLINK}: import a vector of the downlink, such as measuredSinrDl or averageCqiDl"),
    }
}

/// Says what is assumed of a vector.
fn notes(vector: &Vector, unit: Option<&str>) -> Result<Vec<String>, Error> {
    let name = shown(vector.name.as_bytes());
    let mut notes = Vec::new();
    let valid = match vector.quantity {
        Quantity::Sinr => Some(DECIBELS),
        Quantity::Rsrp => Some(DECIBEL_MILLIWATTS),
        Quantity::Cqi => None,
    };
    let unit = unit.map(|unit| unit.trim().to_lowercase()).filter(|unit| !unit.is_empty());
    match (valid, unit) {
        (Some(valid), Some(unit)) if unit != valid => {
            let valid = if valid == DECIBELS { "dB" } else { "dBm" };
            return Err(Error::File(format!("{name}: its unit is `{}`, and must be {valid}", shown(unit.as_bytes()))));
        }
        (Some(_), None) => {
            let (what, unit) = if valid == Some(DECIBELS) { ("an SINR", "dB") } else { ("a received power", "dBm") };
            notes.push(format!("{name}: the export names no unit: its values are assumed to be {what} in {unit}"));
        }
        _ => {}
    }
    if way(&vector.name).is_none() {
        notes.push(format!("{name}: its name has no direction: it is assumed to be of the downlink"));
    }
    Ok(notes)
}

fn channel(vector: &Vector, (times, values): (usize, usize), notes: &mut Vec<String>) -> Result<Channel, Error> {
    let record = &vector.record;
    let line = record.position().map_or(0, csv::Position::line);
    let list = |column: usize| numbers(record.get(column).unwrap_or_default(), line);
    let (times, values) = (list(times)?, list(values)?);
    if times.len() != values.len() {
        return Err(Error::line(line, format!("has {} times and {} values", times.len(), values.len())));
    }
    if let Some(at) = times.iter().find(|at| !(0.0..=MAX_SECONDS).contains(*at)) {
        return Err(Error::line(line, format!("the time {at} must be from 0 to 49 days")));
    }
    if times.windows(2).any(|pair| pair[1] < pair[0]) {
        return Err(Error::line(line, "times decrease"));
    }
    let rows = times.len();
    let channel = Channel::new(vector.quantity, times.into_iter().zip(values).collect())?;
    let averaged = rows - channel.samples.len();
    if averaged > 0 {
        notes.push(format!("{averaged} values are of the same millisecond as another, and averaged"));
    }
    Ok(channel)
}

/// The quantities that names of vectors contain.
const QUANTITIES: [(&str, Quantity); 5] = [
    ("cqi", Quantity::Cqi),
    ("rsrp", Quantity::Rsrp),
    ("sinr", Quantity::Sinr),
    ("snir", Quantity::Sinr),
    ("snr", Quantity::Sinr),
];

/// Returns the quantity of a vector with this name. A vector selected by name with no indication is assumed to be SINR.
fn quantity_of(name: &str, asked: bool) -> Option<Quantity> {
    let name = name.to_lowercase();
    let known = QUANTITIES.iter().find(|(part, _)| name.contains(part)).map(|(_, quantity)| *quantity);
    known.or(asked.then_some(Quantity::Sinr))
}

/// Whose values a vector has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Down,
    Up,
    Side,
}

/// The direction that a vector's name says, as in `measuredSinrUl`, `averageCqiDl`, `ul_sinr` and `rcvdSinrD2D`.
fn way(name: &str) -> Option<Way> {
    if name.to_lowercase().contains("d2d") {
        return Some(Way::Side);
    }
    let mut words = vec![String::new()];
    let mut before = ' ';
    for letter in name.chars() {
        if !letter.is_alphanumeric() || letter.is_uppercase() && !before.is_uppercase() {
            words.push(String::new());
        }
        if let (true, Some(word)) = (letter.is_alphanumeric(), words.last_mut()) {
            word.extend(letter.to_lowercase());
        }
        before = letter;
    }
    let of = |word: &str| {
        // `sinrul` is one word, of which the quantity is known.
        let rest = QUANTITIES.iter().find_map(|(part, _)| word.strip_prefix(part).or_else(|| word.strip_suffix(part)));
        match rest.filter(|rest| !rest.is_empty()).unwrap_or(word) {
            "ul" | "uplink" => Some(Way::Up),
            "dl" | "downlink" => Some(Way::Down),
            "sl" | "sidelink" => Some(Way::Side),
            _ => None,
        }
    };
    words.iter().find_map(|word| of(word))
}

fn numbers(list: &[u8], line: u64) -> Result<Vec<f64>, Error> {
    let mut all = Vec::new();
    for digits in list.split(u8::is_ascii_whitespace).filter(|digits| !digits.is_empty()) {
        if all.len() >= MAX_SAMPLES {
            return Err(Error::line(line, format!("has more than {MAX_SAMPLES} samples")));
        }
        let number = str::from_utf8(digits).ok().and_then(|digits| digits.parse::<f64>().ok());
        let number = number.filter(|number| number.is_finite());
        all.push(number.ok_or_else(|| Error::line(line, format!("`{}` is not a number", shown(digits))))?);
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_say_a_direction() {
        for (name, of) in [
            ("measuredSinrUl", Some(Way::Up)),
            ("averageCqiUl", Some(Way::Up)),
            ("rcvdSinrDl", Some(Way::Down)),
            ("UL_SINR", Some(Way::Up)),
            ("sinrul", Some(Way::Up)),
            ("dlsinr", Some(Way::Down)),
            ("uplink.sinr", Some(Way::Up)),
            ("measuredSinrD2D", Some(Way::Side)),
            ("snir", None),
            ("usefulSinr", None),
        ] {
            assert_eq!(way(name), of, "{name}");
        }
    }
}
