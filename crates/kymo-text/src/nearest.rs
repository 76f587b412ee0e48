//! What a misspelt name may have meant.

/// The name most like a misspelt one, if any is like it at all.
pub fn nearest<'a>(wrong: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let allowed = (wrong.chars().count() / 3).max(1);
    names
        .into_iter()
        .filter_map(|name| Some((distance(wrong, name, allowed)?, name)))
        .min_by_key(|&(distance, _)| distance)
        .map(|(_, name)| name)
}

/// How many characters must be added, removed, replaced or swapped with their neighbour
/// to turn one name into the other, if at most `allowed`; case counts nothing.
fn distance(a: &str, b: &str, allowed: usize) -> Option<usize> {
    /// Longer names are not looked at: the work grows with the square.
    const LONGEST: usize = 100;
    let a: Vec<char> = a
        .chars()
        .take(LONGEST)
        .flat_map(char::to_lowercase)
        .collect();
    let b: Vec<char> = b
        .chars()
        .take(LONGEST)
        .flat_map(char::to_lowercase)
        .collect();
    if a.len().abs_diff(b.len()) > allowed {
        return None;
    }
    // Rows of the usual table: two back, one back, and the one being filled.
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for (i, &x) in a.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, &y) in b.iter().enumerate() {
            let mut cost = (last[j] + usize::from(x != y))
                .min(last[j + 1] + 1)
                .min(row[j] + 1);
            if i > 0 && j > 0 && x == b[j - 1] && a[i - 1] == y {
                cost = cost.min(before[j - 1] + 1);
            }
            row.push(cost);
        }
        before = std::mem::replace(&mut last, row);
    }
    last.last().copied().filter(|&cost| cost <= allowed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_recognised() {
        let names = ["prev_comm", "next_comm", "cpu_id", "name"];
        assert_eq!(nearest("nmae", names), Some("name"));
        assert_eq!(nearest("CPU_ID", names), Some("cpu_id"));
        assert_eq!(nearest("prev_com", names), Some("prev_comm"));
        assert_eq!(nearest("pid", names), None);
        assert_eq!(nearest("x", []), None);
    }
}
