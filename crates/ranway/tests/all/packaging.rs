//! What the packages add to the command: units, settings, manual pages and completions. `make package-test` installs them.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The bound on what `systemd-analyze security` computes; 10 is a service without any restriction.
const EXPOSURE: f64 = 3.0;
const SERVICES: [&str; 5] = ["backlog", "measure", "pep", "proxy", "rnis"];

fn packaging() -> PathBuf {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../packaging")).to_owned()
}

fn ranway(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_ranway")).args(args).output().expect("it runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Returns the text of a file of the repository.
fn file(path: &str) -> String {
    fs::read_to_string(packaging().join("..").join(path)).unwrap_or_else(|e| panic!("{path}: {e}"))
}

fn unit(service: &str) -> String {
    fs::read_to_string(packaging().join(format!("ranway-{service}.service"))).expect("it has a unit")
}

/// The values of a setting of a unit.
fn values<'a>(unit: &'a str, name: &str) -> Vec<&'a str> {
    unit.lines().filter_map(|line| line.strip_prefix(name)?.strip_prefix('=')).collect()
}

#[test]
fn each_unit_starts_a_service_with_settings_that_the_package_has() {
    let units = fs::read_dir(packaging()).expect("it is a folder");
    let units = units.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let names: BTreeSet<String> = units.filter(|name| name.ends_with(".service")).collect();
    let expected: BTreeSet<String> =
        SERVICES.iter().chain(&["mdcc"]).map(|service| format!("ranway-{service}.service")).collect();
    assert_eq!(names, expected);
    for service in SERVICES {
        let unit = unit(service);
        let starts = values(&unit, "ExecStart");
        let words: Vec<&str> = starts[0].split(' ').collect();
        assert_eq!((starts.len(), words[0]), (1, "/usr/bin/ranway"), "{service}");
        // Options precede those of the settings, whose file is in the package.
        let (tokens, files): (Vec<&str>, Vec<&str>) =
            values(&unit, "EnvironmentFile").into_iter().partition(|file| file.starts_with('-'));
        // `measure serve` has no page.
        assert_eq!(tokens == ["-/etc/ranway/dashboard.conf"], service != "measure", "{service}: {tokens:?}");
        let (options, settings) = match files[..] {
            [file] => {
                assert_eq!(words.last(), Some(&"$OPTIONS"), "{service}");
                (&words[1..words.len() - 1], file)
            }
            _ => (&words[1..], *words.last().expect("a file")),
        };
        let settings = settings.strip_prefix("/etc/ranway/").expect("settings are there");
        assert!(packaging().join("etc").join(settings).exists(), "{service}: {settings}");
        let output = ranway(&[options, &["--help"]].concat());
        assert!(output.status.success(), "{service}: {}", text(&output.stderr));
        // The unit's page of the manual is that of the command.
        let subcommands = options.iter().take_while(|word| !word.starts_with('-')).map(|word| format!("-{word}"));
        let page = format!("man:ranway{}(1)", subcommands.collect::<String>());
        assert_eq!(values(&unit, "Documentation"), [page], "{service}");
        // Interfaces may come back; addresses and settings do not become valid by themselves.
        let (gives_up, limit) = (values(&unit, "RestartPreventExitStatus"), values(&unit, "StartLimitIntervalSec"));
        let has_interfaces = ["proxy", "pep", "backlog"].contains(&service);
        assert_eq!((gives_up == ["2"], limit == ["0"]), (!has_interfaces, has_interfaces), "{service}");
        // Since invalid options look the same, what is tried for ever is tried slowly.
        assert_eq!(values(&unit, "RestartSec"), [if has_interfaces { "15" } else { "1" }], "{service}");
    }
    for page in ["install", "proxy"] {
        assert!(file(&format!("docs/src/{page}.md")).contains(" again every 15 s"), "{page}");
    }
}

