//! Options that shape some formats only.

use clap::ValueEnum;

use crate::terminal::Failure;

/// Refuses options that do not shape the format of the output: of each option its name, whether it
/// is given, and the formats that it is for.
pub(crate) fn refuse_foreign<F: ValueEnum + PartialEq>(
    options: &[(&str, bool, &[F])],
    format: &F,
) -> Result<(), Failure> {
    let name = |format: &F| {
        let value = format.to_possible_value();
        value.map_or(String::new(), |value| value.get_name().to_owned())
    };
    for (option, is_given, formats) in options {
        if *is_given && !formats.contains(format) {
            let formats: Vec<_> = formats.iter().map(name).collect();
            return Err(Failure::Usage(format!(
                "error: `{option}` is for {}, and the output is {}\nhint: leave out `{option}`, or choose another format",
                formats.join(" and "),
                name(format)
            )));
        }
    }
    Ok(())
}
