//! Inputs made of others, the same on every machine: nothing but a seed decides.

/// Makes inputs.
pub(crate) struct Mutator<'s> {
    seeds: &'s [Vec<u8>],
    state: u64,
}

/// The longest input, in bytes.
const LONGEST: usize = 1 << 16;

impl<'s> Mutator<'s> {
    /// Makes inputs of `seeds`, of which there is one at least.
    pub(crate) fn new(seeds: &'s [Vec<u8>], seed: u64) -> Self {
        Self { seeds, state: seed }
    }

    /// Splitmix64.
    fn random(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    fn below(&mut self, end: usize) -> usize {
        (self.random() % end.max(1) as u64) as usize
    }

    /// A seed with some changes, never empty.
    pub(crate) fn next(&mut self) -> Vec<u8> {
        let at = self.below(self.seeds.len());
        let mut input = self.seeds[at].clone();
        for _ in 0..1 << self.below(4) {
            self.change(&mut input);
        }
        input.truncate(LONGEST);
        // libFuzzer passes over empty ones.
        if input.is_empty() {
            input.push(0);
        }
        input
    }

    fn change(&mut self, input: &mut Vec<u8>) {
        let at = self.below(input.len() + 1);
        // Mostly few bytes.
        let most = 1 << self.below(9);
        let length = (1 + self.below(most)).min(input.len() - at);
        match self.below(9) {
            0 if at < input.len() => input[at] ^= 1 << self.below(8),
            1 if at < input.len() => input[at] = self.random() as u8,
            2 => self.number(input, at),
            3 => self.digits(input, at),
            4 => drop(input.drain(at..at + length)),
            5 => {
                let part = input[at..at + length].to_vec();
                let to = self.below(input.len() + 1);
                input.splice(to..to, part);
            }
            6 => {
                let part = self.piece();
                input.splice(at..at, part);
            }
            7 => {
                let part = self.piece();
                let end = (at + part.len()).min(input.len());
                input.splice(at..end, part);
            }
            _ => self.word(input, at),
        }
    }

    /// Some bytes of any seed.
    fn piece(&mut self) -> Vec<u8> {
        let seeds = self.seeds;
        let seed = &seeds[self.below(seeds.len())];
        let at = self.below(seed.len());
        let most = 1 << self.below(9);
        let length = (1 + self.below(most)).min(seed.len() - at);
        seed[at..at + length].to_vec()
    }

    /// A number at a limit.
    fn limit(&mut self) -> u64 {
        let power = 1u64 << self.below(64);
        match self.below(5) {
            0 => 0,
            1 => power,
            2 => power - 1,
            3 => power.wrapping_neg(),
            _ => self.random() >> self.below(64),
        }
    }

    /// Puts a number of 1, 2, 4 or 8 bytes in either byte order.
    fn number(&mut self, input: &mut [u8], at: usize) {
        let (value, size) = (self.limit(), 1 << self.below(4));
        let Some(bytes) = input.get_mut(at..at + size) else {
            return;
        };
        match self.below(2) {
            0 => bytes.copy_from_slice(&value.to_le_bytes()[..size]),
            _ => bytes.copy_from_slice(&value.to_be_bytes()[8 - size..]),
        }
    }

    /// Replaces the next number in digits.
    fn digits(&mut self, input: &mut Vec<u8>, at: usize) {
        let number = self.limit().to_string();
        replace(input, at, u8::is_ascii_digit, number.into_bytes());
    }

    /// Replaces the next word by one of any seed.
    fn word(&mut self, input: &mut Vec<u8>, at: usize) {
        let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
        let piece = self.piece();
        let mut words = piece.split(|byte| !is_word(byte)).skip(1);
        if let Some(word) = words.find(|word| !word.is_empty()) {
            replace(input, at, is_word, word.to_vec());
        }
    }
}

/// Replaces the next run of bytes of a kind.
fn replace(input: &mut Vec<u8>, at: usize, is_kind: impl Fn(&u8) -> bool, by: Vec<u8>) {
    let Some(begin) = input[at..].iter().position(&is_kind) else {
        return;
    };
    let begin = at + begin;
    let length = input[begin..].iter().position(|byte| !is_kind(byte));
    let end = length.map_or(input.len(), |length| begin + length);
    input.splice(begin..end, by);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_makes_the_same_inputs() {
        let seeds = [b"size = 8; word other".to_vec(), vec![0; 40], Vec::new()];
        let inputs = |seed| {
            let mut mutator = Mutator::new(&seeds, seed);
            std::array::from_fn::<_, 2000, _>(|_| mutator.next())
        };
        let first = inputs(1);
        assert_eq!(first, inputs(1));
        assert_ne!(first, inputs(2));
        let sum = first.iter().flatten().fold(0u64, |sum, &byte| {
            sum.wrapping_mul(31).wrapping_add(byte.into())
        });
        // On other machines, too.
        assert_eq!(sum, 10664692599490303045);
    }
}
