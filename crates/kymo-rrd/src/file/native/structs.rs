//! The C structs of a native file, and where a machine puts their members.
//!
//! Nothing here knows an offset: each is computed from the description of the struct and
//! the machine's rules.

use std::sync::OnceLock;

use kymo_machine::layout::{CType, Layout, Struct, TooLarge};
use kymo_machine::{Machine, Width};

/// Length of the names of data sources, their kinds, and the kinds of archives, with a NUL.
pub const NAME: usize = 20;
/// Length of the last reading, with a NUL.
pub const LAST_READING: usize = 30;
/// Parameters of a definition, and slots of a preparation.
pub const SLOTS: usize = 10;
/// Bytes of a slot, which is a union of `unsigned long` and `double`.
pub const SLOT: usize = 8;
/// Bytes of a node of a COMPUTE data source: operator, padding, 16-bit number.
pub const NODE: usize = 4;
/// Nodes of a COMPUTE data source with the end node.
pub const NODES: usize = SLOTS * SLOT / NODE;

/// Where a machine puts the members of the structs. All numbers are bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Structs {
    /// The machine.
    pub machine: &'static Machine,
    /// `stat_head`: what the file is.
    pub head: Head,
    /// `ds_def`: a data source.
    pub source: Definition,
    /// `rra_def`: an archive.
    pub archive: Definition,
    /// `live_head`: the time of the last update, since version 3.
    pub live: Live,
    /// `pdp_prep`: the preparation of a data source.
    pub source_state: Preparation,
    /// `cdp_prep`: the preparation of an archive for a data source.
    pub archive_state: Preparation,
    /// Size of `rra_ptr`: the row written last.
    pub pointer: usize,
}

/// Members of `stat_head`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// The double that shows how doubles are written.
    pub float_cookie: usize,
    /// Number of data sources.
    pub source_count: usize,
    /// Number of archives.
    pub archive_count: usize,
    /// Seconds of a primary data point.
    pub step: usize,
    /// Unused parameters.
    pub parameters: usize,
    /// The whole.
    pub size: usize,
}

/// Members of `ds_def` and `rra_def`. Both begin with a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Definition {
    /// What follows the name: the kind of a data source, the number of rows of an archive.
    pub second: usize,
    /// Points for each row of an archive; 0 in a data source.
    pub third: usize,
    /// The parameters.
    pub parameters: usize,
    /// The whole.
    pub size: usize,
}

/// Members of `live_head`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Live {
    /// Microseconds.
    pub micros: usize,
    /// The whole.
    pub size: usize,
    /// The whole before version 3: a `time_t`.
    pub size_before_3: usize,
}

/// Members of `pdp_prep` and `cdp_prep`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Preparation {
    /// The slots.
    pub slots: usize,
    /// The whole.
    pub size: usize,
}

impl Structs {
    /// Where a machine puts everything: computed once, as it takes longer than reading a file.
    ///
    /// # Panics
    ///
    /// Never: the structs are known, and small.
    pub fn of(machine: &'static Machine) -> Self {
        static COMPUTED: OnceLock<Vec<OnceLock<Structs>>> = OnceLock::new();
        let compute = || Self::compute(machine).expect("structs of some hundred bytes");
        let all = Machine::all();
        let computed = COMPUTED.get_or_init(|| all.iter().map(|_| OnceLock::new()).collect());
        let place = all.iter().position(|other| std::ptr::eq(other, machine));
        match place.and_then(|place| computed.get(place)) {
            Some(structs) => *structs.get_or_init(compute),
            None => compute(),
        }
    }

