//! Things that are made once for each class or stream of each recording.

/// Things by recording and by position in it, made when first asked for.
#[derive(Debug)]
pub(crate) struct Table<T> {
    rows: Vec<Vec<Option<T>>>,
}

impl<T> Default for Table<T> {
    fn default() -> Self {
        Self { rows: Vec::new() }
    }
}

impl<T> Table<T> {
    /// All things, by recording and position.
    pub(crate) fn into_iter(self) -> impl Iterator<Item = T> {
        self.rows.into_iter().flatten().flatten()
    }

    /// The thing at a place.
    #[inline]
    pub(crate) fn get(
        &mut self,
        recording: usize,
        position: usize,
        make: impl FnOnce() -> T,
    ) -> &mut T {
        if self
            .rows
            .get(recording)
            .is_none_or(|row| row.len() <= position)
        {
            self.extend(recording, position);
        }
        self.rows[recording][position].get_or_insert_with(make)
    }

    #[cold]
    fn extend(&mut self, recording: usize, position: usize) {
        if self.rows.len() <= recording {
            self.rows.resize_with(recording + 1, Vec::new);
        }
        self.rows[recording].resize_with(position + 1, || None);
    }
}
