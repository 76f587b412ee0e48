//! Sections of RFC v1.1: which one a file is of, and what their packets' headers say beyond
//! what the class model has roles for.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::sync::Arc;

use kymo_model::{FaultCode, FaultReport};

use super::StreamFile;
use crate::class::{Dialect, TraceClass};
use crate::metadata::rfc::PacketHeader;

/// What the name of a data stream file states in RFC v1.1: packets do not say of which section
/// they are, but files are named `<section>_<cpu>`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Section {
    /// Position of the section in [`TraceClass::streams`].
    pub stream_class: usize,
    /// Number of the CPU; `None` where the file has the section's name alone.
    pub cpu: Option<u64>,
}

/// In a trace of RFC v1.1, finds the section of each file; those that fit none are taken out.
pub(super) fn assign(
    files: &mut Vec<StreamFile>,
    class: &TraceClass,
    faults: &mut Vec<FaultReport>,
) {
    if class.dialect != Dialect::Rfc11 {
        return;
    }
    let names = class.streams.iter().enumerate();
    let positions: HashMap<&str, usize> = names
        .filter_map(|(at, section)| Some((section.name.as_deref()?, at)))
        .collect();
    files.retain_mut(|file| {
        let path = kymo_io::without_compression(&file.path);
        let name = path.file_name().and_then(OsStr::to_str);
        file.section = name.and_then(|name| section(name, &positions));
        if file.section.is_none() {
            faults.push(FaultReport::new(
                FaultCode::UnknownStreamClass,
                Arc::clone(&file.path),
                0,
                "the file belongs to no section of the metadata: expected a section's \
                          name, `_` and the number of a CPU; it is left out"
                    .to_owned(),
            ));
        }
        file.section.is_some()
    });
}

/// The section to which a file belongs by its name. The name of a section may itself end in a number.
fn section(name: &str, positions: &HashMap<&str, usize>) -> Option<Section> {
    if let Some(&stream_class) = positions.get(name) {
        return Some(Section {
            stream_class,
            cpu: None,
        });
    }
    let (section, cpu) = name.rsplit_once('_')?;
    let is_number = cpu.bytes().all(|byte| byte.is_ascii_digit());
    Some(Section {
        stream_class: *positions.get(section)?,
        cpu: Some(cpu.parse().ok().filter(|_| is_number)?),
    })
}

/// The fixed header of a packet, in a trace of RFC v1.1.
pub(super) fn packet_header(class: &TraceClass, packet: &[u8]) -> Option<PacketHeader> {
    let order = class
        .byte_order
        .filter(|_| class.dialect == Dialect::Rfc11)?;
    PacketHeader::read(packet, order)
}

/// The significant bits of a packet's number, which the header specifies beside it, and how many
/// they are: none where they are not counted. A number of bits that the field does not have
/// stands for all bits.
pub(super) fn sequence(header: &PacketHeader, number: u64) -> Option<(u64, u32)> {
    match u32::from(header.count_bits) {
        0 => None,
        bits @ 1..32 => Some((number & ((1 << bits) - 1), bits)),
        32.. => Some((number, 32)),
    }
}
