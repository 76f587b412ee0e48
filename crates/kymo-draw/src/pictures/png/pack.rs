//! Rows of pixels as zlib streams, in a third of the time that zlib takes: most pixels of a graph are those of the row
//! above, or that of the left, so that there is where matches are looked for first.

/// Tokens of a block; each block has its own codes.
const BLOCK: usize = 1 << 16;
/// The longest match.
const LONGEST: usize = 258;
/// The greatest distance of a match.
const FARTHEST: usize = 1 << 15;
/// Shorter matches found elsewhere are not worth their distance.
const SHORTEST: usize = 4;
/// Bits of the hash of the bytes that a match elsewhere begins with.
const HASH_BITS: u32 = 12;
/// The symbol that ends a block.
const END: usize = 256;
/// Symbols of literals and lengths, and of distances.
const LITERALS: usize = 286;
const DISTANCES: usize = 30;
/// The order in which the lengths of codes of code lengths are written.
const ORDER: [usize; 19] = [
    16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15,
];

/// Packs rows of `line` bytes, whose pixels have `depth` bytes.
pub(super) fn pack(bytes: &[u8], line: usize, depth: usize) -> Vec<u8> {
    let mut packer = Packer {
        bytes,
        tokens: Vec::with_capacity(BLOCK.min(bytes.len()) + 8),
        literals: [0; LITERALS],
        distances: [0; DISTANCES],
        out: Bits {
            // 32 KiB of window, the fastest level.
            bytes: vec![0x78, 0x01],
            waiting: 0,
            count: 0,
        },
    };
    packer.pack(line, depth);
    let mut out = packer.out.finish();
    out.extend(simd_adler32::adler32(&bytes).to_be_bytes());
    out
}

/// A literal, or a match: its length above its distance.
#[derive(Clone, Copy)]
struct Token(u32);

struct Packer<'a> {
    bytes: &'a [u8],
    tokens: Vec<Token>,
    literals: [u32; LITERALS],
    distances: [u32; DISTANCES],
    out: Bits,
}

