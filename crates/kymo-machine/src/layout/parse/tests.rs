use super::*;
use crate::Width;

fn one(text: &str) -> Struct {
    let mut structs = parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
    assert_eq!(structs.len(), 1, "{text}");
    structs.remove(0)
}

/// The text that is marked, and what is said of it.
fn wrong(text: &str) -> (&str, String) {
    let error = parse(text).expect_err(text);
    (&text[error.range.clone()], error.message)
}

#[test]
fn structs_as_people_write_them() {
    let structs = parse(
        "#include <stdint.h> // types\n\
         #define SIZE 4 /* and\n one */ + 1\n\
         typedef enum IDEAS { ID_ONE = 0, ID_TWO, ID_FOUR = SIZE - 2, } IDEAS;\n\
         typedef struct FORMATa {\n\
           char c1[SIZE]; uint32_t i1, *pointer, table[2][3];\n\
           const unsigned long int l1; IDEAS e1;\n\
         } FORMATa;\n\
         union value { long u_cnt; double u_val; };\n\
         struct outer { FORMATa inner; union value values[ID_FOUR]; struct { time_t t; } last; };",
    )
    .unwrap();
    let ideas = vec![
        ("ID_ONE".into(), 0),
        ("ID_TWO".into(), 1),
        ("ID_FOUR".into(), 3),
    ];
    let format = Struct::new("FORMATa")
        .member("c1", CType::array(CType::Char, 5))
        .member("i1", CType::UINT)
        .member("pointer", CType::Pointer)
        .member("table", CType::array(CType::array(CType::UINT, 3), 2))
        .member("l1", CType::ULONG)
        .member("e1", CType::Enum(ideas));
    let value = Struct::union("value")
        .member("u_cnt", CType::LONG)
        .member("u_val", CType::Double);
    let last = Struct::new("").member("t", CType::Time);
    let outer = Struct::new("outer")
        .member("inner", CType::Struct(format.clone()))
        .member("values", CType::array(CType::Struct(value.clone()), 3))
        .member("last", CType::Struct(last));
    assert_eq!(structs, [format, value, outer]);
}

#[test]
fn every_scalar() {
    let int = |width, signed| CType::Int { width, signed };
    for (text, expected) in [
        ("char", CType::Char),
        ("signed char", int(Width::W8, true)),
        ("unsigned char", int(Width::W8, false)),
        ("_Bool", int(Width::W8, false)),
        ("uint8_t", int(Width::W8, false)),
        ("short", int(Width::W16, true)),
        ("unsigned short int", int(Width::W16, false)),
        ("int16_t", int(Width::W16, true)),
        ("int", CType::INT),
        ("signed", CType::INT),
        ("unsigned", CType::UINT),
        ("int unsigned", CType::UINT),
        ("long", CType::LONG),
        ("long unsigned int", CType::ULONG),
        ("long long", int(Width::W64, true)),
        ("unsigned long long int", CType::UINT64),
        ("long int long unsigned", CType::UINT64),
        ("uint64_t", CType::UINT64),
        ("size_t", CType::Size { signed: false }),
        ("ssize_t", CType::Size { signed: true }),
        ("time_t", CType::Time),
        ("float", CType::Float),
        ("const double volatile", CType::Double),
        ("void *", CType::Pointer),
        ("const char * const *", CType::Pointer),
        ("struct later *", CType::Pointer),
        ("enum { A }", CType::Enum(vec![("A".into(), 0)])),
    ] {
        let found = one(&format!("struct s {{ {text} m; }};"));
        assert_eq!(found.members[0].ctype, expected, "{text}");
    }
}

#[test]
fn names_of_structs() {
    for (text, names) in [
        ("struct tag { int a; };", &["tag"][..]),
        ("typedef struct { int a; } name;", &["name"]),
        ("typedef struct tag { int a; } name, *pointer;", &["name"]),
        ("typedef struct tag { int a; } *pointer;", &["tag"]),
        (
            "struct a { int a; }; typedef struct a b; struct c { b b; };",
            &["a", "c"],
        ),
    ] {
        let found: Vec<_> = parse(text)
            .unwrap()
            .into_iter()
            .map(|one| one.name)
            .collect();
        assert_eq!(found, names, "{text}");
    }
}

