//! The machines.
//!
//! What they have in common with one of their kind is written once; each adds what is its own.

use super::{Alignment, FloatOrder, Machine};
use crate::{ByteOrder, Width};

/// The quiet NaN of most machines.
const QUIET: u64 = 0x7ff8_0000_0000_0000;
/// The same with the sign bit: what x86 computes for 0.0 / 0.0.
const NEGATIVE_QUIET: u64 = 0xfff8_0000_0000_0000;
/// All bits but the sign.
const FULL: u64 = 0x7fff_ffff_ffff_ffff;
/// What MIPS computes, where the first bit of the fraction marks a signalling NaN.
const MIPS_QUIET: u64 = 0x7ff7_ffff_ffff_ffff;
/// What PA-RISC computes, where that is so as well.
const PARISC_QUIET: u64 = 0x7ff4_0000_0000_0000;

/// 64 bits, least significant byte first.
const LITTLE_64: Machine = Machine {
    name: "",
    aliases: &[],
    byte_order: ByteOrder::Little,
    float_order: FloatOrder::Little,
    long: Width::W64,
    time: Width::W64,
    pointer: Width::W64,
    alignment: Alignment::NATURAL,
    constant_nan: QUIET,
    file_nan: QUIET,
};
/// 64 bits, most significant byte first.
const BIG_64: Machine = Machine {
    byte_order: ByteOrder::Big,
    float_order: FloatOrder::Big,
    ..LITTLE_64
};
/// 32 bits, least significant byte first.
const LITTLE_32: Machine = Machine {
    long: Width::W32,
    time: Width::W32,
    pointer: Width::W32,
    ..LITTLE_64
};
/// 32 bits, most significant byte first.
const BIG_32: Machine = Machine {
    long: Width::W32,
    time: Width::W32,
    pointer: Width::W32,
    ..BIG_64
};

const X86: Machine = Machine {
    name: "x86",
    aliases: &["i386", "linux-x86"],
    alignment: Alignment::WORD,
    file_nan: NEGATIVE_QUIET,
    ..LITTLE_32
};
const MIPS: Machine = Machine {
    name: "mips",
    aliases: &["mipsn32", "irix-mips"],
    constant_nan: FULL,
    file_nan: MIPS_QUIET,
    ..BIG_32
};
const MIPSEL: Machine = Machine {
    name: "mipsel",
    constant_nan: FULL,
    file_nan: MIPS_QUIET,
    ..LITTLE_32
};
const M68K: Machine = Machine {
    name: "m68k",
    alignment: Alignment {
        double: 2,
        int64: 2,
        most: 2,
        ..Alignment::NATURAL
    },
    constant_nan: FULL,
    file_nan: FULL,
    ..BIG_32
};