impl Packer<'_> {
    fn pack(&mut self, line: usize, depth: usize) {
        let bytes = self.bytes;
        // The three bytes at a place: what does not begin with the same is not a match.
        let begin = |at: usize| {
            let next = bytes.get(at..).and_then(<[u8]>::first_chunk::<4>);
            next.map(|next| u32::from_le_bytes(*next) & 0xff_ffff)
        };
        // Where bytes with a hash were last.
        let mut places = vec![u32::MAX; 1 << HASH_BITS];
        let mut at = 0;
        while at < bytes.len() {
            let mut best = (0, 0);
            let next = begin(at);
            for distance in [line, depth, 2 * depth] {
                if distance > at || next.is_some() && begin(at - distance) != next {
                    continue;
                }
                let length = self.same(at, distance);
                if length > best.0 {
                    best = (length, distance);
                }
                if length == LONGEST {
                    break;
                }
            }
            if best.0 < SHORTEST
                && let Some(next) = bytes.get(at..).and_then(<[u8]>::first_chunk::<4>)
            {
                let hash = u32::from_le_bytes(*next).wrapping_mul(0x9e37_79b1) >> (32 - HASH_BITS);
                let place = std::mem::replace(&mut places[hash as usize], at as u32);
                if (place as usize) < at {
                    let distance = at - place as usize;
                    let length = self.same(at, distance);
                    if length >= SHORTEST {
                        best = (length, distance);
                    }
                }
            }
            if best.0 < 3 {
                self.literal(bytes[at]);
                at += 1;
                continue;
            }
            at += self.repeat(at, best);
        }
        self.block(true);
    }

    /// How many bytes from a place on are those at a distance before it: at most as many as a match has.
    fn same(&self, at: usize, distance: usize) -> usize {
        if distance > at || distance > FARTHEST || distance == 0 {
            return 0;
        }
        let here = &self.bytes[at..self.bytes.len().min(at + LONGEST)];
        let there = &self.bytes[at - distance..];
        let mut length = 0;
        while let (Some(a), Some(b)) = (
            here.get(length..).and_then(<[u8]>::first_chunk::<8>),
            there.get(length..).and_then(<[u8]>::first_chunk::<8>),
        ) {
            let difference = u64::from_le_bytes(*a) ^ u64::from_le_bytes(*b);
            if difference != 0 {
                return length + difference.trailing_zeros() as usize / 8;
            }
            length += 8;
        }
        while length < here.len() && here[length] == there[length] {
            length += 1;
        }
        length
    }

    /// Adds a match, and those that go on with it at the same distance; returns their length.
    fn repeat(&mut self, at: usize, (length, distance): (usize, usize)) -> usize {
        self.token(length, distance);
        let mut done = length;
        if length < LONGEST {
            return done;
        }
        loop {
            let length = self.same(at + done, distance);
            if length < SHORTEST {
                return done;
            }
            self.token(length, distance);
            done += length;
        }
    }

    fn token(&mut self, length: usize, distance: usize) {
        self.literals[length_symbol(length).0] += 1;
        self.distances[distance_symbol(distance).0] += 1;
        self.push(Token((length << 16 | distance) as u32));
    }

    fn literal(&mut self, byte: u8) {
        self.literals[usize::from(byte)] += 1;
        self.push(Token(byte.into()));
    }

    fn push(&mut self, token: Token) {
        self.tokens.push(token);
        if self.tokens.len() == BLOCK {
            self.block(false);
        }
    }

    /// Writes the tokens as a block.
    fn block(&mut self, is_last: bool) {
        self.literals[END] += 1;
        // There is one code of distances at least.
        self.distances[0] += 1;
        let literals = Code::new(&self.literals, 15);
        let distances = Code::new(&self.distances, 15);
        self.out.push(u64::from(is_last) | 2 << 1, 3);
        self.codes(&literals, &distances);
        for token in &self.tokens {
            let (length, distance) = ((token.0 >> 16) as usize, (token.0 & 0xffff) as usize);
            if length == 0 {
                literals.write(distance, &mut self.out);
                continue;
            }
            let (symbol, extra, bits) = length_symbol(length);
            literals.write(symbol, &mut self.out);
            self.out.push(extra as u64, bits);
            let (symbol, extra, bits) = distance_symbol(distance);
            distances.write(symbol, &mut self.out);
            self.out.push(extra as u64, bits);
        }
        literals.write(END, &mut self.out);
        self.tokens.clear();
        self.literals.fill(0);
        self.distances.fill(0);
    }

    /// Writes the lengths of codes, which are coded themselves.
    fn codes(&mut self, literals: &Code, distances: &Code) {
        let used = |code: &Code| {
            let last = code.lengths.iter().rposition(|length| *length > 0);
            last.map_or(1, |last| last + 1)
        };
        let (many, few) = (used(literals).max(257), used(distances));
        let lengths = [&literals.lengths[..many], &distances.lengths[..few]].concat();
        // Each with its repetition, and the bits of that.
        let mut symbols: Vec<(usize, u64, u32)> = Vec::new();
        for run in lengths.chunk_by(|a, b| a == b) {
            let (length, mut left) = (usize::from(run[0]), run.len());
            if length > 0 {
                symbols.push((length, 0, 0));
                left -= 1;
            }
            while left > 0 {
                let (symbol, least, most, bits) = match length {
                    0 if left > 10 => (18, 11, 138, 7),
                    0 => (17, 3, 10, 3),
                    _ => (16, 3, 6, 2),
                };
                let count = left.min(most);
                match left < least {
                    true => symbols.extend(std::iter::repeat_n((length, 0, 0), left)),
                    false => symbols.push((symbol, (count - least) as u64, bits)),
                }
                left -= count;
            }
        }
        let mut counts = [0; 19];
        for (symbol, ..) in &symbols {
            counts[*symbol] += 1;
        }
        let code = Code::new(&counts, 7);
        let last = ORDER.iter().rposition(|symbol| code.lengths[*symbol] > 0);
        let last = last.unwrap_or(0).max(3);
        self.out.push((many - 257) as u64, 5);
        self.out.push((few - 1) as u64, 5);
        self.out.push((last - 3) as u64, 4);
        for symbol in &ORDER[..=last] {
            self.out.push(code.lengths[*symbol].into(), 3);
        }
        for (symbol, extra, bits) in symbols {
            code.write(symbol, &mut self.out);
            self.out.push(extra, bits);
        }
    }
}

