//! The two event headers that LTTng writes, and tracers after it: a short class number and
//! the low bits of the time, or, where these do not do, a full number and the full time.
//!
//! Nearly every trace there is has one of them, and for short events the header is half of
//! the work: so they are recognised by their shape, and read without a program.

use kymo_machine::ByteOrder;
use kymo_model::Scope;
use kymo_time::Ticks;

use crate::class::{
    BitLayout, FieldClass, FieldPath, IntegerStyle, Member, Role, Selector, Step, VariantOption,
};

/// What a header said.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Header {
    pub event_class: u64,
    pub clock: Ticks,
    /// Where it ends, in bits.
    pub end: u64,
}

/// A header of a known shape.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct FastHeader {
    shape: Shape,
    order: ByteOrder,
    /// The class number that says "extended"; the others are class numbers.
    extended: u64,
    /// Alignments less one, in bits, from the header's to that of the last field.
    align: u64,
    time_align: u64,
    extended_align: u64,
    full_id_align: u64,
    full_time_align: u64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Shape {
    /// 5 bits of class number and 27 bits of time, one behind the other.
    Compact,
    /// 16 bits of class number, 32 bits of time.
    Large,
}

impl FastHeader {
    /// The shape of a header, if it is one of the two.
    pub(crate) fn of(class: &FieldClass) -> Option<Self> {
        let [id, choice] = members(class)? else {
            return None;
        };
        let (id, style) = integer(id)?;
        let FieldClass::Variant { options, selector } = &choice.class else {
            return None;
        };
        let to_id = FieldPath {
            scope: Scope::EventHeader,
            steps: vec![Step::Child(0)],
        };
        if selector.targets != [to_id] || style.roles != [Role::EventClassId] {
            return None;
        }
        let [compact, extended] = &options[..] else {
            return None;
        };
        let ([time], [full_id, full_time]) = (members(&compact.class)?, members(&extended.class)?)
        else {
            return None;
        };
        let (time, time_style) = integer(time)?;
        let (full_id, full_id_style) = integer(full_id)?;
        let (full_time, full_time_style) = integer(full_time)?;
        let shape = match (id.bits, time.bits) {
            (5, 27) if id.align == 1 && time.align == 1 && compact.class.align() == 1 => {
                Shape::Compact
            }
            (16, 32) if id.align >= 8 && time.align >= 8 => Shape::Large,
            _ => return None,
        };
        let same_order = [time, full_id, full_time]
            .iter()
            .all(|layout| layout.order == id.order);
        let whole = |layout: &BitLayout, bits| layout.bits == bits && layout.align >= 8;
        let fits = same_order
            && whole(full_id, 32)
            && whole(full_time, 64)
            && time_style.roles == [Role::DefaultClockTimestamp]
            && full_id_style.roles == [Role::EventClassId]
            && full_time_style.roles == [Role::DefaultClockTimestamp]
            && class.align() >= 8;
        let above = |align: u32| u64::from(align) - 1;
        Some(Self {
            shape,
            order: id.order,
            extended: only_extended(compact, extended, id.bits)?,
            align: above(class.align()),
            time_align: above(compact.class.align()),
            extended_align: above(extended.class.align()),
            full_id_align: above(full_id.align),
            full_time_align: above(full_time.align),
        })
        .filter(|_| fits)
    }

    /// Whether class number and low bits of the time are side by side in one little-endian number.
    pub(super) fn is_packed(&self) -> bool {
        self.order == ByteOrder::Little && (self.shape == Shape::Compact || self.time_align <= 7)
    }

    /// Whether headers begin at any byte.
    pub(super) fn is_unaligned(&self) -> bool {
        self.align <= 7
    }

    /// Whether the class number has 5 bits and the time 27.
    pub(super) fn is_compact(&self) -> bool {
        self.shape == Shape::Compact
    }

    /// Reads a header at a bit of the content's whole bytes; `None` where there is not
    /// enough, or the position is not on a byte.
    #[inline]
    pub(crate) fn read(&self, bytes: &[u8], at: u64, clock: Ticks) -> Option<Header> {
        let at = align(at, self.align);
        let (id, after_id, time) = match self.shape {
            Shape::Compact => {
                let word = self.u32(bytes, at)?;
                match self.order {
                    ByteOrder::Little => (word & 0x1f, at + 5, Some((word >> 5, 27, at + 32))),
                    ByteOrder::Big => (word >> 27, at + 5, Some((word & 0x7ff_ffff, 27, at + 32))),
                }
            }
            Shape::Large => {
                let id = read(
                    bytes,
                    at,
                    self.order,
                    u16::from_le_bytes,
                    u16::from_be_bytes,
                )?;
                let after_id = at + 16;
                let time_at = align(after_id, self.time_align);
                (
                    id.into(),
                    after_id,
                    self.u32(bytes, time_at)
                        .map(|time| (time, 32, time_at + 32)),
                )
            }
        };
        if u64::from(id) != self.extended {
            let (time, bits, end) = time?;
            return Some(Header {
                event_class: id.into(),
                clock: clock.advance(time.into(), bits),
                end,
            });
        }
        let at = align(align(after_id, self.extended_align), self.full_id_align);
        let event_class = self.u32(bytes, at)?.into();
        let at = align(at + 32, self.full_time_align);
        let time = read(
            bytes,
            at,
            self.order,
            u64::from_le_bytes,
            u64::from_be_bytes,
        )?;
        Some(Header {
            event_class,
            clock: Ticks(time),
            end: at + 64,
        })
    }

