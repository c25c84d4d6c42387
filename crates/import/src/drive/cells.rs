//! Which cell served: identities in logs, and what else tells cells apart.
//!
//! A global identity is of one cell of a network and technology. A physical one (PCI) is one of 1008 that are used again
//! everywhere, at least on other carriers: with a column of frequencies, it is told apart by these, as are names and numbers that may be
//! one. Of one physical identity on
//! one carrier in two places, nobody can tell. Where the identity alone tells cells apart, it is their name.

use std::collections::{BTreeMap, BTreeSet};

use csv::ByteRecord;
use rnis::identity::{is_cell_identity, is_physical_identity};

use crate::select::{NO_SERVICE, OPERATORS};
use crate::table::{Table, is_missing};
use crate::times::Raw;
use crate::{Error, choose, shown};

/// Global identities, the most distinct first: that of uccmisl's sets, E-UTRAN and NR cell identities.
const GLOBAL: [&str; 12] = [
    "rawcellid",
    "cgi",
    "ecgi",
    "ncgi",
    "eci",
    "nci",
    "cellidentity",
    "globalcellid",
    "lteeci",
    "nrnci",
    "ltecellidentity",
    "nrcellidentity",
];
/// Identities that may be the same for several cells of a network.
const LOCAL: [&str; 9] =
    ["servingcell", "servingcellid", "cellid", "cell", "towerid", "ci", "cid", "ltecellid", "nrcellid"];
const PHYSICAL: [&str; 7] = ["pci", "physicalcellid", "physcellid", "servingpci", "pcellpci", "ltepci", "nrpci"];
/// What G-NetTrack and others call a base station; the `CellID` beside it is one of that station's.
const NODE: [&str; 7] = ["node", "enb", "enbid", "enodeb", "enodebid", "gnb", "gnbid"];
/// The highest number of a cell of a base station of LTE (TS 36.413, 9.2.1.37).
const MAX_OF_NODE: u64 = 255;
const TECHNOLOGIES: [&str; 8] =
    ["networktech", "networkmode", "networktype", "technology", "tech", "rat", "radio", "datanetworktype"];
const FREQUENCIES: [&str; 22] = [
    "earfcn",
    "dlearfcn",
    "earfcndl",
    "arfcn",
    "nrarfcn",
    "dlarfcn",
    "nrdlarfcn",
    "ssbarfcn",
    "uarfcn",
    "servingearfcn",
    "pcellearfcn",
    "channelnumber",
    "frequency",
    "freq",
    "dlfrequency",
    "dlfreq",
    "carrierfrequency",
    "centerfrequency",
    "frequencymhz",
    "freqmhz",
    "frequencykhz",
    "freqkhz",
];
const BANDS: [&str; 4] = ["band", "lteband", "nrband", "frequencyband"];
const PLMNS: [&str; 5] = ["plmn", "plmnid", "mccmnc", "networkoperator", "operatornumeric"];
/// Columns that say whether the phone is registered in the cell of a row, or only hears it.
const REGISTERED: [&str; 4] = ["registered", "isregistered", "mregistered", "cellregistered"];
/// Columns of component carriers.
const COMPONENTS: [&str; 11] = [
    "cc",
    "ccid",
    "cctype",
    "ccindex",
    "carrier",
    "carriertype",
    "component",
    "componentcarrier",
    "componentcarrierid",
    "cellrole",
    "celltype",
];

/// Whether a value names a component carrier: the primary one, which is that of the serving cell, or a secondary one (TS 36.300, 5.5).
fn is_primary(value: &[u8]) -> Option<bool> {
    let plain = crate::select::plain(&String::from_utf8_lossy(value));
    match plain.trim_end_matches(|one: char| one.is_ascii_digit()) {
        "pcc" | "pcell" | "primary" => Some(true),
        "scc" | "scell" | "secondary" => Some(false),
        _ => None,
    }
}

/// The name that selects all operators.
const ALL: &str = "all";
/// Values that are named in a note.
const MOST_NAMED: usize = 8;

/// A radio access technology, whose cells are its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Technology {
    Lte,
    Nr,
    /// UMTS, GSM and others.
    Other,
}

