//! The parameters of queries.

use super::problem::Problem;
use rnis::AssociateId;
use rnis::identity::parse_cell;
use rnis::mec::Kind;
use rnis::mec::answer::{BearerSelection, LAYER2_NAMES, Selection};

/// The longest query, and the most values in a list.
const LONGEST_QUERY: usize = 8 * 1024;
const MOST_VALUES: usize = 256;

/// The parameters of a query for the radio access bearers.
pub(super) const RAB_INFO: [&str; 12] = [
    "app_ins_id",
    "cell_id",
    "ue_ipv4_address",
    "ue_ipv6_address",
    "nated_ip_address",
    "gtp_teid",
    "erab_id",
    "qci",
    "erab_mbr_dl",
    "erab_mbr_ul",
    "erab_gbr_dl",
    "erab_gbr_ul",
];

/// The parameters of a request. A list may be separated by commas, or its parameter may occur several times: clients generated
/// from the standard's API description do the latter.
#[derive(Debug)]
pub(super) struct Parameters(Vec<(String, String)>);

impl Parameters {
    pub(super) fn parse(query: Option<&str>, known: &[&str]) -> Result<Parameters, Problem> {
        let query = query.unwrap_or_default();
        if query.len() > LONGEST_QUERY {
            return Err(Problem::uri_too_long(LONGEST_QUERY));
        }
        let pairs: Vec<(String, String)> = form_urlencoded::parse(query.as_bytes()).into_owned().collect();
        match pairs.iter().find(|(name, _)| !known.contains(&name.as_str()) && !LAYER2_NAMES.contains(&name.as_str())) {
            Some((name, _)) => Err(Problem::invalid(format!("unknown parameter `{}`", shown(name)))),
            None => Ok(Parameters(pairs)),
        }
    }

    fn has(&self, name: &str) -> bool {
        self.0.iter().any(|(other, _)| other == name)
    }

    /// Returns the value of a parameter that occurs at most once.
    pub(super) fn text(&self, name: &str) -> Result<Option<&str>, Problem> {
        let mut values = self.0.iter().filter(|(other, _)| other == name).map(|(_, value)| value.as_str());
        let value = values.next();
        if values.next().is_some() {
            return Err(Problem::invalid(format!("the parameter `{name}` occurs more than once")));
        }
        Ok(value)
    }

    /// Returns the values of a list, or `None` if the parameter is absent.
    pub(super) fn list(&self, name: &str) -> Result<Option<Vec<&str>>, Problem> {
        if !self.has(name) {
            return Ok(None);
        }
        let values = self.0.iter().filter(|(other, _)| other == name).flat_map(|(_, value)| value.split(','));
        let values: Vec<&str> = values.map(str::trim).filter(|value| !value.is_empty()).take(MOST_VALUES + 1).collect();
        if values.len() > MOST_VALUES {
            return Err(Problem::invalid(format!("the parameter `{name}` has more than {MOST_VALUES} values")));
        }
        if values.is_empty() {
            return Err(Problem::invalid(format!("the parameter `{name}` is empty")));
        }
        Ok(Some(values))
    }

    fn number(&self, name: &str) -> Result<Option<u64>, Problem> {
        self.text(name)?.map(|text| number(name, text)).transpose()
    }

    /// Returns the numbers of a list.
    pub(super) fn numbers(&self, name: &str) -> Result<Option<Vec<u64>>, Problem> {
        let Some(values) = self.list(name)? else { return Ok(None) };
        values.into_iter().map(|text| number(name, text)).collect::<Result<_, _>>().map(Some)
    }

    /// Returns which UEs are selected.
    pub(super) fn selection(&self) -> Result<Selection, Problem> {
        let mut selection = Selection::default();
        if let Some(cells) = self.list("cell_id")? {
            let parse =
                |text| parse_cell(text).ok_or_else(|| Problem::invalid(format!("invalid cell_id `{}`", shown(text))));
            selection.cells = Some(cells.into_iter().map(parse).collect::<Result<_, _>>()?);
        }
        for (kind, name) in [(1, "ue_ipv4_address"), (2, "ue_ipv6_address"), (3, "nated_ip_address"), (4, "gtp_teid")] {
            for text in self.list(name)?.unwrap_or_default() {
                let id = AssociateId::parse(kind, text).map_err(|why| Problem::invalid(format!("{name}: {why}")))?;
                selection.ids.get_or_insert_default().insert(id);
            }
        }
        if let Some(ids) = self.list("temp_ue_id")? {
            selection.temp_ue_ids = Some(ids.into_iter().map(ToOwned::to_owned).collect());
        }
        Ok(selection)
    }

    /// Returns which bearers are selected.
    pub(super) fn bearers(&self) -> Result<BearerSelection, Problem> {
        Ok(BearerSelection {
            erab: self.number("erab_id")?,
            qci: self.number("qci")?,
            mbr_dl: self.number("erab_mbr_dl")?,
            mbr_ul: self.number("erab_mbr_ul")?,
            gbr_dl: self.number("erab_gbr_dl")?,
            gbr_ul: self.number("erab_gbr_ul")?,
        })
    }

    /// Returns the names of the layer 2 measurements that are selected.
    pub(super) fn layer2(&self) -> Result<Vec<&'static str>, Problem> {
        let mut names = Vec::new();
        for name in LAYER2_NAMES.iter().copied().filter(|name| self.has(name)) {
            match self.text(name)? {
                // A name without number is understood as well.
                Some("") => {}
                Some(text) => drop(number(name, text)?),
                None => continue,
            }
            names.push(name);
        }
        Ok(names)
    }

    /// Returns the type of subscriptions that is selected.
    pub(super) fn kind(&self) -> Result<Option<Kind>, Problem> {
        let Some(text) = self.text("subscription_type")? else { return Ok(None) };
        let kind = Kind::from_query_name(text);
        kind.map(Some).ok_or_else(|| {
            let known = Kind::ALL.map(Kind::query_name).join(", ");
            Problem::invalid(format!("unknown subscription_type `{}`; known are {known}", shown(text)))
        })
    }
}

fn number(name: &str, text: &str) -> Result<u64, Problem> {
    text.parse().map_err(|_| Problem::invalid(format!("invalid {name} `{}`", shown(text))))
}

/// Shortens text from outside.
fn shown(text: &str) -> String {
    text.chars().take(64).flat_map(char::escape_default).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What any text as a query gives: parameters that every reader of them accepts or refuses.
    #[test]
    fn no_query_breaks_what_reads_it() {
        let names = [&RAB_INFO[..], &["temp_ue_id", "subscription_type", LAYER2_NAMES[0]]].concat();
        bolero::check!().with_iterations(5000).with_type::<(Vec<(u8, String)>, String)>().for_each(|(pairs, raw)| {
            let known = |(name, value): &(u8, String)| format!("{}={value}", names[usize::from(*name) % names.len()]);
            let query: Vec<String> = pairs.iter().map(known).collect();
            for query in [&query.join("&"), raw] {
                let Ok(parameters) = Parameters::parse(Some(query), &names) else { continue };
                let _ = (parameters.bearers(), parameters.layer2(), parameters.kind());
                if let Ok(Some(values)) = parameters.list("cell_id") {
                    assert!((1..=MOST_VALUES).contains(&values.len()), "{query}");
                }
                if let Ok(selection) = parameters.selection() {
                    assert_eq!(selection.cells.is_some(), parameters.has("cell_id"), "{query}");
                }
            }
        });
    }
}
