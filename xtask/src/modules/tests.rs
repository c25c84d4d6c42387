use super::{Graph, Sources, elsewhere_errors, list_errors, methods_elsewhere};
use std::path::Path;

/// The sources of a crate made of files below `src/`.
fn sources(files: &[(&str, &str)]) -> Sources {
    let read = |path: &Path| {
        let found = files.iter().find(|(name, _)| Path::new("src").join(name) == path);
        found.map(|(_, text)| (*text).to_owned())
    };
    Sources::read(Path::new("src/lib.rs"), &read).expect("a fixture is right")
}

fn rings(files: &[(&str, &str)]) -> Vec<String> {
    Graph::new(&sources(files)).rings()
}

fn graph(files: &[(&str, &str)]) -> String {
    Graph::new(&sources(files)).text()
}

#[test]
fn layers_go_from_bottom_to_top() {
    let files = [
        ("lib.rs", "mod a; mod b; mod c; pub use c::C;"),
        ("a.rs", "pub struct A;"),
        ("b.rs", "use crate::a::A; pub struct B(A);"),
        ("c.rs", "use crate::{a, b::B}; pub struct C(a::A, B);"),
    ];
    assert_eq!(rings(&files), [""; 0]);
    assert_eq!(graph(&files), " 0  a\n 1  b  a\n 2  c  a, b\n");
}

#[test]
fn two_files_that_import_each_other_are_a_ring() {
    let files = [
        ("lib.rs", "mod a; mod b;"),
        ("a.rs", "use crate::b::B; pub struct A(B);"),
        ("b.rs", "pub struct B; fn f() { crate::a::A; }"),
    ];
    assert_eq!(rings(&files), ["ring of a, b: a uses b (`crate::b::B`); b uses a (`crate::a::A`)"]);
}

#[test]
fn two_rings_are_two_lines() {
    let files = [
        ("lib.rs", "mod a; mod b; mod c; mod d;"),
        ("a.rs", "use crate::b::B; pub struct A;"),
        ("b.rs", "use crate::a::A; use crate::c::C; pub struct B;"),
        ("c.rs", "use crate::d::D; pub struct C;"),
        ("d.rs", "use crate::c::C; pub struct D;"),
    ];
    assert_eq!(rings(&files).len(), 2);
}

#[test]
fn a_child_that_uses_its_parents_item_closes_a_ring() {
    let files = [
        ("lib.rs", "mod a;"),
        ("a.rs", "mod child; pub struct A; pub fn f() { child::g(); }"),
        ("a/child.rs", "use super::A; pub fn g() -> A { A }"),
    ];
    assert_eq!(rings(&files), ["ring of a, a::child: a uses a::child (`child::g`); a::child uses a (`super::A`)"]);
}

#[test]
fn a_reexport_leads_to_the_file_that_defines_the_item() {
    let files = [
        ("lib.rs", "mod a; pub mod b; pub use a::A; pub(crate) use b::*;"),
        ("a.rs", "pub struct A;"),
        ("b/mod.rs", "mod inner; pub use inner::{B, B as Other};"),
        ("b/inner.rs", "use crate::A; pub struct B(A);"),
        ("c.rs", ""),
    ];
    assert_eq!(rings(&files), [""; 0]);
    assert_eq!(graph(&files), " 0  a\n 1  b::inner  a\n");
    let files = [files[0], ("a.rs", "use crate::b::Other; pub struct A(Other);"), files[2], files[3]];
    assert_eq!(rings(&files).len(), 1);
    let files = [files[0], ("a.rs", "use crate::B; pub struct A(B);"), files[2], files[3]];
    assert_eq!(rings(&files).len(), 1, "through a glob");
}

#[test]
fn what_tests_import_does_not_count() {
    let files = [
        ("lib.rs", "mod a; mod b; #[cfg(test)] mod missing;"),
        ("a.rs", "pub struct A; #[cfg(test)] mod tests { use crate::b::B; } #[cfg(all(test, unix))] use crate::b::B;"),
        ("b.rs", "use crate::a::A; pub struct B(A);"),
    ];
    assert_eq!(rings(&files), [""; 0]);
}