    fn compute(machine: &'static Machine) -> Result<Self, TooLarge> {
        let text = |length: usize| CType::array(CType::Char, length as u64);
        let slots = || {
            let slot = Struct::union("unival")
                .member("u_cnt", CType::ULONG)
                .member("u_val", CType::Double);
            CType::array(CType::Struct(slot), SLOTS as u64)
        };
        let head = Struct::new("stat_head")
            .member("cookie", text(4))
            .member("version", text(5))
            .member("float_cookie", CType::Double)
            .member("ds_cnt", CType::ULONG)
            .member("rra_cnt", CType::ULONG)
            .member("pdp_step", CType::ULONG)
            .member("par", slots());
        let source = Struct::new("ds_def")
            .member("ds_nam", text(NAME))
            .member("dst", text(NAME))
            .member("par", slots());
        let archive = Struct::new("rra_def")
            .member("cf_nam", text(NAME))
            .member("row_cnt", CType::ULONG)
            .member("pdp_cnt", CType::ULONG)
            .member("par", slots());
        let live = Struct::new("live_head")
            .member("last_up", CType::Time)
            .member("last_up_usec", CType::LONG);
        let source_state = Struct::new("pdp_prep")
            .member("last_ds", text(LAST_READING))
            .member("scratch", slots());
        let archive_state = Struct::new("cdp_prep").member("scratch", slots());

        let [head, source, archive, live, source_state, archive_state] =
            [head, source, archive, live, source_state, archive_state]
                .map(|description| Layout::of(&description, machine));
        let (head, source, archive, live) = (head?, source?, archive?, live?);
        let (source_state, archive_state) = (source_state?, archive_state?);
        let at = |layout: &Layout, member: usize| layout.members[member].offset as usize;
        Ok(Self {
            machine,
            head: Head {
                float_cookie: at(&head, 2),
                source_count: at(&head, 3),
                archive_count: at(&head, 4),
                step: at(&head, 5),
                parameters: at(&head, 6),
                size: head.size as usize,
            },
            source: Definition {
                second: at(&source, 1),
                third: 0,
                parameters: at(&source, 2),
                size: source.size as usize,
            },
            archive: Definition {
                second: at(&archive, 1),
                third: at(&archive, 2),
                parameters: at(&archive, 3),
                size: archive.size as usize,
            },
            live: Live {
                micros: at(&live, 1),
                size: live.size as usize,
                size_before_3: machine.time().bytes(),
            },
            source_state: Preparation {
                slots: at(&source_state, 1),
                size: source_state.size as usize,
            },
            archive_state: Preparation {
                slots: at(&archive_state, 0),
                size: archive_state.size as usize,
            },
            pointer: machine.long().bytes(),
        })
    }

    /// The size of `long`.
    pub fn long(&self) -> Width {
        self.machine.long()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What compilers of these machines say.
    #[test]
    fn structs_are_where_compilers_put_them() {
        for (name, fc, counts, head, archive, live, live_usec, pdp) in [
            ("x86_64", 16, 24, 128, 120, 16, 8, 112),
            ("sparc64", 16, 24, 128, 120, 16, 8, 112),
            ("aix-ppc64", 12, 24, 128, 120, 16, 8, 112),
            ("armhf", 16, 24, 120, 112, 8, 4, 112),
            ("armhf-time64", 16, 24, 120, 112, 16, 8, 112),
            ("x86", 12, 20, 112, 108, 8, 4, 112),
            ("aix-ppc", 12, 20, 112, 108, 8, 4, 112),
            ("armv4l", 12, 20, 112, 108, 8, 4, 112),
            ("x86-time64", 12, 20, 112, 108, 12, 8, 112),
            ("m68k", 10, 18, 110, 108, 8, 4, 110),
            ("m68k-time64", 10, 18, 110, 108, 12, 8, 110),
        ] {
            let structs = Structs::of(Machine::find(name).unwrap());
            assert_eq!(structs.head.float_cookie, fc, "{name}");
            assert_eq!(structs.head.source_count, counts, "{name}");
            assert_eq!(structs.head.size, head, "{name}");
            assert_eq!(structs.source.size, 120, "{name}");
            assert_eq!(structs.source.parameters, 40, "{name}");
            assert_eq!(structs.archive.size, archive, "{name}");
            assert_eq!(structs.live.size, live, "{name}");
            assert_eq!(structs.live.micros, live_usec, "{name}");
            assert_eq!(structs.source_state.size, pdp, "{name}");
            assert_eq!(structs.archive_state.size, 80, "{name}");
        }
    }
}
