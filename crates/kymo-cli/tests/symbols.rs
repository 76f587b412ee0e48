//! Names of addresses, on a trace with the events by which LTTng says what processes have mapped. The library that they
//! map is `kymo-symbols/tests/data/shape.so`.

mod common;

use std::path::Path;

use common::{kymo_in, text};
use kymo_ctf::class::{BitLayout, Dialect, EnvironmentValue, FieldClass};
use kymo_ctf::describe::{Description, Fields as Described};
use kymo_ctf::write::{Fields, FileStream, StreamOptions, TraceOptions, TraceWriter};
use kymo_machine::ByteOrder;

const BUILD_ID: [u8; 20] = *b"kymo\0\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d\x0e\x0f";
/// Where processes map the library.
const BASE: u64 = 0x7f00_0000_0000;
const SIZE: u64 = 0x1000;
/// Within `measure`, and within `area`.
const MEASURE: u64 = BASE + 0x26d;
const AREA: u64 = BASE + 0x27c;
const KERNEL: u64 = 0xffff_ffff_8100_0000;

fn data() -> String {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    text(&crates.join("kymo-symbols/tests/data")).to_owned()
}

struct Process<'t> {
    writer: &'t TraceWriter,
    stream: &'t mut FileStream,
    now: u64,
}

impl Process<'_> {
    /// An event of a process, a microsecond after the one before.
    fn event(
        &mut self,
        name: &str,
        vpid: i64,
        ip: u64,
        mut payload: impl FnMut(&mut Fields<'_, '_>),
    ) {
        let event = self.writer.event(name).expect("a class");
        self.now += 1_000;
        let write = |fields: &mut Fields<'_, '_>| {
            fields.uint(ip).sint(vpid);
            payload(fields);
        };
        self.stream.event(event, self.now, write).expect("written");
    }

    fn here(&mut self, vpid: i64, ip: u64, stack: &[u64]) {
        self.event("app:here", vpid, ip, |fields| {
            let length = stack.len() as u64;
            let fields = fields.uint(length);
            fields.array(length, |fields, at| fields.uint(stack[at as usize]));
        });
    }

    fn mapped(&mut self, name: &str, vpid: i64, base: u64, path: &str) {
        self.event(name, vpid, 0, |fields| {
            fields.uint(base).uint(SIZE).text(path).uint(1);
        });
    }

    fn build_id(&mut self, vpid: i64, id: &[u8]) {
        self.event("lttng_ust_statedump:build_id", vpid, 0, |fields| {
            let length = id.len() as u64;
            let fields = fields.uint(BASE).uint(length);
            fields.array(length, |fields, at| fields.uint(id[at as usize].into()));
        });
    }

    fn call(&mut self, edge: &str, ip: u64) {
        let name = format!("lttng_ust_cyg_profile:func_{edge}");
        self.event(&name, 1, ip, |fields| {
            fields.uint(ip);
        });
    }
}

fn description() -> Description {
    let number = |bits| FieldClass::unsigned(BitLayout::new(bits, 8, ByteOrder::Little), &[]);
    let mapped = |fields: Described| {
        let fields = fields.hexadecimal("baddr", 64).unsigned("memsz", 64);
        fields.text("path").unsigned("is_pic", 8)
    };
    Description::new(ByteOrder::Little)
        .environment("hostname", EnvironmentValue::Text("host".into()))
        .common_context(|fields| fields.unsigned("ip", 64).signed("vpid", 32))
        .event("lttng_ust_statedump:start", |fields| fields)
        .event("lttng_ust_statedump:bin_info", mapped)
        .event("lttng_ust_lib:load", mapped)
        .event("lttng_ust_lib:unload", |fields| {
            fields.hexadecimal("baddr", 64)
        })
        .event("lttng_ust_statedump:build_id", |fields| {
            fields
                .hexadecimal("baddr", 64)
                .sequence("build_id", number(8))
        })
        .event("lttng_ust_cyg_profile:func_entry", |fields| {
            fields.hexadecimal("addr", 64)
        })
        .event("lttng_ust_cyg_profile:func_exit", |fields| {
            fields.hexadecimal("addr", 64)
        })
        .event("app:here", |fields| {
            fields.sequence("callstack_user", number(64))
        })
}

/// Process 1 has the library from its state dump on, unloads it and loads it somewhere else; process 2 has another build of
/// it; process 3 says nothing.
fn trace(path: &Path) {
    let class = description().class(Dialect::Ctf18).expect("described");
    let mut writer =
        TraceWriter::create(path, &class, TraceOptions { index: true }).expect("created");
    let options = StreamOptions::default();
    let mut stream = writer.stream(0, "channel0_0", options).expect("a stream");
    let mut process = Process {
        writer: &writer,
        stream: &mut stream,
        now: 1_790_000_000_000_000_000,
    };
    process.here(1, MEASURE, &[]);
    process.event("lttng_ust_statedump:start", 1, 0, |_| {});
    process.mapped("lttng_ust_statedump:bin_info", 1, BASE, "/lib/../shape.so");
    process.build_id(1, &BUILD_ID);
    process.here(1, MEASURE, &[AREA, MEASURE, KERNEL + 8]);
    process.mapped("lttng_ust_statedump:bin_info", 2, BASE, "/shape.so");
    process.build_id(2, b"other");
    process.here(2, MEASURE, &[]);
    process.here(3, MEASURE, &[]);
    process.call("entry", MEASURE);
    process.call("entry", AREA);
    process.call("exit", AREA);
    process.call("exit", MEASURE);
    process.event("lttng_ust_lib:unload", 1, 0, |fields| {
        fields.uint(BASE);
    });
    process.mapped(
        "lttng_ust_lib:load",
        1,
        BASE + 0x1_0000,
        "/shape.stripped.so",
    );
    process.here(1, AREA + 0x1_0000, &[AREA + 0x1_0000, MEASURE + 0x1_0000]);
    process.event("lttng_ust_statedump:start", 1, 0, |_| {});
    process.here(1, AREA + 0x1_0000, &[]);
    stream.finish().expect("finished");
}

