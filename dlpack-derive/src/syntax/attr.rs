//! The grammar of one `#[dlpack(..)]`: parses its tokens into keys with values. How keys combine is decided in `plan`.

use proc_macro2::{Ident, TokenStream, TokenTree};
use syn::ext::IdentExt;
use syn::parse::{ParseStream, Parser};
use syn::{Attribute, Error, LitStr, Meta, Path, Result, Token, Type, parenthesized, token};

use crate::syntax::ctxt::Ctxt;
use crate::syntax::expr;
use crate::syntax::role::{Form, Role, Site};

/// One key, with its value.
pub(crate) struct Attr {
    pub(crate) role: Role,
    pub(crate) key: Ident,
    pub(crate) value: Value,
}

/// The value of a key.
pub(crate) enum Value {
    Flag,
    Expr(TokenStream),
    Text(LitStr),
    Type(Box<Type>),
    Path(Path),
    List(Vec<Attr>),
}

/// Parses all `#[dlpack(..)]` of an item. After an error, parsing continues at the next comma.
pub(crate) fn parse_attrs(attrs: &[Attribute], site: Site, cx: &Ctxt) -> Vec<Attr> {
    let mut found = Vec::new();
    for attr in attrs.iter().filter(|attr| attr.path().is_ident("dlpack")) {
        let Meta::List(list) = &attr.meta else {
            cx.error(
                attr.path(),
                format!("expected a list in parentheses, {}", site.expected()),
            );
            continue;
        };
        let read = list.parse_args_with(|input: ParseStream<'_>| {
            parse_items(input, site, &mut found, cx);
            Ok(())
        });
        if let Err(error) = read {
            cx.push(error);
        }
    }
    found
}

/// Parses the options of `#[dlpack_pymethods(..)]`.
pub(crate) fn parse_options(tokens: TokenStream, cx: &Ctxt) -> Vec<Attr> {
    let mut found = Vec::new();
    let read = |input: ParseStream<'_>| {
        parse_items(input, Site::Methods, &mut found, cx);
        Ok(())
    };
    if let Err(error) = read.parse2(tokens) {
        cx.push(error);
    }
    found
}

fn parse_items(input: ParseStream<'_>, site: Site, found: &mut Vec<Attr>, cx: &Ctxt) {
    while !input.is_empty() {
        match parse_item(input, site, cx) {
            Ok(attr) => {
                if !input.is_empty() && !input.peek(Token![,]) {
                    cx.push(input.error(format!("expected `,` after `{}`", attr.key)));
                    expr::take_expression(input);
                }
                skip_comma(input);
                skip_loose_entries(input, &attr, site, cx);
                let again =
                    attr.role != Role::Tensor && found.iter().any(|old| old.role == attr.role);
                if again {
                    cx.error(
                        &attr.key,
                        format!("`{}` is given twice; remove one", attr.key),
                    );
                } else {
                    found.push(attr);
                }
            }
            Err(error) => {
                cx.push(error);
                expr::take_expression(input);
                skip_comma(input);
            }
        }
    }
}

/// Skips the comma between two items. The next token is one, or the list ends.
fn skip_comma(input: ParseStream<'_>) {
    let _: Option<Token![,]> = input.parse().ok();
}

/// Skips the entries of a list that was written without brackets, as in `shape = rows, columns`, and reports one error for
/// all.
fn skip_loose_entries(input: ParseStream<'_>, list: &Attr, site: Site, cx: &Ctxt) {
    let (Role::Shape | Role::Strides | Role::ByteStrides, Value::Expr(first)) =
        (list.role, &list.value)
    else {
        return;
    };
    if matches!(expr::single_token(first), Some(TokenTree::Group(_))) {
        return;
    }
    let mut entries = Vec::new();
    while is_loose(&expr::take_expression(&input.fork()), site) {
        entries.push(expr::take_expression(input));
        skip_comma(input);
    }
    if let Some(entry) = entries.first() {
        // Tokens are written with spaces between them.
        let text = |tokens: &TokenStream| tokens.to_string().replace(" . ", ".");
        let all: Vec<_> = [first].into_iter().chain(&entries).map(text).collect();
        let (name, all) = (list.role.name(), all.join(", "));
        let mut message = format!("`{name}` takes one list: write `{name} = [{all}]`");
        // The last entry may be meant as a key.
        let last = entries.last().unwrap_or(entry).to_string();
        if Role::named(&last).is_some_and(|role| role.form(site).is_some()) {
            message += &format!("; if `{last}` is the key of that name, it lacks a value");
        }
        cx.push(Error::new_spanned(entry, message));
    }
}

