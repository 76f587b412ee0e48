//! Compounds that lie deep within others.

use kymo_model::{Fault, FaultCode, Visitor};

use super::Run;
use crate::decode::op::{Op, Program};

/// A compound that is run without recursion.
struct Deep<'p> {
    end: Op,
    /// The instructions behind it.
    after: &'p [Op],
    /// Those of an element.
    element: &'p [Op],
    /// The number of elements that are not decoded yet, and the total.
    remaining: u64,
    count: u64,
    /// Where the element in hand begins.
    begin: u64,
}

impl Run<'_> {
    /// Runs instructions of compounds that lie deep within others, without recursion.
    #[cold]
    #[inline(never)]
    pub(super) fn deep<'p, V: Visitor>(
        &mut self,
        program: &'p Program,
        ops: &'p [Op],
        v: &mut V,
    ) -> Result<(), Fault> {
        let mut around: Vec<Deep<'p>> = Vec::new();
        let mut left = ops;
        loop {
            let plain = left.iter().position(Op::is_compound);
            let (first, rest) = left.split_at(plain.unwrap_or(left.len()));
            self.ops(program, first, v)?;
            let Some((op, rest)) = rest.split_first() else {
                match self.deep_end(&mut around, v)? {
                    Some(next) => left = next,
                    None => return Ok(()),
                }
                continue;
            };
            let (body, rest) = rest.split_at(op.body());
            left = rest;
            let mut of_compound = Deep {
                end: *op,
                after: rest,
                element: &[],
                remaining: 0,
                count: 0,
                begin: self.pos,
            };
            let inner = match *op {
                Op::Array {
                    field,
                    align,
                    count,
                    ..
                } => {
                    let count = self.count(count);
                    self.align(align, field)?;
                    self.report_at(v);
                    v.begin_array(field, count);
                    of_compound.begin = self.pos;
                    if !self.number_elements(body, count, v) {
                        of_compound.count = count;
                        of_compound.remaining = count;
                        of_compound.element = body;
                    }
                    match of_compound.remaining {
                        0 => &[],
                        _ => body,
                    }
                }
                Op::Optional {
                    field, table, slot, ..
                } => {
                    let selector = self.slots[slot as usize].get();
                    let present = program.tables[table as usize].choice.of(selector).is_some();
                    self.report_at(v);
                    v.begin_optional(field, present, selector);
                    if present { body } else { &[] }
                }
                Op::Variant {
                    field, table, slot, ..
                } => {
                    let selector = self.slots[slot as usize].get();
                    let options = &program.tables[table as usize];
                    let Some(selected) = options.choice.of(selector) else {
                        return Err(
                            Fault::new(FaultCode::NoVariantOption, self.pos, selector).at(field)
                        );
                    };
                    self.report_at(v);
                    v.begin_variant(field, selected as u32, selector);
                    let option = &options.entries[selected];
                    &body[option.start as usize..option.end as usize]
                }
                _ => continue,
            };
            around.push(of_compound);
            left = inner;
        }
    }

    /// At the end of the instructions of a compound: what comes next, of its next element or behind it.
    /// `None` behind the outermost one.
    fn deep_end<'p, V: Visitor>(
        &mut self,
        around: &mut Vec<Deep<'p>>,
        v: &mut V,
    ) -> Result<Option<&'p [Op]>, Fault> {
        let Some(compound) = around.last_mut() else {
            return Ok(None);
        };
        if let Op::Array { field, .. } = compound.end
            && compound.remaining > 0
        {
            if self.pos == compound.begin {
                self.empty_element(field, compound.count)?;
            }
            compound.begin = self.pos;
            compound.remaining -= 1;
            if compound.remaining > 0 {
                return Ok(Some(compound.element));
            }
        }
        self.report_at(v);
        match compound.end {
            Op::Array { field, .. } => v.end_array(field),
            Op::Optional { field, .. } => v.end_optional(field),
            Op::Variant { field, .. } => v.end_variant(field),
            _ => {}
        }
        let after = compound.after;
        around.pop();
        Ok(Some(after))
    }
}
