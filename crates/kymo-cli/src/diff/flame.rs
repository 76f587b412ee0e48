//! A flame graph of both recordings, coloured by what changed.

use std::collections::HashMap;

use kymo::analysis::{CallTree, CallTreeQuery, Options, duration_text};
use kymo::pipeline::Window;
use kymo_draw::{FlameOptions, Frame, flame_svg};

use super::Source;
use crate::analysis::{selected, with_tracks};
use crate::args::diff::Diff;
use crate::open::threads;
use crate::terminal::{Failure, Terminal};

/// Draws the calls of both.
pub(super) fn svg(
    args: &Diff,
    sources: [&Source; 2],
    terminal: &Terminal,
) -> Result<String, Failure> {
    let query = CallTreeQuery {
        events: args.enter.clone().zip(args.exit.clone()),
        key: args.key.clone(),
        tracks: args.tracks.by(),
        within: Window::ALL,
    };
    let options = Options {
        threads: threads(&args.work),
        strict: args.work.strict,
        ..Options::default()
    };
    let mut both = [Vec::new(), Vec::new()];
    for (frames, source) in both.iter_mut().zip(sources) {
        let tree = selected(&source.inputs, &source.selection, terminal, |select| {
            CallTree::new(&source.inputs.recordings, select, &query, &options)
        })?;
        let nodes = tree.nodes.into_iter();
        let nodes = nodes.map(|node| (node.caller, node.track, node.name, node.own));
        *frames = with_tracks(&source.inputs, &tree.tracks, nodes);
    }
    let options = FlameOptions {
        title: "Time in calls: in both together; red is more in the second, blue less".to_owned(),
        amount: duration_text,
        width: 1200,
    };
    Ok(flame_svg(&merged(&both), &options))
}

/// The calls of both: as wide as they are in both together.
fn merged(both: &[Vec<Frame>; 2]) -> Vec<Frame> {
    let mut frames: Vec<Frame> = Vec::new();
    let mut known: HashMap<(Option<usize>, &str), usize> = HashMap::new();
    for (side, own) in both.iter().enumerate() {
        let mut places = Vec::with_capacity(own.len());
        for frame in own {
            // Callers come before what they call.
            let caller = frame.caller.and_then(|caller| places.get(caller).copied());
            let place = *known
                .entry((caller, frame.name.as_str()))
                .or_insert_with(|| {
                    frames.push(Frame {
                        caller,
                        name: frame.name.clone(),
                        own: 0,
                        compared: Some([0, 0]),
                    });
                    frames.len() - 1
                });
            let merged = &mut frames[place];
            merged.own = merged.own.saturating_add(frame.own);
            if let Some(sides) = &mut merged.compared {
                sides[side] = sides[side].saturating_add(frame.own);
            }
            places.push(place);
        }
    }
    frames
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_of_both_are_one_tree() {
        let frame = |caller, name: &str, own| Frame {
            caller,
            name: name.to_owned(),
            own,
            compared: None,
        };
        let first = vec![
            frame(None, "main", 1),
            frame(Some(0), "a", 10),
            frame(Some(0), "gone", 5),
        ];
        let second = vec![
            frame(None, "new", 7),
            frame(None, "main", 2),
            frame(Some(1), "a", 20),
        ];
        let found: Vec<_> = merged(&[first, second])
            .into_iter()
            .map(|frame| (frame.caller, frame.name, frame.own, frame.compared))
            .collect();
        let expected = [
            (None, "main", 3, [1, 2]),
            (Some(0), "a", 30, [10, 20]),
            (Some(0), "gone", 5, [5, 0]),
            (None, "new", 7, [0, 7]),
        ];
        let expected =
            expected.map(|(caller, name, own, sides)| (caller, name.to_owned(), own, Some(sides)));
        assert_eq!(found, expected);
    }
}
