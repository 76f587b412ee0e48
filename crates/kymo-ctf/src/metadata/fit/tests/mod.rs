//! What is fitted can be written, and is read as it was fitted. The rules one by one are in [`rules`].

mod rules;

use proptest::prelude::*;

use super::roles::parts_mut;
use super::{Fitted, fit};
use crate::any::any_trace;
use crate::class::{Dialect, FieldClass, TraceClass};
use crate::metadata::parse_with;
use crate::metadata::write::write;

/// The structures of all scopes.
fn scopes(model: &mut TraceClass) -> impl Iterator<Item = &mut FieldClass> {
    let scopes = model.streams.iter_mut().flat_map(|stream| {
        let events = stream.events.iter_mut();
        let events = events.flat_map(|event| [&mut event.specific_context, &mut event.payload]);
        [
            &mut stream.packet_context,
            &mut stream.event_header,
            &mut stream.common_context,
        ]
        .into_iter()
        .chain(events)
    });
    scopes.chain([&mut model.packet_header]).flatten()
}

/// Halves floating point numbers of 128 bits, which only CTF 2 has; returns whether there were
/// any.
fn halve_quads(class: &mut FieldClass) -> bool {
    if let FieldClass::Float(layout) = class
        && layout.bits == 128
    {
        layout.bits = 64;
        return true;
    }
    let parts = parts_mut(class).into_iter();
    parts.fold(false, |found, (_, part)| halve_quads(part) | found)
}

/// Fits, writes and reads a model; returns it as it was fitted, with what differs.
fn round_trip(model: &TraceClass, dialect: Dialect) -> Result<Fitted, TestCaseError> {
    let fail = |reason: String| TestCaseError::fail(reason);
    let fitted = fit(model, dialect).map_err(|error| fail(error.to_string()))?;
    prop_assert_eq!(fitted.model.dialect, dialect);
    let text = write(&fitted.model).map_err(|error| fail(error.to_string()))?;
    let read = parse_with(text.as_bytes(), "metadata", || fitted.model.byte_order);
    prop_assert_eq!(&read.unwrap().class, &fitted.model);
    let again = fit(&fitted.model, dialect).map_err(|error| fail(error.to_string()))?;
    prop_assert_eq!(&again.model, &fitted.model);
    prop_assert!(again.changes.is_empty(), "{:?}", again.changes);
    Ok(fitted)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn any_model_fits_ctf_1_8(mut model in any_trace()) {
        let error = fit(&model, Dialect::Ctf18).err();
        let had_quads = scopes(&mut model).fold(false, |found, class| halve_quads(class) | found);
        let is_reported = error.is_some_and(|error| error.to_string().contains("128 bits"));
        prop_assert_eq!(had_quads, is_reported);
        let fitted = round_trip(&model, Dialect::Ctf18)?;
        // And from there on.
        round_trip(&fitted.model, Dialect::Ctf2)?;
    }

    #[test]
    fn any_model_fits_ctf_2(model in any_trace()) {
        let fitted = round_trip(&model, Dialect::Ctf2)?;
        prop_assert!(fitted.changes.is_empty(), "{:?}", fitted.changes);
        prop_assert_eq!(fitted.model, model);
    }

    #[test]
    fn any_model_fits_rfc_v1_1(mut model in any_trace()) {
        scopes(&mut model).for_each(|class| {
            halve_quads(class);
        });
        for event in model.streams.iter_mut().flat_map(|stream| &mut stream.events) {
            event.id &= 0xffff_ffff;
        }
        let fitted = round_trip(&model, Dialect::Rfc11)?;
        round_trip(&fitted.model, Dialect::Ctf18)?;
        round_trip(&fitted.model, Dialect::Ctf2)?;
    }
}
