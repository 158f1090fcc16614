//! Writes sources in which each bug stands behind the switch of `planted.rs`.
//!
//! | the bug | becomes |
//! |---|---|
//! | another operator | `(match at(7, 2) { 1 => a - b, 2 => a * b, _ => a + b })` |
//! | a fixed value of a function | `match at(9, 1) { 1 => return value, _ => {} }` before its first statement |
//! | an arm is left out | a guard: `pattern if 0 == at(10, 1) =>` |
//! | a guard has a fixed value | `if (match at(11, 2) { 1 => true, 2 => false, _ => guard })` |
//! | a field keeps the value of the base | `field: (match at(13, 1) { 1 => (base).field, _ => value })` |

use std::cmp::Reverse;
use std::ops::Range;

use anyhow::{Context as _, Result};
use syn::spanned::Spanned as _;
use syn::visit::{self, Visit};

use crate::list::{Kind, Mutant};

/// Part of a changed file: an error in it is attributed to these bugs.
#[derive(Debug)]
pub struct Part {
    pub range: Range<usize>,
    /// Their indices in the list of all bugs.
    pub mutants: Vec<usize>,
}

/// One place of a source with the bugs that share a switch.
struct Place {
    start: usize,
    end: usize,
    form: Form,
    /// The index of each bug in the list of all, and its text for this place.
    choices: Vec<(usize, String)>,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Form {
    /// Before the first statement.
    Body,
    /// A guard of an arm, before its own guard if the range is not empty.
    Arm,
    /// Instead of an expression.
    Expression,
    /// Instead of a field in short form, with this name.
    ShortField,
    /// Instead of any text, without a switch.
    Text,
}

/// What to write at the places of bugs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    /// Switches.
    Switches,
    /// An error at the place of each bug, to find out which places are compiled.
    Broken,
    /// This bug without a switch, because it is in a constant; switches for the others.
    Always(usize),
}

/// A changed file.
pub struct Planted {
    pub text: String,
    pub parts: Vec<Part>,
    /// The bugs that cannot have a switch.
    pub unfit: Vec<usize>,
    /// Each bug with the number that its place records.
    pub places: Vec<(usize, usize)>,
}

/// Plants these bugs of one file, given by their indices in the list of all. `number` is the number of a bug for the switch, the
/// same in every build.
///
/// `mode`: what to write instead of switches.
pub fn plant(source: &str, all: &[Mutant], which: &[usize], mode: Mode) -> Result<Planted> {
    let nodes = Nodes::of(source)?;
    let (mut places, mut unfit): (Vec<Place>, _) = (Vec::new(), Vec::new());
    for &index in which {
        let Some((start, end, form, mut text)) =
            nodes.form(source, &all[index], mode == Mode::Always(index))
        else {
            unfit.push(index);
            continue;
        };
        if mode == Mode::Broken {
            "{ let () = 0_u8; loop {} }".clone_into(&mut text);
        }
        let same = |place: &&mut Place| (place.start, place.end, place.form) == (start, end, form);
        match places.iter_mut().find(same) {
            Some(place) => place.choices.push((index, text)),
            None => places.push(Place {
                start,
                end,
                form,
                choices: vec![(index, text)],
            }),
        }
    }
    // A surrounding place comes first, and an insertion comes before the place that it precedes.
    let order = |place: &Place| {
        (
            place.start,
            place.start < place.end,
            Reverse(place.end),
            place.form,
        )
    };
    places.sort_by_key(order);
    let of_place = |place: &Place| {
        let first = number(place.choices[0].0);
        place
            .choices
            .iter()
            .map(move |choice| (choice.0, first))
            .collect::<Vec<_>>()
    };
    let numbers = places.iter().flat_map(of_place).collect();
    let mut writer = Writer {
        source,
        mode,
        out: String::new(),
        parts: Vec::new(),
    };
    writer.write(0..source.len(), &places);
    Ok(Planted {
        text: writer.out,
        parts: writer.parts,
        unfit,
        places: numbers,
    })
}