impl Technology {
    /// The technology that a log calls so, if it is known.
    pub(super) fn named(name: &str) -> Option<Technology> {
        const OTHERS: [&str; 13] =
            ["umts", "hspa", "hsdpa", "hsupa", "wcdma", "gsm", "gprs", "edge", "cdma", "evdo", "2g", "3g", "1xrtt"];
        let name = name.to_lowercase();
        let has = |parts: &[&str]| parts.iter().any(|part| name.contains(part));
        match () {
            () if has(&OTHERS) => Some(Technology::Other),
            () if has(&["5g", "nr"]) => Some(Technology::Nr),
            () if has(&["4g", "lte"]) => Some(Technology::Lte),
            () => None,
        }
    }
}

/// What an identity is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Global,
    Local,
    Physical,
    /// A base station's number and that of its cell.
    OfNode,
}

/// The columns that say which cell it is.
#[derive(Debug)]
pub(super) struct Columns {
    identity: Vec<usize>,
    kind: Kind,
    pub(super) technology: Option<usize>,
    frequency: Option<usize>,
    operator: Vec<usize>,
    registered: Option<usize>,
    components: Vec<usize>,
}

/// Why a row is not of the serving cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Beside {
    /// The phone is not registered in the cell.
    Neighbour,
    /// It is of a secondary component carrier.
    Secondary,
    /// An earlier row of the same time is of another cell.
    AtOnce,
}

impl Beside {
    /// What to say of so many rows.
    pub(super) fn note(self, rows: u64) -> String {
        let what = match self {
            Beside::Neighbour => "rows are of cells in which the phone is not registered",
            Beside::Secondary => "rows are of secondary component carriers, with whatever rates of their own they have",
            Beside::AtOnce => "rows are of another cell than the first row of the same time, which is no handover",
        };
        format!("{rows} {what}, and are left out")
    }
}

impl Columns {
    /// Whether any column says it.
    pub(super) fn has_identity(&self) -> bool {
        !self.identity.is_empty()
    }

    /// Finds them by their plain names, but for the identity's if it is selected.
    pub(super) fn of(table: &Table<'_>, names: &[String], selected: Option<&str>) -> Result<Columns, Error> {
        let first = |list: &[&str]| list.iter().find_map(|one| names.iter().position(|name| name == one));
        let kind_of = |at: usize| match names.get(at).map(String::as_str) {
            Some(name) if GLOBAL.contains(&name) => Kind::Global,
            Some(name) if PHYSICAL.contains(&name) => Kind::Physical,
            _ => Kind::Local,
        };
        let found = first(&GLOBAL).or_else(|| first(&LOCAL)).or_else(|| first(&PHYSICAL));
        let (identity, kind) = match (selected, found, first(&NODE)) {
            (Some(name), ..) => {
                let column = table.column(name)?;
                (vec![column], kind_of(column))
            }
            (None, Some(cell), Some(node)) if names[cell] == "cellid" => (vec![node, cell], Kind::OfNode),
            (None, Some(cell), _) => (vec![cell], kind_of(cell)),
            (None, None, _) => (Vec::new(), Kind::Local),
        };
        let operator = match (first(&["mcc"]), first(&["mnc"])) {
            (Some(mcc), Some(mnc)) => vec![mcc, mnc],
            _ => first(&PLMNS).or_else(|| first(&OPERATORS)).into_iter().collect(),
        };
        let frequency = first(&FREQUENCIES).or_else(|| first(&BANDS)).filter(|_| kind != Kind::Global);
        let components = (0..names.len()).filter(|&at| COMPONENTS.contains(&names[at].as_str())).collect();
        let (technology, registered) = (first(&TECHNOLOGIES), first(&REGISTERED));
        Ok(Columns { identity, kind, technology, frequency, operator, registered, components })
    }

    /// Why a row is not of the serving cell, if its columns say so.
    pub(super) fn beside(&self, record: &ByteRecord) -> Option<Beside> {
        let field = |column: usize| record.get(column).unwrap_or_default();
        let is_no = |cell: &[u8]| [&b"0"[..], b"false", b"no"].iter().any(|no| cell.eq_ignore_ascii_case(no));
        if self.registered.is_some_and(|column| is_no(field(column))) {
            return Some(Beside::Neighbour);
        }
        let is_secondary = self.components.iter().any(|&column| is_primary(field(column)) == Some(false));
        is_secondary.then_some(Beside::Secondary)
    }
}