/// Whether the tokens up to a comma are a field, or a single name or number, and no key that needs no value at this site, nor similar to
/// one.
fn is_loose(tokens: &TokenStream, site: Site) -> bool {
    if expr::plain_member(tokens).is_some() {
        return true;
    }
    match expr::single_token(tokens) {
        Some(TokenTree::Literal(literal)) => !literal.to_string().contains('"'),
        Some(TokenTree::Ident(word)) => {
            let word = word.to_string();
            let is_flag =
                |role: Role| matches!(role.form(site), Some(Form::Flag | Form::FlagOrList(_)));
            let key = Role::named(&word);
            let keys = [key, site.nearest_key(&word)];
            key != Some(Role::Data) && !keys.into_iter().flatten().any(is_flag)
        }
        _ => false,
    }
}

fn parse_item(input: ParseStream<'_>, site: Site, cx: &Ctxt) -> Result<Attr> {
    if !input.peek(Ident::peek_any) {
        return Err(input.error(format!("expected a key, {}", site.expected())));
    }
    let key = input.call(Ident::parse_any)?;
    let role = Role::named(&key.to_string())
        .filter(|role| role.is_known(site))
        .ok_or_else(|| unknown_key_error(&key, site))?;
    let form = role
        .form(site)
        .ok_or_else(|| misplaced_key_error(&key, role, site))?;
    let value = if input.peek(token::Paren) {
        let (Form::List(inside) | Form::FlagOrList(inside)) = form else {
            return Err(no_list(&key, role, form, cx));
        };
        let content;
        parenthesized!(content in input);
        let mut inner = Vec::new();
        parse_items(&content, inside, &mut inner, cx);
        Value::List(inner)
    } else if input.peek(Token![=]) {
        input.parse::<Token![=]>()?;
        parse_value(input, &key, role, form, site, cx)?
    } else if matches!(form, Form::Flag | Form::FlagOrList(_)) {
        Value::Flag
    } else {
        return Err(no_flag(&key, role, site, cx));
    };
    Ok(Attr { role, key, value })
}

fn parse_value(
    input: ParseStream<'_>,
    key: &Ident,
    role: Role,
    form: Form,
    site: Site,
    cx: &Ctxt,
) -> Result<Value> {
    if matches!(form, Form::Flag | Form::List(_) | Form::FlagOrList(_)) {
        return Err(no_value(key, role, form, site));
    }
    if input.is_empty() || input.peek(Token![,]) {
        let name = role.name();
        return Err(Error::new(
            key.span(),
            format!(
                "`{name}` needs a value, such as `{name} = {}`",
                role.example(cx.root)
            ),
        ));
    }
    let literal = parse_literal(input);
    match form {
        Form::Text => {
            let Some(text) = literal else {
                let example = role.example(cx.root);
                return Err(input.error(format!(
                    "expected a string literal, such as `{} = {example}`",
                    role.name()
                )));
            };
            input.parse::<LitStr>()?;
            one_of(role, &text)?;
            Ok(Value::Text(text))
        }
        Form::Order if literal.is_some() => {
            let text: LitStr = input.parse()?;
            one_of(role, &text)?;
            Ok(Value::Text(text))
        }
        Form::Order if bare_order(input).is_some() => {
            let word: Ident = input.parse()?;
            let message = format!("an order is a string: write `order = \"{word}\"`");
            Err(Error::new(word.span(), message))
        }
        Form::Type | Form::Path => {
            let what = if form == Form::Type {
                "a type"
            } else {
                "a path"
            };
            if let Some(text) = literal {
                let (name, example) = (role.name(), role.example(cx.root));
                let message =
                    format!("expected {what}, such as `{name} = {example}`; remove the quotes");
                return Err(Error::new(text.span(), message));
            }
            let value = if form == Form::Type {
                input.parse().map(Box::new).map(Value::Type)
            } else {
                input.call(Path::parse_mod_style).map(Value::Path)
            };
            value.map_err(|error| {
                let (name, example) = (role.name(), role.example(cx.root));
                Error::new(
                    error.span(),
                    format!("expected {what}, such as `{name} = {example}`"),
                )
            })
        }
        _ => check_expression(expr::take_expression(input), role, cx).map(Value::Expr),
    }
}

