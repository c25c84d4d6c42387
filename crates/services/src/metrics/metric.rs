//! A metric whose values come from outside this crate, such as from the kernel.

use super::page::Page;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::DescriptorEncoder;

/// The beginning of all names.
const PREFIX: &str = "ranway";

/// A metric with its values at present. Values that are unknown are missing.
#[derive(Clone, Debug, PartialEq)]
pub struct Metric {
    name: &'static str,
    /// The meaning, without a capital letter at its beginning.
    what: &'static str,
    values: Values,
}

#[derive(Clone, Debug, PartialEq)]
enum Values {
    Counter(f64),
    Gauge(Option<f64>),
    /// By the value of a label.
    Gauges(&'static str, Vec<(&'static str, Option<f64>)>),
}

impl Metric {
    /// A count of `what` since the start. Names have no `ranway_` before them; those of counters, no `_total` behind them.
    pub fn counter(name: &'static str, what: &'static str, count: u64) -> Metric {
        Metric::sum(name, what, count as f64)
    }

    /// A sum since the start, whose unit, a base unit, is at the end of the name.
    pub fn sum(name: &'static str, what: &'static str, value: f64) -> Metric {
        Metric { name, what, values: Values::Counter(value) }
    }

    /// A value at present, whose unit, a base unit, is at the end of the name.
    pub fn gauge(name: &'static str, what: &'static str, value: Option<f64>) -> Metric {
        Metric { name, what, values: Values::Gauge(value) }
    }

    /// Values at present, by the value of a label.
    pub fn gauges<const N: usize>(
        name: &'static str,
        what: &'static str,
        label: &'static str,
        values: [(&'static str, Option<f64>); N],
    ) -> Metric {
        Metric { name, what, values: Values::Gauges(label, values.to_vec()) }
    }

    /// Returns its name, as Prometheus has it.
    pub fn name(&self) -> String {
        let end = if matches!(self.values, Values::Counter(_)) { "_total" } else { "" };
        format!("{PREFIX}_{}{end}", self.name)
    }

    /// Returns its type, as Prometheus calls it.
    pub fn kind(&self) -> &'static str {
        if matches!(self.values, Values::Counter(_)) { "counter" } else { "gauge" }
    }

    /// Returns the name of its label, if it has one.
    pub fn label(&self) -> Option<&'static str> {
        match &self.values {
            Values::Counter(_) | Values::Gauge(_) => None,
            Values::Gauges(label, _) => Some(label),
        }
    }
}

/// Returns metrics as text, with those of this process.
pub(super) fn text_of(metrics: Vec<Metric>) -> String {
    super::text(PREFIX, Told(metrics))
}

#[derive(Debug)]
struct Told(Vec<Metric>);

impl Collector for Told {
    fn encode(&self, encoder: DescriptorEncoder) -> Result<(), std::fmt::Error> {
        let mut page = Page(encoder);
        self.0.iter().try_for_each(|Metric { name, what, values }| {
            let help = capitalised(what);
            match values {
                Values::Counter(value) => page.counter(name, &help, *value),
                Values::Gauge(value) => value.map_or(Ok(()), |value| page.gauge(name, &help, value)),
                Values::Gauges(_, values) if values.iter().all(|(_, value)| value.is_none()) => Ok(()),
                Values::Gauges(label, values) => {
                    let known = values.iter().filter_map(|(of, value)| Some(([(*label, *of)], (*value)?)));
                    page.gauges(name, &help, known)
                }
            }
        })
    }
}

fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}
