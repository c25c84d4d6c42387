//! Which rows of a table count: those that are selected, and of those only what is of one phone, operator, direction or run.

use std::collections::BTreeMap;

use csv::ByteRecord;

use crate::table::{Table, is_missing};
use crate::{Error, choose, clock, shown};

/// A condition that rows must meet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Where {
    /// The name of a column, or its number from 1.
    pub column: String,
    /// Its value, or [`Where::ANY`].
    pub value: String,
}

impl Where {
    /// The value that stands for all: rows are not told apart by the column.
    pub const ANY: &'static str = "*";

    /// Parses `COLUMN=VALUE`.
    pub fn parse(text: &str) -> Option<Where> {
        let (column, value) = text.split_once('=')?;
        let [column, value] = [column, value].map(|part| part.trim().to_owned());
        (!column.is_empty() && !value.is_empty()).then_some(Where { column, value })
    }
}

/// What a column says of a row that sets it apart from the rows around it. Names are in small letters and without separators.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Operator,
    Direction,
    Run,
    Device,
    /// A number that a UE has in a cell, and another one in the next.
    InCell,
}

/// Columns of operators.
pub(crate) const OPERATORS: [&str; 11] = [
    "operator",
    "operatorname",
    "operatorlong",
    "operatoralpha",
    "operatoralphalong",
    "networkoperatorname",
    "carriername",
    "carrier",
    "isp",
    "provider",
    "mno",
];
/// What is called an operator without service.
pub(crate) const NO_SERVICE: [&str; 6] =
    ["noservice", "outofservice", "emergencycallsonly", "emergencyonly", "searching", "limitedservice"];
const DIRECTIONS: [&str; 4] = ["direction", "dir", "linkdirection", "dlul"];
/// Columns of runs.
pub(crate) const RUNS: [&str; 6] = ["runnum", "run", "runid", "runnumber", "sessionid", "session"];
const DEVICES: [&str; 20] = [
    "ue",
    "ueid",
    "uename",
    "imsi",
    "imei",
    "device",
    "deviceid",
    "devicename",
    "phone",
    "phoneid",
    "handset",
    "modem",
    "modemid",
    "flow",
    "flowid",
    "sim",
    "simid",
    "simslot",
    "simslotindex",
    "subscriptionid",
];
const IN_CELL: [&str; 2] = ["rnti", "crnti"];

impl Kind {
    fn of(name: &str) -> Option<Kind> {
        let plain = plain(name);
        let lists: [(&[&str], Kind); 5] = [
            (&OPERATORS, Kind::Operator),
            (&DIRECTIONS, Kind::Direction),
            (&RUNS, Kind::Run),
            (&DEVICES, Kind::Device),
            (&IN_CELL, Kind::InCell),
        ];
        lists.into_iter().find(|(list, _)| list.contains(&plain.as_str())).map(|(_, kind)| kind)
    }
}

/// A name in small letters and without separators.
pub(crate) fn plain(name: &str) -> String {
    name.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_lowercase()
}

/// Values of a column that are told apart.
const MOST_VALUES: usize = 10_000;

/// The values of a column, and in how many rows they are.
struct Values {
    column: usize,
    name: String,
    /// By the value in small letters: as it first came, and rows.
    rows: BTreeMap<String, (String, u64)>,
    last: String,
    /// How often a value came after another.
    changes: usize,
}

impl Values {
    fn new(table: &Table<'_>, column: usize) -> Values {
        let name = table.names.get(column).map_or_else(|| (column + 1).to_string(), |name| shown(name.as_bytes()));
        Values { column, name, rows: BTreeMap::new(), last: String::new(), changes: 0 }
    }

    fn count(&mut self, cell: &[u8]) {
        let key = String::from_utf8_lossy(cell).trim().to_lowercase();
        if key != self.last {
            self.changes += usize::from(!self.last.is_empty());
            self.last.clone_from(&key);
        }
        if self.rows.len() < MOST_VALUES || self.rows.contains_key(&key) {
            self.rows.entry(key).or_insert_with(|| (shown(cell), 0)).1 += 1;
        }
    }

    /// The values, those of most rows first.
    fn list(&self) -> Vec<String> {
        let mut all: Vec<&(String, u64)> = self.rows.values().collect();
        all.sort_by_key(|(_, rows)| std::cmp::Reverse(*rows));
        all.into_iter().map(|(value, rows)| format!("{value} ({rows} rows)")).collect()
    }

