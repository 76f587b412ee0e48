//! A selection for each event class.

use kymo_model::Selection;

/// [`Selection`]s by recording and event class, made when first needed.
///
/// There may be very many classes, and long texts in the events of each: only the selection that was
/// used last has room for them.
#[derive(Debug)]
pub(super) struct Selections {
    selections: Vec<Vec<Option<Selection>>>,
    last: Option<(usize, usize)>,
}

impl Selections {
    /// Creates empty selections for recordings with these numbers of classes.
    pub(super) fn new(classes: impl Iterator<Item = usize>) -> Self {
        Self {
            selections: classes.map(|classes| vec![None; classes]).collect(),
            last: None,
        }
    }

    /// The selection of a class, without values.
    #[inline]
    pub(super) fn clear(
        &mut self,
        recording: usize,
        class: usize,
        make: impl FnOnce() -> Selection,
    ) -> &mut Selection {
        if self.last != Some((recording, class)) {
            self.change(recording, class);
        }
        let selection = self.selections[recording][class].get_or_insert_with(make);
        selection.clear();
        selection
    }

    fn change(&mut self, recording: usize, class: usize) {
        let last = self.last.replace((recording, class));
        if let Some((recording, class)) = last
            && let Some(selection) = &mut self.selections[recording][class]
        {
            selection.release();
        }
    }
}
