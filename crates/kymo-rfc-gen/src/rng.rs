//! Choices that a seed decides, the same on every machine.

/// A xorshift64* generator.
pub(crate) struct Rng(u64);

impl Rng {
    pub(crate) fn new(seed: u64) -> Self {
        // One round of splitmix64: near seeds begin far from each other, and zero is not a valid state.
        let mut z = seed.wrapping_add(0x9E37_79B9_7F4A_7C15);
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        Self((z ^ (z >> 31)) | 1)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    /// A number from `0` to `end - 1`; `end` is not 0.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        (self.next() >> 11) % end
    }

    /// A number from `first` to `last`.
    pub(crate) fn between(&mut self, first: u32, last: u32) -> u32 {
        let width = u64::from(last - first) + 1;
        first + u32::try_from(self.below(width)).expect("below a u32")
    }

    /// True once in `n` times.
    pub(crate) fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    pub(crate) fn coin(&mut self) -> bool {
        self.one_in(2)
    }

    pub(crate) fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.index(from.len())]
    }

    /// An index of something with `length` elements; `length` is not 0.
    pub(crate) fn index(&mut self, length: usize) -> usize {
        let end = u64::try_from(length).expect("usize is at most 64 bits");
        usize::try_from(self.below(end)).expect("below a usize")
    }

    pub(crate) fn shuffle<T>(&mut self, items: &mut [T]) {
        for i in (1..items.len()).rev() {
            items.swap(i, self.index(i + 1));
        }
    }
}
