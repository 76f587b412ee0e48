//! `kymo machine`.

mod layout;
mod values;

use kymo_machine::{ByteOrder, FloatOrder, Machine};
use kymo_text::Line;

use crate::args::machine::{Command, Float, List};
use crate::terminal::{Failure, Outcome, Terminal};

/// Runs a command about machines.
pub(crate) fn run(command: &Command, terminal: &Terminal) -> Result<Outcome, Failure> {
    match command {
        Command::List(args) => list(args, terminal),
        Command::Float(args) => float(args, terminal),
        Command::Layout(args) => layout::run(args, terminal),
    }
}

/// Lists the machines.
fn list(args: &List, terminal: &Terminal) -> Result<Outcome, Failure> {
    let mut out = Line::new();
    if !args.json {
        let head = "name            integers  doubles  long  time_t  double in structs  \
                    NaN in programs   NaN in files      other names\n";
        out.push(head.as_bytes());
    }
    for machine in Machine::all() {
        if args.json {
            list_json(machine, &mut out);
        } else {
            list_text(machine, &mut out);
        }
    }
    terminal.write(out.as_bytes())?;
    Ok(Outcome::Good)
}

fn list_text(machine: &Machine, out: &mut Line) {
    let line = format!(
        "{:<15} {:<9} {:<8} {:>4}  {:>6}  {:>17}  {:016x}  {:016x}  {}",
        machine.name(),
        byte_order(machine.byte_order()),
        float_order(machine.float_order()),
        machine.long().bytes(),
        machine.time().bytes(),
        machine.double_align(),
        machine.constant_nan(),
        machine.file_nan(),
        machine.aliases().join(" "),
    );
    out.push(line.trim_end().as_bytes());
    out.push_byte(b'\n');
}

fn list_json(machine: &Machine, out: &mut Line) {
    let names: Vec<_> = machine
        .aliases()
        .iter()
        .map(|alias| format!("\"{alias}\""))
        .collect();
    // Names are plain: nothing in them is escaped.
    let line = format!(
        "{{\"machine\":\"{}\",\"aliases\":[{}],\"byte_order\":\"{}\",\"float_order\":\"{}\",\
         \"long\":{},\"time_t\":{},\"pointer\":{},\"double_align\":{},\
         \"constant_nan\":\"{:016x}\",\"file_nan\":\"{:016x}\"}}\n",
        machine.name(),
        names.join(","),
        byte_order(machine.byte_order()),
        float_order(machine.float_order()),
        machine.long().bytes(),
        machine.time().bytes(),
        machine.pointer().bytes(),
        machine.double_align(),
        machine.constant_nan(),
        machine.file_nan(),
    );
    out.push(line.as_bytes());
}

fn byte_order(order: ByteOrder) -> &'static str {
    match order {
        ByteOrder::Little => "little",
        ByteOrder::Big => "big",
    }
}

fn float_order(order: FloatOrder) -> &'static str {
    match order {
        FloatOrder::Little => "little",
        FloatOrder::Big => "big",
        FloatOrder::SwappedWords => "swapped",
    }
}

/// Shows the bytes of doubles.
fn float(args: &Float, terminal: &Terminal) -> Result<Outcome, Failure> {
    let machines = args.machine.map_or(Machine::all(), std::slice::from_ref);
    let widest = machines.iter().map(|machine| machine.name().len()).max();
    let mut out = Line::new();
    for machine in machines {
        for value in &args.values {
            let bits = value.bits.unwrap_or(machine.constant_nan());
            let bytes = machine.double_to_bytes(bits);
            if args.json {
                out.push(b"{\"machine\":");
                out.json_string(machine.name().as_bytes());
                out.push(b",\"value\":");
                out.json_string(value.text.as_bytes());
                out.push(b",\"bytes\":\"");
                push_hex(&bytes, &mut out);
                out.push(b"\"}\n");
            } else {
                let [first, second] = [&bytes[..4], &bytes[4..]].map(spaced);
                let line = format!(
                    "{:<width$} {:>16} -> {first} {second}\n",
                    machine.name(),
                    value.text,
                    width = widest.unwrap_or(0),
                );
                out.push(line.as_bytes());
            }
        }
    }
    terminal.write(out.as_bytes())?;
    Ok(Outcome::Good)
}

/// Bytes as hexadecimal digits, with a blank before each byte.
fn spaced(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!(" {byte:02x}")).collect()
}

/// Bytes as hexadecimal digits.
fn push_hex(bytes: &[u8], out: &mut Line) {
    for byte in bytes {
        out.push(format!("{byte:02x}").as_bytes());
    }
}