/// What a row says of its cell; texts are numbers of [`Cells::texts`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Said {
    identity: u32,
    rat: Option<Technology>,
    frequency: Option<u32>,
    operator: Option<u32>,
}

/// The cells of a log.
#[derive(Debug, Default)]
pub(super) struct Cells {
    texts: Vec<String>,
    numbers: BTreeMap<String, u32>,
    /// Rows of each operator, and of none.
    operators: BTreeMap<Option<u32>, u64>,
    rats: BTreeMap<Technology, u64>,
    /// Identities of unknown cells.
    unknown: u64,
    unknown_named: BTreeSet<String>,
}

/// What is known of the cell of a row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) operator: Option<u32>,
    pub(super) cell: Option<Said>,
}

/// Whether two rows may be of one cell: they name no different ones.
fn may_be_one(one: Said, other: Said) -> bool {
    fn agree<T: PartialEq>(one: Option<T>, other: Option<T>) -> bool {
        one.zip(other).is_none_or(|(one, other)| one == other)
    }
    one.identity == other.identity
        && agree(one.rat, other.rat)
        && agree(one.frequency, other.frequency)
        && agree(one.operator, other.operator)
}

/// The rows that may be of the serving cell: of a time with several cells, those of the first one. A logger of whole seconds has rows of
/// both sides of a handover in one of them, and then only those of the new cell.
pub(super) fn first_at_once(rows: &[Row], times: &Raw) -> Vec<bool> {
    let mut keep = vec![true; rows.len()];
    let has_seconds = times.are_of_logger();
    let after = |from: usize| from + 1 + (from + 1..rows.len()).take_while(|&at| times.is_at_once(at)).count();
    let is_of = |at: usize, cell: Said| rows[at].cell.is_none_or(|other| may_be_one(other, cell));
    let mut from = 0;
    while from < rows.len() {
        let next = after(from);
        let mut cells = (from..next).filter_map(|at| rows[at].cell);
        if let (Some(first), Some(last)) = (cells.next(), cells.next_back())
            && !(from..next).all(|at| is_of(at, first))
        {
            let goes_on = has_seconds && next < rows.len() && (next..after(next)).all(|at| is_of(at, last));
            for (at, keep) in (from..next).zip(&mut keep[from..next]) {
                *keep = goes_on || is_of(at, first);
            }
        }
        from = next;
    }
    keep
}

impl Cells {
    /// Reads what a row says.
    pub(super) fn row(&mut self, record: &ByteRecord, columns: &Columns, rat: Option<Technology>) -> Row {
        let field = |column: usize| record.get(column).filter(|cell| !is_missing(cell));
        let operator = self.operator(record, columns);
        *self.operators.entry(operator).or_default() += 1;
        if let Some(rat) = rat {
            *self.rats.entry(rat).or_default() += 1;
        }
        let parts: Option<Vec<&[u8]>> = columns.identity.iter().map(|&column| field(column)).collect();
        let Some(parts) = parts.filter(|parts| !parts.is_empty()) else { return Row { operator, cell: None } };
        let last = parts.len() - 1;
        let known = parts.iter().enumerate().map(|(at, part)| match columns.kind {
            Kind::OfNode if at == last => identity(part, |number| number <= MAX_OF_NODE || is_cell_identity(number)),
            Kind::Physical => identity(part, is_physical_identity),
            Kind::Global | Kind::Local | Kind::OfNode => identity(part, is_cell_identity),
        });
        let Some(known) = known.collect::<Option<Vec<String>>>() else {
            self.unknown += 1;
            if self.unknown_named.len() < MOST_NAMED {
                self.unknown_named.insert(parts.iter().map(|part| shown(part)).collect::<Vec<_>>().join("-"));
            }
            return Row { operator, cell: None };
        };
        // A number that no physical identity has is a global one, whatever its column is called: of one carrier, which some loggers tell a
        // row too late.
        let is_global = known.len() == 1 && known[0].parse().is_ok_and(|number| !is_physical_identity(number));
        // A channel number of 0 is one; the most that a field holds is none.
        let channel = |cell: &[u8]| identity(cell, |number| number == 0 || is_cell_identity(number));
        let frequency = columns.frequency.filter(|_| !is_global).and_then(field).and_then(channel);
        let frequency = frequency.map(|frequency| self.number(&frequency));
        let identity = self.number(&known.join("-"));
        Row { operator, cell: Some(Said { identity, rat, frequency, operator }) }
    }

