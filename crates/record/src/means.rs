//! Means with confidence intervals as a table, and paired differences between points that share random numbers.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use serde_json::Value;

use crate::figures::{Figure, OF_FLOWS, of_flows};
use crate::meta::text;
use crate::summary::{FlowSummary, PointSummary, Stat};
use crate::{Point, Results};

/// The figures of a table for which none were chosen, if they have values.
const USUAL: [&str; 8] = [
    "goodput_mbps",
    "rtt_p50_ms",
    "rtt_p95_ms",
    "owd_p95_ms",
    "loss",
    "retransmission_rate",
    "completion_p50_s",
    "completion_p95_s",
];

/// A figure of a flow.
type FlowFigure = &'static Figure<FlowSummary>;

/// A value that others are compared with: a swept key, and one of its values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Against {
    /// The swept key.
    pub key: String,
    /// Its value, as a table shows it or as another text of the same amount.
    pub value: String,
}

impl Against {
    fn is_of(&self, value: &Value) -> bool {
        let (one, other) = (shown(value), &self.value);
        let same = |number: fn(&str) -> Option<f64>| number(&one).is_some_and(|amount| number(other) == Some(amount));
        one == *other || same(|text| text.parse().ok()) || KINDS.iter().any(|(_, number)| same(*number))
    }
}

/// A row: a flow at a point.
#[derive(Clone, Debug, PartialEq)]
pub struct MeansRow {
    /// The values of the swept keys, in the order of [`Means::keys`].
    pub values: Vec<Value>,
    /// The flow's name.
    pub flow: String,
    /// Its congestion control, if it has one and it is known.
    pub cc: Option<String>,
    /// The figures in the order of [`Means::figures`], in the units of `summary.json`; of paired differences, their means over
    /// the runs.
    pub stats: Vec<Option<Stat>>,
}

/// Means with 95 % confidence intervals (Student's t) over the runs of each point, or over the paired differences of the runs.
#[derive(Clone, Debug)]
pub struct Means {
    /// The swept keys.
    pub keys: Vec<String>,
    /// The columns.
    pub figures: Vec<FlowFigure>,
    /// The rows, by point and flow.
    pub rows: Vec<MeansRow>,
    /// With what each row is compared.
    pub against: Option<Against>,
    /// What the table does not have, a line each: runs that are missing, points that have nothing to be compared with.
    pub notes: Vec<String>,
}

impl Means {
    /// Returns the table of `results` with the figures of these names, or the usual ones that have values.
    ///
    /// With `against`, a row has the differences to the point with that value and the same values of all other keys. Runs of the
    /// same number share their random numbers, so that each run is a pair: the interval is that of the mean difference, which is
    /// narrower than that of two means wherever runs differ more than points.
    ///
    /// # Errors
    /// A line that says which names there are, or which values.
    pub fn of(results: &Results, names: &[String], against: Option<Against>) -> Result<Means, String> {
        let points = &results.meta.points;
        let keys = swept(points);
        let chosen = names.iter().map(|name| chosen(name)).collect::<Result<Vec<_>, _>>()?;
        let summary = results.summary();
        let wanted =
            if chosen.is_empty() { OF_FLOWS.iter().filter(|one| USUAL.contains(&one.name)).collect() } else { chosen };
        let mut notes = Vec::new();
        if let Some(partial) = &results.meta.partial {
            notes.push(format!("partial results: {} of {} runs", partial.finished, partial.of));
        }
        // Under its whole name.
        let against =
            against.map(|one| Ok::<_, String>(Against { key: named(&keys, &one.key)?, ..one })).transpose()?;
        let rows = match &against {
            None => summary.points.iter().flat_map(|point| rows(point, &keys, &wanted)).collect(),
            Some(against) => differences(results, &summary.points, (&keys, &wanted), against, &mut notes)?,
        };
        let has_values = |at: usize| rows.iter().any(|row: &MeansRow| row.stats[at].is_some());
        let kept: Vec<bool> = (0..wanted.len()).map(|at| !names.is_empty() || has_values(at)).collect();
        let keep = |row: MeansRow| {
            let stats = row.stats.into_iter().zip(&kept).filter(|(_, kept)| **kept).map(|(stat, _)| stat);
            MeansRow { stats: stats.collect(), ..row }
        };
        Ok(Means {
            keys,
            rows: rows.into_iter().map(keep).collect(),
            figures: wanted.into_iter().zip(&kept).filter(|(_, kept)| **kept).map(|(figure, _)| figure).collect(),
            against,
            notes,
        })
    }