/// Rejects strings and a bare `_`, which are not valid for any key with an expression.
fn check_expression(tokens: TokenStream, role: Role, cx: &Ctxt) -> Result<TokenStream> {
    let wrong = match expr::single_token(&tokens) {
        Some(TokenTree::Literal(literal)) if literal.to_string().contains('"') => "a string",
        Some(TokenTree::Ident(ident)) if ident == "_" => "`_`",
        _ => return Ok(tokens),
    };
    let message = format!(
        "expected an expression such as `{}`, found {wrong}",
        role.example(cx.root)
    );
    Err(Error::new_spanned(tokens, message))
}

/// `C` or `F` without quotes, as the whole value.
fn bare_order(input: ParseStream<'_>) -> Option<()> {
    let ahead = input.fork();
    let word = ahead.parse::<Ident>().ok()?;
    let ends = ahead.is_empty() || ahead.peek(Token![,]);
    (ends && (word == "C" || word == "F")).then_some(())
}

/// A string literal, as the whole value.
fn parse_literal(input: ParseStream<'_>) -> Option<LitStr> {
    let ahead = input.fork();
    let text = ahead.parse::<LitStr>().ok()?;
    (ahead.is_empty() || ahead.peek(Token![,])).then_some(text)
}

/// Checks a string value: the name of a module, or one of two words.
fn one_of(role: Role, text: &LitStr) -> Result<()> {
    let words = match role {
        Role::Order => ["C", "F"],
        Role::Legacy => ["copy", "refuse"],
        Role::Release => ["safe", "immediate"],
        Role::Arrays if !is_dotted(&text.value()) => {
            let message =
                "expected the name of a module of Python's, such as `\"numpy\"` or `\"jax.numpy\"`";
            return Err(Error::new(text.span(), message));
        }
        _ => return Ok(()),
    };
    if words.contains(&text.value().as_str()) {
        return Ok(());
    }
    let [one, other] = words;
    let message = format!(
        "unknown {} {:?}, expected `{one:?}` or `{other:?}`",
        role.name(),
        text.value()
    );
    Err(Error::new(text.span(), message))
}

/// Whether Python accepts the text as a dotted path.
fn is_dotted(path: &str) -> bool {
    let is_name = |name: &str| {
        let starts = name.starts_with(|first: char| first == '_' || first.is_alphabetic());
        starts
            && name
                .chars()
                .all(|letter| letter == '_' || letter.is_alphanumeric())
    };
    path.split('.').all(is_name)
}

fn unknown_key_error(key: &Ident, site: Site) -> Error {
    let word = key.to_string();
    let mut message = format!(
        "unknown dlpack {} `{key}`, expected {}",
        site.kind(),
        site.expected()
    );
    if let Some(role) = site.nearest_key(&word) {
        message += &format!("; did you mean `{}`?", role.name());
    } else if Role::named(&word).is_some_and(|role| role.is_known(Site::Methods)) {
        message += &format!("; write `#[dlpack_pymethods({word})]` above `#[pymethods]`");
    }
    Error::new(key.span(), message)
}

