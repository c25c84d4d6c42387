use super::sites::{Kind, sites, test_modules};
use super::{Equivalent, HEAD, Mutant, draw, mutants_of, source_files, with_rows};
use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::SeedableRng;
use std::collections::BTreeSet;
use std::path::PathBuf;

/// What can be planted in a function's body, as kind and description.
fn faults(body: &str) -> Vec<String> {
    let text = format!("fn f() {{\n{body}\n}}");
    let sites = sites(&text).expect("a fixture is right");
    sites.iter().map(|site| format!("{}: {}", site.kind.name(), site.describe(&text))).collect()
}

#[test]
fn a_comparison_gains_its_end_or_turns_round() {
    assert_eq!(
        faults("g(a < b);"),
        [
            "dropped update: `g(a < b);` becomes ``",
            "boundary: `g(a < b);` becomes `g(a <= b);`",
            "swapped sides: `g(a < b);` becomes `g(a > b);`",
        ]
    );
}

#[test]
fn a_guard_that_leaves_is_passed_and_another_is_always_met() {
    assert_eq!(faults("if a { return; }")[1], "forgotten guard: `if a { return; }` becomes `if false { return; }`");
    assert_eq!(faults("if a { b }")[1], "forgotten guard: `if a { b }` becomes `if true { b }`");
}

#[test]
fn each_side_of_a_condition_can_be_left_out_unless_it_binds_a_name() {
    assert_eq!(
        faults("let x = a && b;"),
        [
            "forgotten guard: `let x = a && b;` becomes `let x = a;`",
            "forgotten guard: `let x = a && b;` becomes `let x = b;`",
        ]
    );
    assert_eq!(
        faults("if a && let Some(b) = c { b }"),
        ["forgotten guard: `if a && let Some(b) = c { b }` becomes `if let Some(b) = c { b }`"]
    );
}

#[test]
fn signs_updates_and_limits_are_found() {
    let found = faults("self.a += b.min(-c);");
    for fault in [
        "dropped update: `self.a += b.min(-c);` becomes ``",
        "sign: `self.a += b.min(-c);` becomes `self.a -= b.min(-c);`",
        "sign: `self.a += b.min(-c);` becomes `self.a += b.min(c);`",
        "swapped sides: `self.a += b.min(-c);` becomes `self.a += b.max(-c);`",
        "forgotten guard: `self.a += b.min(-c);` becomes `self.a += b;`",
    ] {
        assert!(found.contains(&fault.to_owned()), "{fault} is not in {found:#?}");
    }
}

#[test]
fn tests_and_what_prints_have_no_faults() {
    let text = "
        #[cfg(test)] mod tests { fn f() { a + b } }
        #[cfg(test)] mod helper;
        impl std::fmt::Debug for A { fn fmt(&self) { a + b } }
        #[test] fn t() { a + b }
    ";
    assert_eq!(sites(text).expect("a fixture is right"), []);
    assert_eq!(test_modules(text).expect("a fixture is right"), ["helper"]);
}

#[test]
fn a_file_of_tests_alone_is_left_out_wherever_it_is() {
    let folder = std::env::temp_dir().join(format!("ranway-sources-{}", std::process::id()));
    let texts = [
        ("lib.rs", "mod a;"),
        ("a.rs", "#[cfg(test)] mod b; mod c;"),
        ("a/b.rs", "mod d;"),
        ("a/b/d.rs", ""),
        ("a/c.rs", ""),
        ("a/tests/e.rs", ""),
    ];
    for (name, text) in texts {
        let path = folder.join(name);
        std::fs::create_dir_all(path.parent().expect("it is in the folder")).expect("a folder");
        std::fs::write(path, text).expect("a file");
    }
    let mut found = Vec::new();
    source_files(&folder, &mut BTreeSet::new(), &mut found).expect("they are Rust files");
    std::fs::remove_dir_all(&folder).expect("it is there");
    let expected: Vec<PathBuf> = ["a/c.rs", "a.rs", "lib.rs"].map(|name| folder.join(name)).into();
    assert_eq!(found, expected);
}

fn mutants(body: &str) -> Vec<Mutant> {
    let text = format!("fn f() {{\n{body}\n}}");
    mutants_of("crates/tcp/src/a.rs", &text).expect("a fixture is right")
}

#[test]
fn a_seed_gives_one_draw_in_which_the_kinds_take_turns() {
    let body = "a = b + c; if d < 1 && e { a = c - b; } b = a.max(c);";
    let order =
        |seed| draw(mutants(body), &mut SplitMix64::seed_from_u64(seed)).iter().map(super::line).collect::<Vec<_>>();
    assert_eq!(order(1), order(1));
    assert_ne!(order(1), order(2));
    let kinds: Vec<Kind> =
        draw(mutants(body), &mut SplitMix64::seed_from_u64(3)).iter().map(|mutant| mutant.site.kind).collect();
    assert_eq!(kinds[..5], Kind::ALL);
}

#[test]
fn an_equivalent_fault_is_known_by_its_file_its_kind_and_its_line() {
    let text = "# why\n\ncrates/tcp/src/a.rs sign: `a + b` becomes `a - b`\n  b is 0\n  always\n";
    let equivalent = Equivalent::read(text).expect("a fixture is right");
    let found: Vec<bool> = mutants("a + b").iter().map(|mutant| equivalent.contains(mutant)).collect();
    assert_eq!(found, [true]);
    assert!(!equivalent.contains(&mutants("a * b")[0]));
    // Of two equal lines, the second has a number.
    let lines: Vec<String> = mutants("a + b;\na + b;").iter().map(|mutant| mutant.description.clone()).collect();
    assert_eq!(lines, ["`a + b;` becomes `a - b;`", "`a + b;` becomes `a - b;` (2)"]);
    let error = Equivalent::read("crates/tcp/src/a.rs sign: `a + b` becomes `a - b`\n").expect_err("no reason");
    assert!(error.to_string().contains("give the reason"), "{error}");
}

#[test]
fn the_page_keeps_the_rows_of_crates_that_were_not_run() {
    let page = |rows: &str| format!("# Page\n\n<!-- scores -->\n\n{HEAD}{rows}\n<!-- end of scores -->\nafter\n");
    let rows = ["| `b` | new |\n".to_owned(), "| `c` | new |\n".to_owned()];
    let written = with_rows(&page("| `a` | old |\n| `b` | old |\n"), &rows).expect("it has both marks");
    assert_eq!(written, page("| `a` | old |\n| `b` | new |\n| `c` | new |\n"));
    let error = with_rows("<!-- scores -->\n", &rows).expect_err("no end");
    assert!(error.to_string().contains("end of scores"), "{error}");
}