    /// Returns the cells of a table for people: a head, and a row each.
    pub fn cells(&self) -> (Vec<String>, Vec<Vec<String>>) {
        let has_cc = self.has_cc();
        let mut head: Vec<String> = self.keys.iter().map(|key| last(key).to_owned()).collect();
        head.push("flow".to_owned());
        head.extend(has_cc.then(|| "cc".to_owned()));
        head.extend(self.figures.iter().map(|figure| match figure.shown_unit {
            "" => figure.head.to_owned(),
            unit => format!("{} {unit}", figure.head),
        }));
        let cells = |row: &MeansRow| {
            let mut cells: Vec<String> = row.values.iter().map(shown).collect();
            cells.push(row.flow.clone());
            cells.extend(has_cc.then(|| row.cc.clone().unwrap_or_else(|| "-".to_owned())));
            let stats = row.stats.iter().zip(&self.figures);
            cells.extend(stats.map(|(stat, figure)| {
                stat.map_or_else(
                    || "-".to_owned(),
                    |stat| with_interval(stat.mean * figure.scale, stat.ci95.map(|ci| ci * figure.scale)),
                )
            }));
            cells
        };
        (head, self.rows.iter().map(cells).collect())
    }

    /// Returns how many columns in front of the figures are texts.
    pub fn texts(&self) -> usize {
        self.keys.len() + 1 + usize::from(self.has_cc())
    }

    /// Whether a column tells the congestion control, which no swept key does.
    fn has_cc(&self) -> bool {
        self.rows.iter().any(|row| row.cc.is_some()) && !self.keys.iter().any(|key| last(key) == "cc")
    }

    /// Returns the table as CSV: numbers in the units of `summary.json`, with `_ci95` and `_n` of each figure. A swept
    /// key whose values are amounts with units has a second column of numbers, whose name tells the unit. Of differences,
    /// the column `against` tells to what.
    pub fn csv(&self) -> String {
        let mut text = String::new();
        let column = |at: usize| -> Vec<&Value> { self.rows.iter().map(|row| &row.values[at]).collect() };
        let amounts: Vec<Option<Amounts>> = (0..self.keys.len()).map(|at| amounts(&column(at))).collect();
        let keys = self.keys.iter().zip(&amounts).flat_map(|(key, amounts)| {
            [Some(key.clone()), amounts.as_ref().map(|amounts| format!("{key}_{}", amounts.suffix))]
        });
        let names = |one: &FlowFigure| [one.name.to_owned(), format!("{}_ci95", one.name), format!("{}_n", one.name)];
        let texts = ["flow", "cc"].into_iter().chain(self.against.as_ref().map(|_| "against")).map(str::to_owned);
        let head = keys.flatten().chain(texts).chain(self.figures.iter().flat_map(names));
        let against = self.against.as_ref().map(|Against { key, value }| format!("{key}={value}"));
        write_line(&mut text, head.collect());
        for (at, row) in self.rows.iter().enumerate() {
            let values = row.values.iter().zip(&amounts).flat_map(|(value, amounts)| {
                [
                    Some(shown(value)),
                    amounts.as_ref().map(|amounts| amounts.numbers[at].map_or_else(String::new, |n| n.to_string())),
                ]
            });
            let texts = values.flatten().chain([row.flow.clone(), row.cc.clone().unwrap_or_default()]);
            let texts = texts.chain(against.clone());
            let number = |value: Option<f64>| value.map_or_else(String::new, |value| value.to_string());
            let stats = row.stats.iter().flat_map(|stat| {
                let n = stat.map_or_else(String::new, |stat| stat.n.to_string());
                [number(stat.map(|stat| stat.mean)), number(stat.and_then(|stat| stat.ci95)), n]
            });
            write_line(&mut text, texts.chain(stats).collect());
        }
        text
    }

    /// Returns the table as a `tabular` of LaTeX with the rules of `booktabs`.
    pub fn latex(&self) -> String {
        let (head, rows) = self.cells();
        let mut text = String::from("% Means and 95 % confidence intervals over runs");
        if let Some(Against { key, value }) = &self.against {
            let _ = write!(text, ": paired differences to {} = {value}", last(key));
        }
        let texts = self.texts();
        let _ = writeln!(
            text,
            "; \\usepackage{{booktabs}}\n\\begin{{tabular}}{{{}{}}}",
            "l".repeat(texts),
            "r".repeat(head.len() - texts)
        );
        let line = |cells: &[String]| cells.iter().map(|cell| tex(cell)).collect::<Vec<_>>().join(" & ") + " \\\\\n";
        let _ = write!(text, "\\toprule\n{}\\midrule\n", line(&head));
        rows.iter().for_each(|row| text += &line(row));
        text + "\\bottomrule\n\\end{tabular}\n"
    }
}

