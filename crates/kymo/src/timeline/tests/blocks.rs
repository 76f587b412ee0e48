//! Rows in blocks are those that come one by one.

use super::*;

/// What another selection wants, event by event.
struct OneByOne<'a>(&'a dyn pipeline::Select);

impl pipeline::Select for OneByOne<'_> {
    fn inner(&self) -> &dyn pipeline::Select {
        self.0
    }

    fn predicate(&self) -> pipeline::Predicate<'_> {
        self.0.predicate().within(pipeline::Layer::OneByOne)
    }
}

/// The rows of a query, class by class, and the faults, with and without blocks.
fn rows_and_faults(
    timeline: &Timeline,
    query: &Query,
    in_blocks: bool,
) -> (Vec<String>, Vec<String>) {
    let bound = timeline.bind(query).unwrap();
    let (mut rows, mut faults) = (Vec::new(), Vec::new());
    let mut take = |batch: Batch| {
        for row in 0..batch.len() {
            let values = batch.columns().iter().map(|column| column.value(row));
            rows.push(format!(
                "{:?} {:?}",
                batch.head(row),
                values.collect::<Vec<_>>()
            ));
        }
        let nulls = batch.columns().iter().map(|column| column.null_count());
        rows.push(format!("{:?}", nulls.collect::<Vec<_>>()));
        for notice in batch.notices() {
            faults.push(format!("{:?}", notice.kind));
        }
        ControlFlow::Continue(())
    };
    let (recordings, plan, options) = (&timeline.recordings, &bound.plan, &bound.options);
    let filter = &bound.filter;
    match in_blocks {
        true => crate::timeline::rows::run_plan(
            recordings,
            &filter,
            plan,
            options,
            bound.batch_rows,
            &mut take,
        ),
        false => crate::timeline::rows::run_plan(
            recordings,
            &OneByOne(filter),
            plan,
            options,
            bound.batch_rows,
            &mut take,
        ),
    }
    (rows, faults)
}

#[test]
fn blocks_have_the_rows_that_come_one_by_one() {
    let names = [
        None,
        Some("cpu_id,event.name"),
        Some("vtid,cpu_id,vtid"),
        Some("seq,cpu_id"),
        Some("time,vpid,nothing.like.it,text"),
    ];
    let check = |timeline: &Timeline| {
        let (mut rows, mut faults) = (0, 0);
        for names in names {
            for shape in [Shape::Mixed, Shape::ByClass] {
                let columns = match names.map(Columns::named) {
                    None => Columns::All,
                    Some(named) => named.unwrap(),
                };
                let mut query = Query {
                    columns,
                    shape,
                    ..Query::default()
                };
                for limit in [None, Some(77)] {
                    query.limit = limit;
                    if timeline.bind(&query).is_err() {
                        continue;
                    }
                    let one_by_one = rows_and_faults(timeline, &query, false);
                    let in_blocks = rows_and_faults(timeline, &query, true);
                    assert_eq!(one_by_one.0, in_blocks.0);
                    assert!(limit.is_some() || one_by_one.1 == in_blocks.1);
                    rows += in_blocks.0.len();
                    faults += in_blocks.1.len();
                }
            }
        }
        (rows, faults)
    };
    for name in ["lttng-small", "lttng-discarded", "rfc-small", "bitfield-be"] {
        assert!(check(&open(name)).0 > 0, "{name}");
    }
    // The same with bytes that are wrong.
    let directory = tempfile::tempdir().unwrap();
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../examples/lttng-small");
    let mut files = vec![path.clone()];
    let mut streams = Vec::new();
    while let Some(file) = files.pop() {
        if file.is_dir() {
            files.extend(
                std::fs::read_dir(file)
                    .unwrap()
                    .map(|entry| entry.unwrap().path()),
            );
        } else if file.parent().unwrap().file_name() != Some("index".as_ref()) {
            let copy = directory.path().join(file.strip_prefix(&path).unwrap());
            std::fs::create_dir_all(copy.parent().unwrap()).unwrap();
            std::fs::copy(&file, &copy).unwrap();
            if file.file_name() != Some("metadata".as_ref()) {
                streams.push(copy);
            }
        }
    }
    assert!(!streams.is_empty());
    let mut faults = 0;
    let mut seed = 7u64;
    for stream in &streams {
        let whole = std::fs::read(stream).unwrap();
        for _ in 0..4 {
            let mut bytes = whole.clone();
            for _ in 0..4 {
                seed = seed
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1_442_695_040_888_963_407);
                let place = (seed >> 33) as usize % bytes.len().min(4096);
                bytes[place] ^= (seed >> 20) as u8;
            }
            std::fs::write(stream, bytes).unwrap();
            let opened =
                crate::open::open(&[directory.path().into()], &crate::open::Options::default());
            faults += check(&Timeline::new(opened.recordings)).1;
        }
        std::fs::write(stream, whole).unwrap();
    }
    assert!(faults > 0, "some damage was met");
}
