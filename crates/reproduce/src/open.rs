//! Reads papers' folders, and reports what is wrong with one.

use crate::check::{Check, Origin, Published, PublishedRow, rounding};
use crate::folder::{Error, Folder, PAPERS};
use crate::paper::{Experiment, Paper, PaperFile};
use crate::pattern::is_flow;
use crate::points::At;
use record::Point;
use std::collections::BTreeSet;
use std::path::Path;

/// The file that makes a folder a paper's folder.
const PAPER: &str = "paper.toml";
/// The published numbers.
const PUBLISHED: &str = "published.csv";
/// The head of `published.csv`.
const COLUMNS: [&str; 8] = ["experiment", "variant", "parameter", "metric", "unit", "value", "ci95", "where"];

/// Returns the built-in papers and their variants, ordered by name.
///
/// # Panics
/// If a file of `papers/` is invalid: they are embedded in the program, and a test reads them all.
pub fn papers() -> Vec<Paper> {
    let names = PAPERS.dirs().map(|dir| dir.path().to_string_lossy().into_owned());
    let read = |name: String| read(&Folder::BuiltIn(name.clone()), name).unwrap_or_else(|e| panic!("papers/{e}"));
    let mut papers: Vec<Paper> = names.flat_map(read).collect();
    papers.sort_by(|a, b| a.name.cmp(&b.name));
    papers
}

/// Returns whether `dir` is a directory with a `paper.toml`.
#[allow(clippy::disallowed_methods, reason = "a user's folder is on the disk")]
pub fn is_folder(dir: &Path) -> bool {
    dir.join(PAPER).is_file()
}

impl Paper {
    /// Reads and checks the paper's folder `dir`, whose format `papers/README.md` explains, and returns the paper and
    /// its variants. The paper is named after the directory.
    ///
    /// # Errors
    /// The first fault in its files, with file and line.
    #[allow(clippy::disallowed_methods, reason = "a user's folder is on the disk")]
    pub fn open(dir: &Path) -> Result<Vec<Paper>, Error> {
        let text = dir.to_str().ok_or_else(|| Error {
            file: dir.to_string_lossy().into_owned(),
            what: "the folder's name is not UTF-8 text".into(),
        })?;
        let folder = Folder::Directory(if text == "/" { String::new() } else { text.trim_end_matches('/').into() });
        // `.` and `..` have no name of their own.
        let name = dir.canonicalize().ok().and_then(|dir| Some(dir.file_name()?.to_str()?.to_owned()));
        let papers = read(&folder, name.unwrap_or_else(|| "paper".into()))?;
        papers.iter().try_for_each(Paper::check)?;
        Ok(papers)
    }

    fn folder(&self) -> &Folder {
        // `read` rejects a paper without experiments.
        &self.experiments[0].folder
    }

    /// Checks that everything can be compared: finds rows without an experiment, and checks without a row or a point;
    /// for a variant, in each of its settings.
    fn check(&self) -> Result<(), Error> {
        if self.settings.len() > 1 {
            for setting in &self.settings {
                Paper { settings: Vec::new(), ..self.with(setting) }.check()?;
            }
        }
        let toml = |what: String| self.folder().error(PAPER, None, what);
        let mut names = BTreeSet::new();
        for experiment in &self.experiments {
            if experiment.name.is_empty() || experiment.name.contains(['/', '\0']) || experiment.name.starts_with('.') {
                let what = "an experiment's name must have at least one letter, no `/` and no leading dot";
                return Err(toml(format!("experiment `{}`: {what}", experiment.name)));
            }
            if !names.insert(experiment.id()) {
                return Err(toml(format!("duplicate experiment `{}`", experiment.id())));
            }
        }
        for row in &self.published {
            if !self.experiments.iter().any(|e| e.name == row.experiment) {
                let known: Vec<&str> = self.experiments.iter().map(|e| e.name.as_str()).collect();
                let what = format!("unknown experiment `{}`; {PAPER} has {}", row.experiment, known.join(", "));
                return Err(self.folder().error(PUBLISHED, Some(row.line), what));
            }
        }
        self.experiments.iter().try_for_each(|experiment| {
            experiment.check(&self.published).map_err(|what| toml(format!("experiment `{}`: {what}", experiment.name)))
        })
    }
}

