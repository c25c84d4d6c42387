//! `cargo xtask package`: the wheel, the source distribution, the Debian package and their checksums, in `target/package`.
//!
//! The command is built once, with zig as the C compiler and linker, so that it needs no newer glibc than [`GLIBC`]; libelf and
//! zlib are linked into it. The wheel and the Debian package have the same bytes of it.

use crate::step::{output, step_with};
use crate::{bill, licences};
use anyhow::{Context, Result, bail};
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Where the packages are, and nothing else.
const OUT: &str = "target/package";
/// What packages are made of.
const BUILD: &str = "target/package-build";
/// The Python environment that `tools/setup package` makes.
const TOOLS: &str = "target/package-tools/bin";
/// The oldest glibc on which the packages run. `check_wheel` has auditwheel look for newer symbols.
const GLIBC: &str = "2.28";
/// Headers that libbpf includes, of libelf and zlib. zig looks for none in the system's folders.
const HEADERS: [&str; 4] = ["libelf.h", "gelf.h", "zlib.h", "zconf.h"];
const LIBRARIES: [&str; 2] = ["libelf.a", "libz.a"];

/// Builds all packages, and prints where they are.
pub(crate) fn package() -> Result<()> {
    let host = host()?;
    let _ = fs::remove_dir_all(OUT);
    fs::create_dir_all(OUT).context(OUT)?;
    fs::create_dir_all(BUILD).context(BUILD)?;
    let tools = Tools::find(&host)?;

    let target = format!("{host}.{GLIBC}");
    // The two builds have folders of their own: in one, either would make the other begin anew.
    let folder = format!("{BUILD}/command");
    let build = ["zigbuild", "--locked", "--release", "--package", "ranway", "--features", "static"];
    let build = [&build[..], &["--target", &target, "--target-dir", &folder]].concat();
    tools.run("the command", "cargo-zigbuild", &build)?;
    let command = format!("{BUILD}/ranway");
    tools.run("without symbols", "strip", &["-o", &command, &format!("{folder}/{host}/release/ranway")])?;
    check_places(&command)?;
    generated(&command)?;
    let list = bill_of_materials(&tools)?;
    let licences = format!("{BUILD}/THIRD-PARTY.txt");
    fs::write(&licences, licences::texts(&host)?)?;

    let policy = format!("manylinux_{}", GLIBC.replace('.', "_"));
    let folder = format!("{BUILD}/wheel");
    let build = ["build", "--locked", "--release", "--zig", "--target", &host, "--target-dir", &folder];
    let build = [&build[..], &["--compatibility", &policy, "--out", OUT]].concat();
    tools.run("the wheel", "maturin", &build)?;
    let wheel = only(".whl")?;
    let backend = "packaging/ranway_build.py";
    tools.run("the command in the wheel", "python", &[backend, "add-command", &wheel, &command, &list, &licences])?;
    check_wheel(&wheel, &policy, &tools)?;
    tools.run("the source distribution", "python", &[backend, "sdist", OUT])?;

    let build = ["deb", "--quiet", "--package", "ranway", "--no-build", "--no-strip", "--output", &format!("{OUT}/")];
    tools.run("the Debian package", "cargo", &build)?;

    let mut names: Vec<String> = files()?.iter().map(|path| name(path)).collect();
    names.sort();
    let output = Command::new("sha256sum").args(&names).current_dir(OUT).output().context("sha256sum")?;
    if !output.status.success() {
        bail!("sha256sum: {}", String::from_utf8_lossy(&output.stderr));
    }
    fs::write(format!("{OUT}/SHA256SUMS"), output.stdout)?;
    println!("packages in {OUT}:");
    for name in names {
        let size = fs::metadata(format!("{OUT}/{name}"))?.len();
        println!("  {:6.1} MB  {name}", size as f64 / 1e6);
    }
    println!("            SHA256SUMS\nfor a container: podman build -f packaging/Containerfile -t ranway {OUT}");
    Ok(())
}

/// The platform for which rustc builds by default.
fn host() -> Result<String> {
    let output = Command::new("rustc").arg("-vV").output().context("rustc")?;
    let said = String::from_utf8_lossy(&output.stdout);
    let host = said.lines().find_map(|line| line.strip_prefix("host: ")).context("rustc -vV names no host")?;
    if !host.ends_with("-linux-gnu") {
        bail!("packages are built on Linux with glibc, not on {host}");
    }
    Ok(host.to_owned())
}

