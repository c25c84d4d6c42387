//! The faults that can be planted in a source file: each replaces one span of its text.

use anyhow::{Context, Result};
use proc_macro2::Span;
use std::ops::Range;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{BinOp, Block, Expr, Lit, Stmt, UnOp};

/// The kind of a fault.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) enum Kind {
    /// A comparison or a range gains or loses its end; a constant beside an operator is one more.
    Boundary,
    /// Plus for minus, times for divided by, true for false, a negation lost.
    Sign,
    /// An assignment or a call for its effect is left out.
    Update,
    /// A condition or a limit is left out.
    Guard,
    /// Two operands, two branches, two ends or a minimum and a maximum are exchanged.
    Sides,
}

impl Kind {
    pub(crate) const ALL: [Kind; 5] = [Kind::Boundary, Kind::Sign, Kind::Update, Kind::Guard, Kind::Sides];

    /// Returns the name of the kind.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Kind::Boundary => "boundary",
            Kind::Sign => "sign",
            Kind::Update => "dropped update",
            Kind::Guard => "forgotten guard",
            Kind::Sides => "swapped sides",
        }
    }
}

/// A fault: the text that replaces a span of a file.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Site {
    pub(crate) kind: Kind,
    /// The line, from 1.
    pub(crate) line: usize,
    pub(crate) bytes: Range<usize>,
    pub(crate) replacement: String,
}

impl Site {
    /// Returns the text with the fault in it.
    pub(crate) fn planted(&self, text: &str) -> String {
        format!("{}{}{}", &text[..self.bytes.start], self.replacement, &text[self.bytes.end..])
    }

    /// Describes the fault: the first line that changes, before and after.
    pub(crate) fn describe(&self, text: &str) -> String {
        let start = text[..self.bytes.start].rfind('\n').map_or(0, |at| at + 1);
        let end = text[self.bytes.end..].find('\n').map_or(text.len(), |at| self.bytes.end + at);
        let planted = format!("{}{}{}", &text[start..self.bytes.start], self.replacement, &text[self.bytes.end..end]);
        let old = words(&text[start..end]);
        let new = words(&planted);
        format!("`{}` becomes `{}`", shortened(&old), shortened(&new))
    }
}

/// The text on one line, with single spaces.
fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The first 160 characters.
fn shortened(text: &str) -> String {
    match text.char_indices().nth(160) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

/// Returns the faults that can be planted in a file, apart from its tests and what only prints.
pub(crate) fn sites(text: &str) -> Result<Vec<Site>> {
    let file = syn::parse_file(text).context("not a Rust file")?;
    let mut finder = Finder { text, sites: Vec::new() };
    finder.visit_file(&file);
    Ok(finder.sites)
}

/// The modules that a file declares for its tests alone.
pub(crate) fn test_modules(text: &str) -> Result<Vec<String>> {
    let file = syn::parse_file(text).context("not a Rust file")?;
    let modules = file.items.iter().filter_map(|item| match item {
        syn::Item::Mod(module) if module.content.is_none() && is_test(&module.attrs) => Some(module.ident.to_string()),
        _ => None,
    });
    Ok(modules.collect())
}

fn is_test(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let is_cfg = attribute.path().is_ident("cfg");
        attribute.path().is_ident("test")
            || is_cfg && attribute.parse_args::<syn::Path>().is_ok_and(|path| path.is_ident("test"))
    })
}

/// Methods and fields, and what they are exchanged for.
const EXCHANGED: &[(&str, &str)] = &[
    ("min", "max"),
    ("start", "end"),
    ("first", "last"),
    ("front", "back"),
    ("is_some", "is_none"),
    ("any", "all"),
    ("is_some_and", "is_none_or"),
    ("saturating_sub", "saturating_add"),
    ("wrapping_sub", "wrapping_add"),
    ("push_front", "push_back"),
    ("pop_front", "pop_back"),
];

/// Methods that limit their receiver.
const LIMITS: &[&str] = &["min", "max", "clamp"];