impl Experiment {
    /// Takes over the checks and figures of the experiment that it is `like`, one of `before`, and the reasons by metric.
    fn share(&mut self, before: &[Experiment]) -> Result<(), String> {
        let rows: Vec<String> = self.checks.iter().map(Check::row).collect();
        if let Some(twice) = (1..rows.len()).find(|&i| rows[..i].contains(&rows[i])) {
            return Err(format!("two checks of {}; a row has one", rows[twice]));
        }
        if let Some(like) = &self.like {
            let Some(other) = before.iter().find(|other| other.name == *like) else {
                return Err(format!("`like`: no experiment `{like}` before it"));
            };
            // Its own check of a row replaces the one that it would share.
            let is_own = |check: &&Check| self.checks.iter().any(|own| own.row() == check.row());
            let mut checks: Vec<Check> = other.checks.iter().filter(|check| !is_own(check)).cloned().collect();
            checks.iter_mut().for_each(|check| check.why = None);
            self.checks = [checks, core::mem::take(&mut self.checks)].concat();
            self.figures = other.figures.iter().cloned().chain(core::mem::take(&mut self.figures)).collect();
        }
        for (metric, why) in &self.why {
            let mut checks = self.checks.iter_mut().filter(|check| check.metric == *metric).peekable();
            if checks.peek().is_none() {
                return Err(format!("`why` names an unknown metric `{metric}`"));
            }
            checks.filter(|check| check.why.is_none()).for_each(|check| check.why = Some(why.clone()));
        }
        Ok(())
    }

    fn check(&self, published: &[PublishedRow]) -> Result<(), String> {
        let rows: Vec<&PublishedRow> = published.iter().filter(|row| row.experiment == self.name).collect();
        if rows.is_empty() {
            return Err(format!("it has no row in {PUBLISHED}"));
        }
        let loaded = self.load(&[]).map_err(|e| e.to_string())?;
        let Some(loaded) = loaded else {
            let empty = self.checks.is_empty() && self.figures.is_empty();
            return if empty { Ok(()) } else { Err("it has checks or figures, but no `scenario`".into()) };
        };
        let points: Vec<Point> = loaded.points().iter().map(|p| Point { values: p.values() }).collect();
        let flows = loaded.points().iter().flat_map(|point| &point.scenario.flows).map(|flow| flow.name.as_str());
        let flows: BTreeSet<&str> = flows.collect();
        let is_sampled = loaded.points().iter().all(|point| point.scenario.record.samples.interval().is_some());
        let unsampled = || "it needs samples; set `record.samples` to an interval, such as \"100 ms\"".to_owned();
        for check in &self.checks {
            let fits = check.fits(&rows, &points, &flows);
            let fits = fits
                .and_then(|()| if is_sampled || !check.measure.needs_samples() { Ok(()) } else { Err(unsampled()) });
            fits.map_err(|what| format!("check of {}: {what}", check.row()))?;
        }
        let is_known = |of: &str| flows.iter().any(|flow| is_flow(of, flow));
        let radios = loaded.points().iter().filter_map(|point| point.scenario.radio.as_ref());
        let ues: BTreeSet<&str> = radios.flat_map(|radio| &radio.ues).map(|ue| ue.name.as_str()).collect();
        for figure in &self.figures {
            if let Some(fault) = figure.fault(is_known, |ue| ues.contains(ue)) {
                return Err(format!("figure `{}`: {fault}", figure.title()));
            }
            if !is_sampled && figure.needs_samples() {
                return Err(format!("figure `{}`: {}", figure.title(), unsampled()));
            }
        }
        let unfit = self.figures.iter().find(|figure| !figure.fits(&points));
        unfit.map_or(Ok(()), |figure| {
            Err(format!("figure `{}`: a line or a key matches no point of the scenario's sweep", figure.title()))
        })
    }
}

