//! Reads a crate's sources: which modules it has, what each defines, imports and uses.
//!
//! Items for tests (`#[cfg(test)]`, `#[test]`) are left out. Expressions inside macros are scanned for paths as tokens.

use anyhow::{Context, Result, bail};
use proc_macro2::{TokenStream, TokenTree};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use syn::visit::{self, Visit};
use syn::{
    Attribute, Expr, ImplItem, Item, ItemImpl, ItemMod, ItemUse, Lit, Meta, Type, UseTree, VisRestricted, Visibility,
};

/// Reads a source file; `None` if there is none.
pub(super) type Read<'a> = &'a dyn Fn(&Path) -> Option<String>;

/// The sources of one crate.
#[derive(Debug, Default)]
pub(super) struct Sources {
    /// The modules, inline ones included; the first is the root.
    pub(super) modules: Vec<Module>,
    /// For each file, the path of its module, such as `rlc::pdu`; `lib` or `main` for the root.
    pub(super) files: Vec<String>,
    /// The documentation of the crate, a line each.
    pub(super) doc: Vec<String>,
}

/// A module, with its own file or inside another module's.
#[derive(Debug)]
pub(super) struct Module {
    pub(super) file: usize,
    pub(super) parent: Option<usize>,
    pub(super) children: BTreeMap<String, usize>,
    /// Names of the items that it defines.
    pub(super) items: BTreeSet<String>,
    pub(super) imports: Vec<Import>,
    /// The paths of the types to which it adds methods.
    pub(super) impls: Vec<Vec<String>>,
    /// The paths in its code.
    pub(super) paths: Vec<Vec<String>>,
}

/// One name that a `use` declaration brings into scope.
#[derive(Debug)]
pub(super) struct Import {
    /// `None` for a glob.
    pub(super) name: Option<String>,
    pub(super) path: Vec<String>,
    /// Whether others can see it.
    pub(super) is_reexport: bool,
}

impl Sources {
    /// Reads the crate whose root is the file `root`.
    pub(super) fn read(root: &Path, read: Read) -> Result<Sources> {
        let name = root.file_stem().context("a root has a name")?.to_string_lossy().into_owned();
        let mut sources = Sources::default();
        let folder = root.parent().context("a root is in a folder")?;
        let text = read(root).with_context(|| format!("{} cannot be read", root.display()))?;
        let file = syn::parse_file(&text).with_context(|| root.display().to_string())?;
        sources.doc = file.attrs.iter().filter_map(doc).collect();
        sources.files.push(name);
        let root = sources.add(None, 0);
        sources.walk(root, folder, &file.items, read)?;
        Ok(sources)
    }

    fn add(&mut self, parent: Option<usize>, file: usize) -> usize {
        self.modules.push(Module {
            file,
            parent,
            children: BTreeMap::new(),
            items: BTreeSet::new(),
            imports: Vec::new(),
            impls: Vec::new(),
            paths: Vec::new(),
        });
        self.modules.len() - 1
    }

    /// Reads the items of a module, whose children's files are in `folder`.
    fn walk(&mut self, module: usize, folder: &Path, items: &[Item], read: Read) -> Result<()> {
        let mut visitor = Visitor { module: &mut self.modules[module], children: Vec::new() };
        items.iter().for_each(|item| visitor.visit_item(item));
        for child in visitor.children {
            self.walk_child(module, folder, &child, read)?;
        }
        Ok(())
    }

    fn walk_child(&mut self, parent: usize, folder: &Path, item: &ItemMod, read: Read) -> Result<()> {
        let name = item.ident.to_string();
        let child_folder = folder.join(&name);
        if let Some((_, items)) = &item.content {
            let child = self.add(Some(parent), self.modules[parent].file);
            self.modules[parent].children.insert(name, child);
            return self.walk(child, &child_folder, items, read);
        }
        let candidates: Vec<PathBuf> = match item.attrs.iter().find_map(path_attribute) {
            Some(path) => vec![folder.join(path)],
            None => vec![folder.join(format!("{name}.rs")), child_folder.join("mod.rs")],
        };
        let Some((path, text)) = candidates.iter().find_map(|path| Some((path, read(path)?))) else {
            bail!("module `{name}` has no file {}", candidates[0].display());
        };
        let file = syn::parse_file(&text).with_context(|| path.display().to_string())?;
        let of_parent = &self.files[self.modules[parent].file];
        let is_top = self.modules[parent].parent.is_none();
        self.files.push(if is_top { name.clone() } else { format!("{of_parent}::{name}") });
        let child = self.add(Some(parent), self.files.len() - 1);
        self.modules[parent].children.insert(name, child);
        self.walk(child, &child_folder, &file.items, read)
    }
}

/// Collects what one module defines, imports and uses, and the modules that it declares.
struct Visitor<'a> {
    module: &'a mut Module,
    children: Vec<ItemMod>,
}