#[test]
fn paths_inside_macros_and_inline_modules_count() {
    let files = [
        ("lib.rs", "mod a; mod b;"),
        ("a.rs", "use crate::b; pub struct A; fn f() { assert!(matches!(x, b::B(..)), \"{}\", ::b::C); }"),
        ("b.rs", "pub struct B; mod inner { use super::super::a::A; }"),
    ];
    assert_eq!(rings(&files), ["ring of a, b: a uses b (`b::B`); b uses a (`super::super::a::A`)"]);
}

#[test]
fn a_visibility_and_an_imported_module_use_nothing() {
    let files = [
        ("lib.rs", "mod a; mod b;"),
        ("a.rs", "use crate::b; pub struct A;"),
        ("b.rs", "pub(in crate::a) struct B; use crate::a::A;"),
    ];
    assert_eq!(graph(&files), " 0  a\n 1  b  a\n");
}

#[test]
fn the_list_of_modules_is_compared_with_the_files() {
    let list = "//! | module | what |\n//! | --- | --- |\n//! | `a`, `gone` | `other` words |\n\nmod a; mod b;";
    let errors = list_errors(&sources(&[("lib.rs", list), ("a.rs", ""), ("b.rs", "")]));
    assert_eq!(
        errors,
        [
            "the crate's documentation does not list the module `b`",
            "the crate's documentation lists `gone`, which is no module"
        ]
    );
    let files = "//! | file | what |\n//! | --- | --- |\n//! | `a.json` | it |\nmod a;";
    assert_eq!(list_errors(&sources(&[("lib.rs", files), ("a.rs", "")])), [""; 0]);
}

#[test]
fn folders_that_are_apart_share_only_what_is_below_them() {
    let files = [
        ("lib.rs", "mod base; mod one; mod other;"),
        ("base.rs", "pub struct Log;"),
        ("one.rs", "mod part; use crate::base::Log; pub struct One(Log, part::Part);"),
        ("one/part.rs", "pub struct Part;"),
        ("other.rs", "use crate::base::Log; use crate::one::part::Part; pub struct Other(Log, Part);"),
    ];
    let crossings = |apart: &[&str]| Graph::new(&sources(&files)).crossings(apart);
    let line = "other uses one::part (`crate::one::part::Part`), which should be in a module below both";
    assert_eq!(crossings(&["one", "other"]), [line]);
    assert_eq!(crossings(&["other"]), [""; 0]);
}

#[test]
fn methods_outside_the_file_of_their_type_are_refused() {
    let planted = [
        ("lib.rs", "mod a; mod b; pub use a::A;"),
        ("a.rs", "mod child; pub struct A; impl A { fn f(&self) { self.g(); } }"),
        ("a/child.rs", "impl<T> super::A<T> { fn h(&self) {} }"),
        ("b.rs", "use crate::A; impl A { pub fn g(&self) { self.f(); } }"),
    ];
    assert_eq!(rings(&planted), [""; 0], "no import shows that they call each other");
    let found = methods_elsewhere(&sources(&planted));
    let expected = ["a::child adds methods to `super::A`, which a defines", "b adds methods to `A`, which a defines"];
    assert_eq!(found, expected);
    assert_eq!(elsewhere_errors(&found, 0), expected);
    assert_eq!(elsewhere_errors(&found, 1), expected, "their number may not rise");
    assert_eq!(elsewhere_errors(&found, 2), [""; 0]);
    assert_eq!(elsewhere_errors(&found, 3), ["METHODS_ELSEWHERE lists 3, but there are 2; lower it"]);
}

#[test]
fn methods_in_the_file_of_their_type_of_traits_and_of_tests_are_allowed() {
    let files = [
        ("lib.rs", "mod a; mod b;"),
        ("a.rs", "pub struct A; pub mod inner { impl super::A { fn f() {} } }"),
        (
            "b.rs",
            "use crate::a::A; impl Clone for A {} #[cfg(test)] impl A { fn g() {} } struct A2; impl A2 {} impl Vec<A> {}",
        ),
    ];
    assert_eq!(methods_elsewhere(&sources(&files)), [""; 0]);
}