    /// The same, apart from a loop in which it is seldom needed.
    #[cold]
    #[inline(never)]
    fn read_rarely(&self, bytes: &[u8], at: usize, clock: Ticks) -> Option<(u64, Ticks, usize)> {
        HeaderReader::read(self, bytes, at, clock)
    }

    /// Writes a header that is read as this class and time, after a time of `clock`: `put` takes
    /// the bit, the size in bits, the byte order and the value of each part. Gives where it ends.
    #[inline]
    pub(crate) fn write(
        &self,
        at: u64,
        id: u64,
        clock: Ticks,
        ticks: u64,
        mut put: impl FnMut(u64, u32, ByteOrder, u64),
    ) -> u64 {
        let at = align(at, self.align);
        let (id_bits, time_bits) = match self.shape {
            Shape::Compact => (5, 27),
            Shape::Large => (16, 32),
        };
        let after_id = at + u64::from(id_bits);
        if id < self.extended && clock.advance(ticks, time_bits).0 == ticks {
            let low = ticks & ((1 << time_bits) - 1);
            return match self.shape {
                Shape::Compact => {
                    let word = match self.order {
                        ByteOrder::Little => id | low << 5,
                        ByteOrder::Big => id << 27 | low,
                    };
                    put(at, 32, self.order, word);
                    at + 32
                }
                Shape::Large => {
                    let time_at = align(after_id, self.time_align);
                    put(at, 16, self.order, id);
                    put(time_at, 32, self.order, low);
                    time_at + 32
                }
            };
        }
        put(at, id_bits, self.order, self.extended);
        let at = align(align(after_id, self.extended_align), self.full_id_align);
        put(at, 32, self.order, id);
        let at = align(at + 32, self.full_time_align);
        put(at, 64, self.order, ticks);
        at + 64
    }

    /// The most bits that a header takes, with what aligns it.
    pub(crate) fn most_bits(&self) -> u64 {
        let aligns = [
            self.align,
            self.time_align,
            self.extended_align,
            self.full_id_align,
            self.full_time_align,
        ];
        aligns.iter().sum::<u64>() + 128
    }

    #[inline]
    fn u32(&self, bytes: &[u8], at: u64) -> Option<u32> {
        read(
            bytes,
            at,
            self.order,
            u32::from_le_bytes,
            u32::from_be_bytes,
        )
    }
}

/// Reads headers of a stream at bytes.
pub(super) trait HeaderReader {
    /// Whether headers and the fields behind them are aligned to more than a byte.
    const ALIGNED: bool;

    /// What [`FastHeader::read`] does; gives the class number, the clock, and the byte at which the header ends.
    fn read(&self, bytes: &[u8], at: usize, clock: Ticks) -> Option<(u64, Ticks, usize)>;
}

impl HeaderReader for FastHeader {
    const ALIGNED: bool = true;

    #[inline]
    fn read(&self, bytes: &[u8], at: usize, clock: Ticks) -> Option<(u64, Ticks, usize)> {
        let header = self.read(bytes, at as u64 * 8, clock)?;
        Some((header.event_class, header.clock, (header.end / 8) as usize))
    }
}

/// Reads [packed](FastHeader::is_packed) headers, which takes a few instructions for those that are not extended.
pub(super) struct Packed<'h, const ID_BITS: u32, const TIME_BITS: u32, const ALIGNED: bool>(
    pub(super) &'h FastHeader,
);

impl<const ID_BITS: u32, const TIME_BITS: u32, const ALIGNED: bool> HeaderReader
    for Packed<'_, ID_BITS, TIME_BITS, ALIGNED>
{
    const ALIGNED: bool = ALIGNED;

    #[inline(always)]
    fn read(&self, bytes: &[u8], at: usize, clock: Ticks) -> Option<(u64, Ticks, usize)> {
        let mask = if ALIGNED {
            self.0.align as usize / 8
        } else {
            0
        };
        let begin = (at + mask) & !mask;
        let word = bytes.get(begin..)?.first_chunk();
        let word = word.map(|word| u64::from_le_bytes(*word));
        // The class number of extended headers is the greatest one.
        let extended = (1 << ID_BITS) - 1;
        let word = word.filter(|word| word & extended != extended);
        let Some(word) = word else {
            // Also at the end of the packet, where there are fewer bytes than are read here.
            return self.0.read_rarely(bytes, at, clock);
        };
        let clock = clock.advance(word >> ID_BITS, TIME_BITS);
        let size = (ID_BITS + TIME_BITS) as usize / 8;
        Some((word & extended, clock, begin + size))
    }
}