impl<'ast> Visit<'ast> for Visitor<'_> {
    fn visit_item(&mut self, item: &'ast Item) {
        let (name, attributes) = match item {
            Item::Const(i) => (Some(&i.ident), &i.attrs),
            Item::Enum(i) => (Some(&i.ident), &i.attrs),
            Item::Fn(i) => (Some(&i.sig.ident), &i.attrs),
            Item::Impl(i) => (None, &i.attrs),
            Item::Macro(i) => (i.ident.as_ref(), &i.attrs),
            Item::Static(i) => (Some(&i.ident), &i.attrs),
            Item::Struct(i) => (Some(&i.ident), &i.attrs),
            Item::Trait(i) => (Some(&i.ident), &i.attrs),
            Item::Type(i) => (Some(&i.ident), &i.attrs),
            Item::Union(i) => (Some(&i.ident), &i.attrs),
            Item::Use(i) => (None, &i.attrs),
            Item::Mod(i) => (None, &i.attrs),
            _ => return,
        };
        if attributes.iter().any(is_for_tests) {
            return;
        }
        self.module.items.extend(name.map(ToString::to_string));
        if let Item::Impl(item) = item {
            self.module.impls.extend(type_with_methods(item));
        }
        match item {
            Item::Mod(item) => self.children.push(item.clone()),
            other => visit::visit_item(self, other),
        }
    }

    fn visit_impl_item(&mut self, item: &'ast ImplItem) {
        let attributes = match item {
            ImplItem::Fn(i) => &i.attrs[..],
            ImplItem::Const(i) => &i.attrs,
            ImplItem::Type(i) => &i.attrs,
            _ => &[],
        };
        if !attributes.iter().any(is_for_tests) {
            visit::visit_impl_item(self, item);
        }
    }

    fn visit_item_use(&mut self, item: &'ast ItemUse) {
        // `::name` is another crate.
        if item.leading_colon.is_none() {
            let is_reexport = !matches!(item.vis, Visibility::Inherited);
            flatten(&item.tree, &mut Vec::new(), is_reexport, &mut self.module.imports);
        }
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        if path.leading_colon.is_none() {
            self.module.paths.push(path.segments.iter().map(|segment| segment.ident.to_string()).collect());
        }
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, invocation: &'ast syn::Macro) {
        self.visit_path(&invocation.path);
        scan(invocation.tokens.clone(), &mut self.module.paths);
    }

    // The path of a visibility and those of attributes use nothing.
    fn visit_vis_restricted(&mut self, _: &'ast VisRestricted) {}

    fn visit_attribute(&mut self, _: &'ast Attribute) {}
}

/// The path of the type to which an `impl` adds methods of its own, not those of a trait.
fn type_with_methods(item: &ItemImpl) -> Option<Vec<String>> {
    match &*item.self_ty {
        Type::Path(of) if item.trait_.is_none() => {
            Some(of.path.segments.iter().map(|segment| segment.ident.to_string()).collect())
        }
        _ => None,
    }
}

/// Splits the tree of a `use` declaration into single imports.
fn flatten(tree: &UseTree, prefix: &mut Vec<String>, is_reexport: bool, imports: &mut Vec<Import>) {
    let mut add = |name: Option<String>, last: Option<String>| {
        let path = prefix.iter().cloned().chain(last).collect();
        imports.push(Import { name, path, is_reexport });
    };
    match tree {
        UseTree::Path(path) => {
            prefix.push(path.ident.to_string());
            flatten(&path.tree, prefix, is_reexport, imports);
            prefix.pop();
        }
        UseTree::Name(name) if name.ident == "self" => add(prefix.last().cloned(), None),
        UseTree::Name(name) => add(Some(name.ident.to_string()), Some(name.ident.to_string())),
        UseTree::Rename(rename) => {
            let last = Some(rename.ident.to_string()).filter(|name| name != "self");
            add(Some(rename.rename.to_string()), last);
        }
        UseTree::Glob(_) => add(None, None),
        UseTree::Group(group) => {
            group.items.iter().for_each(|item| flatten(item, prefix, is_reexport, imports));
        }
    }
}

/// Finds paths among a macro's tokens.
fn scan(tokens: TokenStream, paths: &mut Vec<Vec<String>>) {
    let mut path: Vec<String> = Vec::new();
    // How many of the two colons that join segments have been read; 2 too before another crate's name.
    let mut colons = 0;
    let mut is_foreign = false;
    let end = |path: &mut Vec<String>, is_foreign: bool, paths: &mut Vec<Vec<String>>| {
        let path = std::mem::take(path);
        if !path.is_empty() && !is_foreign {
            paths.push(path);
        }
    };
    for token in tokens {
        match token {
            TokenTree::Ident(name) => {
                if colons != 2 {
                    end(&mut path, is_foreign, paths);
                    is_foreign = false;
                } else if path.is_empty() {
                    is_foreign = true;
                }
                path.push(name.to_string());
                colons = 0;
            }
            TokenTree::Punct(punct) if punct.as_char() == ':' => colons += 1,
            other => {
                end(&mut path, is_foreign, paths);
                (colons, is_foreign) = (0, false);
                if let TokenTree::Group(group) = other {
                    scan(group.stream(), paths);
                }
            }
        }
    }
    end(&mut path, is_foreign, paths);
}

/// Whether an attribute restricts its item to tests.
fn is_for_tests(attribute: &Attribute) -> bool {
    match &attribute.meta {
        Meta::Path(path) => path.is_ident("test"),
        Meta::List(list) if list.path.is_ident("cfg") => {
            let mut tokens = list.tokens.clone().into_iter();
            match tokens.next() {
                Some(TokenTree::Ident(name)) if name == "test" => true,
                Some(TokenTree::Ident(name)) if name == "all" => tokens.any(|token| match token {
                    TokenTree::Group(group) => {
                        group.stream().into_iter().any(|t| matches!(t, TokenTree::Ident(name) if name == "test"))
                    }
                    _ => false,
                }),
                _ => false,
            }
        }
        _ => false,
    }
}

/// The text of a `//!` line.
fn doc(attribute: &Attribute) -> Option<String> {
    string_of(attribute, "doc")
}

/// The file that `#[path = "…"]` names.
fn path_attribute(attribute: &Attribute) -> Option<String> {
    string_of(attribute, "path")
}

fn string_of(attribute: &Attribute, name: &str) -> Option<String> {
    let Meta::NameValue(pair) = &attribute.meta else { return None };
    let Expr::Lit(literal) = &pair.value else { return None };
    match &literal.lit {
        Lit::Str(text) if pair.path.is_ident(name) => Some(text.value()),
        _ => None,
    }
}