/// Values of a swept key that are amounts with units, as numbers.
#[derive(Clone, Debug, PartialEq)]
pub struct Amounts {
    /// What a column's name ends with: `mbps`, `s` or `bytes`.
    pub suffix: &'static str,
    /// The numbers in that unit; missing where the key has no value.
    pub numbers: Vec<Option<f64>>,
}

/// Returns `values` as numbers, if all that are not null are rates, times or amounts of data with units.
pub fn amounts(values: &[&Value]) -> Option<Amounts> {
    let of = |suffix, number: fn(&str) -> Option<f64>| {
        let numbers = values.iter().map(|value| match value {
            Value::Null => Some(None),
            value => value.as_str().and_then(number).map(Some),
        });
        let numbers: Vec<Option<f64>> = numbers.collect::<Option<_>>()?;
        numbers.iter().any(Option::is_some).then_some(Amounts { suffix, numbers })
    };
    KINDS.iter().find_map(|(suffix, number)| of(suffix, *number))
}

/// A kind of amounts with units: what a column's name ends with, and the number of an amount.
type Kind = (&'static str, fn(&str) -> Option<f64>);

const KINDS: [Kind; 3] = [
    ("mbps", |text| text.parse().ok().map(units::Rate::as_mbps)),
    ("s", |text| text.parse().ok().map(units::Span::as_secs_f64)),
    ("bytes", |text| text.parse().ok().map(|bytes: units::Bytes| bytes.get() as f64)),
];

/// Formats a mean and half of its interval: as many digits as the interval has two significant ones, and four without an
/// interval.
pub fn with_interval(mean: f64, ci95: Option<f64>) -> String {
    /// A number is shown with as many decimals at most.
    const MOST: i32 = 9;
    /// What is no more of the mean is a rounding error.
    const ROUNDED: f64 = 1e-12;
    let decimals = |value: f64, digits: i32| {
        if value == 0.0 {
            return 0;
        }
        (digits - 1 - value.abs().log10().floor() as i32).clamp(0, MOST) as usize
    };
    match ci95 {
        // Runs that agree in every digit have an interval of rounding errors.
        Some(ci) if ci > mean.abs() * ROUNDED => {
            let decimals = decimals(ci, 2);
            format!("{mean:.decimals$} ± {ci:.decimals$}")
        }
        Some(_) => format!("{mean:.0$} ± 0", decimals(mean, 4)),
        None => format!("{mean:.0$}", decimals(mean, 4)),
    }
}

/// Returns the figure of this name.
fn chosen(name: &str) -> Result<FlowFigure, String> {
    of_flows(name).ok_or_else(|| {
        let names: Vec<&str> = OF_FLOWS.iter().map(|figure| figure.name).collect();
        format!("there is no figure `{name}`: there are {}", names.join(", "))
    })
}

/// The swept keys, in the order of their first appearance.
fn swept(points: &[Point]) -> Vec<String> {
    let mut seen = BTreeSet::new();
    points.iter().flat_map(|point| point.values.keys()).filter(|key| seen.insert(*key)).cloned().collect()
}

fn rows<'a>(
    point: &'a PointSummary,
    keys: &'a [String],
    figures: &'a [FlowFigure],
) -> impl Iterator<Item = MeansRow> + 'a {
    point.flows.iter().map(move |flow| MeansRow {
        values: keys.iter().map(|key| point.values.get(key).cloned().unwrap_or(Value::Null)).collect(),
        flow: flow.flow.clone(),
        cc: flow.cc.clone(),
        stats: figures.iter().map(|figure| (figure.of)(flow)).collect(),
    })
}

/// The swept key of this name, or of this last part of its name.
fn named(keys: &[String], name: &str) -> Result<String, String> {
    let named: Vec<&String> = keys.iter().filter(|one| *one == name || last(one) == name).collect();
    let [key] = named[..] else {
        let keys = if keys.is_empty() { "none".to_owned() } else { keys.join(", ") };
        return Err(format!("`{name}` is not one of the swept keys: {keys}"));
    };
    Ok(key.clone())
}