#[inline]
fn align(at: u64, mask: u64) -> u64 {
    (at + mask) & !mask
}

#[inline]
fn read<const N: usize, T>(
    bytes: &[u8],
    at: u64,
    order: ByteOrder,
    little: fn([u8; N]) -> T,
    big: fn([u8; N]) -> T,
) -> Option<T> {
    let bytes = *bytes.get((at / 8) as usize..)?.first_chunk::<N>()?;
    Some(match order {
        ByteOrder::Little => little(bytes),
        ByteOrder::Big => big(bytes),
    })
}

fn members(class: &FieldClass) -> Option<&[Member]> {
    match class {
        FieldClass::Struct { members, .. } => Some(members),
        _ => None,
    }
}

/// An unsigned integer without anything out of the ordinary.
fn integer(member: &Member) -> Option<(&BitLayout, &IntegerStyle)> {
    match &member.class {
        FieldClass::Integer { layout, style }
            if !style.signed && !layout.reversed && layout.unit.is_none() =>
        {
            Some((layout, style))
        }
        _ => None,
    }
}

/// The class number that selects the extended header: the last one, where all those before
/// it select the compact one. Each is given by one range, as these tracers write it; a long
/// list of ranges that amounts to the same is not worth going through.
fn only_extended(compact: &VariantOption, extended: &VariantOption, bits: u32) -> Option<u64> {
    let last = (1u64 << bits) - 1;
    let is_one = |option: &VariantOption, low, high| matches!(&option.when, Selector::Unsigned(ranges) if ranges[..] == [(low, high)]);
    (is_one(compact, 0, last - 1) && is_one(extended, last, last)).then_some(last)
}

#[cfg(test)]
pub(super) mod tests {
    use kymo_model::{Cursor, Event};
    use proptest::prelude::*;

    use crate::class::TraceClass;
    use crate::decode::Decoder;
    use crate::metadata::{self, ctf2};

    /// A decoder for events that are only a header: compact (5 and 27 bits) or large; described
    /// in CTF 1.8 or CTF 2.
    fn decoder(order: &str, large: bool, new: bool) -> Decoder {
        let class = class(order, large);
        let class = match new {
            true => {
                metadata::parse(ctf2::write(&class).unwrap().as_bytes(), "metadata")
                    .unwrap()
                    .class
            }
            false => class,
        };
        Decoder::new(&class).unwrap()
    }

    pub(in crate::decode) fn class(order: &str, large: bool) -> TraceClass {
        let (id, time, align, last) = if large {
            (16, 32, 8, 65535)
        } else {
            (5, 27, 1, 31)
        };
        let text = format!(
            "trace {{ major = 1; minor = 8; byte_order = {order}; }}; clock {{ name = c; }};
            typealias integer {{ size = {id}; align = {align}; }} := id_t;
            typealias integer {{ size = {time}; align = {align}; map = clock.c.value; }} := time_t;
            typealias integer {{ size = 32; align = 8; }} := u32;
            typealias integer {{ size = 64; align = 8; map = clock.c.value; }} := full_t;
            stream {{ event.header := struct {{
                enum : id_t {{ compact = 0 ... {}, extended = {last} }} id;
                variant <id> {{ struct {{ time_t timestamp; }} compact;
                    struct {{ u32 id; full_t timestamp; }} extended; }} v;
            }} align(8); }};
            event {{ name = a; id = 0; }}; event {{ name = b; id = 1; }}; event {{ name = c; id = 3; }};",
            last - 1
        );
        metadata::parse(text.as_bytes(), "metadata").unwrap().class
    }

    proptest! {
        #[test]
        fn the_short_way_reads_what_the_program_reads(
            data in prop::collection::vec(prop_oneof![3 => 0u8..4, 1 => Just(255), 1 => any::<u8>()], 0..60),
            big: bool,
            large: bool,
            new: bool,
        ) {
            let fast = decoder(if big { "be" } else { "le" }, large, new);
            let mut slow = decoder(if big { "be" } else { "le" }, large, new);
            prop_assert!(slow.streams[0].fast_header.take().is_some());
            let head = fast.packet_head(&data).unwrap();
            let bits = data.len() as u64 * 8;
            let (mut one, mut two) = (fast.cursor(&data, &head, bits, 7), slow.cursor(&data, &head, bits, 7));
            loop {
                let one = one.next_event().map(|event| {
                    event.map(|event| (event.class_index(), event.ticks(), event.begin_bit()))
                });
                let two = two.next_event().map(|event| {
                    event.map(|event| (event.class_index(), event.ticks(), event.begin_bit()))
                });
                prop_assert_eq!(&one, &two);
                if !matches!(one, Ok(Some(_))) {
                    break;
                }
            }
        }
    }
}