impl Check {
    /// Checks that it compares one row of `rows`, at `points` of the sweep, with a measure of `flows`.
    fn fits(&self, rows: &[&PublishedRow], points: &[Point], flows: &BTreeSet<&str>) -> Result<(), String> {
        let row = match rows.iter().filter(|row| self.answers(row)).collect::<Vec<_>>()[..] {
            [row] => row,
            [] => {
                return Err(format!("no such row in {PUBLISHED}; variant, parameter and metric must match"));
            }
            _ => return Err(format!("several such rows in {PUBLISHED}")),
        };
        if !matches!(row.value, Some(Published::Number(_))) && self.claim_of(row).is_none() {
            return Err(
                "the published value is neither a number nor a claim (`>=x`, `<=x`, `±x`, `a..b`), and there is \
                        no `expect`, `rising` or `falling`"
                    .into(),
            );
        }
        if let Some(fault) = self.fault(row) {
            return Err(fault);
        }
        if let Some(fault) = self.measure.fault() {
            return Err(fault.into());
        }
        let unknown = |of: &&str| !flows.iter().any(|flow| is_flow(of, flow));
        if let Some(unknown) = self.measure.flows().into_iter().find(unknown) {
            let known: Vec<&str> = flows.iter().copied().collect();
            return Err(format!("the scenario has no flow `{unknown}`; it has {}", known.join(", ")));
        }
        let at: Vec<&Point> = points.iter().filter(|point| self.is_at(point)).collect();
        if at.is_empty() {
            return Err(format!("`point` matches no point of the scenario's sweep{}", example(points)));
        }
        let others = |point: &Point, against: &At| points.iter().filter(|other| against.leads(point, other)).count();
        let lonely = at.iter().any(|point| self.against.as_ref().is_some_and(|against| others(point, against) != 1));
        if lonely {
            return Err(format!("`against` matches no point of the scenario's sweep, or several{}", example(points)));
        }
        if let Some(itself) = at.iter().find(|point| self.against.as_ref().is_some_and(|it| it.leads(point, point))) {
            return Err(format!("`against` compares a point with itself: {}", itself.label()));
        }
        // A trend along a key needs a step in it.
        let steps = |key: &String| at.iter().any(|point| at.iter().any(|other| differs_in(key, point, other)));
        self.along().find(|key| !steps(key)).map_or(Ok(()), |key| {
            let what = "no two points of the check differ only in it; name a swept key with several values";
            Err(format!("the trend along `{key}`: {what}{}", example(points)))
        })
    }
}

/// Returns whether two points differ in the value of `key`, and in nothing else.
pub(crate) fn differs_in(key: &str, point: &Point, other: &Point) -> bool {
    point.values.iter().all(|(k, value)| (k == key) != (other.values.get(k) == Some(value)))
        && point.values.contains_key(key)
}

/// Describes a point of the sweep in an error.
fn example(points: &[Point]) -> String {
    match points.first() {
        Some(point) if !point.values.is_empty() => format!("; one of {} is {}", points.len(), point.label()),
        _ => "; it has no `[sweep]`".into(),
    }
}