    /// Whether they are of several.
    fn are_several(&self, kind: Kind) -> bool {
        let is_number = |key: &String| clock::number(key.as_bytes()).is_some();
        self.rows.len() > 1
            && match kind {
                // The direction in which a phone moves, in degrees.
                Kind::Direction => !self.rows.keys().all(is_number),
                // One phone has one after the other.
                Kind::InCell => self.changes >= self.rows.len(),
                Kind::Operator | Kind::Run | Kind::Device => true,
            }
    }
}

/// The rows that count.
pub(crate) struct Filter {
    conditions: Vec<(Values, String)>,
    apart: Vec<(Values, Kind)>,
    kept: u64,
    all: u64,
}

impl Filter {
    /// `kinds` are those that must not be several; columns of `except` are of other use.
    pub(crate) fn new(table: &Table<'_>, only: &[Where], kinds: &[Kind], except: &[usize]) -> Result<Filter, Error> {
        let (mut conditions, mut named) = (Vec::new(), except.to_vec());
        for one in only {
            let column = table.column(&one.column)?;
            named.push(column);
            if one.value != Where::ANY {
                conditions.push((Values::new(table, column), one.value.to_lowercase()));
            }
        }
        let kind = |column: usize| Kind::of(&table.names[column]).filter(|kind| kinds.contains(kind));
        let free = (0..table.names.len()).filter(|column| !named.contains(column));
        let apart = free.filter_map(|column| Some((Values::new(table, column), kind(column)?))).collect();
        Ok(Filter { conditions, apart, kept: 0, all: 0 })
    }

    /// Whether a row meets the conditions.
    pub(crate) fn keeps(&mut self, record: &ByteRecord) -> bool {
        let mut is_kept = true;
        for (values, wanted) in &mut self.conditions {
            let cell = record.get(values.column).unwrap_or_default();
            values.count(cell);
            is_kept &= values.last == *wanted;
        }
        self.all += 1;
        self.kept += u64::from(is_kept);
        is_kept
    }

    /// Counts what a row is of that counts.
    pub(crate) fn count(&mut self, record: &ByteRecord) {
        for (values, kind) in &mut self.apart {
            let cell = record.get(values.column).filter(|cell| !is_missing(cell));
            let is_none = |cell: &&[u8]| NO_SERVICE.contains(&plain(&String::from_utf8_lossy(cell)).as_str());
            let Some(cell) = cell.filter(|cell| *kind != Kind::Operator || !is_none(cell)) else { continue };
            values.count(cell);
        }
    }

    /// Says which rows count. `run` is the option that selects a run, if there is one.
    ///
    /// # Errors
    /// [`Error::Choose`] if no row meets the conditions, or those that do are of several phones, operators, directions or runs.
    pub(crate) fn finish(self, run: Option<&str>, notes: &mut Vec<String>) -> Result<(), Error> {
        if self.kept == 0 && self.all > 0 {
            let absent = self.conditions.iter().find(|(values, wanted)| !values.rows.contains_key(wanted));
            return Err(match absent {
                Some((values, wanted)) => {
                    let what = format!("no row has `{}` in column `{}`", shown(wanted.as_bytes()), values.name);
                    choose(&what, values.list())
                }
                None => Error::File("no row meets all conditions of --where".to_owned()),
            });
        }
        if let Some((values, kind)) = self.apart.iter().find(|(values, kind)| values.are_several(*kind)) {
            let name = &values.name;
            let option = match run.filter(|_| *kind == Kind::Run) {
                Some(run) => format!("{run} VALUE"),
                None => format!("--where '{name}=VALUE' (`{}` for all as one)", Where::ANY),
            };
            let what = format!(
                "the rows are of several in column `{name}`, each a trace of its own: select one with {option}"
            );
            return Err(choose(&what, values.list()));
        }
        if self.kept < self.all {
            let of: Vec<String> = self
                .conditions
                .iter()
                .map(|(values, wanted)| format!("{}={}", values.name, shown(wanted.as_bytes())))
                .collect();
            let what = "and the others are left out";
            notes.push(format!("{} of {} rows are of {}, {what}", self.kept, self.all, of.join(", ")));
        }
        Ok(())
    }
}
