//! The same rows with one thread and with several, whatever is asked.

mod common;

use common::answer;
use common::queries::QUERIES;

#[test]
fn the_number_of_threads_changes_no_answer() {
    assert!(QUERIES.len() >= 60);
    let mut empty = Vec::new();
    for (sql, inputs) in QUERIES {
        let answer = |threads| answer(sql, inputs, &["--threads", threads]);
        let one = answer("1");
        assert_eq!(one, answer("5"), "{sql}");
        if one.is_empty() {
            empty.push(*sql);
        }
    }
    assert_eq!(
        empty,
        ["SELECT * FROM events WHERE event = 'there is none'"]
    );
}
