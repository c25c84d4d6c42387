//! The names that completion scripts know beside commands and options: built-in scenarios, presets and papers, and the keys of
//! `--set`. They are part of the script, so that completing one starts no process.

use clap::{Arg, Command, ValueHint};
use clap_complete::Shell;
use std::collections::BTreeSet;
use std::fmt::Write as _;

/// Stands for each kind of name in zsh's script, with the action to which `clap_complete` turns it. No option of the command has them.
const HINTS: [(Kind, ValueHint, &str); 4] = [
    (Kind::Scenario, ValueHint::EmailAddress, "_email_addresses"),
    (Kind::Key, ValueHint::Url, "_urls"),
    (Kind::File, ValueHint::Username, "_users"),
    (Kind::Paper, ValueHint::Hostname, "_hosts"),
];

/// A kind of name.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// A built-in scenario, or a file.
    Scenario,
    /// A key of scenarios, before `=`.
    Key,
    /// A built-in scenario or preset.
    File,
    /// A paper, or an experiment of one.
    Paper,
}

impl Kind {
    /// What a command's argument is.
    fn of(command: &Command, arg: &Arg) -> Option<Kind> {
        let has_keys = command.get_arguments().any(|arg| arg.get_id() == "set");
        match (command.get_name(), arg.get_id().as_str()) {
            (_, "set") => Some(Kind::Key),
            (_, "file") if has_keys => Some(Kind::Scenario),
            ("show", "name") => Some(Kind::File),
            ("reproduce", "which") => Some(Kind::Paper),
            _ => None,
        }
    }

    /// The name of the variable or function with its names.
    fn variable(self) -> &'static str {
        match self {
            Kind::Scenario => "_ranway_scenarios",
            Kind::Key => "_ranway_keys",
            Kind::File => "_ranway_files",
            Kind::Paper => "_ranway_papers",
        }
    }

    /// Its names; of keys, with the `=` that follows.
    fn names(self) -> Vec<String> {
        let names = |files: &[scenario::builtin::Builtin]| files.iter().map(|file| file.name.to_owned()).collect();
        let scenarios: Vec<String> = names(scenario::builtin::list());
        match self {
            Kind::Scenario => scenarios,
            Kind::File => {
                let mut all: Vec<String> = names(scenario::builtin::presets());
                all.retain(|name| !scenarios.contains(name));
                scenarios.into_iter().chain(all).collect()
            }
            Kind::Key => scenario::keys().iter().map(|key| format!("{key}=")).collect(),
            Kind::Paper => {
                let of = |paper: &reproduce::Paper| {
                    let own = paper.experiments.iter().filter(|_| paper.settings.is_empty());
                    let experiments = own.map(|experiment| format!("{}/{}", paper.name, experiment.id()));
                    [paper.name.to_string()].into_iter().chain(experiments).collect::<Vec<_>>()
                };
                reproduce::papers().iter().flat_map(of).collect()
            }
        }
    }
}

/// The commands that take names.
pub(super) struct Names {
    kinds: Vec<(String, Kind)>,
    /// The options of these commands after which there is a value.
    valued: BTreeSet<String>,
}

impl Names {
    pub(super) fn of(command: &Command) -> Names {
        let of = |command: &Command| {
            let kinds = command.get_arguments().filter_map(|arg| Kind::of(command, arg));
            kinds.map(|kind| (command.get_name().to_owned(), kind)).collect::<Vec<_>>()
        };
        let kinds: Vec<(String, Kind)> = command.get_subcommands().flat_map(of).collect();
        let takes_names = |command: &&Command| kinds.iter().any(|(name, _)| name == command.get_name());
        let options = command.get_subcommands().filter(takes_names).flat_map(Command::get_opts);
        let valued = options.filter(|option| option.get_action().takes_values()).flat_map(|option| {
            let long = option.get_long().map(|long| format!("--{long}"));
            long.into_iter().chain(option.get_short().map(|short| format!("-{short}")))
        });
        Names { valued: valued.collect(), kinds }
    }