/// All machines. The names come from Debian, Rust, and the places where data of them is found.
/// Of those that write the same files the usual one comes first: it gives a file its name.
pub(super) static MACHINES: &[Machine] = &[
    Machine {
        name: "x86_64",
        aliases: &["amd64", "linux-x86_64"],
        file_nan: NEGATIVE_QUIET,
        ..LITTLE_64
    },
    X86,
    Machine {
        name: "x86-time64",
        aliases: &["i386-time64", "SYN-i386-time64"],
        time: Width::W64,
        ..X86
    },
    Machine {
        name: "aarch64",
        aliases: &["arm64"],
        ..LITTLE_64
    },
    Machine {
        name: "armhf",
        ..LITTLE_32
    },
    Machine {
        name: "armel",
        aliases: &["armv5l"],
        ..LITTLE_32
    },
    Machine {
        name: "armhf-time64",
        aliases: &["armel-time64"],
        time: Width::W64,
        ..LITTLE_32
    },
    Machine {
        name: "x32",
        time: Width::W64,
        file_nan: NEGATIVE_QUIET,
        ..LITTLE_32
    },
    Machine {
        name: "win64",
        aliases: &["windows-x86_64"],
        long: Width::W32,
        file_nan: NEGATIVE_QUIET,
        ..LITTLE_64
    },
    Machine {
        name: "win32",
        aliases: &["windows-x86"],
        file_nan: NEGATIVE_QUIET,
        ..LITTLE_32
    },
    Machine {
        name: "armv4l",
        aliases: &["arm-fpa", "SYN-arm-fpa"],
        float_order: FloatOrder::SwappedWords,
        alignment: Alignment {
            least_struct: 4,
            ..Alignment::WORD
        },
        constant_nan: u64::MAX,
        file_nan: u64::MAX,
        ..LITTLE_32
    },
    Machine {
        name: "ppc",
        aliases: &["powerpc"],
        ..BIG_32
    },
    Machine {
        name: "ppc-time64",
        aliases: &["powerpc-time64"],
        time: Width::W64,
        ..BIG_32
    },
    Machine {
        name: "ppc64",
        aliases: &["ppc64be", "osx-ppc64"],
        ..BIG_64
    },
    Machine {
        name: "ppc64el",
        aliases: &["ppc64le"],
        ..LITTLE_64
    },
    Machine {
        name: "armv5b",
        ..BIG_32
    },
    Machine {
        name: "aix-ppc",
        aliases: &["SYN-power32"],
        alignment: Alignment::AIX,
        ..BIG_32
    },
    Machine {
        name: "aix-ppc64",
        aliases: &["SYN-aix64"],
        alignment: Alignment::AIX,
        ..BIG_64
    },
    Machine {
        name: "darwin-ppc",
        aliases: &["osx-ppc32"],
        alignment: Alignment {
            first_double: true,
            ..Alignment::WORD
        },
        ..BIG_32
    },
    Machine {
        name: "sparc",
        aliases: &["sparc32", "solaris-sparc"],
        constant_nan: FULL,
        file_nan: FULL,
        ..BIG_32
    },
    Machine {
        name: "sparc64",
        constant_nan: FULL,
        file_nan: FULL,
        ..BIG_64
    },
    MIPS,
    Machine {
        name: "mips-time64",
        aliases: &[],
        time: Width::W64,
        ..MIPS
    },
    MIPSEL,
    Machine {
        name: "mipsel-time64",
        time: Width::W64,
        ..MIPSEL
    },
    Machine {
        name: "mips64",
        constant_nan: FULL,
        file_nan: MIPS_QUIET,
        ..BIG_64
    },
    Machine {
        name: "mips64el",
        constant_nan: FULL,
        file_nan: MIPS_QUIET,
        ..LITTLE_64
    },
    Machine {
        name: "parisc",
        aliases: &["hppa"],
        constant_nan: PARISC_QUIET,
        file_nan: PARISC_QUIET,
        ..BIG_32
    },
    Machine {
        name: "parisc-time64",
        aliases: &["hppa-time64"],
        time: Width::W64,
        constant_nan: PARISC_QUIET,
        file_nan: PARISC_QUIET,
        ..BIG_32
    },
    Machine {
        name: "parisc64",
        aliases: &["hpux-parisc64"],
        constant_nan: PARISC_QUIET,
        file_nan: PARISC_QUIET,
        ..BIG_64
    },
    Machine {
        name: "ia64",
        constant_nan: NEGATIVE_QUIET,
        file_nan: NEGATIVE_QUIET,
        ..LITTLE_64
    },
    Machine {
        name: "ia64-be",
        aliases: &["hpux-ia64"],
        constant_nan: NEGATIVE_QUIET,
        file_nan: NEGATIVE_QUIET,
        ..BIG_64
    },
    Machine {
        name: "alpha",
        aliases: &["tru64-alpha"],
        // Tru64's compiler; Linux computes the other one.
        constant_nan: NEGATIVE_QUIET,
        ..LITTLE_64
    },
    Machine {
        name: "s390x",
        ..BIG_64
    },
    Machine {
        name: "riscv64",
        ..LITTLE_64
    },
    Machine {
        name: "loongarch64",
        aliases: &["loong64"],
        ..LITTLE_64
    },
    M68K,
    Machine {
        name: "m68k-time64",
        time: Width::W64,
        ..M68K
    },
];