    fn operator(&mut self, record: &ByteRecord, columns: &Columns) -> Option<u32> {
        let part = |column: &usize| {
            let cell = record.get(*column).filter(|cell| !is_missing(cell) && is_primary(cell).is_none())?;
            identity(cell, |number| number == 0 || is_cell_identity(number))
        };
        let parts: Vec<String> = columns.operator.iter().map(part).collect::<Option<_>>()?;
        fn letters(name: &str) -> impl Iterator<Item = char> {
            name.chars().filter(|one| one.is_alphanumeric()).flat_map(char::to_lowercase)
        }
        let name = parts.join("-");
        let plain: String = letters(&name).collect();
        if plain.is_empty() || NO_SERVICE.contains(&plain.as_str()) {
            return None;
        }
        // `vodafone IE` and `Vodafone IE` are one.
        let same = |number: &u32| letters(&self.texts[*number as usize]).eq(plain.chars());
        let known = self.operators.keys().flatten().find(|number| same(number)).copied();
        Some(known.unwrap_or_else(|| self.number(&name)))
    }

    fn number(&mut self, text: &str) -> u32 {
        if let Some(&number) = self.numbers.get(text) {
            return number;
        }
        let number = self.texts.len() as u32;
        self.texts.push(text.to_owned());
        self.numbers.insert(text.to_owned(), number);
        number
    }

    /// Returns the operator whose rows count; `None` if those of all do.
    ///
    /// # Errors
    /// [`Error::Choose`] if there are several and none was selected, or none has the name.
    pub(super) fn selected(&self, operator: Option<&str>, notes: &mut Vec<String>) -> Result<Option<u32>, Error> {
        let known: Vec<(u32, u64)> = self.operators.iter().filter_map(|(of, rows)| Some(((*of)?, *rows))).collect();
        let list = || {
            let mut known = known.clone();
            known.sort_by_key(|(_, rows)| std::cmp::Reverse(*rows));
            let name = |(of, rows): &(u32, u64)| format!("`{}` ({rows} rows)", self.texts[*of as usize]);
            known.iter().map(name).chain([format!("`{ALL}`")]).collect()
        };
        let Some(operator) = operator else {
            return match known.len() {
                0 | 1 => Ok(None),
                _ => Err(choose("several operators in the log: select one with --operator", list())),
            };
        };
        if operator.eq_ignore_ascii_case(ALL) {
            return Ok(None);
        }
        let found = known.iter().find(|(of, _)| self.texts[*of as usize].eq_ignore_ascii_case(operator));
        let Some(&(found, rows)) = found else {
            return Err(choose(&format!("no row is of an operator `{}`", shown(operator.as_bytes())), list()));
        };
        let all: u64 = self.operators.values().sum();
        if all > rows {
            notes.push(format!("{rows} of {all} rows are of the operator, and the others are left out"));
        }
        Ok(Some(found))
    }

