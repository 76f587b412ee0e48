//! Which file systems give bytes a new place on the disk each time that they are written.
//!
//! Others write over the place that a byte has. There a file of which each byte has a place can be changed
//! through a mapping whatever becomes of the disk; on these, the disk may be full at any change, which a
//! mapping can only report by SIGBUS.

use std::fs::File;

use nix::sys::statfs::fstatfs;

/// The numbers by which they are known (statfs(2), and the headers of each):
const MOVING: [u32; 7] = [
    // btrfs
    0x9123_683e,
    // bcachefs
    0xca45_1a4e,
    // ZFS
    0x2fc1_2fc1,
    // NILFS2
    0x3434,
    // XFS and OCFS2, where files may share places: a copy that others make of a file (`cp` does it this way)
    // has both moved when one is written.
    0x5846_5342,
    0x7461_636f,
    // overlayfs, which does not report what is below it.
    0x794c_7630,
];

/// Whether bytes of a file may get a new place when they are written. It is taken for granted where the system does not
/// say.
pub(crate) fn may_move(file: &File) -> bool {
    fstatfs(file).map_or(true, |found| is_moving(found.filesystem_type().0 as u32))
}

/// The same of a file system, by the lower half of its number: it is signed on some machines.
fn is_moving(number: u32) -> bool {
    MOVING.contains(&number)
}

#[cfg(test)]
mod tests {
    use nix::sys::statfs;

    use super::*;

    #[test]
    fn file_systems_are_known_by_their_numbers() {
        for known in [
            statfs::BTRFS_SUPER_MAGIC,
            statfs::NILFS_SUPER_MAGIC,
            statfs::XFS_SUPER_MAGIC,
            statfs::OVERLAYFS_SUPER_MAGIC,
        ] {
            assert!(is_moving(known.0 as u32), "{known:?}");
        }
        for known in [statfs::EXT4_SUPER_MAGIC, statfs::TMPFS_MAGIC] {
            assert!(!is_moving(known.0 as u32), "{known:?}");
        }
    }
}