/// The number of a bug, by its index in the list of all. 0 is none of them.
pub fn number(index: usize) -> usize {
    index + 1
}

struct Writer<'a> {
    source: &'a str,
    mode: Mode,
    out: String,
    parts: Vec<Part>,
}

impl Writer<'_> {
    /// Writes a range of the source, with the places in it.
    fn write(&mut self, range: Range<usize>, places: &[Place]) {
        let (mut at, mut next) = (range.start, 0);
        while let Some(place) = places.get(next) {
            self.out.push_str(&self.source[at..place.start]);
            let inside = places[next + 1..].iter();
            let inside =
                inside.take_while(|inner| inner.end <= place.end && place.start < place.end);
            let after = next + 1 + inside.count();
            self.place(place, &places[next + 1..after]);
            (at, next) = (place.end, after);
        }
        self.out.push_str(&self.source[at..range.end]);
    }

    fn place(&mut self, place: &Place, inside: &[Place]) {
        let begin = self.out.len();
        let (first, last) = (place.choices[0].0, place.choices[place.choices.len() - 1].0);
        // The bugs of a place are consecutive in the list; those that do not compile leave gaps.
        let (first, count) = (number(first), last - first + 1);
        let mut switch = format!("crate::planted::at({first}, {count})");
        if self.mode == Mode::Broken && place.form == Form::Arm {
            switch.insert_str(0, "{ let () = 0_u8; 0 } + ");
        }
        let range = place.start..place.end;
        let always = place
            .choices
            .iter()
            .find(|choice| self.mode == Mode::Always(choice.0));
        if let Some((index, text)) = always {
            let text = match place.form {
                Form::Arm if range.is_empty() => " if false".to_owned(),
                Form::Arm => format!("false && ({})", &self.source[range]),
                Form::Body => format!("return {text}; "),
                Form::Expression => format!("({text})"),
                Form::Text => text.clone(),
                Form::ShortField => format!("{}: ({text})", &self.source[range]),
            };
            self.out.push_str(&text);
            self.parts.push(Part {
                range: begin..self.out.len(),
                mutants: vec![*index],
            });
            return;
        }
        match place.form {
            Form::Arm if range.is_empty() => self.out.push_str(&format!(" if 0 == {switch}")),
            Form::Arm => {
                self.out.push_str(&format!("0 == {switch} && ("));
                self.write(range, inside);
                self.out.push(')');
            }
            Form::Body => {
                self.out.push_str(&format!("match {switch} {{ "));
                self.choices(place, |text| format!("return {text}"));
                self.out.push_str("_ => {} } ");
            }
            Form::Expression | Form::ShortField | Form::Text => {
                if place.form == Form::ShortField {
                    let name = &self.source[range.clone()];
                    self.out.push_str(&format!("{name}: "));
                }
                self.out.push_str(&format!("(match {switch} {{ "));
                // In parentheses, because a block at the start would end the arm.
                self.choices(place, |text| format!("({text})"));
                self.out.push_str("_ => (");
                self.write(range, inside);
                self.out.push_str(") })");
            }
        }
        let mutants = place.choices.iter().map(|choice| choice.0).collect();
        // The inner places have their own, shorter parts.
        self.parts.push(Part {
            range: begin..self.out.len(),
            mutants,
        });
    }

    fn choices(&mut self, place: &Place, text: impl Fn(&str) -> String) {
        for (index, choice) in &place.choices {
            let (begin, nth) = (self.out.len(), index - place.choices[0].0 + 1);
            self.out.push_str(&format!("{nth} => {}, ", text(choice)));
            self.parts.push(Part {
                range: begin..self.out.len(),
                mutants: vec![*index],
            });
        }
    }
}

/// The nodes of a source that bugs are about, by their ranges.
#[derive(Default)]
struct Nodes {
    /// Each operator's range, with that of its expression.
    operators: Vec<(Range<usize>, Range<usize>)>,
    /// What is evaluated at compile time, where no switch can be asked.
    constants: Vec<Range<usize>>,
    /// Each arm: its range, the end of its pattern, and its guard.
    arms: Vec<(Range<usize>, usize, Option<Range<usize>>)>,
    fields: Vec<Field>,
}

