//! The rows of a comparison.

use crate::bounds::RUNS_FOR_NOISE;
use comfy_table::{CellAlignment, Table, presets};
use serde::Serialize;
use std::fmt::Write;

/// A value of a flow in the simulator and the kernel. The fields are the keys of its JSON.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// The case, and the point of its sweep.
    pub case: String,
    /// The flow.
    pub flow: String,
    /// The value compared.
    pub metric: &'static str,
    /// The unit of the two values.
    pub unit: &'static str,
    /// The simulator's mean; missing if it has none.
    pub simulated: Option<f64>,
    /// The kernel's mean; missing if it has none.
    pub emulated: Option<f64>,
    /// The unit of `deviation`, `noise` and `bound`.
    pub scale: Scale,
    /// The difference; missing if either mean is missing.
    pub deviation: Option<f64>,
    /// The variation between the kernel's own runs: half of their range; needs at least two runs. It excuses a difference only
    /// with six or more.
    pub noise: Option<f64>,
    /// The bound on the difference; missing if the value is only reported.
    pub bound: Option<f64>,
    /// The result; missing without a bound.
    pub verdict: Option<Verdict>,
}

/// The unit of differences.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Scale {
    /// A fraction of the kernel's value.
    Share,
    /// Percentage points.
    Points,
    /// A number of events.
    Count,
    /// Round trips.
    Rounds,
}

/// The result of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// The difference is within the bound.
    Within,
    /// The difference exceeds the bound, but not the variation between the kernel's own runs.
    Noise,
    /// The difference exceeds both, or only one side has the value.
    Beyond,
    /// The link was full on both sides, and the flow alone on it: the value is the link's, not the sender's.
    Full,
}

impl Verdict {
    /// Returns the word for it.
    pub fn word(self) -> &'static str {
        match self {
            Verdict::Within => "within",
            Verdict::Noise => "noise",
            Verdict::Beyond => "BEYOND",
            Verdict::Full => "full link",
        }
    }

    fn of(deviation: Option<f64>, noise: Option<f64>, bound: f64) -> Verdict {
        match deviation {
            Some(deviation) if deviation <= bound => Verdict::Within,
            Some(deviation) if deviation <= bound + noise.unwrap_or(0.0) => Verdict::Noise,
            _ => Verdict::Beyond,
        }
    }
}

impl Row {
    /// Creates a row without the names of case and flow, unless neither side has a value.
    pub(crate) fn new(
        (metric, unit, scale): (&'static str, &'static str, Scale),
        [simulated, emulated]: [Option<f64>; 2],
        deviation: Option<f64>,
        (noise, kernel_runs): (Option<f64>, usize),
        bound: Option<f64>,
    ) -> Option<Row> {
        simulated.or(emulated)?;
        let excuse = noise.filter(|_| kernel_runs >= RUNS_FOR_NOISE);
        let verdict = bound.map(|bound| Verdict::of(deviation, excuse, bound));
        let (case, flow) = (String::new(), String::new());
        Some(Row { case, flow, metric, unit, simulated, emulated, scale, deviation, noise, bound, verdict })
    }

    /// Returns the row as that of a link that was full on both sides.
    pub(crate) fn of_full_link(self) -> Row {
        let verdict = self.verdict.filter(|verdict| *verdict != Verdict::Within);
        Row { verdict: verdict.or(Some(Verdict::Full)), ..self }
    }

    fn difference(&self, difference: Option<f64>) -> String {
        match (difference, self.scale) {
            (None, _) => "-".to_owned(),
            (Some(share), Scale::Share) => format!("{:.1} %", 100.0 * share),
            (Some(count), Scale::Count) => format!("{count:.1}"),
            (Some(points), Scale::Points) => format!("{points:.2} points"),
            (Some(rounds), Scale::Rounds) => format!("{rounds:.2} RTT"),
        }
    }

