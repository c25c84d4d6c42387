//! Options of a command in a file.

use crate::failure::Failure;
use clap::Parser;
use clap::parser::ValueSource;
use std::ffi::OsString;
use std::path::Path;
use toml::{Table, Value};

/// Options that a file cannot contain.
const NOT_IN_FILES: [&str; 3] = ["config", "help", "version"];

/// Returns the options of a command line, which begins with the command's name, and where it gives none, those of a file.
///
/// # Errors
/// [`Failure::Invalid`] if the file cannot be read, or an option in it is unknown or invalid.
pub(super) fn read<P: Parser>(path: &Path, line: &[OsString]) -> Result<P, Failure> {
    let wrong = |why: String| Failure::Invalid(format!("{}: {why}", path.display()));
    let text = scenario::read_file(&path.to_string_lossy()).map_err(|error| wrong(error.to_string()))?;
    let line = parse(&text).and_then(|table| merge::<P>(line, &table)).map_err(wrong)?;
    P::try_parse_from(line).map_err(|error| wrong(one_line(&error)))
}

fn parse(text: &str) -> Result<Table, String> {
    text.parse::<Table>().map_err(|error| {
        let line = error.span().map(|span| text[..span.start].lines().count().max(1));
        let at = line.map(|line| format!("line {line}: ")).unwrap_or_default();
        format!("{at}{}", error.message().lines().collect::<Vec<_>>().join(" "))
    })
}

/// Inserts the options of a file into a command line, except those that it has.
fn merge<P: Parser>(line: &[OsString], table: &Table) -> Result<Vec<OsString>, String> {
    let mut command = P::command();
    let given = command.try_get_matches_from_mut(line).map_err(|error| one_line(&error))?;
    let options = || command.get_arguments().filter_map(|option| Some((option.get_long()?, option)));
    let known = || options().map(|(name, _)| name).filter(|name| !NOT_IN_FILES.contains(name));
    let mut merged = line[..1].to_vec();
    for (key, value) in table {
        let found = options().find(|(name, _)| name == key && !NOT_IN_FILES.contains(name));
        let Some((_, option)) = found else {
            let hint = scenario::nearest(key, known()).map(|name| format!("; did you mean `{name}`?"));
            return Err(format!("there is no option `{key}`{}", hint.unwrap_or_default()));
        };
        let has_value = option.get_action().takes_values();
        if given.value_source(option.get_id().as_str()) == Some(ValueSource::CommandLine) {
            continue;
        }
        match value {
            Value::Boolean(false) if !has_value => {}
            Value::Array(values) if values.is_empty() => {}
            Value::Boolean(true) if !has_value => merged.push(format!("--{key}").into()),
            value => merged.push(format!("--{key}={}", written(key, value)?).into()),
        }
    }
    merged.extend_from_slice(&line[1..]);
    Ok(merged)
}

/// Returns a value as one writes it on the command line.
fn written(key: &str, value: &Value) -> Result<String, String> {
    match value {
        Value::String(text) => Ok(text.clone()),
        Value::Integer(number) => Ok(number.to_string()),
        Value::Boolean(value) => Ok(value.to_string()),
        Value::Array(values) => {
            let each: Result<Vec<String>, String> = values.iter().map(|value| written(key, value)).collect();
            Ok(each?.join(","))
        }
        _ => Err(format!("`{key}` is a {}; expected a text, a whole number, true, false or a list", value.type_str())),
    }
}

/// Returns what is wrong, without the usage.
fn one_line(error: &clap::Error) -> String {
    let text = error.to_string();
    let what = text.split("\n\n").next().unwrap_or_default().trim_start_matches("error: ");
    what.lines().map(str::trim).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Parser)]
    struct Options {
        #[arg(long, required_unless_present = "config")]
        wan: Option<String>,
        #[arg(long, value_delimiter = ',', value_parser = clap::value_parser!(u16).range(1..))]
        ports: Vec<u16>,
        #[arg(long)]
        threads: Option<u16>,
        #[arg(long)]
        config: Option<String>,
        #[arg(long)]
        reports: Option<String>,
        #[arg(long, requires = "reports")]
        tick: Option<String>,
        #[arg(long, short)]
        quiet: bool,
        #[arg(long)]
        json: bool,
    }

    fn merged(line: &str, file: &str) -> Result<String, String> {
        let line = merge::<Options>(&line.split(' ').map(OsString::from).collect::<Vec<_>>(), &parse(file)?)?;
        match Options::try_parse_from(&line) {
            Ok(_) => Ok(line.join(" ".as_ref()).into_string().expect("it is text")),
            Err(error) => Err(one_line(&error)),
        }
    }

    #[test]
    fn the_command_line_precedes_the_file() {
        let file = "wan = 'a'\nports = [80, '443']\nthreads = 2\nquiet = true\njson = false";
        assert_eq!(
            merged("proxy --config f --threads 3", file).as_deref(),
            Ok("proxy --ports=80,443 --quiet --wan=a --config f --threads 3")
        );
    }

    #[test]
    fn what_is_wrong_in_a_file_is_said_in_one_line() {
        for (file, why) in [
            ("prots = 80", "there is no option `prots`; did you mean `ports`?"),
            ("config = 'x'", "there is no option `config`"),
            ("ports = 0", "invalid value '0' for '--ports <PORTS>': 0 is not in 1..=65535"),
            ("ports = 1.5", "`ports` is a float; expected a text, a whole number, true, false or a list"),
            ("json = 1", "unexpected value '1' for '--json' found; no more were expected"),
            ("tick = '5 ms'", "the following required arguments were not provided: --reports <REPORTS>"),
        ] {
            assert_eq!(merged("proxy --config f", file), Err(why.to_owned()), "{file}");
        }
        let why = parse("wan = 'a'\nran = ").expect_err("it is no TOML");
        assert!(why.starts_with("line 2: ") && !why.contains('\n'), "{why}");
    }

    #[test]
    fn no_file_breaks_the_proxy_and_each_fault_is_one_line() {
        let keys = ["wan", "ports", "threads", "reports", "tick", "quiet", "json", "config", "x"];
        let faults = |text: &str| {
            if let Err(why) = merged("proxy --config f", text) {
                assert!(!why.is_empty() && !why.contains('\n'), "{text:?}: {why}");
            }
        };
        bolero::check!().with_iterations(2000).with_type::<(Vec<(u8, u8, i64, String)>, String)>().for_each(
            |(options, raw)| {
                let option = |(key, kind, number, text): &(u8, u8, i64, String)| {
                    let value = match kind % 5 {
                        0 => number.to_string(),
                        1 => format!("{text:?}"),
                        2 => (number % 2 == 0).to_string(),
                        3 => format!("[{number}, {text:?}]"),
                        _ => text.clone(),
                    };
                    format!("{} = {value}\n", keys[usize::from(*key) % keys.len()])
                };
                faults(&options.iter().map(option).collect::<String>());
                faults(raw);
            },
        );
    }
}