/// The rows of the differences to the points with the value of `against`.
fn differences(
    results: &Results,
    points: &[PointSummary],
    (keys, figures): (&[String], &[FlowFigure]),
    against: &Against,
    notes: &mut Vec<String>,
) -> Result<Vec<MeansRow>, String> {
    let Against { key, value } = against;
    let is_base = |point: &PointSummary| point.values.get(key).is_some_and(|value| against.is_of(value));
    if !points.iter().any(is_base) {
        let mut values: Vec<String> = Vec::new();
        for value in points.iter().filter_map(|point| point.values.get(key).map(shown)) {
            if !values.contains(&value) {
                values.push(value);
            }
        }
        return Err(format!("`{key}` is never {value}: it is {}", values.join(", ")));
    }
    let others = |point: &PointSummary| -> BTreeMap<String, Value> {
        point.values.iter().filter(|(one, _)| one != &key).map(|(one, value)| (one.clone(), value.clone())).collect()
    };
    let by_run = crate::summary::by_run(results);
    let (mut rows, mut alone) = (Vec::new(), 0);
    for point in points.iter().filter(|point| !is_base(point)) {
        let base = points.iter().find(|base| is_base(base) && others(base) == others(point));
        let runs = base.map_or(0, |base| {
            // Runs that are all the same are one.
            if point.identical_runs && base.identical_runs { 1 } else { results.meta.runs }
        });
        let pairs: Vec<(&PointSummary, &PointSummary)> = (0..runs)
            .filter_map(|run| Some((by_run.get(&(point.point, run))?, by_run.get(&(base?.point, run))?)))
            .collect();
        if pairs.is_empty() {
            alone += 1;
            continue;
        }
        for row in self::rows(point, keys, figures) {
            let of = |point: &PointSummary, figure: &Figure<FlowSummary>| {
                let flow = point.flows.iter().find(|flow| flow.flow == row.flow)?;
                (figure.of)(flow).map(|stat| stat.mean)
            };
            let difference = |figure: &FlowFigure| {
                Stat::of(pairs.iter().filter_map(|(one, base)| Some(of(one, figure)? - of(base, figure)?)))
            };
            let stats = figures.iter().map(difference).collect();
            rows.push(MeansRow { stats, ..row });
        }
    }
    if rows.is_empty() {
        return Err(format!("nothing can be compared with {key} = {value}: no run is there at both points of a pair"));
    }
    if alone > 0 {
        notes.push(format!("{alone} points have no run that can be compared with one of {key} = {value}"));
    }
    Ok(rows)
}

/// The last part of a key, such as `cc` of `flows.cc`.
fn last(key: &str) -> &str {
    key.rsplit('.').next().unwrap_or(key)
}

fn shown(value: &Value) -> String {
    if value.is_null() { "-".to_owned() } else { text(value) }
}

fn write_line(text: &mut String, cells: Vec<String>) {
    let quoted = |cell: String| {
        if cell.contains(['"', ',', '\n', '\r']) { format!("\"{}\"", cell.replace('"', "\"\"")) } else { cell }
    };
    *text += &cells.into_iter().map(quoted).collect::<Vec<_>>().join(",");
    text.push('\n');
}

