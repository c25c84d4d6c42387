//! Which files of a crate use which, and the rings among them.

use super::source::Sources;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

/// The files of a crate, and which of them use items that another one defines.
#[derive(Debug)]
pub(super) struct Graph {
    /// Module paths of the files, such as `rlc::pdu`.
    files: Vec<String>,
    /// By the files' indices: the user, what it uses, and one path by which it does.
    edges: BTreeMap<(usize, usize), String>,
    /// Files that define nothing and use nothing: they only declare modules and export names.
    is_index: Vec<bool>,
}

/// What a path leads to.
#[derive(Clone, Copy)]
enum Target {
    Module(usize),
    /// An item that this file defines.
    Item(usize),
}

impl Graph {
    pub(super) fn new(sources: &Sources) -> Graph {
        let mut edges = BTreeMap::new();
        for (number, module) in sources.modules.iter().enumerate() {
            let imports = module.imports.iter().filter(|import| !import.is_reexport).map(|import| &import.path);
            for path in imports.chain(&module.paths) {
                match resolve(sources, number, path, &mut Vec::new()) {
                    Some(Target::Item(file)) if file != module.file => {
                        edges.entry((module.file, file)).or_insert_with(|| path.join("::"));
                    }
                    _ => {}
                }
            }
        }
        let defines = |file: usize| sources.modules.iter().any(|m| m.file == file && !m.items.is_empty());
        let uses = |file: usize| edges.keys().any(|&(user, _)| user == file);
        let is_index = (0..sources.files.len()).map(|file| !defines(file) && !uses(file)).collect();
        Graph { files: sources.files.clone(), edges, is_index }
    }

    /// One line for each ring: its files, and the paths by which they use each other.
    pub(super) fn rings(&self) -> Vec<String> {
        let reach = self.reach();
        let mut seen = BTreeSet::new();
        let mut rings = Vec::new();
        for file in 0..self.files.len() {
            let ring: Vec<usize> =
                (0..self.files.len()).filter(|&o| reach[file].contains(&o) && reach[o].contains(&file)).collect();
            if ring.len() < 2 || !seen.insert(ring.clone()) {
                continue;
            }
            let names: Vec<&str> = ring.iter().map(|&file| self.files[file].as_str()).collect();
            let within = self.edges.iter().filter(|((a, b), _)| ring.contains(a) && ring.contains(b));
            let uses: Vec<String> =
                within.map(|((a, b), path)| format!("{} uses {} (`{path}`)", self.files[*a], self.files[*b])).collect();
            rings.push(format!("ring of {}: {}", names.join(", "), uses.join("; ")));
        }
        rings
    }

    /// One line for each use of a file in one of the folders `apart` by a file in another one.
    pub(super) fn crossings(&self, apart: &[&str]) -> Vec<String> {
        let folder = |file: usize| {
            let name = self.files[file].split("::").next().unwrap_or_default();
            apart.iter().find(|folder| **folder == name)
        };
        let crosses =
            |(user, used): (usize, usize)| folder(user).zip(folder(used)).is_some_and(|(user, used)| user != used);
        let crossings = self.edges.iter().filter(|(edge, _)| crosses(**edge));
        let line = |((user, used), path): (&(usize, usize), &String)| {
            format!(
                "{} uses {} (`{path}`), which should be in a module below both",
                self.files[*user], self.files[*used]
            )
        };
        crossings.map(line).collect()
    }

    /// The files from bottom to top, a line each: the layer, the module, and the modules of lower layers that it uses.
    pub(super) fn text(&self) -> String {
        let layers = self.layers();
        let mut order: Vec<usize> = (0..self.files.len()).filter(|&file| !self.is_index[file]).collect();
        order.sort_by_key(|&file| (layers[file], self.files[file].clone()));
        let width = order.iter().map(|&file| self.files[file].len()).max().unwrap_or(0);
        let mut text = String::new();
        for file in order {
            let used: Vec<&str> = self.used_by(file).map(|used| self.files[used].as_str()).collect();
            let line = format!("{:>2}  {:width$}  {}", layers[file], self.files[file], used.join(", "));
            writeln!(text, "{}", line.trim_end()).expect("a string takes everything");
        }
        text
    }