/// A field of a struct expression that has a base.
struct Field {
    whole: Range<usize>,
    name: String,
    /// None in the short form.
    value: Option<Range<usize>>,
    base: Range<usize>,
}

impl Nodes {
    fn of(source: &str) -> Result<Self> {
        let file = syn::parse_file(source).context("a source that syn cannot read")?;
        let mut nodes = Self::default();
        nodes.visit_file(&file);
        Ok(nodes)
    }

    /// Where the switch of a bug stands, its form, and the text of the bug.
    fn form(
        &self,
        source: &str,
        mutant: &Mutant,
        alone: bool,
    ) -> Option<(usize, usize, Form, String)> {
        let (start, end) = (mutant.start, mutant.end);
        let replacement = || mutant.replacement.clone();
        if mutant.kind == Kind::Text {
            return alone.then_some((start, end, Form::Text, replacement()));
        }
        if !alone
            && self
                .constants
                .iter()
                .any(|range| range.start <= start && end <= range.end)
        {
            return None;
        }
        match mutant.kind {
            Kind::Body => Some((start, start, Form::Body, replacement())),
            Kind::ByHand | Kind::Guard | Kind::Text => {
                Some((start, end, Form::Expression, replacement()))
            }
            Kind::Operator => {
                let whole = &self
                    .operators
                    .iter()
                    .find(|found| found.0 == (start..end))?
                    .1;
                let (before, after) = (&source[whole.start..start], &source[end..whole.end]);
                let text = format!("{before}{}{after}", mutant.replacement);
                Some((whole.start, whole.end, Form::Expression, text))
            }
            Kind::Arm => {
                let arm = self.arms.iter().find(|found| found.0.start == start)?;
                let guard = arm.2.clone().unwrap_or(arm.1..arm.1);
                Some((guard.start, guard.end, Form::Arm, String::new()))
            }
            Kind::Field => {
                let field = self
                    .fields
                    .iter()
                    .find(|field| field.whole.start == start)?;
                let text = format!("({}).{}", &source[field.base.clone()], field.name);
                Some(match &field.value {
                    Some(value) => (value.start, value.end, Form::Expression, text),
                    None => (field.whole.start, field.whole.end, Form::ShortField, text),
                })
            }
        }
    }
}

