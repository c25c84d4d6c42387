//! Figures over tests.

use super::statistic::{Ellipse, binned, steps};
use super::tests_of::{Sample, Study, Test};
use super::{Quantity, Tests};
use crate::drawn::{Drawn, Kind, Line, POINTS, STEPS};
use serde::Deserialize;
use units::Span;

/// Points of an ellipse's outline.
const OUTLINE: usize = 73;

/// A figure over tests, as `paper.toml` describes it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OverTests {
    /// Its title.
    pub(crate) title: String,
    /// How it is drawn.
    pub(crate) drawn: Drawing,
    /// The title of the horizontal axis.
    #[serde(default)]
    x: String,
    /// The title of the vertical axis.
    #[serde(default)]
    y: String,
    /// The quantity: vertical, or that of which the distribution is drawn.
    of: Quantity,
    /// The horizontal quantity.
    with: Option<Quantity>,
    /// The width of intervals of it.
    #[serde(default)]
    bin: f64,
    /// Of `flows`: the interval over which values are averaged. Default: a second.
    step: Option<Span>,
    /// The groups of `boxes`, from left to right.
    #[serde(default)]
    names: Vec<String>,
    /// The lines.
    pub(crate) lines: Vec<Group>,
}

/// How a figure over tests is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Drawing {
    /// A point for each value, and an ellipse that covers 95 % of each group.
    Scatter,
    /// Cumulative distributions.
    Distribution,
    /// Means over intervals of another quantity.
    Intervals,
    /// Means, standard deviations, and the least and greatest values.
    Boxes,
    /// Each flow of a test over time.
    Flows,
}

/// A line: tests of one group, or for `boxes` of one group for each name.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Group {
    label: String,
    tests: Names,
    /// A quantity other than the figure's.
    of: Option<Quantity>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
enum Names {
    One(String),
    Several(Vec<String>),
}

impl Group {
    /// Returns the patterns of its flows.
    pub(crate) fn flows(&self) -> Vec<&str> {
        match &self.tests {
            Names::One(one) => vec![one],
            Names::Several(all) => all.iter().map(String::as_str).collect(),
        }
    }
}

impl OverTests {
    /// Returns what is wrong with the combination of its keys.
    pub(crate) fn fault(&self) -> Option<&'static str> {
        let of_pairs = matches!(self.drawn, Drawing::Scatter | Drawing::Intervals);
        if of_pairs != self.with.is_some() {
            return Some("`with` belongs to `scatter` and `intervals`");
        }
        if (self.drawn == Drawing::Intervals) != (self.bin > 0.0) {
            return Some("`bin` belongs to `intervals`");
        }
        let groups = if self.drawn == Drawing::Boxes { self.names.len() } else { 1 };
        if self.lines.iter().any(|line| line.flows().len() != groups || groups == 0) {
            return Some("each line needs one pattern in `tests`, of `boxes` one for each of `names`");
        }
        let over_time = [Quantity::SecondGoodput, Quantity::SecondInFlight, Quantity::SampleSrtt];
        if self.step.is_some_and(|step| self.drawn != Drawing::Flows || step == Span::ZERO) {
            return Some("`step` belongs to `flows`, and must be positive");
        }
        (self.drawn == Drawing::Flows && !over_time.contains(&self.of))
            .then_some("`flows` draws `second-goodput`, `second-in-flight` or `sample-srtt`")
    }

    pub(crate) fn draw(&self, study: &Study, blank: Drawn) -> Drawn {
        let lines: Vec<Line> = self.lines.iter().flat_map(|group| self.group(study, group)).collect();
        let kind = match self.drawn {
            Drawing::Scatter => Kind::Points,
            Drawing::Distribution => Kind::Steps,
            Drawing::Intervals | Drawing::Flows => Kind::Lines,
            Drawing::Boxes => Kind::Spreads,
        };
        let or = |text: &str, default: &str| if text.is_empty() { default.to_owned() } else { text.to_owned() };
        let (x, y) = match self.drawn {
            Drawing::Distribution => (self.x.clone(), or(&self.y, "share")),
            Drawing::Flows => (or(&self.x, "time since the start, s"), self.y.clone()),
            _ => (self.x.clone(), self.y.clone()),
        };
        Drawn { title: self.title.clone(), kind, x, y, names: self.names.clone(), lines, ..blank }
    }

    fn group(&self, study: &Study, group: &Group) -> Vec<Line> {
        let label = group.label.clone();
        let quantity = group.of.unwrap_or(self.of);
        let of = |pattern: &str| {
            let tests = Tests { of: quantity, with: self.with, tests: pattern.to_owned(), ..Tests::default() };
            let pairs: Vec<(f64, f64)> =
                study.matching(0, pattern).flat_map(|test| tests.values(study, test, quantity)).collect();
            pairs
        };
        let patterns = group.flows();
        match self.drawn {
            Drawing::Scatter => {
                let pairs = of(patterns[0]);
                let every = pairs.len().div_ceil(POINTS).max(1);
                let shown = pairs.iter().step_by(every).copied();
                let points = Line { label: label.clone(), ..line(shown) };
                let outline = Ellipse::of(&pairs).map(|ellipse| ellipse.outline(OUTLINE));
                let outline = Line { label, outline: true, ..line(outline.unwrap_or_default().into_iter()) };
                vec![points, outline]
            }
            Drawing::Distribution => {
                let values = of(patterns[0]).into_iter().map(|pair| pair.1).collect();
                vec![Line { label, ..line(steps(values, STEPS)) }]
            }
            Drawing::Intervals => vec![Line { label, ..line(binned(&of(patterns[0]), self.bin).into_iter()) }],
            Drawing::Boxes => {
                let mut drawn = Line { label, ..Line::default() };
                for (x, pattern) in patterns.iter().enumerate() {
                    let values: Vec<f64> = of(pattern).into_iter().map(|pair| pair.1).collect();
                    let spread = Spread::of(&values);
                    drawn.x.push(x as f64);
                    drawn.y.push(spread.map(|spread| spread.mean));
                    drawn.around.push(spread.map(|s| [s.least, s.mean - s.deviation, s.mean + s.deviation, s.most]));
                }
                vec![drawn]
            }
            Drawing::Flows => {
                let test = study.matching(0, patterns[0]).next();
                test.map(|test| self.flows(test, &label)).unwrap_or_default()
            }
        }
    }

    /// A line for each flow of a test, with means over `step`.
    fn flows(&self, test: &Test, label: &str) -> Vec<Line> {
        let value = |sample: &Sample| match self.of {
            Quantity::SecondInFlight => sample.in_flight_kb,
            Quantity::SampleSrtt => sample.srtt_ms,
            _ => sample.goodput_mbps,
        };
        let step = self.step.map_or(1.0, Span::as_secs_f64);
        let start =
            test.copies.iter().filter_map(|flow| flow.samples.first()).map(|s| s.t_s).fold(f64::INFINITY, f64::min);
        let of_flow = |(i, flow): (usize, &super::tests_of::OneFlow)| {
            let mut drawn = Line { label: format!("{label} {}", i + 1), ..Line::default() };
            // A sample at the end of an interval that is as long as the sampling interval may be a little early.
            let number = |sample: &Sample| ((sample.t_s - start) / step + 1e-6).floor();
            for samples in flow.samples.chunk_by(|a, b| number(a) == number(b)) {
                drawn.x.push((number(&samples[0]) + 0.5) * step);
                drawn.y.push(Some(samples.iter().map(value).sum::<f64>() / samples.len() as f64));
            }
            drawn
        };
        test.copies.iter().enumerate().map(of_flow).collect()
    }
}