/// The symbol of a length, and what is written behind it, in so many bits.
fn length_symbol(length: usize) -> (usize, usize, u32) {
    match length {
        LONGEST => (285, 0, 0),
        0..11 => (254 + length, 0, 0),
        _ => {
            let above = length - 3;
            let bits = above.ilog2() - 2;
            let symbol = 257 + 4 * bits as usize + (above >> bits);
            (symbol, above & ((1 << bits) - 1), bits)
        }
    }
}

/// The same of a distance.
fn distance_symbol(distance: usize) -> (usize, usize, u32) {
    match distance - 1 {
        above @ 0..4 => (above, 0, 0),
        above => {
            let bits = above.ilog2() - 1;
            let symbol = 2 * bits as usize + (above >> bits);
            (symbol, above & ((1 << bits) - 1), bits)
        }
    }
}

/// A Huffman code.
struct Code {
    lengths: Vec<u8>,
    /// With the first bit lowest.
    codes: Vec<u16>,
}

impl Code {
    /// The best code for symbols that occur so often, of which no one is longer than `limit` bits.
    fn new(counts: &[u32], limit: usize) -> Self {
        let mut used: Vec<usize> = (0..counts.len()).filter(|at| counts[*at] > 0).collect();
        used.sort_by_key(|symbol| counts[*symbol]);
        // How many codes have a length.
        let mut numbers = [0usize; 17];
        for depth in depths(used.iter().map(|symbol| counts[*symbol]).collect()) {
            numbers[depth.min(limit)] += 1;
        }
        // Codes that are too long take the place of shorter ones.
        let room = |numbers: &[usize; 17]| -> usize {
            (1..=limit)
                .map(|length| numbers[length] << (limit - length))
                .sum()
        };
        for _ in 1 << limit..room(&numbers).max(1 << limit) {
            let shorter = (1..limit).rev().find(|length| numbers[*length] > 0);
            let Some(shorter) = shorter else { break };
            numbers[shorter] -= 1;
            numbers[shorter + 1] += 2;
            numbers[limit] -= 1;
        }
        let mut lengths = vec![0; counts.len()];
        let mut rarest = used.into_iter();
        for length in (1..=limit).rev() {
            for symbol in rarest.by_ref().take(numbers[length]) {
                lengths[symbol] = length as u8;
            }
        }
        let mut next = [0u16; 17];
        let mut code = 0;
        for length in 1..=limit {
            code = (code + numbers[length - 1] as u16) << 1;
            next[length] = code;
        }
        let codes = lengths.iter().map(|&length| {
            let code = next[usize::from(length)];
            next[usize::from(length)] = code.wrapping_add(1);
            match length {
                0 => 0,
                length => code.reverse_bits() >> (16 - length),
            }
        });
        let codes = codes.collect();
        Self { lengths, codes }
    }

    fn write(&self, symbol: usize, out: &mut Bits) {
        out.push(self.codes[symbol].into(), self.lengths[symbol].into());
    }
}

