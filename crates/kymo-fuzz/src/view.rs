//! Requests to the viewer.

use kymo_view::guard::Guard;
use kymo_view::request::{MOST_BODY, MOST_HEAD, parse};

const TOKEN: &str = "0123456789abcdef0123456789abcdef";

/// A head is read the same way however its bytes arrive, has bounds, and is answered only with the token.
pub fn view_request(data: &[u8]) {
    let whole = parse(data);
    if let Ok(Some((head, length))) = &whole {
        assert!(*length <= data.len().min(MOST_HEAD));
        assert!(head.length <= MOST_BODY);
        // What comes behind the head changes nothing.
        assert_eq!(parse(&data[..*length]), whole);
        for end in [0, length / 2, length - 1] {
            // Less than the head is not yet one, or is wrong already.
            assert!(!matches!(parse(&data[..end]), Ok(Some(_))));
        }
        let guard = Guard::new(TOKEN.into(), Vec::new());
        if let Ok(path) = guard.check(head) {
            assert_eq!(head.target, format!("/{TOKEN}/{path}"));
        }
    }
}