    /// Returns the cells of rows: the identity, with what else tells cells apart of the same identity.
    pub(super) fn names(&self, rows: &[Row], notes: &mut Vec<String>) -> Vec<Option<String>> {
        let mut kinds: BTreeMap<u32, BTreeSet<Said>> = BTreeMap::new();
        // A row that lacks one of them is of the cell of the row before with that identity.
        let (mut latest, mut said): (BTreeMap<u32, Said>, Vec<Option<Said>>) = (BTreeMap::new(), Vec::new());
        for of in rows.iter().rev().filter_map(|row| row.cell) {
            let next = latest.get(&of.identity).copied();
            latest.insert(of.identity, filled(of, next));
        }
        for row in rows {
            let full = row.cell.map(|of| filled(of, latest.get(&of.identity).copied()));
            if let Some(of) = full {
                latest.insert(of.identity, of);
                kinds.entry(of.identity).or_default().insert(of);
            }
            said.push(full);
        }
        let several = kinds.values().filter(|kinds| kinds.len() > 1).count();
        let text = |number: u32| self.texts[number as usize].as_str();
        let name = |of: Said| {
            let kinds = &kinds[&of.identity];
            let differ = |one: &dyn Fn(&Said) -> Option<u32>| kinds.iter().map(one).collect::<BTreeSet<_>>().len() > 1;
            let mut name = text(of.identity).to_owned();
            let rat = of.rat.filter(|_| differ(&|kind| kind.rat.map(|rat| rat as u32)));
            let parts = [
                rat.map(|rat| match rat {
                    Technology::Lte => "lte",
                    Technology::Nr => "nr",
                    Technology::Other => "other",
                }),
                of.frequency.filter(|_| differ(&|kind| kind.frequency)).map(text),
                of.operator.filter(|_| differ(&|kind| kind.operator)).map(text),
            ];
            for part in parts.into_iter().flatten() {
                name.push('-');
                name.push_str(part);
            }
            name
        };
        let names = said.into_iter().map(|of| of.map(name)).collect();
        if self.unknown > 0 {
            let named: Vec<&str> = self.unknown_named.iter().map(String::as_str).collect();
            let what = "rows have an identity that stands for an unknown cell, and are of none";
            notes.push(format!("{} {what} ({})", self.unknown, named.join(", ")));
        }
        if several > 0 {
            let what =
                "identities are of several cells, which the technology, the frequency or the operator tells apart";
            notes.push(format!("{several} {what}"));
        }
        if let (Some(lte), Some(nr)) = (self.rats.get(&Technology::Lte), self.rats.get(&Technology::Nr)) {
            let what = "the cells of a scenario are all of one technology (--technology)";
            notes.push(format!("{lte} rows are of LTE and {nr} of 5G: {what}"));
        }
        names
    }
}

/// What a row says, with what another one of the same identity says where it says nothing.
fn filled(of: Said, other: Option<Said>) -> Said {
    let Some(other) = other else { return of };
    Said {
        rat: of.rat.or(other.rat),
        frequency: of.frequency.or(other.frequency),
        operator: of.operator.or(other.operator),
        ..of
    }
}

/// Returns an identity as a text that is the same for all ways to write it: `255`, `255.0` and `0xFF` are one. `None` if it is a
/// number that stands for an unknown cell.
fn identity(cell: &[u8], is_known: impl Fn(u64) -> bool) -> Option<String> {
    let text = String::from_utf8_lossy(cell);
    let text = text.trim();
    let hexadecimal = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"));
    if let Some(number) = hexadecimal.and_then(|digits| u64::from_str_radix(digits, 16).ok()) {
        return is_known(number).then(|| number.to_string());
    }
    // All ones of a field without a prefix, as of ModemManager.
    if text.len() >= 4 && text.bytes().all(|digit| digit.eq_ignore_ascii_case(&b'f')) {
        return None;
    }
    if let Ok(number) = text.parse::<u64>() {
        return is_known(number).then(|| number.to_string());
    }
    /// From here on, numbers with a point are not exact.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    match text.parse::<f64>() {
        Ok(number) if !(0.0..EXACT).contains(&number) => None,
        Ok(number) if libm::trunc(number) == number => is_known(number as u64).then(|| format!("{number:.0}")),
        _ => Some(text.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_identity_has_many_spellings_and_an_unknown_one_none() {
        let of = |text: &str| identity(text.as_bytes(), is_cell_identity);
        for same in ["255", "255.0", "0xFF", "0Xff", " 255 ", "0255", "2.55e2"] {
            assert_eq!(of(same).as_deref(), Some("255"), "{same}");
        }
        for unknown in [
            "-1",
            "0",
            "0.0",
            "65535",
            "268435455",
            "0xFFFFFFF",
            "FFFFFFFF",
            "2147483647",
            "2147483647.0",
            "4294967295",
            "68719476735",
            "9223372036854775807",
            "9.223372036854776e18",
            "18446744073709551615",
            "-9223372036854775808",
        ] {
            assert_eq!(of(unknown), None, "{unknown}");
        }
        for other in ["310-410-7", "a b/c", "43035.12", "1A2D001"] {
            assert_eq!(of(other).as_deref(), Some(other));
        }
        assert_eq!(identity(b"0", is_physical_identity).as_deref(), Some("0"));
        assert_eq!(identity(b"1008", is_physical_identity), None);
    }
}