fn misplaced_key_error(key: &Ident, role: Role, site: Site) -> Error {
    let name = role.name();
    // A key that is only allowed in one place is not moved to a type.
    let moves = !matches!(
        role,
        Role::Skip | Role::Nested | Role::Name | Role::Set | Role::Len
    );
    let message = match site {
        Site::Enum if role == Role::Data => {
            "`data` belongs on a variant's field, not on an enum".to_owned()
        }
        Site::Enum if moves => format!(
            "`{name}` does not apply to an enum: write it on the types of its variants' fields"
        ),
        Site::VariantField if role == Role::Skip => {
            "`skip` belongs on the variant, not on its field".to_owned()
        }
        Site::VariantField if moves => {
            format!("a variant's field can only be `data`: write `{name}` on the type of the field")
        }
        Site::FieldTensor if role == Role::Data || role == Role::Unsafe => {
            format!(
                "the field itself is the data of this tensor: remove `{name}`, or move `tensor(..)` to the struct"
            )
        }
        Site::FreeTensor if role == Role::Owner => {
            "`owner` needs a field to clone: write `tensor(owner)` on the field that holds the elements"
                .to_owned()
        }
        Site::FreeTensor if role == Role::Set => {
            "`set` needs a field to put the elements into: write `tensor(set)` on it".to_owned()
        }
        Site::FieldTensor | Site::FreeTensor | Site::Raw => {
            format!(
                "`{name}` does not belong in {}, expected {}",
                site.name(),
                site.expected()
            )
        }
        Site::Row | Site::RowField => {
            format!(
                "`{name}` has no effect on an element or a record, expected {}",
                site.expected()
            )
        }
        _ => format!(
            "`{name}` belongs on {}, not on {}",
            role.allowed_place(),
            site.name()
        ),
    };
    Error::new(key.span(), message)
}

fn no_flag(key: &Ident, role: Role, site: Site, cx: &Ctxt) -> Error {
    let name = role.name();
    let message = match role {
        Role::Data if site == Site::Struct => {
            "`data` belongs on a field, not on the struct".to_owned()
        }
        Role::Tensor => {
            "`tensor` on the struct needs a list: `tensor(name = \"..\", data = ..)`".to_owned()
        }
        Role::Unsafe => "`unsafe` needs a list: `unsafe(data = .., len = ..)`".to_owned(),
        role if role.lays_out() && site == Site::Struct => format!(
            "`{name}` needs a value on the struct, such as `{name} = {}`; as a flag it belongs on a field",
            role.example(cx.root)
        ),
        _ => format!(
            "`{name}` needs a value, such as `{name} = {}`",
            role.example(cx.root)
        ),
    };
    Error::new(key.span(), message)
}

fn no_value(key: &Ident, role: Role, form: Form, site: Site) -> Error {
    let name = role.name();
    let message = match form {
        Form::List(_) if role == Role::Unsafe => {
            "`unsafe` needs a list: `unsafe(data = .., len = ..)`".to_owned()
        }
        Form::List(_) | Form::FlagOrList(_) => {
            format!("`{name}` takes no value: write `{name}(name = \"..\")`")
        }
        _ if site == Site::Field
            && matches!(role.form(Site::Struct), Some(form) if form != Form::Flag) =>
        {
            format!(
                "`{name}` marks this field and takes no value: write `{name} = ..` on the struct"
            )
        }
        _ => format!("`{name}` is a flag: remove its value"),
    };
    Error::new(key.span(), message)
}

fn no_list(key: &Ident, role: Role, form: Form, cx: &Ctxt) -> Error {
    let name = role.name();
    let message = match form {
        Form::Flag => format!("`{name}` is a flag: remove the parentheses"),
        _ => format!(
            "`{name}` takes its value after `=`, such as `{name} = {}`",
            role.example(cx.root)
        ),
    };
    Error::new(key.span(), message)
}