#[test]
fn the_congestion_control_is_loaded_until_it_is_stopped() {
    let unit = unit("mdcc");
    assert_eq!(values(&unit, "ExecStart"), ["/usr/bin/ranway mdcc load $OPTIONS"]);
    assert_eq!(values(&unit, "ExecStop"), ["/usr/bin/ranway mdcc unload"]);
    assert_eq!((values(&unit, "Type"), values(&unit, "RemainAfterExit")), (vec!["oneshot"], vec!["yes"]));
    // Servers that listen earlier would not announce that they understand reports.
    assert_eq!(values(&unit, "Before"), ["network.target"]);
    assert!(
        ranway(&["mdcc", "load", "--help"]).status.success() && ranway(&["mdcc", "unload", "--help"]).status.success()
    );
    // An upgrade takes it from no connection.
    let package = file("crates/ranway/Cargo.toml");
    let line = package.lines().find(|line| line.contains("unit-name = \"ranway-mdcc\"")).expect("the package has it");
    assert!(line.contains("restart-after-upgrade = false, stop-on-upgrade = false"), "{line}");
}

#[test]
fn a_restart_of_the_pep_leaves_its_programs_attached() {
    let unit = unit("pep");
    assert_eq!(values(&unit, "Type"), ["notify"]);
    let most: u32 = values(&unit, "FileDescriptorStoreMax")[0].parse().expect("a number");
    // What `ranway pep` has kept: see `root_a_service_manager_restarts_a_pep_without_a_gap`.
    assert!(most >= 11, "{most}");
}

#[test]
fn the_proxy_has_a_place_for_sockets_a_bound_on_memory_and_settings_that_others_do_not_read() {
    let unit = unit("proxy");
    assert_eq!(values(&unit, "RuntimeDirectory"), ["ranway-proxy"]);
    assert_eq!(values(&unit, "SupplementaryGroups"), ["ranway"]);
    assert_eq!(values(&unit, "MemoryMax").len(), 1);
    assert!(file("packaging/etc/proxy.toml").contains("\"recording:unix:/run/ranway-proxy/reports\""));
    assert!(file("packaging/debian/postinst").contains("chgrp ranway /etc/ranway/proxy.toml"));
}

#[test]
fn the_examples_of_settings_are_valid() {
    let mut seen = 0;
    for service in SERVICES.iter().chain(&["mdcc"]).filter(|&&service| service != "proxy") {
        let unit = unit(service);
        let words: Vec<&str> = values(&unit, "ExecStart")[0].split(' ').filter(|word| *word != "$OPTIONS").collect();
        let path = packaging().join(format!("etc/{service}.conf"));
        for line in fs::read_to_string(path).expect("it has settings").lines() {
            assert!(line.is_empty() || line.starts_with('#'), "{service}: nothing is set: {line}");
            let Some(options) = line.strip_prefix("# OPTIONS=") else { continue };
            let options: Vec<&str> = options.split(' ').collect();
            // What precedes --help is parsed; nothing is run.
            let output = ranway(&[&words[1..], &options, &["--help"]].concat());
            assert!(output.status.success(), "{service}: {line}: {}", text(&output.stderr));
            seen += 1;
        }
    }
    assert!(seen >= 8, "only {seen}");
    let help = text(&ranway(&["proxy", "--help"]).stdout);
    let settings = fs::read_to_string(packaging().join("etc/proxy.toml")).expect("it has settings");
    let keys: Vec<&str> =
        settings.lines().filter_map(|line| Some(line.strip_prefix("# ")?.split_once(" = ")?.0)).collect();
    assert_eq!(keys, ["wan", "ran", "metrics", "reports", "connection-log", "ipfix", "dashboard"]);
    assert!(keys.iter().all(|key| help.contains(&format!("--{key} "))), "{help}");
}

