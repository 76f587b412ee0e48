//! `kymo machine`.

mod layout;
mod values;

use kymo_machine::{ByteOrder, FloatOrder, Machine};
use kymo_text::Line;
use kymo_text::json::Writer;

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
    let mut json = Writer::default();
    json.begin_object();
    json.entry("machine", machine.name());
    json.begin_list("aliases");
    for alias in machine.aliases() {
        json.value(*alias);
    }
    json.end_list();
    json.entry("byte_order", byte_order(machine.byte_order()));
    json.entry("float_order", float_order(machine.float_order()));
    json.entry("long", machine.long().bytes() as u64);
    json.entry("time_t", machine.time().bytes() as u64);
    json.entry("pointer", machine.pointer().bytes() as u64);
    json.entry("double_align", machine.double_align());
    json.entry("constant_nan", &*format!("{:016x}", machine.constant_nan()));
    json.entry("file_nan", &*format!("{:016x}", machine.file_nan()));
    json.end_object();
    out.push(&json.finish());
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
                let mut json = Writer::default();
                json.begin_object();
                json.entry("machine", machine.name());
                json.entry("value", value.text.as_str());
                json.entry("bytes", hex(&bytes).as_str());
                json.end_object();
                out.push(&json.finish());
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
fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
