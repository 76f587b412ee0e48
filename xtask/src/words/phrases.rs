//! Words and what to write instead.

/// Phrases that texts do not use.
pub(super) struct Phrases(Vec<Phrase>);

struct Phrase {
    words: Vec<String>,
    instead: String,
}

impl Phrases {
    /// Reads lines `PHRASE | INSTEAD`; `#` begins a comment.
    pub(super) fn read(text: &str) -> Self {
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        let phrases = lines.filter_map(|line| {
            let (phrase, instead) = line.split_once(" | ")?;
            Some(Phrase {
                words: words(phrase),
                instead: instead.trim().to_string(),
            })
        });
        Self(phrases.collect())
    }

    /// The phrases in a text, as problems.
    pub(super) fn find<'t>(&'t self, text: &'t str) -> impl Iterator<Item = String> + 't {
        let words = words(text);
        let listed: Vec<String> = self
            .0
            .iter()
            .filter(|phrase| {
                words
                    .windows(phrase.words.len())
                    .any(|part| part == phrase.words)
            })
            .map(|phrase| format!("`{}`: write {}", phrase.words.join(" "), phrase.instead))
            .collect();
        let is_no = is_no(&words).map(|noun| format!("`is no {noun}`: write `is not a {noun}`"));
        listed.into_iter().chain(is_no)
    }
}

/// The noun of `x is no NOUN`, except in `there is no` and `is no longer`.
fn is_no(words: &[String]) -> Option<&str> {
    words.windows(3).enumerate().find_map(|(at, part)| {
        let before = at.checked_sub(1).map(|before| words[before].as_str());
        let is_it = matches!(part[0].as_str(), "is" | "are")
            && part[1] == "no"
            && !matches!(
                part[2].as_str(),
                "longer" | "more" | "less" | "need" | "way" | "room"
            )
            && !matches!(before, Some("there" | "where" | "while"));
        is_it.then_some(part[2].as_str())
    })
}

/// The words of a text in lower case; a sign between them is a word, so that no phrase reaches over the end of a
/// sentence.
fn words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let end = |word: &mut String, words: &mut Vec<String>| {
        if !word.is_empty() {
            words.push(std::mem::take(word));
        }
    };
    for c in text.chars() {
        match c {
            c if c.is_alphanumeric() || matches!(c, '_' | '-' | '\'') => {
                word.extend(c.to_lowercase())
            }
            c if c.is_whitespace() => end(&mut word, &mut words),
            c => {
                end(&mut word, &mut words);
                words.push(c.to_string());
            }
        }
    }
    end(&mut word, &mut words);
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phrases_are_whole_words() {
        let phrases = Phrases::read("# x\ntold | set\nis none of | is not one of\n");
        let found = |text| phrases.find(text).collect::<Vec<_>>();
        assert_eq!(found("It is Told."), ["`told`: write set"]);
        assert_eq!(found("stoldge"), [""; 0]);
        assert_eq!(found("this is\nnone of them").len(), 1);
        assert_eq!(found("it is. None of them"), [""; 0]);
        assert_eq!(
            found("`x` is no trace"),
            ["`is no trace`: write `is not a trace`"]
        );
        assert_eq!(found("there is no trace, it is no longer here"), [""; 0]);
    }
}