#[test]
fn the_package_has_samples_and_all_settings_and_only_root_may_read_the_token() {
    let manifest = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml")).expect("it is there");
    let entries = fs::read_dir(packaging().join("etc")).expect("it is a folder");
    for name in entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()) {
        let mode = if name == "dashboard.conf" { "600" } else { "640" };
        let asset = format!("[\"../../packaging/etc/{name}\", \"etc/ranway/\", \"{mode}\"]");
        assert!(manifest.contains(&asset), "{asset}");
    }
    assert!(manifest.contains("[\"../../docs/samples/*\", \"usr/share/doc/ranway/samples/\", \"644\"]"));
    for (source, folder, names) in [
        ("grafana/*.json", "grafana", &["ranway.json", "ranway-services.json"][..]),
        ("prometheus/ranway.rules.yml", "prometheus", &["ranway.rules.yml"]),
    ] {
        let asset = format!("[\"../../packaging/{source}\", \"usr/share/ranway/{folder}/\", \"644\"]");
        assert!(manifest.contains(&asset), "{asset}");
        for name in names {
            assert!(packaging().join(folder).join(name).exists(), "{name}");
            assert!(file("docs/src/metrics.md").contains(&format!("`/usr/share/ranway/{folder}/{name}`")), "{name}");
        }
    }
    let settings = fs::read_to_string(packaging().join("etc/dashboard.conf")).expect("it has settings");
    assert!(settings.lines().all(|line| line.starts_with('#')), "nothing is set: {settings}");
    assert!(settings.contains("# RANWAY_DASHBOARD_TOKEN=\n"), "{settings}");
    // The page's thread drops its rights, which units without privileged system calls would refuse.
    for service in SERVICES.iter().filter(|&&service| service != "measure") {
        let unit = unit(service);
        let calls = values(&unit, "SystemCallFilter");
        let is_refused = calls.iter().any(|calls| calls.contains("~@privileged"));
        assert!(!is_refused || calls.iter().any(|calls| calls.contains("capset")), "{service}: {calls:?}");
    }
    // The page of the PEP is reachable on this machine, although its unit allows no other traffic.
    let unit = unit("pep");
    assert_eq!((values(&unit, "IPAddressDeny"), values(&unit, "IPAddressAllow")), (vec!["any"], vec!["localhost"]));
}

#[test]
fn what_a_service_writes_and_leaves_is_its_own() {
    for service in SERVICES {
        let unit = unit(service);
        // Results of `measure serve` are for the service's group, too.
        let mask = if service == "measure" { "0027" } else { "0077" };
        assert_eq!(values(&unit, "UMask"), [mask], "{service}");
        assert_eq!(
            (values(&unit, "KeyringMode"), values(&unit, "RemoveIPC")),
            (vec!["private"], vec!["yes"]),
            "{service}"
        );
    }
}

#[test]
fn each_unit_is_hardened() {
    let analysed = Command::new("systemd-analyze").arg("--version").output();
    if !testkit::root::has_program(analysed.is_ok(), "systemd-analyze") {
        return;
    }
    for service in SERVICES {
        let path = packaging().join(format!("ranway-{service}.service"));
        let output =
            Command::new("systemd-analyze").args(["security", "--offline=true", "--no-pager"]).arg(&path).output();
        let said = text(&output.expect("it runs").stdout);
        let exposure = said
            .split_once("Overall exposure level for ")
            .and_then(|(_, rest)| rest.split_once(": ")?.1.split(' ').next()?.parse::<f64>().ok());
        assert!(exposure.is_some_and(|exposure| exposure < EXPOSURE), "{service}: {exposure:?}: {said}");
        let unit = unit(service);
        assert!(values(&unit, "NoNewPrivileges") == ["yes"] && values(&unit, "DynamicUser") == ["yes"], "{service}");
    }
}