/// How deep the leaves of the best tree for rising weights are.
fn depths(weights: Vec<u32>) -> Vec<usize> {
    let leaves = weights.len();
    if leaves < 2 {
        return vec![1; leaves];
    }
    let mut weights: Vec<u64> = weights.into_iter().map(u64::from).collect();
    let mut parents = vec![0; 2 * leaves - 1];
    // The least leaf and the least inner node that have no parent yet.
    let (mut leaf, mut inner) = (0, leaves);
    for parent in leaves..2 * leaves - 1 {
        let mut sum = 0;
        for _ in 0..2 {
            let takes_leaf =
                leaf < leaves && (inner >= weights.len() || weights[leaf] <= weights[inner]);
            let least = if takes_leaf { &mut leaf } else { &mut inner };
            sum += weights[*least];
            parents[*least] = parent;
            *least += 1;
        }
        weights.push(sum);
    }
    let mut depths = vec![0; 2 * leaves - 1];
    for node in (0..2 * leaves - 2).rev() {
        depths[node] = depths[parents[node]] + 1;
    }
    depths.truncate(leaves);
    depths
}

/// Bits, the first one lowest in its byte.
struct Bits {
    bytes: Vec<u8>,
    waiting: u64,
    count: u32,
}

impl Bits {
    /// Appends at most 15 bits.
    fn push(&mut self, bits: u64, count: u32) {
        self.waiting |= bits << self.count;
        self.count += count;
        if self.count >= 32 {
            self.bytes.extend((self.waiting as u32).to_le_bytes());
            self.waiting >>= 32;
            self.count -= 32;
        }
    }

    fn finish(mut self) -> Vec<u8> {
        let rest = self.waiting.to_le_bytes();
        let length = self.count.div_ceil(8) as usize;
        self.bytes.extend_from_slice(&rest[..length]);
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::read::ZlibDecoder;
    use proptest::prelude::*;
    use std::io::Read as _;

    fn unpacked(packed: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        ZlibDecoder::new(packed).read_to_end(&mut bytes).unwrap();
        bytes
    }

    #[test]
    fn anything_is_unpacked_again() {
        let noise = |count: usize| -> Vec<u8> {
            let mut state = 1u32;
            let mut next = || {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                (state >> 24) as u8
            };
            (0..count).map(|_| next()).collect()
        };
        // Each byte twice as often as the one before: codes would be longer than 15 bits.
        let skewed: Vec<u8> = (0..22u8)
            .flat_map(|byte| std::iter::repeat_n(byte.wrapping_mul(37), 1 << byte))
            .flat_map(|byte| [byte, byte ^ 0x55])
            .take(1 << 18)
            .collect();
        for bytes in [
            Vec::new(),
            vec![7],
            vec![0; 100_000],
            noise(200_000),
            skewed,
            [noise(32_768), noise(32_768)].concat(),
            [noise(40_000), noise(40_000)].concat(),
        ] {
            for line in [1, 2, 1501, 32_768, 40_000] {
                assert!(unpacked(&pack(&bytes, line, 3)) == bytes, "{line}");
            }
        }
    }

    #[test]
    fn symbols_are_those_of_deflate() {
        assert_eq!(length_symbol(3), (257, 0, 0));
        assert_eq!(length_symbol(10), (264, 0, 0));
        assert_eq!(length_symbol(11), (265, 0, 1));
        assert_eq!(length_symbol(257), (284, 30, 5));
        assert_eq!(distance_symbol(1), (0, 0, 0));
        assert_eq!(distance_symbol(6), (4, 1, 1));
        assert_eq!(distance_symbol(32_768), (29, 8191, 13));
    }

    proptest! {
        #[test]
        fn rows_are_unpacked_again(
            colours in prop::collection::vec(0u8..4, 1..3000),
            width in 1usize..90,
            depth in 1usize..5,
        ) {
            let line = width * depth + 1;
            let bytes: Vec<u8> = colours
                .chunks(width)
                .flat_map(|row| std::iter::once(0).chain(row.iter().flat_map(|colour| vec![*colour; depth])))
                .collect();
            prop_assert_eq!(unpacked(&pack(&bytes, line, depth)), bytes);
        }
    }
}