/// Reads the files of a paper's folder: the paper and its variants.
fn read(folder: &Folder, name: String) -> Result<Vec<Paper>, Error> {
    let text = folder.file(PAPER)?;
    let file: PaperFile = toml::from_str(&text).map_err(|e| {
        let line = e.span().map(|span| text[..span.start.min(text.len())].matches('\n').count() as u64 + 1);
        folder.error(PAPER, line, e.message().replace('\n', " "))
    })?;
    if file.experiments.is_empty() {
        return Err(folder.error(PAPER, None, "no `[[experiments]]`"));
    }
    let published = published(folder, &folder.file(PUBLISHED)?)?;
    let mut experiments = file.experiments;
    for i in 0..experiments.len() {
        let (before, rest) = experiments.split_at_mut(i);
        rest[0].folder = folder.clone();
        rest[0]
            .share(before)
            .map_err(|what| folder.error(PAPER, None, format!("experiment `{}`: {what}", rest[0].name)))?;
    }
    for (i, variant) in file.variants.iter().enumerate() {
        let wrong = |what: String| Err(folder.error(PAPER, None, format!("variant `{}`: {what}", variant.name)));
        let plain =
            |name: &str| !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || "-_".contains(c));
        if !plain(&variant.name) || file.variants[..i].iter().any(|other| other.name == variant.name) {
            return wrong("a variant's name must consist of letters, digits, `-` and `_`, and be unique".into());
        }
        if let Some(empty) = variant.unstated.iter().find(|unstated| unstated.choices.is_empty()) {
            return wrong(format!("`{}` has no choices", empty.what));
        }
        if let Some(fault) = variant.rows.iter().find_map(|rows| rows.fault(&experiments)) {
            return wrong(format!("`rows`: {fault}"));
        }
        if let Some(unknown) = variant.experiments.iter().find(|name| !experiments.iter().any(|e| e.name == **name)) {
            return wrong(format!("`experiments` names an unknown experiment `{unknown}`"));
        }
    }
    let (title, authors) = (file.title, file.authors);
    let paper = Paper { title, authors, experiments, published, name, settings: Vec::new() };
    let variants = file.variants.iter().map(|variant| {
        paper.variant(variant).map_err(|what| folder.error(PAPER, None, format!("variant `{}`: {what}", variant.name)))
    });
    let variants = variants.collect::<Result<Vec<_>, _>>()?;
    Ok([vec![paper], variants].concat())
}

/// Reads `published.csv`.
fn published(folder: &Folder, text: &str) -> Result<Vec<PublishedRow>, Error> {
    let mut reader = csv::ReaderBuilder::new().comment(Some(b'#')).from_reader(text.as_bytes());
    let wrong = |e: csv::Error| {
        let line = e.position().map(|position| line_of(text, position));
        let what = match e.kind() {
            csv::ErrorKind::UnequalLengths { expected_len, len, .. } => {
                format!("{len} fields instead of {expected_len} ({})", COLUMNS.join(","))
            }
            _ => e.to_string(),
        };
        folder.error(PUBLISHED, line, what)
    };
    if reader.headers().map_err(wrong)?.iter().ne(COLUMNS) {
        return Err(folder.error(PUBLISHED, None, format!("the first line must be {}", COLUMNS.join(","))));
    }
    let rows = reader.records().map(|row| {
        let row = row.map_err(wrong)?;
        let line = row.position().map_or(0, |position| line_of(text, position));
        let field = |i: usize| row.get(i).unwrap_or_default().to_owned();
        let fault = |what: String| folder.error(PUBLISHED, Some(line), what);
        let value = match (field(5), field(5).parse::<f64>()) {
            (text, _) if text.is_empty() => None,
            (text, Err(_)) => Some(Published::Text(text)),
            (_, Ok(value)) if value.is_finite() => Some(Published::Number(value)),
            (text, Ok(_)) => return Err(fault(format!("value: `{text}` is not a finite number"))),
        };
        let ci95 = match (field(6), field(6).parse()) {
            (text, _) if text.is_empty() => None,
            (_, Ok(width)) if (0.0..=f64::MAX).contains(&width) => Some(width),
            (text, Ok(_)) => return Err(fault(format!("ci95: `{text}` is not a finite number from 0 on"))),
            (text, Err(_)) => return Err(fault(format!("ci95: `{text}` is not a number"))),
        };
        let rounding = rounding(&field(5));
        let [experiment, variant, parameter, metric, unit] = [0, 1, 2, 3, 4].map(field);
        let place = field(7);
        let origin = Origin::parse(&place).map_err(fault)?;
        Ok(PublishedRow { experiment, variant, parameter, metric, unit, value, rounding, ci95, place, origin, line })
    });
    rows.collect()
}