/// A text for LaTeX.
fn tex(text: &str) -> String {
    let mut escaped = String::new();
    for letter in text.chars() {
        match letter {
            '&' | '%' | '$' | '#' | '_' | '{' | '}' => {
                escaped.push('\\');
                escaped.push(letter);
            }
            '\\' => escaped += "\\textbackslash{}",
            '~' => escaped += "\\textasciitilde{}",
            '^' => escaped += "\\textasciicircum{}",
            '±' => escaped += "$\\pm$",
            other => escaped.push(other),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_mean_has_as_many_decimals_as_its_interval() {
        for (mean, ci95, shown) in [
            (0.002, Some(0.00284), "0.0020 ± 0.0028"),
            (5.51e-4, Some(0.001), "0.0006 ± 0.0010"),
            (12.4712, Some(0.0123), "12.471 ± 0.012"),
            (1234.5, Some(321.0), "1234 ± 321"),
            (2.34567, Some(0.0), "2.346 ± 0"),
            (12.4712, None, "12.47"),
            (0.0, None, "0"),
            (0.0, Some(0.0), "0 ± 0"),
            (-0.5, Some(1e-9), "-0.500000000 ± 0.000000001"),
            (30.847, Some(3.5e-15), "30.85 ± 0"),
        ] {
            assert_eq!(with_interval(mean, ci95), shown);
        }
    }

    #[test]
    fn amounts_are_numbers_if_all_have_a_unit_of_one_kind() {
        let of = |values: &[Value]| amounts(&values.iter().collect::<Vec<_>>()).map(|all| (all.suffix, all.numbers));
        let some = |numbers: &[f64]| numbers.iter().map(|number| Some(*number)).collect::<Vec<_>>();
        assert_eq!(of(&[json!("1 MB"), json!("100 kB")]), Some(("bytes", some(&[1e6, 1e5]))));
        assert_eq!(of(&[json!("40 ms"), json!("2 s")]), Some(("s", some(&[0.04, 2.0]))));
        assert_eq!(of(&[json!("1.5 Gbit/s"), Value::Null]), Some(("mbps", vec![Some(1500.0), None])));
        for values in
            [vec![json!("40 ms"), json!("1 MB")], vec![json!("cubic")], vec![json!(5)], vec![Value::Null], vec![]]
        {
            assert_eq!(of(&values), None, "{values:?}");
        }
    }

    /// Results of a sweep over rates, of which the points `there` have run: 1 Mbit/s of goodput more at each point.
    fn swept_rates(there: &[u32]) -> Results {
        let mut results = Results::default();
        let rates = ["5 Mbit/s", "10 Mbit/s", "20 Mbit/s"];
        let point = |rate: &&str| Point { values: BTreeMap::from([("links.rate".to_owned(), json!(rate))]) };
        results.meta.points = rates.iter().map(point).collect();
        results.meta.runs = 1;
        for &point in there {
            let bytes = 125_000 * u64::from(point);
            let row = crate::tables::FlowRow { point, flow: "f", bytes, measured_to_s: 1.0, ..Default::default() };
            results.tables.flows.push(&row);
        }
        results.meta.partial =
            (there.len() < 3).then(|| crate::Partial { finished: there.len() as u64, of: 3, ..Default::default() });
        results
    }

    fn compared(results: &Results, value: &str) -> Result<Means, String> {
        let against = Against { key: "rate".to_owned(), value: value.to_owned() };
        Means::of(results, &["goodput_mbps".to_owned()], Some(against))
    }

    #[test]
    fn an_amount_is_found_in_any_writing() {
        let results = swept_rates(&[0, 1, 2]);
        for value in ["10 Mbit/s", "10000 kbit/s", "0.01 Gbit/s"] {
            let csv = compared(&results, value).expect("it was swept").csv();
            let lines: Vec<&str> = csv.lines().collect();
            assert_eq!(
                lines[0],
                "links.rate,links.rate_mbps,flow,cc,against,goodput_mbps,goodput_mbps_ci95,goodput_mbps_n"
            );
            assert_eq!(
                lines[1..],
                [format!("5 Mbit/s,5,f,,links.rate={value},-1,,1"), format!("20 Mbit/s,20,f,,links.rate={value},1,,1")]
            );
        }
        for value in ["10", "10 ms", "10 MB", "11 Mbit/s"] {
            let said = compared(&results, value).expect_err("it was not");
            assert!(said.ends_with("it is 5 Mbit/s, 10 Mbit/s, 20 Mbit/s"), "{said}");
        }
        let numbers = Against { key: "loss".to_owned(), value: "1e-2".to_owned() };
        assert!(numbers.is_of(&json!(0.01)) && !numbers.is_of(&json!(0.1)) && !numbers.is_of(&Value::Null));
    }

    #[test]
    fn what_cannot_be_compared_is_said() {
        let means = compared(&swept_rates(&[0, 1]), "5 Mbit/s").expect("two points have run");
        assert_eq!((means.rows.len(), means.notes.len()), (1, 2));
        assert_eq!(means.notes[0], "partial results: 2 of 3 runs");
        assert!(means.notes[1].starts_with("1 points have no run that can be compared"), "{}", means.notes[1]);
        let said = compared(&swept_rates(&[1, 2]), "5 Mbit/s").expect_err("it has not run");
        assert!(said.starts_with("nothing can be compared with links.rate = 5 Mbit/s"), "{said}");
    }

    #[test]
    fn texts_are_escaped_in_each_form() {
        assert_eq!(
            tex("50 % of a_b {~^\\} ± 1"),
            "50 \\% of a\\_b \\{\\textasciitilde{}\\textasciicircum{}\\textbackslash{}\\} $\\pm$ 1"
        );
        let mut text = String::new();
        write_line(&mut text, ["a,b", "say \"no\"", "c"].map(str::to_owned).to_vec());
        assert_eq!(text, "\"a,b\",\"say \"\"no\"\"\",c\n");
    }
}
