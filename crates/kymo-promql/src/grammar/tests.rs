use super::*;

fn read(query: &str) -> Result<String, String> {
    parse(query).map(|expr| expr.to_string())
}

/// The expression with parentheses around each operation.
fn grouped(expr: &Expr) -> String {
    match expr {
        Expr::Binary(binary) => {
            let (left, right) = (grouped(&binary.left), grouped(&binary.right));
            format!(
                "({left} {}{} {right})",
                binary.operator.name, binary.modifier
            )
        }
        Expr::Negated(inner) => format!("(-{})", grouped(inner)),
        other => other.to_string(),
    }
}

#[test]
fn operators_bind_as_in_prometheus() {
    for (query, expected) in [
        ("a + b * c ^ d ^ e", "(a + (b * (c ^ (d ^ e))))"),
        ("a - b - c", "((a - b) - c)"),
        ("-a ^ b", "(-(a ^ b))"),
        ("-a * b", "((-a) * b)"),
        ("2 ^ -a * b", "((2 ^ (-a)) * b)"),
        ("a or b and c unless d", "(a or ((b and c) unless d))"),
        ("a > b + 1 == c", "((a > (b + 1)) == c)"),
        ("-a offset 5m + b @ 3", "((-a offset 5m) + b @ 3.000)"),
        ("a atan2 b % c", "((a atan2 b) % c)"),
        ("A AND on(x) B", "(A and on (x) B)"),
    ] {
        let expr = parse(query).unwrap();
        assert_eq!(grouped(&expr), expected, "{query}");
    }
}

#[test]
fn expressions_are_written_in_the_usual_form() {
    for (query, expected) in [
        ("SUM BY(host)(rate(x[5m]))", "sum by (host) (rate(x[5m]))"),
        ("sum(x)without(a,\"b c\",)", "sum without (a, \"b c\") (x)"),
        (
            "{\"m.n\", inf!~'b.*', a=`c`}",
            "{__name__=\"m.n\",a=\"c\",inf!~\"b.*\"}",
        ),
        (
            "x{or=\"a\"}[90d:1h] @ start() offset -1w",
            "x{or=\"a\"}[90d:1h] @ start() offset -1w",
        ),
        ("sum + by + step + offset", "sum + by + step + offset"),
        (
            "0x1F + 010 + 1e3 + .5 + 5m - -Inf",
            "31 + 8 + 1000 + 0.5 + 300 - -Inf",
        ),
        ("a * on(b) group_left (c) d", "a * on (b) group_left (c) d"),
        ("topk(3, a:b) # top", "topk(3, a:b)"),
        ("label_join(x, \"a\", \",\")", "label_join(x, \"a\", \",\")"),
        ("hour() + x @ -1.5", "hour() + x @ -1.500"),
    ] {
        assert_eq!(read(query).as_deref(), Ok(expected), "{query}");
    }
}

#[test]
fn what_a_query_holds_is_bounded() {
    let nested = |levels| format!("{}x{}", "(".repeat(levels), ")".repeat(levels));
    assert!(parse(&nested(64)).is_ok());
    for query in [
        nested(65),
        format!("{}x", "-".repeat(251)),
        vec!["x"; 252].join(" + "),
    ] {
        assert!(parse(&query).unwrap_err().contains("more than"), "{query}");
    }
    let large = r#"x{file=~"[\\pL\\pN]{1,200}"}"#;
    let error = parse(large).unwrap_err();
    assert!(error.contains("too large together"), "{error}");
    // One may be large, many are small.
    let names: Vec<String> = (0..500).map(|number| format!("host-{number}")).collect();
    assert!(parse(&format!("x{{a=~\"{}\"}}", names.join("|"))).is_ok());
    let many = |count| format!("x{{{}}}", vec![r#"a=~"b.*""#; count].join(","));
    assert!(parse(&many(50)).is_ok());
    assert!(parse(&many(101)).is_err());
}

#[test]
fn what_is_not_promql_is_refused() {
    for (query, problem) in [
        ("x y", "unexpected \"y\""),
        ("x +", "unexpected end of input, expected an expression"),
        ("(x", "expected \")\""),
        ("sum(x) by (1)", "expected label"),
        ("sum(x, y)", "expected 1, got 2"),
        ("topk(\"a\", x)", "expected type scalar"),
        ("x{a=b}", "expected string"),
        ("x{a==\"b\"}", "expected an operator after \"a\""),
        ("x{a=\"b\" or c=\"d\"}", "`or` between matchers"),
        ("{a=~\".*\"}", "at least one non-empty matcher"),
        ("x{__name__=\"y\"}", "must not be set twice"),
        ("x offset 5m offset 5m", "multiple times"),
        ("x offset 0s", "greater than 0"),
        ("(x)[5m]", "ranges only allowed"),
        (
            "x offset 1m [5m]",
            "no offset modifiers allowed before range",
        ),
        ("rate(x[5m])[5m]", "ranges only allowed"),
        ("\"a\"[5m:]", "subquery is only allowed"),
        ("1 < 2", "must use BOOL"),
        ("1 + bool 2", "bool modifier"),
        ("x and 1", "not allowed in binary scalar expression"),
        ("x and on(a) group_left y", "no grouping allowed"),
        (
            "x * on(a) group_left(a) y",
            "must not occur in ON and GROUP",
        ),
        ("x * group_left y", "unexpected <group_left>"),
        ("x * on(a) 2", "vector matching only allowed"),
        ("x[5m] + 1", "scalar and instant vector"),
        ("-\"a\"", "unary expression"),
        ("rate(x)", "unexpected type vector"),
        ("round(x, 1, 2)", "expected 1 to 2 argument(s)"),
        ("nosuch(x)", "unknown function"),
        ("bool", "unexpected <bool>"),
        ("1_0", "bad number"),
        ("x @ y", "expected timestamp"),
        ("$", "unexpected character"),
        ("rate(x[5m],)", "1:12: parse error: unexpected \")\""),
        ("x[5]", "1:3: parse error: missing unit in a duration"),
        ("x\noffset 5", "2:8: parse error: missing unit"),
        ("x[]", "expected a duration such as 5m"),
        ("x offset -9999999999s", "duration out of range"),
        ("x @ -1e16", "timestamp out of bounds"),
        ("x @ +Inf", "timestamp out of bounds"),
        (
            r#"x{a=~"b**"}"#,
            "1:6: parse error: error parsing regexp: invalid nested repetition operator",
        ),
        ("", "1:1: parse error: no expression found in input"),
        (" # x", "1:1: parse error: no expression found in input"),
    ] {
        let found = read(query).unwrap_err();
        assert!(found.contains(problem), "{query}: {found}");
    }
}
