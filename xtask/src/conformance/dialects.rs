//! Metadata in other dialects: what is read is fitted to a dialect, written, and must be read
//! again as it was fitted; in its own dialect, as it was read.

use kymo_ctf::class::{Dialect, TraceClass};
use kymo_ctf::metadata::fit::fit;
use kymo_ctf::metadata::{self, write::write};

use super::{Setting, Verdict, cases};
use crate::Outcome;

/// All metadata in CTF 1.8.
pub(super) fn to_ctf_1_8(setting: &Setting) -> Outcome<Vec<Verdict>> {
    run(setting, Dialect::Ctf18)
}

/// All metadata in CTF 2.
pub(super) fn to_ctf_2(setting: &Setting) -> Outcome<Vec<Verdict>> {
    run(setting, Dialect::Ctf2)
}

/// The metadata that fits RFC v1.1.
pub(super) fn to_rfc(setting: &Setting) -> Outcome<Vec<Verdict>> {
    run(setting, Dialect::Rfc11)
}

fn run(setting: &Setting, dialect: Dialect) -> Outcome<Vec<Verdict>> {
    let mut verdicts = Vec::new();
    for case in cases(&setting.traces, "", "/metadata")? {
        let bytes = std::fs::read(setting.traces.join(&case).join("metadata"))?;
        let Ok(known) = metadata::parse(&bytes, "metadata") else {
            continue;
        };
        match fit(&known.class, dialect) {
            Ok(fitted) => {
                let result = agree(&known.class, &fitted.model);
                verdicts.push(Verdict::new(case, result));
            }
            // What has no equivalent is reported, and is not a case of what has one.
            Err(_) if dialect == Dialect::Rfc11 => {}
            Err(error) => verdicts.push(Verdict::new(case, Err(error.to_string()))),
        }
    }
    Ok(verdicts)
}

fn agree(known: &TraceClass, fitted: &TraceClass) -> Result<(), String> {
    let text = write(fitted).map_err(|error| error.to_string())?;
    let read = metadata::parse_with(text.as_bytes(), "metadata", || fitted.byte_order);
    let read = read.map_err(|error| error.to_string())?.class;
    if read != *fitted {
        return Err("is read as another class model than was written".to_owned());
    }
    match known.dialect != fitted.dialect || known == fitted {
        true => Ok(()),
        false => Err("does not fit its own dialect as it is".to_owned()),
    }
}