/// Returns the line of the record at `position`, which the reader counts from before the comments above it.
fn line_of(text: &str, position: &csv::Position) -> u64 {
    let from = text.get(position.byte() as usize..).unwrap_or_default();
    position.line() + from.lines().take_while(|line| line.is_empty() || line.starts_with('#')).count() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHECK: &str = "variant = 'v'\nparameter = ''\nmetric = 'm'\nmeasure = { kind = 'goodput', flow = '*' }";

    /// An experiment of wireless-loss.toml, which sweeps `cc` and `loss`, and a claim in words; `tables` are its own.
    fn experiment(tables: &str) -> (Experiment, [PublishedRow; 1]) {
        let text = format!("name = 'one'\nabout = ''\nscenario = 'wireless-loss.toml'\n{tables}");
        let mut experiment: Experiment = toml::from_str(&text).unwrap();
        experiment.folder = Folder::BuiltIn("mdcc-towards".into());
        let [one, v, m] = ["one", "v", "m"].map(str::to_owned);
        (experiment, [PublishedRow { experiment: one, variant: v, metric: m, ..PublishedRow::default() }])
    }

    fn check(keys: &str) -> Result<(), String> {
        let (experiment, rows) = experiment(&format!("[[checks]]\n{CHECK}\n{keys}"));
        experiment.check(&rows)
    }

    #[test]
    fn a_trend_needs_a_swept_key_with_several_values() {
        for (keys, hint) in [
            ("rising = ['nosuch']", "the trend along `nosuch`"),
            ("rising = ['loss']\npoint = { loss = 1e-4 }", "the trend along `loss`"),
            ("falling = ['cc', 'loss']\npoint = { cc = 'mdcc' }", "the trend along `cc`"),
        ] {
            let said = check(keys).expect_err(keys);
            assert!(said.contains(hint) && said.contains("name a swept key with several values"), "{said}");
        }
        assert_eq!(check("rising = ['loss']\npoint = { cc = 'mdcc' }"), Ok(()));
    }

    #[test]
    fn a_point_is_not_compared_with_itself() {
        let said = check("against = { cc = 'cubic' }\nexpect = '>=1'").expect_err("cubic is among the points");
        assert!(said.contains("`against` compares a point with itself: cc = cubic"), "{said}");
        assert_eq!(check("point = { cc = 'mdcc' }\nagainst = { cc = 'cubic' }\nexpect = '>=1'"), Ok(()));
    }

    #[test]
    fn a_row_has_one_check_and_its_own_replaces_a_shared_one() {
        let expecting = |expect: &str| format!("[[checks]]\n{CHECK}\nexpect = '{expect}'\n");
        let (mut twice, _) = experiment(&(expecting(">=1") + &expecting(">=2")));
        let said = twice.share(&[]).expect_err("there are two");
        assert_eq!(said, "two checks of `v`, ``, `m`; a row has one");
        let (first, _) = experiment(&expecting(">=1"));
        for (own, expected) in [("", ">=1"), (&*expecting(">=2"), ">=2")] {
            let (mut second, _) = experiment(&format!("like = 'one'\n{own}"));
            second.share(core::slice::from_ref(&first)).unwrap();
            let expects: Vec<_> = second.checks.iter().map(|check| check.expect.as_deref()).collect();
            assert_eq!(expects, [Some(expected)]);
        }
    }

    #[test]
    fn a_measure_of_samples_needs_samples() {
        let of = |measure: &str| {
            let check = format!("variant = 'v'\nparameter = ''\nmetric = 'm'\nexpect = '>=1'\nmeasure = {measure}");
            let (mut experiment, rows) = experiment(&format!("[[checks]]\n{check}"));
            experiment.set = vec!["record.samples=off".into()];
            experiment.check(&rows)
        };
        for measure in
            ["{ kind = 'rtt', flow = '*' }", "{ kind = 'tests', tests = '*', of = 'second-goodput', at = 'mean' }"]
        {
            let said = of(measure).expect_err(measure);
            assert!(said.contains("it needs samples; set `record.samples` to an interval"), "{said}");
        }
        assert_eq!(of("{ kind = 'goodput', flow = '*' }"), Ok(()));
    }

    #[test]
    fn the_built_in_papers_are_valid() {
        for paper in papers() {
            paper.check().unwrap_or_else(|e| panic!("papers/{e}"));
        }
    }
}