#[test]
fn each_subcommand_has_a_manual_page() {
    let dir = tempfile::tempdir().expect("a directory");
    let pages = dir.path().join("man");
    let output = ranway(&["man-pages", pages.to_str().expect("UTF-8")]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let reference = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/src/reference/command.md");
    let reference = fs::read_to_string(reference).expect("it is there");
    let commands = reference.lines().filter_map(|line| line.strip_prefix("## `")?.strip_suffix('`'));
    let expected: BTreeSet<String> = commands.map(|command| format!("{}.1", command.replace(' ', "-"))).collect();
    assert!(expected.len() > 20 && expected.contains("ranway-measure-serve.1"));
    let found = fs::read_dir(&pages).expect("they are written");
    let found: BTreeSet<String> = found.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect();
    assert_eq!(found, expected);
    let page = fs::read_to_string(pages.join("ranway-backlog.1")).expect("it is one");
    assert!(page.contains(".TH ranway-backlog 1"), "{page}");
    for part in ["\\-\\-modem", "Target delay", "bufferbloated modem", "ranway backlog \\-\\-modem wwan0"] {
        assert!(page.contains(part), "{part}: {page}");
    }
    // A file in its place is an error, not a panic.
    fs::write(dir.path().join("file"), "").expect("it is written");
    let file = dir.path().join("file").display().to_string();
    let output = ranway(&["man-pages", &file]);
    assert_eq!(output.status.code(), Some(1));
    let why = text(&output.stderr);
    assert!(why.starts_with(&format!("error: {file}: the manual pages")) && why.lines().count() == 1, "{why}");
}

#[test]
fn shells_accept_the_completions() {
    let dir = tempfile::tempdir().expect("a directory");
    for shell in ["bash", "zsh", "fish"] {
        let output = ranway(&["completion", shell]);
        assert!(output.status.success(), "{shell}");
        let script = text(&output.stdout);
        assert!(script.contains("reproduce") && script.contains("take-over"), "{shell}");
        assert!(!script.contains("proxy-guardian") && !script.contains("man-pages"), "{shell}: hidden commands");
        let path = dir.path().join(shell);
        fs::write(&path, script).expect("it is written");
        // bash is part of every system; the others are checked where they are installed.
        match Command::new(shell).arg("-n").arg(&path).output() {
            Ok(output) => assert!(output.status.success(), "{shell}: {}", text(&output.stderr)),
            Err(why) => assert_ne!(shell, "bash", "{why}"),
        }
    }
}

#[test]
fn completions_know_scenarios_presets_papers_and_keys() {
    let script = text(&ranway(&["completion", "bash"]).stdout);
    let dir = tempfile::tempdir().expect("a directory");
    fs::write(dir.path().join("lte-mine.toml"), "").expect("it is written");
    let complete = |words: &[&str]| {
        let line = words.iter().map(|word| format!("'{word}'")).collect::<Vec<_>>().join(" ");
        let (last, before) = (words.len() - 1, words.len().saturating_sub(2));
        let call = format!(
            "compopt() {{ :; }}; COMP_WORDS=({line}); COMP_CWORD={last}; COMPREPLY=(); \
             _ranway_known ranway '{}' '{}'; printf '%s\\n' \"${{COMPREPLY[@]}}\"",
            words[last], words[before]
        );
        // An argument may have 128 KiB at most.
        fs::write(dir.path().join("complete.sh"), format!("{script}\n{call}")).expect("it is written");
        let output = Command::new("bash").current_dir(dir.path()).arg("complete.sh").output();
        let output = output.expect("bash is there");
        text(&output.stdout).lines().map(str::to_owned).collect::<Vec<_>>()
    };
    let has = |words: &[&str], expected: &str| {
        let found = complete(words);
        assert!(found.iter().any(|name| name == expected), "{words:?}: {found:?}");
    };
    has(&["ranway", "run", "lte-d"], "lte-drive");
    has(&["ranway", "run", "--json", "lte-"], "lte-drive");
    has(&["ranway", "run", "lte-m"], "lte-mine.toml");
    has(&["ranway", "sweep", "loss"], "loss-sweep");
    has(&["ranway", "emulate", "lte-20"], "lte-20mhz-vehicular");
    has(&["ranway", "reproduce", "mdcc-t"], "mdcc-towards");
    has(&["ranway", "reproduce", "mdcc-towards/"], "mdcc-towards/wireless-loss");
    has(&["ranway", "run", "dumbbell", "--set", "links.*.de"], "links.*.delay=");
    has(&["ranway", "check", "dumbbell", "--set", "dura"], "duration=");
    has(&["ranway", "ru"], "run");
    let presets = text(&ranway(&["list"]).stdout);
    let preset = presets.split("Presets").nth(1).and_then(|list| list.lines().nth(1)).expect("there are presets");
    let preset = preset.split_whitespace().next().expect("it has a name");
    has(&["ranway", "show", preset], preset);
    assert!(!complete(&["ranway", "run", "--s"]).iter().any(|name| name == "lte-drive"));
}

#[test]
fn notes_of_a_release_are_the_changelogs_section_of_its_version() {
    let dir = tempfile::tempdir().expect("a directory");
    fs::create_dir(dir.path().join("tools")).expect("it is made");
    let script = dir.path().join("tools/release-notes");
    fs::copy(packaging().join("../tools/release-notes"), &script).expect("it is copied");
    let write = |name: &str, content: &str| fs::write(dir.path().join(name), content).expect("it is written");
    let manifest = "[workspace]\n[workspace.package]\nversion = \"1.2.0\"\nrepository = \"https://forge/us\"\n[profile.dev]\n\
                    version = \"9\"\nrepository = \"https://other\"\n";
    write("Cargo.toml", manifest);
    let notes = |tag: &str| {
        let output = Command::new("bash").arg(&script).arg(tag).output().expect("bash runs");
        (output.status.code(), text(&output.stdout), text(&output.stderr))
    };
    let log =
        "# Changelog\n\n## Unreleased\n\n- later\n\n## 1.2.0 (2026-05-01)\n\n### Added\n\n- this\n\n## 1.2\n\n- old\n";
    write("CHANGELOG.md", log);
    assert_eq!(notes("v1.2.0"), (Some(0), "\n### Added\n\n- this\n".into(), String::new()));
    // In the notes of a release, relative links would lead nowhere.
    write(
        "CHANGELOG.md",
        &log.replace("- this\n", "- [this](a/b.md#c), [that](d), [it](https://e/f) and [there](#g)\n"),
    );
    let links = "- [this](https://forge/us/blob/v1.2.0/a/b.md#c), [that](https://forge/us/blob/v1.2.0/d), \
                 [it](https://e/f) and [there](#g)\n";
    assert_eq!(notes("v1.2.0"), (Some(0), format!("\n### Added\n\n{links}"), String::new()));
    for tag in ["v1.2.1", "1.2.0", "v9", ""] {
        let (code, printed, said) = notes(tag);
        assert_eq!((code, printed.as_str(), said.lines().count()), (Some(2), "", 1), "{tag}: {said}");
        assert!(said.contains("expected v1.2.0"), "{tag}: {said}");
    }
    write("CHANGELOG.md", &log.replace("## 1.2.0", "## 1.3.0"));
    let why = "release-notes: CHANGELOG.md has no section \"## 1.2.0\"\n";
    assert_eq!(notes("v1.2.0"), (Some(2), String::new(), why.into()));
}

/// The forge's address: the repository of the workspace's manifest.
fn forge() -> String {
    let manifest = file("Cargo.toml");
    let line = manifest.lines().find_map(|line| line.strip_prefix("repository = \"")?.strip_suffix('"'));
    line.expect("the workspace has a repository").to_owned()
}

#[test]
fn packages_and_image_name_the_forge_of_the_workspace() {
    let forge = forge();
    assert!(file("Cargo.toml").contains(&format!("\nhomepage = \"{forge}\"\n")));
    for manifest in ["crates/ranway/Cargo.toml", "python/Cargo.toml"] {
        let manifest = file(manifest);
        assert!(manifest.contains("repository.workspace = true") && manifest.contains("homepage.workspace = true"));
    }
    let project = file("pyproject.toml");
    let (_, urls) = project.split_once("[project.urls]\n").expect("the project has addresses");
    let urls: Vec<&str> = urls.lines().take_while(|line| !line.is_empty()).collect();
    assert_eq!(urls.len(), 4, "{urls:?}");
    assert_eq!(urls[0], format!("Homepage = \"{forge}\""));
    assert!(urls.iter().all(|line| line.contains(&forge)), "{urls:?}");
    assert!(file("packaging/debian/copyright").contains(&format!("\nSource: {forge}\n")));
    let label = format!("org.opencontainers.image.source=\"{forge}\"");
    assert!(file("packaging/Containerfile").contains(&label), "{label}");
    // The image and the attestation have the forge's owner and repository.
    let name = forge.strip_prefix("https://github.com/").expect("the workflows are those of GitHub");
    let page = file("docs/src/install.md");
    for command in [format!("podman pull ghcr.io/{name}:latest\n"), format!("--repo {name}\n")] {
        assert!(page.contains(&command), "{command}");
    }
}

#[test]
fn a_release_is_public_after_all_else_is_published() {
    let workflow = file(".github/workflows/release.yml");
    let (_, jobs) = workflow.split_once("\njobs:\n").expect("it has jobs");
    let job = |name: &str| {
        let (_, rest) = jobs.split_once(&format!("\n  {name}:\n")).unwrap_or_else(|| panic!("job {name}"));
        let lines = rest.lines().take_while(|line| line.is_empty() || line.starts_with("    "));
        lines.map(|line| format!("{line}\n")).collect::<String>()
    };
    assert!(job("draft").contains("--notes-file notes.md --draft)\n"));
    assert!(job("publish").starts_with("    needs: [draft, container, python]\n"));
    assert!(job("publish").contains("--draft=false") && workflow.matches("--draft=false").count() == 1);
    // A second run of a job finds what the first has left.
    for part in
        ["gh release edit \"$GITHUB_REF_NAME\" \"${options[@]}\"", "gh release upload \"$GITHUB_REF_NAME\" --clobber"]
    {
        assert!(job("draft").contains(part), "{part}");
    }
    assert!(job("python").contains("skip-existing: true"));
    for name in ["container", "python", "publish"] {
        assert!(job(name).contains("    if: needs.draft.outputs.published != 'true'\n"), "{name}");
    }
}

#[test]
fn the_setup_takes_no_python_that_cannot_make_environments() {
    let setup = file("tools/setup");
    let (_, functions) = setup.split_once("\nmakes_environments()").expect("it looks for one");
    let (functions, _) = functions.split_once("\nstamp()").expect("it ends there");
    let script = format!(
        "set -euo pipefail\ndebian() {{ shift; echo \"needs $*\"; exit; }}\nmakes_environments(){functions}\nfind_python\n\
         echo \"takes $python\""
    );
    let dir = tempfile::tempdir().expect("a directory");
    let write = |name: &str, script: &str| {
        let path = dir.path().join(name);
        fs::write(&path, format!("#!/bin/sh\n{script}\n")).expect("it is written");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("it is ours");
    };
    let path = format!("{}:/usr/bin:/bin", dir.path().display());
    let found = || {
        let output = Command::new("bash").args(["-c", &script]).env("PATH", &path).output().expect("bash runs");
        assert!(output.status.success(), "{}", text(&output.stderr));
        text(&output.stdout)
    };
    // Debian's python3 without python3-venv: it has the module venv, but no ensurepip, which that needs.
    for name in ["python3.13", "python3.12", "python3.11", "python3"] {
        write(name, "case \"$*\" in *ensurepip*) exit 1 ;; esac");
    }
    assert_eq!(found(), "needs python3 python3-venv python3-dev\n");
    write("python3.12", "");
    assert_eq!(found(), "takes python3.12\n");
}
