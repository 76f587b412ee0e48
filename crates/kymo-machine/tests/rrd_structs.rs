//! The structs of round-robin databases, as compilers on these machines lay them out.

use kymo_machine::Machine;
use kymo_machine::layout::{CType, Layout, Struct};

/// A parameter: an integer or a double in the same place.
fn parameters(name: &'static str) -> CType {
    let parameter = Struct::union(name)
        .member("u_cnt", CType::ULONG)
        .member("u_val", CType::Double);
    CType::array(CType::Struct(parameter), 10)
}

fn text(size: u64) -> CType {
    CType::array(CType::Char, size)
}

fn structs() -> [Struct; 8] {
    [
        Struct::new("stat_head")
            .member("cookie", text(4))
            .member("version", text(5))
            .member("float_cookie", CType::Double)
            .member("ds_cnt", CType::ULONG)
            .member("rra_cnt", CType::ULONG)
            .member("pdp_step", CType::ULONG)
            .member("par", parameters("unival")),
        Struct::new("ds_def")
            .member("ds_nam", text(20))
            .member("dst", text(20))
            .member("par", parameters("unival")),
        Struct::new("rra_def")
            .member("cf_nam", text(20))
            .member("row_cnt", CType::ULONG)
            .member("pdp_cnt", CType::ULONG)
            .member("par", parameters("unival")),
        Struct::new("live_head")
            .member("last_up", CType::Time)
            .member("last_up_usec", CType::LONG),
        Struct::new("old_live_head").member("last_up", CType::Time),
        Struct::new("pdp_prep")
            .member("last_ds", text(30))
            .member("scratch", parameters("unival")),
        Struct::new("cdp_prep").member("scratch", parameters("unival")),
        Struct::new("rra_ptr").member("cur_row", CType::ULONG),
    ]
}

/// Names of machines, and of what they have in common: where `float_cookie`, `ds_cnt` and `par`
/// of the head are, the size of the head, of a `ds_def` and where its `par` is, of a `rra_def`
/// and where its `row_cnt` and `par` are, of the live head and where its `last_up_usec` is, of
/// the live head of old versions, of a `pdp_prep` and where its `scratch` is, of a `cdp_prep`,
/// of a pointer.
const TABLE: [(&str, [u64; 16]); 8] = [
    (
        "x86_64 aarch64 ppc64 ppc64el s390x sparc64 mips64 mips64el alpha riscv64 ia64",
        [
            16, 24, 48, 128, 120, 40, 120, 24, 40, 16, 8, 8, 112, 32, 80, 8,
        ],
    ),
    (
        "aix-ppc64",
        [
            12, 24, 48, 128, 120, 40, 120, 24, 40, 16, 8, 8, 112, 32, 80, 8,
        ],
    ),
    (
        "armel armhf mips mipsel ppc parisc sparc win32",
        [
            16, 24, 40, 120, 120, 40, 112, 20, 32, 8, 4, 4, 112, 32, 80, 4,
        ],
    ),
    (
        "armhf-time64 armel-time64 ppc-time64 mips-time64 mipsel-time64 x32 win64",
        [
            16, 24, 40, 120, 120, 40, 112, 20, 32, 16, 8, 8, 112, 32, 80, 4,
        ],
    ),
    (
        "x86 aix-ppc darwin-ppc armv4l",
        [
            12, 20, 32, 112, 120, 40, 108, 20, 28, 8, 4, 4, 112, 32, 80, 4,
        ],
    ),
    (
        "x86-time64",
        [
            12, 20, 32, 112, 120, 40, 108, 20, 28, 12, 8, 8, 112, 32, 80, 4,
        ],
    ),
    (
        "m68k",
        [
            10, 18, 30, 110, 120, 40, 108, 20, 28, 8, 4, 4, 110, 30, 80, 4,
        ],
    ),
    (
        "m68k-time64",
        [
            10, 18, 30, 110, 120, 40, 108, 20, 28, 12, 8, 8, 110, 30, 80, 4,
        ],
    ),
];

#[test]
fn are_laid_out_as_by_real_compilers() {
    for (names, expected) in TABLE {
        for name in names.split(' ') {
            let machine = Machine::find(name).unwrap_or_else(|| panic!("no machine {name}"));
            let [head, ds, rra, live, old_live, pdp, cdp, pointer] =
                structs().map(|each| Layout::of(&each, machine).expect("a small struct"));
            let at = |layout: &Layout, name| layout.member(name).expect("a member").offset;
            let found = [
                at(&head, "float_cookie"),
                at(&head, "ds_cnt"),
                at(&head, "par"),
                head.size,
                ds.size,
                at(&ds, "par"),
                rra.size,
                at(&rra, "row_cnt"),
                at(&rra, "par"),
                live.size,
                at(&live, "last_up_usec"),
                old_live.size,
                pdp.size,
                at(&pdp, "scratch"),
                cdp.size,
                pointer.size,
            ];
            assert_eq!(found, expected, "{name}");
        }
    }
}