/// The variables with which the steps run: where their programs are, and static libraries of the system.
struct Tools(Vec<(String, String)>);

impl Tools {
    fn find(host: &str) -> Result<Tools> {
        let root = std::env::current_dir()?;
        let (include, lib) = (root.join(BUILD).join("include"), root.join(BUILD).join("lib"));
        for folder in [&include, &lib] {
            fs::create_dir_all(folder)?;
        }
        let multiarch = format!("/usr/include/{}-linux-gnu", host.split('-').next().unwrap_or_default());
        for header in HEADERS {
            let places = ["/usr/include", &multiarch].map(|folder| Path::new(folder).join(header));
            let found = places.iter().find(|place| place.exists());
            let found = found.with_context(|| format!("{header} is missing: `tools/setup package` installs it"))?;
            fs::copy(found, include.join(header))?;
        }
        for library in LIBRARIES {
            let found = output("cc", &[&format!("-print-file-name={library}")])?;
            let found = PathBuf::from(String::from_utf8_lossy(&found).trim());
            if !found.is_absolute() {
                bail!("{library} is missing: `tools/setup package` installs it");
            }
            fs::copy(found, lib.join(library))?;
        }
        let mut path = OsString::from(root.join(TOOLS));
        path.push(":");
        path.push(std::env::var_os("PATH").unwrap_or_default());
        let path = path.into_string().ok().context("PATH is not UTF-8")?;
        let text = |path: PathBuf| path.display().to_string();
        let places = places()?;
        let renamed = |option: &str| {
            places.iter().map(|(path, name)| format!("{option}={path}={name}")).collect::<Vec<_>>().join(" ")
        };
        Ok(Tools(vec![
            ("PATH".into(), path),
            ("RUSTFLAGS".into(), renamed("--remap-path-prefix")),
            ("TARGET_CFLAGS".into(), renamed("-ffile-prefix-map")),
            ("CARGO_ZIGBUILD_PYTHON_PATH".into(), text(root.join(TOOLS).join("python"))),
            ("LIBBPF_SYS_EXTRA_CFLAGS".into(), format!("-I{} {}", text(include), renamed("-ffile-prefix-map"))),
            (format!("LIBBPF_SYS_LIBRARY_PATH_{}", host.replace('-', "_")), text(lib)),
        ]))
    }

    fn run(&self, what: &str, program: &str, args: &[&str]) -> Result<()> {
        let variables: Vec<(&str, &str)> = self.0.iter().map(|(name, value)| (&**name, &**value)).collect();
        step_with(&variables, what, program, args)
    }
}

/// Writes what the command generates: manual pages and completions. And what is new, as Debian has it.
fn generated(command: &str) -> Result<()> {
    let folder = Path::new(BUILD);
    let _ = fs::remove_dir_all(folder.join("man"));
    output(command, &["man-pages", &format!("{BUILD}/man")])?;
    fs::create_dir_all(folder.join("completions"))?;
    for (shell, file) in [("bash", "ranway"), ("zsh", "_ranway"), ("fish", "ranway.fish")] {
        fs::write(folder.join("completions").join(file), output(command, &["completion", shell])?)?;
    }
    fs::copy("CHANGELOG.md", folder.join("NEWS")).context("CHANGELOG.md")?;
    let date = output("git", &["log", "-1", "--format=%aD"]).ok();
    let date = date.map(|date| String::from_utf8_lossy(&date).trim().to_owned());
    let date = date.as_deref().unwrap_or("Tue, 01 Jan 1980 00:00:00 +0000");
    let version = env!("CARGO_PKG_VERSION");
    let changelog = format!(
        "ranway ({version}-1) unstable; urgency=medium\n\n  * See NEWS.gz.\n\n -- The Ranway authors \
         <ranway@users.noreply.invalid>  {date}\n"
    );
    fs::write(folder.join("changelog"), changelog)?;
    Ok(())
}

/// Where sources are, and what packages call these folders: where they were built is of no use to others.
fn places() -> Result<Vec<(String, &'static str)>> {
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home =
        home.or_else(|| Some(Path::new(&std::env::var_os("HOME")?).join(".cargo"))).context("HOME is not set")?;
    let mut places = vec![(std::env::current_dir()?, "ranway")];
    for registry in fs::read_dir(home.join("registry/src")).context("cargo has no registry yet")? {
        places.push((registry?.path(), "lib"));
    }
    Ok(places.into_iter().map(|(path, name)| (path.display().to_string(), name)).collect())
}

