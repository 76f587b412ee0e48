//! What is known of each machine.

mod table;

use table::MACHINES;

use crate::layout::CType;
use crate::{ByteOrder, Width};

/// The order in which the bytes of a double follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FloatOrder {
    /// Least significant byte first.
    Little,
    /// Most significant byte first.
    Big,
    /// The more significant half first, each half with its least significant byte first: the
    /// floating point accelerator (FPA) of old ARM machines.
    SwappedWords,
}

/// How C structs are laid out: alignments in bytes, where they are not the size of the type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Alignment {
    /// Of doubles.
    pub(crate) double: u8,
    /// Of integers of 8 bytes.
    pub(crate) int64: u8,
    /// No scalar is aligned to more than this.
    pub(crate) most: u8,
    /// No struct is aligned to less than this.
    pub(crate) least_struct: u8,
    /// Whether a struct that begins with a double is aligned to 8 all the same: the "power"
    /// alignment of AIX and Darwin.
    pub(crate) first_double: bool,
}

impl Alignment {
    /// Everything to its size.
    const NATURAL: Self = Self {
        double: 8,
        int64: 8,
        most: 8,
        least_struct: 1,
        first_double: false,
    };
    /// Nothing to more than 4: System V on i386, and Darwin after the first member.
    const WORD: Self = Self {
        double: 4,
        int64: 4,
        ..Self::NATURAL
    };
    /// AIX: doubles to 4, integers to their size.
    const AIX: Self = Self {
        double: 4,
        first_double: true,
        ..Self::NATURAL
    };
}

/// How a machine writes numbers and lays out structs: processor, operating system and compiler
/// together, since it takes all three to determine that.
///
/// Two machines can have everything in common but the name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Machine {
    name: &'static str,
    aliases: &'static [&'static str],
    byte_order: ByteOrder,
    float_order: FloatOrder,
    long: Width,
    time: Width,
    pointer: Width,
    pub(crate) alignment: Alignment,
    constant_nan: u64,
    file_nan: u64,
}