    /// Returns the command whose arguments have the hints that stand for names.
    pub(super) fn marked(&self, command: Command) -> Command {
        let mark = |of: Command| {
            let kinds: Vec<_> = of.get_arguments().map(|arg| (arg.get_id().clone(), Kind::of(&of, arg))).collect();
            of.mut_args(|arg| {
                let kind = kinds.iter().find(|(id, _)| id == arg.get_id()).and_then(|(_, kind)| *kind);
                let hint = HINTS.iter().find(|(other, ..)| Some(*other) == kind).map(|(_, hint, _)| *hint);
                hint.map_or(arg.clone(), |hint| arg.value_hint(hint))
            })
        };
        command.mut_subcommands(mark)
    }

    /// Completes the script for a shell.
    pub(super) fn complete(&self, shell: Shell, script: String) -> String {
        match shell {
            Shell::Bash => script + &self.bash(),
            Shell::Zsh => Names::zsh(&script),
            Shell::Fish => script + &self.fish(),
            _ => script,
        }
    }

    /// A function around the generated one. bash divides words at `=` as well.
    fn bash(&self) -> String {
        let valued: Vec<&str> = self.valued.iter().map(String::as_str).collect();
        let mut text = format!("\n_ranway_valued=\"{}\"\n", valued.join(" "));
        let mut cases = String::new();
        for kind in HINTS.map(|(kind, ..)| kind) {
            let _ = writeln!(text, "{}=\"{}\"", kind.variable(), kind.names().join(" "));
            let commands: Vec<&str> =
                self.kinds.iter().filter(|(_, of)| *of == kind).map(|(name, _)| name.as_str()).collect();
            if kind != Kind::Key && !commands.is_empty() {
                let _ = writeln!(cases, "        {}) names=${} ;;", commands.join("|"), kind.variable());
            }
        }
        text + "
_ranway_known() {
    local cur=\"${COMP_WORDS[COMP_CWORD]}\" prev=\"${COMP_WORDS[COMP_CWORD-1]}\" names=\"\"
    if [[ ${prev} == --set ]]; then
        COMPREPLY=( $(compgen -W \"${_ranway_keys}\" -- \"${cur}\") )
        compopt -o nospace
        return 0
    fi
    _ranway \"$@\"
    if [[ ${cur} == -* || ${COMP_CWORD} -lt 2 || \" ${_ranway_valued} \" == *\" ${prev} \"* ]]; then
        return 0
    fi
    case \"${COMP_WORDS[1]}\" in
" + &cases + "        *) return 0 ;;
    esac
    COMPREPLY+=( $(compgen -W \"${names}\" -- \"${cur}\") $(compgen -f -- \"${cur}\") )
}

complete -F _ranway_known -o nosort -o bashdefault -o default ranway
"
    }

    /// The actions that stand for names are replaced, and their functions are at the script's begin, below the line for the system.
    fn zsh(script: &str) -> String {
        let mut functions = String::new();
        for kind in HINTS.map(|(kind, ..)| kind) {
            let (variable, names) = (kind.variable(), kind.names().join(" "));
            let _ = match kind {
                Kind::Key => writeln!(functions, "{variable}() {{ compadd -S '' -- {} }}", quoted(&kind.names())),
                _ => writeln!(functions, "{variable}() {{ _alternative 'names:name:({names})' 'files:file:_files' }}"),
            };
        }
        let script = HINTS.iter().fold(script.to_owned(), |script, (kind, _, action)| {
            script.replace(&format!(":{action}'"), &format!(":{}'", kind.variable()))
        });
        let (head, rest) = script.split_once('\n').unwrap_or((&script, ""));
        format!("{head}\n\n{functions}{rest}")
    }

    /// Further candidates; those of the generated script stay.
    fn fish(&self) -> String {
        let mut text = String::new();
        for kind in HINTS.map(|(kind, ..)| kind) {
            let _ = writeln!(text, "set -g {} {}", kind.variable(), quoted(&kind.names()));
        }
        for (command, kind) in &self.kinds {
            let option = if *kind == Kind::Key { "-l set -r " } else { "" };
            let when = format!("__fish_ranway_using_subcommand {command}");
            let _ = writeln!(text, "complete -c ranway -n \"{when}\" {option}-a \"${}\"", kind.variable());
        }
        text
    }
}

/// Words that no shell takes for patterns.
fn quoted(words: &[String]) -> String {
    words.iter().map(|word| format!("'{word}'")).collect::<Vec<_>>().join(" ")
}