/// Checks that a program does not tell where it was built.
fn check_places(program: &str) -> Result<()> {
    let bytes = fs::read(program).context(program.to_owned())?;
    for (path, _) in places()? {
        if let Some(at) = bytes.windows(path.len()).position(|window| window == path.as_bytes()) {
            let end = bytes.len().min(at + 200);
            bail!("{program} tells where it was built: {}", String::from_utf8_lossy(&bytes[at..end]).escape_debug());
        }
    }
    Ok(())
}

/// Writes the list of the libraries in command and module (`CycloneDX`). cargo-cyclonedx puts one beside the manifest of each crate.
fn bill_of_materials(tools: &Tools) -> Result<String> {
    /// Of the command and of the module.
    const FOLDERS: [&str; 2] = ["crates/ranway", "python"];
    const STEM: &str = "target-of-xtask.cdx";
    let manifest = "crates/ranway/Cargo.toml";
    let args = ["cyclonedx", "--quiet", "--format", "json", "--features", "static", "--override-filename", STEM];
    let done = tools.run("the list of libraries", "cargo", &[&args[..], &["--manifest-path", manifest]].concat());
    let mut folders = vec![PathBuf::from("python"), PathBuf::from("xtask")];
    for entry in fs::read_dir("crates")? {
        folders.push(entry?.path());
    }
    let file = format!("{STEM}.json");
    let lists = FOLDERS.map(|folder| fs::read_to_string(Path::new(folder).join(&file)).context(folder));
    for folder in folders {
        let _ = fs::remove_file(folder.join(&file));
    }
    done?;
    let here = format!("{}/", std::env::current_dir()?.display());
    let lists = lists.into_iter().collect::<Result<Vec<_>>>().context("cargo cyclonedx wrote no list")?;
    let lists: Vec<String> = lists.iter().map(|list| list.replace(&here, "")).collect();
    let list = bill::joined(&lists, &licences::parts()?)?;
    let path = format!("{OUT}/ranway-{}.cdx.json", env!("CARGO_PKG_VERSION"));
    fs::write(&path, list)?;
    Ok(path)
}

/// Checks that module and command keep to the wheel's platform tag.
fn check_wheel(wheel: &str, policy: &str, tools: &Tools) -> Result<()> {
    println!("==> the wheel's platform: auditwheel show {wheel}");
    let mut command = Command::new("auditwheel");
    let shown = command.args(["show", wheel]).envs(tools.0.iter().cloned()).output().context("auditwheel")?;
    let said = String::from_utf8_lossy(&shown.stdout);
    let consistent = said.split_once("is consistent with").map(|(_, rest)| rest.split_whitespace().collect::<String>());
    // Of a wheel that keeps to an older one as well, auditwheel names that.
    let found = consistent.as_deref().and_then(|rest| rest.split("manylinux_").nth(1)).and_then(version);
    if !shown.status.success() || found.is_none() || found > version(policy.trim_start_matches("manylinux_")) {
        bail!("the wheel does not keep to {policy}: {said}{}", String::from_utf8_lossy(&shown.stderr));
    }
    Ok(())
}

/// Major and minor version at the beginning of, for example, `2_28_x86_64`.
fn version(text: &str) -> Option<(u32, u32)> {
    let digits = |text: &str| text.chars().take_while(char::is_ascii_digit).collect::<String>().parse().ok();
    let (major, rest) = text.split_once('_')?;
    Some((digits(major)?, digits(rest)?))
}

/// The packages so far.
fn files() -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(OUT).context(OUT)?;
    entries.map(|entry| Ok(entry?.path())).collect()
}

fn name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// The one package whose name ends in this.
fn only(ending: &str) -> Result<String> {
    let found: Vec<PathBuf> = files()?.into_iter().filter(|path| name(path).ends_with(ending)).collect();
    match &found[..] {
        [one] => Ok(one.display().to_string()),
        _ => bail!("{OUT} has {} files *{ending} where one is expected", found.len()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_of_platform_tags_are_compared_as_numbers() {
        assert_eq!(version("2_28_x86_64\"."), Some((2, 28)));
        assert_eq!(version("2_5_x86_64"), Some((2, 5)));
        assert!(version("2_5_x86_64") < version("2_28_x86_64"));
        assert_eq!(version("linux_x86_64"), None);
    }
}