impl Visit<'_> for Nodes {
    fn visit_expr_binary(&mut self, node: &syn::ExprBinary) {
        self.operators
            .push((node.op.span().byte_range(), node.span().byte_range()));
        visit::visit_expr_binary(self, node);
    }

    fn visit_expr_unary(&mut self, node: &syn::ExprUnary) {
        self.operators
            .push((node.op.span().byte_range(), node.span().byte_range()));
        visit::visit_expr_unary(self, node);
    }

    fn visit_item_const(&mut self, node: &syn::ItemConst) {
        self.constants.push(node.expr.span().byte_range());
        visit::visit_item_const(self, node);
    }

    fn visit_item_static(&mut self, node: &syn::ItemStatic) {
        self.constants.push(node.expr.span().byte_range());
        visit::visit_item_static(self, node);
    }

    fn visit_impl_item_const(&mut self, node: &syn::ImplItemConst) {
        self.constants.push(node.expr.span().byte_range());
        visit::visit_impl_item_const(self, node);
    }

    fn visit_trait_item_const(&mut self, node: &syn::TraitItemConst) {
        self.constants.extend(
            node.default
                .iter()
                .map(|default| default.1.span().byte_range()),
        );
        visit::visit_trait_item_const(self, node);
    }

    fn visit_expr_const(&mut self, node: &syn::ExprConst) {
        self.constants.push(node.span().byte_range());
        visit::visit_expr_const(self, node);
    }

    fn visit_type_array(&mut self, node: &syn::TypeArray) {
        self.constants.push(node.len.span().byte_range());
        visit::visit_type_array(self, node);
    }

    fn visit_expr_repeat(&mut self, node: &syn::ExprRepeat) {
        self.constants.push(node.len.span().byte_range());
        visit::visit_expr_repeat(self, node);
    }

    fn visit_arm(&mut self, node: &syn::Arm) {
        let guard = node.guard.as_ref().map(|guard| guard.1.span().byte_range());
        self.arms.push((
            node.span().byte_range(),
            node.pat.span().byte_range().end,
            guard,
        ));
        visit::visit_arm(self, node);
    }

    fn visit_expr_struct(&mut self, node: &syn::ExprStruct) {
        if let Some(base) = &node.rest {
            for field in &node.fields {
                let syn::Member::Named(name) = &field.member else {
                    continue;
                };
                self.fields.push(Field {
                    whole: field.span().byte_range(),
                    name: name.to_string(),
                    value: field.colon_token.map(|_| field.expr.span().byte_range()),
                    base: base.span().byte_range(),
                });
            }
        }
        visit::visit_expr_struct(self, node);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A source with one bug for each `(kind, original, replacements)`.
    fn planted(source: &str, bugs: &[(Kind, &str, &[&str])]) -> String {
        let mut all = Vec::new();
        for (kind, original, replacements) in bugs {
            let start = source.find(original).expect(original);
            all.extend(replacements.iter().map(|replacement| Mutant {
                file: String::new(),
                key: String::new(),
                start,
                end: start + original.len(),
                kind: *kind,
                replacement: (*replacement).to_owned(),
                stamp: 0,
            }));
        }
        let which: Vec<_> = (0..all.len()).collect();
        let planted = plant(source, &all, &which, Mode::Switches).unwrap();
        assert!(planted.unfit.is_empty());
        syn::parse_file(&planted.text).expect(&planted.text);
        planted.text.replace("crate::planted::", "")
    }

    #[test]
    fn operators_are_chosen_at_run_time() {
        assert_eq!(
            planted(
                "fn f() { a + b * c }",
                &[
                    (Kind::Operator, "+", &["-", "*"]),
                    (Kind::Operator, "*", &["/"])
                ]
            ),
            "fn f() { (match at(1, 2) { 1 => (a - b * c), 2 => (a * b * c), _ => (a + (match at(3, 1) { 1 => (b / c), _ => (b * c) })) }) }"
        );
        assert_eq!(
            planted("fn f() { !a }", &[(Kind::Operator, "!", &[""])]),
            "fn f() { (match at(1, 1) { 1 => (a), _ => (!a) }) }"
        );
    }

    #[test]
    fn a_body_gives_a_value_before_its_first_statement() {
        assert_eq!(
            planted(
                "fn f() -> u8 { a + b }",
                &[
                    (Kind::Body, "a + b", &["0", "1"]),
                    (Kind::Operator, "+", &["-"])
                ]
            ),
            "fn f() -> u8 { match at(1, 2) { 1 => return 0, 2 => return 1, _ => {} } (match at(3, 1) { 1 => (a - b), _ => (a + b) }) }"
        );
    }

    #[test]
    fn arms_get_guards() {
        let source = "fn f() { match x { A => 1, B if cond => 2, _ => 3 } }";
        assert_eq!(
            planted(
                source,
                &[
                    (Kind::Arm, "A => 1", &[""]),
                    (Kind::Arm, "B if cond => 2", &[""]),
                    (Kind::Guard, "cond", &["true"])
                ]
            ),
            "fn f() { match x { A if 0 == at(1, 1) => 1, B if 0 == at(2, 1) && ((match at(3, 1) { 1 => (true), _ => (cond) })) => 2, _ => 3 } }"
        );
    }

    #[test]
    fn fields_keep_the_value_of_the_base() {
        let source = "fn f() -> S { S { a: 1, b, ..c() } }";
        assert_eq!(
            planted(
                source,
                &[(Kind::Field, "a: 1", &[""]), (Kind::Field, "b", &[""])]
            ),
            "fn f() -> S { S { a: (match at(1, 1) { 1 => ((c()).a), _ => (1) }), b: (match at(2, 1) { 1 => ((c()).b), _ => (b) }), ..c() } }"
        );
    }
}