#[test]
fn constants() {
    for (text, expected) in [
        ("20", 20),
        ("0x10", 16),
        ("010UL", 8),
        ("0", 0),
        ("1 + 2 * 3 - 4", 3),
        ("(1 + 2) * -(3 - 5)", 6),
        ("17 / 5 % 2", 1),
        ("20 - 10 - 5", 5),
        ("THREE * THREE", 9),
    ] {
        let found = one(&format!(
            "enum {{ THREE = 3 }}; struct s {{ char c[{text}]; }};"
        ));
        let expected = CType::array(CType::Char, expected);
        assert_eq!(found.members[0].ctype, expected, "{text}");
    }
}

#[test]
fn errors_report_the_place() {
    for (text, place, message) in [
        (
            "struct s { int a : 3; };",
            ":",
            "bit-fields are not laid out",
        ),
        ("struct s { int a }; ", "}", "unexpected `}`"),
        ("struct s { int a; }", "", "unexpected the end of the text"),
        ("struct s { };", ";", "a struct without members"),
        ("struct s { foo_t a; };", "foo_t", "unknown type `foo_t`"),
        (
            "struct s { long double a; };",
            "long double",
            "unknown type `long double`",
        ),
        (
            "struct s { unsigned signed a; };",
            "unsigned signed",
            "unknown type `unsigned signed`",
        ),
        (
            "struct s { struct s a; };",
            "struct s",
            "the size of `struct s` is not known",
        ),
        (
            "struct s { void a; };",
            "void",
            "the size of `void` is not known",
        ),
        ("struct s { int a, a; };", "a", "`a` is declared twice"),
        (
            "struct s { int (*f)(void); };",
            "(",
            "pointers to functions and arrays are not read",
        ),
        ("struct s { int a[]; };", "]", "unexpected `]`"),
        (
            "struct s { int a[-1]; };",
            "-",
            "an array cannot have -1 elements",
        ),
        ("struct s { int a[1/0]; };", "1/0", "1 / 0 has no value"),
        ("struct s { int a[N]; };", "N", "unknown constant `N`"),
        ("struct s { int a[09]; };", "09", "`09` is not an integer"),
        (
            "struct s { int a[0xffffffffffffffff]; };",
            "0xffffffffffffffff",
            "this number is too large",
        ),
        (
            "struct __attribute__((packed)) s { int a; };",
            "__attribute__",
            "unexpected `__attribute__`",
        ),
        (
            "struct s { int a; } __attribute__((packed));",
            "__attribute__",
            "attributes are not carried out",
        ),
        (
            "struct s { int a; } variable;",
            "variable",
            "unexpected `variable`",
        ),
        ("int main(void) { }", "main", "unexpected `main`"),
        ("enum e { A, A };", "A", "`A` is declared twice"),
        (
            "enum e { A = 4294967296 };",
            "A",
            "4294967296 does not fit in an enumeration",
        ),
        (
            "#pragma pack(1)\n",
            "pragma",
            "this directive is not carried out",
        ),
        ("#define A\n", "", "unexpected the end of the line"),
        ("/* open", "/*", "this comment does not end"),
        (
            "struct \u{e9} { int a; };",
            "\u{e9}",
            "unexpected character 'é'",
        ),
        ("enum e { A };", "", "no struct is declared"),
        ("", "", "no struct is declared"),
    ] {
        assert_eq!(wrong(text), (place, message.to_string()), "{text}");
    }
}

#[test]
fn short_texts_do_not_make_much() {
    // Each struct has two of the one before.
    let mut doubling = "struct s0 { int a; };\n".to_string();
    for n in 1..60 {
        doubling += &format!("struct s{n} {{ struct s{} a, b; }};\n", n - 1);
    }
    assert_eq!(wrong(&doubling).1, "too many members");

    let mut deep = "typedef char t0[1];\n".to_string();
    for n in 1..1000 {
        deep += &format!("typedef t{} t{n}[1];\n", n - 1);
    }
    assert_eq!(wrong(&deep).1, "nested too deeply");

    let open = "struct s { struct { ".repeat(100_000);
    assert_eq!(wrong(&open).1, "nested too deeply");
    let open = format!("struct s {{ int a[{}", "(".repeat(100_000));
    assert_eq!(wrong(&open).1, "nested too deeply");
    let brackets = format!("struct s {{ int a{}; }};", "[1]".repeat(100_000));
    assert_eq!(wrong(&brackets).1, "nested too deeply");
}
