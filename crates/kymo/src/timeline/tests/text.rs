//! Text is what a run prints.

use super::*;

#[test]
fn text_is_what_is_printed() {
    use crate::show::{WallOptions, csv::Csv, pretty};

    struct Printed(Vec<u8>, Vec<u8>);
    impl pipeline::Output for Printed {
        fn text(&mut self, text: &[u8]) -> io::Result<()> {
            self.0.extend_from_slice(text);
            Ok(())
        }
        fn warning(&mut self, lines: &[u8]) -> io::Result<()> {
            self.1.extend_from_slice(lines);
            Ok(())
        }
        fn fault(&mut self, _fault: &FaultReport) -> ControlFlow<()> {
            ControlFlow::Continue(())
        }
    }
    fn check<A: crate::show::Sink + Send + 'static>(timeline: &Timeline, make: impl Fn() -> A) {
        let recordings = timeline.recordings();
        let mut printed = Printed(Vec::new(), Vec::new());
        let everything = &pipeline::Everything;
        let options = pipeline::Options::default();
        pipeline::run(recordings, everything, &options, &mut make(), &mut printed).unwrap();
        let rows: Vec<Text> = timeline.text(&Query::default(), make()).unwrap().collect();
        let text = rows.iter().flat_map(|row| row.text.iter().copied());
        let warnings = rows.iter().flat_map(|row| row.warnings.iter().copied());
        assert!(text.eq(printed.0.iter().copied()));
        assert!(warnings.eq(printed.1.iter().copied()));
        let events = rows.iter().filter(|row| row.message.is_some());
        let lines = events.filter(|row| !row.text.is_empty());
        // A header comes with the first one.
        for row in lines.skip(1) {
            assert_eq!(row.text.iter().filter(|&&byte| byte == b'\n').count(), 1);
        }
        let last = Query {
            direction: Direction::Backwards,
            limit: Some(3),
            ..Query::default()
        };
        let last: Vec<Text> = timeline.text(&last, make()).unwrap().collect();
        let found = last
            .iter()
            .filter(|row| row.message.is_some() && !row.text.is_empty());
        assert_eq!(found.count(), 3);
        assert!(printed.0.ends_with(&last.last().unwrap().text));
        // Not all rows need to be read.
        assert!(
            timeline
                .text(&Query::default(), make())
                .unwrap()
                .next()
                .is_some()
        );
    }
    for name in ["lttng-small", "lttng-discarded"] {
        let timeline = open(name);
        check(&timeline, || {
            Csv::new(Default::default(), WallOptions::default())
        });
        check(&timeline, || {
            let options = pretty::Options {
                delta: false,
                ..pretty::Options::default()
            };
            pretty::Pretty::new(options.for_recordings(timeline.recordings()))
        });
    }
}