    /// Formats one cell: the deviation, in bold if it exceeds the bound; the kernel's value; its noise.
    fn cell(&self) -> String {
        let value = |value: Option<f64>| value.map_or_else(|| "none".to_owned(), |value| format!("{value:.3}"));
        let deviation = match (self.deviation, self.verdict) {
            (None, _) => format!("**{} against**", value(self.simulated)),
            (_, Some(Verdict::Beyond)) => format!("**{}** of", self.difference(self.deviation)),
            _ => format!("{} of", self.difference(self.deviation)),
        };
        let noise = self.noise.map_or_else(String::new, |_| format!(" ± {}", self.difference(self.noise)));
        format!("{deviation} {}{noise}", value(self.emulated))
    }

    fn cells(&self) -> [String; 8] {
        let value = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), |value| format!("{value:.3}"));
        let difference = |difference| self.difference(difference);
        [
            self.flow.clone(),
            format!("{} ({})", self.metric, self.unit),
            value(self.simulated),
            value(self.emulated),
            difference(self.deviation),
            difference(self.noise),
            difference(self.bound),
            self.verdict.map_or("-", Verdict::word).to_owned(),
        ]
    }
}

/// The rows of one or more cases.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(transparent)]
pub struct Comparison {
    /// Ordered by case.
    pub rows: Vec<Row>,
}

/// The columns after the case.
const HEAD: [&str; 8] = ["flow", "figure", "simulated", "kernel", "deviation", "noise", "bound", ""];

impl Comparison {
    /// Returns how many rows have a verdict.
    pub fn count(&self, verdict: Verdict) -> usize {
        self.rows.iter().filter(|row| row.verdict == Some(verdict)).count()
    }

    /// Formats a table for a terminal.
    pub fn text(&self) -> String {
        let mut table = Table::new();
        table.load_style(presets::NOTHING);
        table.set_header(std::iter::once("").chain(HEAD));
        for column in 3..8 {
            table.column_mut(column).expect("the table has it").set_cell_alignment(CellAlignment::Right);
        }
        let mut case = "";
        for row in &self.rows {
            let shown = if row.case == case { "" } else { &row.case };
            case = &row.case;
            table.add_row(std::iter::once(shown.to_owned()).chain(row.cells()));
        }
        format!("{table}\n{}\n", self.counts())
    }

    /// Formats a table for documents: a row for each flow, and a column for each value that has a bound. A cell shows
    /// the simulator's deviation from the kernel, the kernel's value, and the variation between the kernel's own runs.
    pub fn markdown(&self) -> String {
        let mut figures: Vec<(&str, String)> = Vec::new();
        let mut flows: Vec<(&str, &str)> = Vec::new();
        for row in self.rows.iter().filter(|row| row.verdict.is_some()) {
            if figures.iter().all(|(metric, _)| *metric != row.metric) {
                figures.push((row.metric, format!("{} ({})", row.metric, row.unit)));
            }
            if flows.last() != Some(&(&row.case, &row.flow)) {
                flows.push((&row.case, &row.flow));
            }
        }
        let head: Vec<&str> = figures.iter().map(|(_, title)| title.as_str()).collect();
        let mut text = format!("{}\n\n| case | flow | {} |\n", self.counts(), head.join(" | "));
        let _ = writeln!(text, "| --- | --- |{}", " ---: |".repeat(figures.len()));
        for (case, flow) in flows {
            let of_flow = |row: &&Row| row.case == case && row.flow == flow;
            let cell = |metric: &str| self.rows.iter().filter(of_flow).find(|row| row.metric == metric).map(Row::cell);
            let cells: Vec<String> = figures.iter().map(|(metric, _)| cell(metric).unwrap_or_default()).collect();
            let _ = writeln!(text, "| {case} | {flow} | {} |", cells.join(" | "));
        }
        text
    }

    fn counts(&self) -> String {
        let of = |verdict| self.count(verdict);
        let (within, noise, beyond) = (of(Verdict::Within), of(Verdict::Noise), of(Verdict::Beyond));
        let full = of(Verdict::Full);
        format!(
            "{within} within the bound, {noise} within the kernel's own noise, {beyond} beyond; apart, {full} goodputs of full links."
        )
    }
}