    fn used_by(&self, file: usize) -> impl Iterator<Item = usize> {
        self.edges.keys().filter(move |&&(user, _)| user == file).map(|&(_, used)| used)
    }

    /// For each file, the files that it uses directly or through others.
    fn reach(&self) -> Vec<BTreeSet<usize>> {
        let from = |start: usize| {
            let mut reached = BTreeSet::new();
            let mut next: Vec<usize> = self.used_by(start).collect();
            while let Some(file) = next.pop() {
                if reached.insert(file) {
                    next.extend(self.used_by(file));
                }
            }
            reached
        };
        (0..self.files.len()).map(from).collect()
    }

    /// A file's layer is one above the highest that it uses; the files of a ring share theirs.
    fn layers(&self) -> Vec<usize> {
        let reach = self.reach();
        let mut layers = vec![0; self.files.len()];
        loop {
            let mut is_stable = true;
            for &(user, used) in self.edges.keys() {
                let step = usize::from(!reach[used].contains(&user));
                if layers[user] < layers[used] + step {
                    layers[user] = layers[used] + step;
                    is_stable = false;
                }
            }
            if is_stable {
                return layers;
            }
        }
    }
}

/// One line for each `impl` that adds methods to a type that another file defines. Through them files call each other without
/// importing anything.
pub(super) fn methods_elsewhere(sources: &Sources) -> Vec<String> {
    let mut found = Vec::new();
    for (number, module) in sources.modules.iter().enumerate() {
        for path in &module.impls {
            if let Some(Target::Item(file)) = resolve(sources, number, path, &mut Vec::new())
                && file != module.file
            {
                let (here, there) = (&sources.files[module.file], &sources.files[file]);
                found.push(format!("{here} adds methods to `{}`, which {there} defines", path.join("::")));
            }
        }
    }
    found
}

/// Follows a path that stands in `module`; `None` if it leads out of the crate. `visited` holds the imports on the way.
fn resolve(
    sources: &Sources,
    module: usize,
    path: &[String],
    visited: &mut Vec<(usize, Vec<String>)>,
) -> Option<Target> {
    let key = (module, path.to_vec());
    if visited.contains(&key) {
        return None;
    }
    visited.push(key);
    let mut at = module;
    let mut rest = path;
    while let [first, others @ ..] = rest {
        match first.as_str() {
            "crate" => at = 0,
            "self" => {}
            "super" => at = sources.modules[at].parent?,
            _ => break,
        }
        rest = others;
    }
    let is_relative = rest.len() == path.len();
    let mut is_first = true;
    while let [name, others @ ..] = rest {
        match find(sources, at, name, visited) {
            Some(Target::Module(next)) => at = next,
            Some(item) => return Some(item),
            // A name in scope may come from a prelude or another crate; after a module's name, a macro defines it.
            None if is_relative && is_first => return None,
            None => return Some(Target::Item(sources.modules[at].file)),
        }
        (rest, is_first) = (others, false);
    }
    Some(Target::Module(at))
}

/// Looks up a name in a module.
fn find(sources: &Sources, module: usize, name: &str, visited: &mut Vec<(usize, Vec<String>)>) -> Option<Target> {
    let of = &sources.modules[module];
    if let Some(&child) = of.children.get(name) {
        return Some(Target::Module(child));
    }
    if of.items.contains(name) {
        return Some(Target::Item(of.file));
    }
    if let Some(import) = of.imports.iter().find(|import| import.name.as_deref() == Some(name)) {
        // `use name;` brings another crate into scope.
        let is_foreign = matches!(import.path.as_slice(), [only] if only == name);
        return (!is_foreign).then(|| resolve(sources, module, &import.path, visited)).flatten();
    }
    of.imports.iter().filter(|import| import.name.is_none()).find_map(|glob| {
        let Some(Target::Module(next)) = resolve(sources, module, &glob.path, visited) else { return None };
        (next != module).then(|| find(sources, next, name, visited)).flatten()
    })
}
