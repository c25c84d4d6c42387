//! Compiles the programs in `src/bpf`, and generates a loader module for each.
// A build script has to read its environment.
#![allow(clippy::disallowed_methods)]

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::Command;

use libbpf_cargo::SkeletonBuilder;

/// The same warnings as elsewhere; parameters required by a libbpf macro or a callback's type may be unused.
const ARGUMENTS: [&str; 6] = ["-mcpu=v3", "-Wall", "-Wextra", "-Wshadow", "-Werror", "-Wno-unused-parameter"];

fn main() {
    println!("cargo:rerun-if-changed=src/bpf");
    let clang = std::env::var("CLANG").unwrap_or_else(|_| "clang".into());
    println!("cargo:rerun-if-env-changed=CLANG");
    if Command::new(&clang).arg("--version").output().is_err() {
        println!("cargo::error=`{clang}` is missing: `tools/setup build` installs it");
        return;
    }
    // What libbpf-sys has built: its `links` key lets us know.
    let headers = std::env::var_os("DEP_BPF_INCLUDE").expect("libbpf-sys tells where its headers are");
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets it"));
    // The programs have the names of their source files, and need not tell where these were.
    let here = std::env::current_dir().expect("cargo sets it");
    let root = here.ancestors().nth(2).expect("it is two folders up");
    let mut names = OsString::from("-ffile-prefix-map=");
    names.push(root);
    names.push("=ranway");
    for name in PROGRAMS {
        let source = Path::new("src/bpf").join(format!("{name}.bpf.c"));
        let made = SkeletonBuilder::new()
            .source(&source)
            .clang(&clang)
            .clang_args(ARGUMENTS.map(OsStr::new).into_iter().chain([OsStr::new("-I"), &headers, &names]))
            .build_and_generate(out.join(format!("{name}.skel.rs")));
        if let Err(error) = made {
            println!("cargo::error={}: {error:#}", source.display());
        }
    }
}

const PROGRAMS: [&str; 4] = ["divert", "mdcc", "pep", "rapid"];