struct Finder<'a> {
    text: &'a str,
    sites: Vec<Site>,
}

impl Finder<'_> {
    fn add(&mut self, kind: Kind, span: Span, replacement: impl Into<String>) {
        let site = Site { kind, line: span.start().line, bytes: span.byte_range(), replacement: replacement.into() };
        self.sites.push(site);
    }

    fn source(&self, node: &impl Spanned) -> &str {
        &self.text[node.span().byte_range()]
    }

    fn binary(&mut self, node: &syn::ExprBinary) {
        let (left, right) = (self.source(&node.left).to_owned(), self.source(&node.right).to_owned());
        let swapped = format!("({right}) {} ({left})", self.source(&node.op));
        let op = node.op.span();
        match node.op {
            BinOp::Lt(_) => self.comparison(node, "<="),
            BinOp::Le(_) => self.comparison(node, "<"),
            BinOp::Gt(_) => self.comparison(node, ">="),
            BinOp::Ge(_) => self.comparison(node, ">"),
            BinOp::Eq(_) => self.add(Kind::Sign, op, "!="),
            BinOp::Ne(_) => self.add(Kind::Sign, op, "=="),
            BinOp::Add(_) => self.add(Kind::Sign, op, "-"),
            BinOp::Sub(_) => {
                self.add(Kind::Sign, op, "+");
                self.add(Kind::Sides, node.span(), format!("({swapped})"));
            }
            BinOp::Mul(_) => self.add(Kind::Sign, op, "/"),
            BinOp::Div(_) => self.add(Kind::Sign, op, "*"),
            BinOp::Rem(_) => self.add(Kind::Sign, op, "/"),
            BinOp::Shl(_) => self.add(Kind::Sign, op, ">>"),
            BinOp::Shr(_) => self.add(Kind::Sign, op, "<<"),
            BinOp::AddAssign(_) => self.add(Kind::Sign, op, "-="),
            BinOp::SubAssign(_) => self.add(Kind::Sign, op, "+="),
            BinOp::And(_) | BinOp::Or(_) => {
                // What binds a name for what follows cannot be left out.
                if !has_let(&node.right) {
                    self.add(Kind::Guard, node.span(), left);
                }
                if !has_let(&node.left) {
                    self.add(Kind::Guard, node.span(), format!(" {right}"));
                }
            }
            _ => {}
        }
        if !matches!(node.op, BinOp::And(_) | BinOp::Or(_))
            && let Expr::Lit(literal) = &*node.right
            && let Lit::Int(number) = &literal.lit
            && let Ok(value) = number.base10_parse::<u64>()
        {
            self.add(Kind::Boundary, number.span(), format!("{}{}", value + 1, number.suffix()));
        }
    }

    fn comparison(&mut self, node: &syn::ExprBinary, boundary: &str) {
        self.add(Kind::Boundary, node.op.span(), boundary);
        let other = match boundary {
            "<=" => ">",
            "<" => ">=",
            ">=" => "<",
            _ => "<=",
        };
        self.add(Kind::Sides, node.op.span(), other);
    }

    fn condition(&mut self, node: &syn::ExprIf) {
        if has_let(&node.cond) {
            return;
        }
        let condition = format!("!({})", self.source(&*node.cond));
        self.add(Kind::Sides, node.cond.span(), condition);
        let leaves = matches!(
            node.then_branch.stmts.last(),
            Some(Stmt::Expr(Expr::Return(_) | Expr::Break(_) | Expr::Continue(_), _))
        );
        self.add(Kind::Guard, node.cond.span(), if leaves { "false" } else { "true" });
    }
}

/// Whether an operand of a condition binds names.
fn has_let(expr: &Expr) -> bool {
    match expr {
        Expr::Let(_) => true,
        Expr::Binary(node) => has_let(&node.left) || has_let(&node.right),
        Expr::Paren(node) => has_let(&node.expr),
        _ => false,
    }
}