#[test]
fn instruction_pointers_are_named_at_their_time() {
    let folder = tempfile::tempdir().expect("a directory");
    trace(&folder.path().join("trace"));
    let data = data();
    let run = |options: &[&str]| {
        let args = [&["print", "trace", "--debug-root", &data], options].concat();
        let (code, out, err) = kymo_in(folder.path(), &args);
        assert_eq!(code, 0, "{err}");
        let err = err.replace(&data, "DATA");
        (out.replace(&data, "DATA"), err)
    };
    let (out, err) = run(&["--event", "app:here"]);
    insta::assert_snapshot!(format!("{out}{err}"));
    let full = [
        "--debug-info-full-path",
        "--debug-info-field-name",
        "symbols",
    ];
    let condition = ["--where", "symbols.func ~ 'measure*'", "--format", "json"];
    let (out, _) = run(&[&full[..], &condition].concat());
    insta::assert_snapshot!(out);
    let columns = ["--columns", "time,name,debug_info.func,debug_info.src"];
    let (out, _) = run(&columns);
    insta::assert_snapshot!(out);
    // The last events are found from the end.
    let (out, _) = run(&["--last", "3", "--event", "app:here"]);
    assert_eq!(out.matches("area+0x6").count(), 1, "{out}");
}

#[test]
fn analyses_group_by_function() {
    let folder = tempfile::tempdir().expect("a directory");
    trace(&folder.path().join("trace"));
    let kernel = folder.path().join("kallsyms");
    std::fs::write(&kernel, "ffffffff81000000 T do_syscall_64\n").expect("written");
    let data = data();
    let run = |options: &[&str]| {
        let symbols = ["--debug-root", &data, "--kallsyms", "kallsyms"];
        let args = [options, &["trace"], &symbols].concat();
        let (code, out, err) = kymo_in(folder.path(), &args);
        assert_eq!(code, 0, "{err}");
        out
    };
    let mut all = run(&["values", "--field", "ip", "--event", "app:here"]);
    let calls = [
        "--enter",
        "lttng_ust_cyg_profile:func_entry",
        "--exit",
        "lttng_ust_cyg_profile:func_exit",
        "--key",
        "addr",
    ];
    all += &run(&[&["profile"], &calls[..]].concat());
    all += &run(&[&["profile", "--folded"], &calls[..]].concat());
    all += &run(&["profile", "--folded", "--stacks", "callstack_user"]);
    let pairs = [
        "--start",
        "lttng_ust_cyg_profile:func_entry",
        "--end",
        "lttng_ust_cyg_profile:func_exit",
        "--pair-by",
        "addr",
        "--by",
        "ip",
    ];
    all += &run(&[&["latency"], &pairs[..]].concat());
    insta::assert_snapshot!(all);
}

#[test]
fn counts_and_comparisons_are_grouped_by_function() {
    let folder = tempfile::tempdir().expect("a directory");
    trace(&folder.path().join("trace"));
    let data = data();
    let run = |options: &[&str]| {
        let args = [options, &["--by", "ip", "--debug-root", &data]].concat();
        let (code, out, err) = kymo_in(folder.path(), &args);
        assert_eq!(code, 0, "{err}");
        out
    };
    let stats = run(&["stats", "trace"]);
    let diff = run(&["diff", "--all", "trace", "trace"]);
    let (code, _, err) = kymo_in(folder.path(), &["stats", "--debug-info", "trace"]);
    assert_eq!(code, 2, "{err}");
    for function in ["measure", "shapes::Box<int>::area(int) const"] {
        assert!(stats.contains(function), "{function}: {stats}");
        assert!(diff.contains(function), "{function}: {diff}");
    }
}

#[test]
fn what_is_missing_is_said() {
    let folder = tempfile::tempdir().expect("a directory");
    trace(&folder.path().join("trace"));
    std::fs::write(folder.path().join("hidden"), "0000000000000000 T _text\n").expect("written");
    let small = text(&common::example("lttng-small")).to_owned();
    let run = |args: &[&str]| {
        let (code, _, err) = kymo_in(folder.path(), args);
        format!("{code}\n{}\n", err.replace(&small, "lttng-small"))
    };
    let mut all = run(&[
        "print",
        "--debug-info",
        "--debug-root",
        "/nonexistent",
        "trace",
    ]);
    all += &run(&["print", "--debug-info", &small]);
    all += &run(&["print", "--kallsyms", "hidden", "trace"]);
    all += &run(&["print", "--kallsyms", "trace/metadata", "trace"]);
    all += &run(&["print", "--debug-info", "--format", "details", "trace"]);
    insta::assert_snapshot!(all);
}