fn line(pairs: impl Iterator<Item = (f64, f64)>) -> Line {
    let (x, y) = pairs.map(|(x, y)| (x, Some(y))).unzip();
    Line { x, y, ..Line::default() }
}

/// What a box shows.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Spread {
    mean: f64,
    deviation: f64,
    least: f64,
    most: f64,
}

impl Spread {
    fn of(values: &[f64]) -> Option<Spread> {
        let n = values.len() as f64;
        let mean = values.iter().sum::<f64>() / n;
        let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (n - 1.0).max(1.0);
        let (least, most) =
            values.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), &value| (a.min(value), b.max(value)));
        (!values.is_empty()).then(|| Spread { mean, deviation: variance.sqrt(), least, most })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use record::Results;
    use record::tables::FlowRow;

    fn drawn(text: &str) -> Drawn {
        let mut results = Results::default();
        for (i, (goodput_mbps, rtt)) in [(1.0, 30.0), (2.0, 50.0), (6.0, 10.0)].into_iter().enumerate() {
            let flow = format!("a-{}", i + 1);
            let row = FlowRow { flow: &flow, transport: "tcp", goodput_mbps, ..FlowRow::default() };
            results.tables.flows.push(&FlowRow { rtt_mean_ms: Some(rtt), ..row });
        }
        let figure: OverTests = toml::from_str(text).unwrap();
        assert_eq!(figure.fault(), None);
        let blank = Drawn::blank("paper", "experiment");
        figure.draw(&Study::new(&results), blank)
    }

    #[test]
    fn a_scatter_plot_has_points_and_an_ellipse() {
        let text =
            "title = 't'\ndrawn = 'scatter'\nof = 'rtt'\nwith = 'goodput'\nlines = [{ label = 'A', tests = 'a-*' }]";
        let drawn = drawn(text);
        let [points, outline] = &drawn.lines[..] else { panic!("{drawn:?}") };
        assert_eq!((&points.x[..], points.y[1]), (&[1.0, 2.0, 6.0][..], Some(50.0)));
        assert!(outline.outline && outline.x.len() == OUTLINE && !points.outline);
    }

    #[test]
    fn a_distribution_rises_to_one() {
        let drawn = drawn("title = 't'\ndrawn = 'distribution'\nof = 'rtt'\nlines = [{ label = 'A', tests = 'a-*' }]");
        let thirds: Vec<Option<f64>> = [1.0, 2.0, 3.0].map(|i| Some(i / 3.0)).to_vec();
        assert_eq!((&drawn.lines[0].x[..], &drawn.lines[0].y), (&[10.0, 30.0, 50.0][..], &thirds));
    }

    #[test]
    fn a_box_has_mean_deviation_and_extremes() {
        let text =
            "title = 't'\ndrawn = 'boxes'\nof = 'goodput'\nnames = ['A']\nlines = [{ label = 'all', tests = ['a-*'] }]";
        // Mean 3, variance (4 + 1 + 9) / 2 = 7.
        let around = drawn(text).lines[0].around[0].unwrap();
        assert_eq!((around[0], around[3]), (1.0, 6.0));
        assert!((around[2] - 3.0 - 7f64.sqrt()).abs() < 1e-12, "{around:?}");
    }
}