impl<'ast> Visit<'ast> for Finder<'_> {
    fn visit_item_mod(&mut self, node: &'ast syn::ItemMod) {
        if !is_test(&node.attrs) {
            visit::visit_item_mod(self, node);
        }
    }

    fn visit_item_fn(&mut self, node: &'ast syn::ItemFn) {
        if !is_test(&node.attrs) {
            visit::visit_item_fn(self, node);
        }
    }

    fn visit_item_impl(&mut self, node: &'ast syn::ItemImpl) {
        let prints = node.trait_.as_ref().and_then(|(path, _)| path.segments.last());
        let prints = prints.is_some_and(|name| name.ident == "Debug" || name.ident == "Display");
        if !prints && !is_test(&node.attrs) {
            visit::visit_item_impl(self, node);
        }
    }

    fn visit_impl_item_fn(&mut self, node: &'ast syn::ImplItemFn) {
        if !is_test(&node.attrs) {
            visit::visit_impl_item_fn(self, node);
        }
    }

    fn visit_attribute(&mut self, _: &'ast syn::Attribute) {}

    fn visit_type(&mut self, _: &'ast syn::Type) {}

    fn visit_block(&mut self, node: &'ast Block) {
        for statement in &node.stmts {
            if let Stmt::Expr(expr, Some(_)) = statement {
                let is_update = match expr {
                    Expr::Assign(_) | Expr::MethodCall(_) | Expr::Call(_) => true,
                    Expr::Binary(binary) => self.source(&binary.op).ends_with('='),
                    _ => false,
                };
                if is_update {
                    self.add(Kind::Update, statement.span(), "");
                }
            }
        }
        visit::visit_block(self, node);
    }

    fn visit_pat_guard(&mut self, node: &'ast syn::PatGuard) {
        if !has_let(&node.guard) {
            self.add(Kind::Guard, node.guard.span(), "true");
        }
        visit::visit_pat_guard(self, node);
    }

    fn visit_expr(&mut self, node: &'ast Expr) {
        match node {
            Expr::Binary(node) => self.binary(node),
            Expr::If(node) => self.condition(node),
            Expr::Unary(node) => match node.op {
                UnOp::Not(token) => self.add(Kind::Sign, token.span, ""),
                UnOp::Neg(token) => self.add(Kind::Sign, token.spans[0], ""),
                _ => {}
            },
            Expr::Lit(literal) => {
                if let Lit::Bool(value) = &literal.lit {
                    self.add(Kind::Sign, value.span, if value.value { "false" } else { "true" });
                }
            }
            Expr::Range(node) => {
                if let (Some(_), syn::RangeLimits::HalfOpen(dots), Some(_)) = (&node.start, &node.limits, &node.end) {
                    self.add(Kind::Boundary, dots.span(), "..=");
                }
            }
            Expr::Field(field) => {
                if let syn::Member::Named(name) = &field.member {
                    self.exchange(name);
                }
            }
            Expr::MethodCall(call) => {
                self.exchange(&call.method);
                if LIMITS.iter().any(|limit| call.method == limit) && !call.args.is_empty() {
                    self.add(Kind::Guard, call.span(), self.source(&*call.receiver).to_owned());
                }
                self.arguments(&call.args);
            }
            Expr::Call(call) => self.arguments(&call.args),
            _ => {}
        }
        visit::visit_expr(self, node);
    }
}

impl Finder<'_> {
    fn exchange(&mut self, name: &syn::Ident) {
        let other = EXCHANGED.iter().find_map(|(one, other)| match () {
            () if name == one => Some(*other),
            () if name == other => Some(*one),
            () => None,
        });
        if let Some(other) = other {
            self.add(Kind::Sides, name.span(), other);
        }
    }

    fn arguments(&mut self, args: &syn::punctuated::Punctuated<Expr, syn::Token![,]>) {
        if args.len() == 2 && !args.iter().any(|arg| matches!(arg, Expr::Closure(_) | Expr::Reference(_))) {
            let swapped = format!("{}, {}", self.source(&args[1]), self.source(&args[0]));
            self.add(Kind::Sides, args.span(), swapped);
        }
    }
}