impl Machine {
    /// All machines, in the order in which they are listed.
    pub fn all() -> &'static [Self] {
        MACHINES
    }

    /// The machine of a name or an alias, in upper or lower case.
    pub fn find(name: &str) -> Option<&'static Self> {
        MACHINES
            .iter()
            .find(|machine| machine.names().any(|own| own.eq_ignore_ascii_case(name)))
    }

    /// The machine that this program was built for: what a native program beside it would
    /// write. Only for defaults that a person can overrule.
    ///
    /// Of 32-bit hosts those with musl are taken to have a `time_t` of 64 bits. A host that is
    /// not among the machines counts as one of its byte order and word size.
    pub fn native() -> &'static Self {
        let big = cfg!(target_endian = "big");
        let wide = cfg!(target_pointer_width = "64");
        let time64 = cfg!(target_env = "musl");
        let name = if cfg!(target_os = "aix") {
            "aix-ppc64"
        } else if cfg!(windows) {
            if wide { "win64" } else { "win32" }
        } else if cfg!(target_arch = "x86_64") {
            if wide { "x86_64" } else { "x32" }
        } else if cfg!(target_arch = "x86") {
            if time64 { "x86-time64" } else { "x86" }
        } else if cfg!(target_arch = "m68k") {
            if time64 { "m68k-time64" } else { "m68k" }
        } else if cfg!(any(target_arch = "mips", target_arch = "mips32r6")) {
            match (big, time64) {
                (true, true) => "mips-time64",
                (true, false) => "mips",
                (false, true) => "mipsel-time64",
                (false, false) => "mipsel",
            }
        } else if cfg!(any(target_arch = "mips64", target_arch = "mips64r6")) {
            if big { "mips64" } else { "mips64el" }
        } else if cfg!(target_arch = "sparc") {
            "sparc"
        } else if cfg!(target_arch = "sparc64") {
            "sparc64"
        } else if cfg!(target_arch = "s390x") {
            "s390x"
        } else if cfg!(target_arch = "riscv64") {
            "riscv64"
        } else if cfg!(target_arch = "loongarch64") {
            "loongarch64"
        } else if cfg!(target_arch = "powerpc64") {
            if big { "ppc64" } else { "ppc64el" }
        } else {
            match (wide, big, time64) {
                (true, true, _) => "ppc64",
                (true, false, _) => "aarch64",
                (false, true, true) => "ppc-time64",
                (false, true, false) => "ppc",
                (false, false, true) => "armhf-time64",
                (false, false, false) => "armhf",
            }
        };
        Self::find(name).unwrap_or(&MACHINES[0])
    }

    /// Its name.
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// Its other names.
    pub const fn aliases(&self) -> &'static [&'static str] {
        self.aliases
    }

    /// Its name, and then its other names.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        std::iter::once(self.name).chain(self.aliases.iter().copied())
    }

    /// The order of the bytes of integers.
    pub const fn byte_order(&self) -> ByteOrder {
        self.byte_order
    }

    /// The order of the bytes of doubles.
    pub const fn float_order(&self) -> FloatOrder {
        self.float_order
    }

    /// The size of `long`: 4 or 8 bytes.
    pub const fn long(&self) -> Width {
        self.long
    }

    /// The size of `time_t`: 4 or 8 bytes.
    pub const fn time(&self) -> Width {
        self.time
    }

    /// The size of pointers and of `size_t`: 4 or 8 bytes.
    pub const fn pointer(&self) -> Width {
        self.pointer
    }

    /// The alignment of doubles in structs, in bytes.
    pub const fn double_align(&self) -> u64 {
        self.alignment.double as u64
    }

    /// The alignment of integers in structs, in bytes.
    pub const fn integer_align(&self, width: Width) -> u64 {
        let natural = match width {
            Width::W64 => self.alignment.int64,
            narrow => narrow.bytes() as u8,
        };
        if natural < self.alignment.most {
            natural as u64
        } else {
            self.alignment.most as u64
        }
    }

    /// The bits of the NaN that its compilers make of a constant such as `0.0 / 0.0`.
    pub const fn constant_nan(&self) -> u64 {
        self.constant_nan
    }

    /// The bits of the NaN that it computes and its programs write to files.
    pub const fn file_nan(&self) -> u64 {
        self.file_nan
    }

    /// Whether structs of characters, ints, longs, `time_t`s and doubles, which is what
    /// round-robin databases are made of, have the same bytes on both machines.
    ///
    /// Compared are byte orders, the sizes of `long` and `time_t`, and the alignments of all of
    /// these. Not compared are names, NaNs (of which the same value has several), pointers,
    /// and integers of 8 bytes that are neither `long` nor `time_t`.
    pub fn same_layout(&self, other: &Self) -> bool {
        let aligns = |machine: &Self| {
            [CType::INT, CType::LONG, CType::Time, CType::Double]
                .map(|ctype| machine.scalar_align(&ctype))
        };
        let rules = |machine: &Self| {
            let Alignment {
                least_struct,
                first_double,
                ..
            } = machine.alignment;
            (least_struct, first_double)
        };
        self.byte_order == other.byte_order
            && self.float_order == other.float_order
            && self.long == other.long
            && self.time == other.time
            && aligns(self) == aligns(other)
            && rules(self) == rules(other)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::float::is_nan;

    fn find(name: &str) -> &'static Machine {
        Machine::find(name).unwrap_or_else(|| panic!("no machine {name}"))
    }

    #[test]
    fn names_are_unique_and_found() {
        let mut seen = HashSet::new();
        for machine in Machine::all() {
            for name in machine.names() {
                assert!(seen.insert(name.to_ascii_lowercase()), "{name} twice");
                assert_eq!(find(name), machine);
                assert_eq!(find(&name.to_ascii_uppercase()), machine);
            }
        }
        assert_eq!(Machine::find("pdp11"), None);
        assert_eq!(Machine::find(""), None);
    }

    #[test]
    fn nans_are_nans() {
        for machine in Machine::all() {
            assert!(is_nan(machine.constant_nan()), "{}", machine.name);
            assert!(is_nan(machine.file_nan()), "{}", machine.name);
        }
    }

    #[test]
    fn the_native_machine_is_the_one_built_for() {
        let native = Machine::native();
        assert_eq!(
            native.byte_order() == ByteOrder::Big,
            cfg!(target_endian = "big")
        );
        assert_eq!(native.pointer().bytes(), size_of::<*const u8>());
        assert_eq!(
            native.double_align(),
            std::mem::offset_of!(Pair, second) as u64
        );
        #[repr(C)]
        struct Pair {
            first: u8,
            second: f64,
        }
        let pair = Pair {
            first: 1,
            second: 2.0,
        };
        assert_eq!((pair.first, pair.second), (1, 2.0));
    }

    #[test]
    fn layouts_are_compared_and_not_nans() {
        for (one, other, same) in [
            ("x86_64", "aarch64", true),
            ("amd64", "mips64el", true),
            ("ppc64", "s390x", true),
            ("ppc64", "aix-ppc64", false),
            ("ppc", "mips", true),
            ("ppc", "aix-ppc", false),
            ("aix-ppc", "darwin-ppc", true),
            ("x86", "armhf", false),
            ("x86", "x86-time64", false),
            ("x86", "armv4l", false),
            ("armhf", "win32", true),
            ("armhf-time64", "win64", true),
            ("armhf-time64", "x32", true),
            ("sparc", "sparc64", false),
            ("mips", "mipsel", false),
            ("m68k", "ppc", false),
        ] {
            assert_eq!(find(one).same_layout(find(other)), same, "{one} {other}");
            assert_eq!(find(other).same_layout(find(one)), same, "{other} {one}");
        }
    }
}
