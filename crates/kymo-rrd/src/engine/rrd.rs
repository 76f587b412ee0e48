//! A file that is open for updates.

use std::io;
use std::sync::Arc;

use kymo_io::Storage;
use kymo_machine::Machine;

use super::direct::Direct;
use super::kinds::{Kind, Kinds};
use super::written::{Noted, Written};
use super::{Applied, Change, Engine, Sample, StoreError, Template, TemplateError, UpdateError};
use crate::file::native::{self, InPlace};
use crate::file::portable::{self, Durability, Update};
use crate::model::{Database, State};
use crate::{Time, Value};

/// A database that is open for updates, in a file of any form.
///
/// One program updates a file at a time: whoever opens the storage locks it, and calls
/// [`Rrd::refresh`] where another may have changed the file since.
#[derive(Debug)]
pub struct Rrd<S> {
    engine: Engine,
    /// What usual updates need, where there can be such.
    direct: Option<Direct>,
    file: File<S>,
    now: Option<i64>,
    durability: Durability,
    /// The rows that were written, if they are noted down.
    written: Option<Vec<Written>>,
}

#[derive(Debug)]
enum File<S> {
    Native(Box<InPlace<S>>),
    Portable(Box<portable::File<S>>),
}

/// How samples are taken.
#[derive(Clone, Copy, Debug, Default)]
pub struct UpdateOptions<'a> {
    /// Which data sources the readings are of; all that are measured, if there is none.
    pub template: Option<&'a Template>,
    /// Passes over samples that are not after the last update.
    pub skip_past: bool,
    /// Whether more samples belong to these, so that seasons are not smoothed yet.
    pub more: bool,
}

impl<S: Storage> Rrd<S> {
    /// Opens a file, native or portable. Its values are not read.
    ///
    /// # Errors
    ///
    /// Where it is none, or damaged, or no update can follow its definitions.
    pub fn open(storage: S) -> Result<Self, StoreError> {
        Self::open_as(storage, None)
    }

    /// Opens a file; one that is native, as this machine would have written it.
    ///
    /// # Errors
    ///
    /// Those of [`Rrd::open`].
    pub fn open_as(storage: S, machine: Option<&'static Machine>) -> Result<Self, StoreError> {
        let beginning = native::read_beginning(&storage, native::MOST_HEADERS)?;
        Self::open_from(storage, beginning, machine)
    }

    /// Opens a file, which costs little where files of the same kind were opened before.
    ///
    /// # Errors
    ///
    /// Those of [`Rrd::open`].
    pub fn open_among(
        storage: S,
        machine: Option<&'static Machine>,
        kinds: &mut Kinds,
    ) -> Result<Self, StoreError> {
        if let Some((kind, state)) = kinds.look(&storage, machine)? {
            let file = InPlace::new(storage, kind.definitions, state);
            return Ok(Self::new(
                File::Native(Box::new(file)),
                (kind.engine, kind.direct),
            ));
        }
        let rrd = Self::open_from(storage, kinds.beginning().to_vec(), machine)?;
        if let File::Native(file) = &rrd.file {
            kinds.keep(Kind {
                definitions: Arc::clone(file.definitions()),
                engine: rrd.engine.clone(),
                direct: rrd.direct.clone(),
            });
        }
        Ok(rrd)
    }

    /// Opens a file of which the first bytes are known: [`native::MOST_HEADERS`], or all if there are less.
    fn open_from(
        storage: S,
        beginning: Vec<u8>,
        machine: Option<&'static Machine>,
    ) -> Result<Self, StoreError> {
        let file = if portable::is_portable(&beginning) {
            File::Portable(Box::new(portable::File::open(storage)?))
        } else {
            let file = InPlace::open_from(storage, beginning, machine)?;
            File::Native(Box::new(file))
        };
        let ready = file.ready()?;
        Ok(Self::new(file, ready))
    }

    fn new(file: File<S>, (engine, direct): (Engine, Option<Direct>)) -> Self {
        Self {
            engine,
            direct,
            file,
            now: None,
            durability: Durability::Buffered,
            written: None,
        }
    }

    /// Definitions and state.
    pub fn database(&mut self) -> &Database {
        match &mut self.file {
            File::Native(file) => file.database(),
            File::Portable(file) => file.database(),
        }
    }

    /// The time of the last update.
    pub fn last_update(&self) -> Time {
        match &self.file {
            File::Native(file) => file.last_update(),
            File::Portable(file) => file.database().state.last_update,
        }
    }

    /// The number of data sources.
    pub fn sources(&self) -> usize {
        self.engine.plan.sources.len()
    }

    /// The number of readings of a sample without a template: that of the data sources that are
    /// measured.
    pub fn readings(&self) -> usize {
        self.engine.plan.everything.readings()
    }

    /// What `NOW` means in expressions, in seconds since 1970: the time of the sample where it was
    /// not set.
    pub fn set_now(&mut self, now: i64) {
        self.now = Some(now);
    }

    /// What updates must survive: by default, that the program stops. A native file is synced with
    /// the last of the samples that belong together, a portable one with each.
    pub fn set_durability(&mut self, durability: Durability) {
        self.durability = durability;
    }

    /// From now on, notes down which rows are written.
    pub fn note_written(&mut self) {
        self.written = Some(Vec::new());
    }

    /// The rows that were written since [`Rrd::note_written`]; they are noted down no more.
    pub fn take_written(&mut self) -> Vec<Written> {
        self.written.take().unwrap_or_default()
    }

    /// A template, as [`Engine::template`].
    ///
    /// # Errors
    ///
    /// A name that no data source has.
    pub fn template(&self, names: &[&str]) -> Result<Template, TemplateError> {
        self.engine.template(names)
    }

    /// Reads the file again.
    ///
    /// # Errors
    ///
    /// Those of [`Rrd::open`].
    pub fn reload(&mut self) -> Result<(), StoreError> {
        match &mut self.file {
            File::Native(file) => file.reload()?,
            File::Portable(file) => file.reload()?,
        }
        self.plan()
    }

    /// Makes ready for the definitions that the file has now. Where that fails, it is read again before it
    /// is changed.
    fn plan(&mut self) -> Result<(), StoreError> {
        match self.file.ready() {
            Ok(ready) => {
                (self.engine, self.direct) = ready;
                Ok(())
            }
            Err(error) => {
                if let File::Native(file) = &mut self.file {
                    file.forget();
                }
                Err(error)
            }
        }
    }

    /// Sees whether others have changed the file, and reads what they have changed: where they have
    /// not, this costs little.
    ///
    /// # Errors
    ///
    /// Those of [`Rrd::open`].
    pub fn refresh(&mut self) -> Result<(), StoreError> {
        match &mut self.file {
            File::Native(file) => match file.refresh()? {
                true => self.plan(),
                false => Ok(()),
            },
            File::Portable(file) => Ok(file.refresh()?),
        }
    }

    /// Where the file is.
    pub fn storage_mut(&mut self) -> &mut S {
        match &mut self.file {
            File::Native(file) => file.storage_mut(),
            File::Portable(file) => file.storage_mut(),
        }
    }

    /// Takes a sample.
    ///
    /// # Errors
    ///
    /// Why it is refused. A portable file is then as before; in a native one the last readings may
    /// have changed, as rrdtool leaves it.
    pub fn update(&mut self, sample: &Sample<'_>) -> Result<(), UpdateError> {
        match self.take_directly(sample, None) {
            Some(taken) => taken?,
            None => self.take_generally(sample, &UpdateOptions::default(), &mut false, true)?,
        }
        self.finish()
    }

    /// Takes samples one after the other, as one command line: seasons are smoothed at the end
    /// only. Returns how many were taken and not skipped.
    ///
    /// # Errors
    ///
    /// The place of the first sample that is refused, and why. Those before it are taken, but
    /// seasons are not smoothed.
    pub fn update_all(
        &mut self,
        samples: &[Sample<'_>],
        options: &UpdateOptions<'_>,
    ) -> Result<usize, (usize, UpdateError)> {
        let taken = self.take_all(samples, options);
        // Those before one that is refused are taken.
        let finished = self.finish();
        let taken = taken?;
        match finished {
            Ok(()) => Ok(taken),
            Err(error) => Err((samples.len().saturating_sub(1), error)),
        }
    }

    fn take_all(
        &mut self,
        samples: &[Sample<'_>],
        options: &UpdateOptions<'_>,
    ) -> Result<usize, (usize, UpdateError)> {
        let mut smooth = false;
        let mut taken = 0;
        // The seasons are smoothed with the last sample that is taken.
        let last = samples.len().saturating_sub(1);
        for (place, sample) in samples.iter().enumerate() {
            let last = place == last && !options.more;
            match self.take(sample, options, &mut smooth, last) {
                Ok(()) => taken += 1,
                Err(UpdateError::Past { .. }) if options.skip_past => {
                    if last && smooth {
                        self.smooth().map_err(|error| (place, error))?;
                    }
                }
                Err(error) => return Err((place, error)),
            }
        }
        Ok(taken)
    }

    fn take(
        &mut self,
        sample: &Sample<'_>,
        options: &UpdateOptions<'_>,
        smooth: &mut bool,
        last: bool,
    ) -> Result<(), UpdateError> {
        match self.take_directly(sample, options.template) {
            Some(taken) => Ok(taken?),
            None => self.take_generally(sample, options, smooth, last),
        }
    }

    /// Takes a sample of a native file, if it is a usual one.
    #[inline]
    fn take_directly(
        &mut self,
        sample: &Sample<'_>,
        template: Option<&Template>,
    ) -> Option<io::Result<()>> {
        let (Some(direct), File::Native(file)) = (&mut self.direct, &mut self.file) else {
            return None;
        };
        // Only the general path reports which rows it writes.
        if self.written.is_some() {
            return None;
        }
        let template = template.unwrap_or(&self.engine.plan.everything);
        direct.update(file, sample, template)
    }

    /// Takes any sample.
    #[inline(never)]
    fn take_generally(
        &mut self,
        sample: &Sample<'_>,
        options: &UpdateOptions<'_>,
        smooth: &mut bool,
        last: bool,
    ) -> Result<(), UpdateError> {
        if matches!(&self.file, File::Native(file) if file.is_stale()) {
            self.reload()?;
        }
        let call = Call {
            sample,
            template: options.template,
            now: self.now.unwrap_or(sample.time.seconds()),
            last,
        };
        let written = self.written.as_mut();
        match &mut self.file {
            File::Native(file) => {
                file.fits(sample.time)?;
                let applied = call.apply(&mut self.engine, file.as_mut(), written, smooth);
                if let Err(UpdateError::Reading { source, .. }) = applied {
                    let state = file.state();
                    self.engine
                        .keep_refused(state, sample, options.template, source);
                    file.commit(false)?;
                }
                if let Err(UpdateError::Store(_)) = applied {
                    file.forget();
                }
                file.commit(applied?.archives)?;
            }
            File::Portable(file) => {
                let mut update = file.begin()?;
                call.apply(&mut self.engine, &mut update, written, smooth)?;
                update.commit(self.durability)?;
            }
        }
        Ok(())
    }

    /// Sees that what was taken survives what it must survive.
    fn finish(&mut self) -> Result<(), UpdateError> {
        if self.durability == Durability::Synced
            && let File::Native(file) = &mut self.file
        {
            file.sync()?;
        }
        Ok(())
    }

    /// Smooths the seasons after a sample that was passed over.
    fn smooth(&mut self) -> Result<(), UpdateError> {
        match &mut self.file {
            File::Native(file) => {
                let smoothed = self.engine.smooth(file.as_mut());
                if smoothed.is_err() {
                    file.forget();
                }
                smoothed?;
                file.commit(true)?;
            }
            File::Portable(file) => {
                let mut update = file.begin()?;
                self.engine.smooth(&mut update)?;
                update.commit(self.durability)?;
            }
        }
        Ok(())
    }

    /// Waits until all updates are on the disk.
    ///
    /// # Errors
    ///
    /// Those of the storage.
    pub fn sync(&mut self) -> Result<(), StoreError> {
        match &mut self.file {
            File::Native(file) => Ok(file.sync()?),
            File::Portable(file) => Ok(file.sync()?),
        }
    }

    /// What another file of the same kind can go on with, and the bytes of the state; `None` if something failed.
    pub(super) fn into_kind(self) -> Option<(Kind, Vec<u8>)> {
        let File::Native(file) = self.file else {
            return None;
        };
        if file.is_stale() {
            return None;
        }
        let (definitions, state) = file.into_parts();
        let kind = Kind {
            definitions,
            engine: self.engine,
            direct: self.direct,
        };
        Some((kind, state))
    }

    /// Where the file is, when it is no longer needed.
    pub fn into_storage(self) -> S {
        match self.file {
            File::Native(file) => file.into_storage(),
            File::Portable(file) => file.into_storage(),
        }
    }
}

/// A sample on its way to a file.
struct Call<'a> {
    sample: &'a Sample<'a>,
    template: Option<&'a Template>,
    now: i64,
    /// Whether it ends what belongs together, so that seasons are smoothed.
    last: bool,
}

impl Call<'_> {
    fn apply(
        &self,
        engine: &mut Engine,
        change: &mut impl Change,
        written: Option<&mut Vec<Written>>,
        smooth: &mut bool,
    ) -> Result<Applied, UpdateError> {
        let mut applied = match written {
            None => engine.apply(change, self.sample, self.template, self.now)?,
            Some(written) => {
                let mut noted = Noted::new(change, written);
                engine.apply(&mut noted, self.sample, self.template, self.now)?
            }
        };
        *smooth |= applied.smooth;
        if self.last && *smooth {
            engine.smooth(change)?;
            // It changes what predictions have come to, whether this sample has ended steps or not.
            applied.archives = true;
        }
        Ok(applied)
    }
}

impl<S: Storage> File<S> {
    /// What updates it.
    fn ready(&self) -> Result<(Engine, Option<Direct>), StoreError> {
        match self {
            Self::Native(file) => {
                let engine = Engine::new(file.definitions().database())?;
                let direct = Direct::new(&engine.plan, file.definitions());
                Ok((engine, direct))
            }
            Self::Portable(file) => Ok((Engine::new(file.database())?, None)),
        }
    }
}

impl<S: Storage> Change for Update<'_, S> {
    fn state(&mut self) -> &mut State {
        self.state_mut()
    }

    fn row(&mut self, archive: usize, row: u64, values: &mut Vec<Value>) -> Result<(), StoreError> {
        values.clear();
        values.extend(Update::row(self, archive, row)?.unwrap_or_default());
        Ok(())
    }

    fn write_rows(
        &mut self,
        archive: usize,
        count: u64,
        values: &[Value],
    ) -> Result<(), StoreError> {
        Ok(Update::write_rows(self, archive, count, values)?)
    }

    fn values(&mut self, archive: usize) -> Result<Vec<Value>, StoreError> {
        Ok(Update::values(self, archive)?.unwrap_or_default())
    }

    fn rewrite(&mut self, archive: usize, values: Vec<Value>) -> Result<(), StoreError> {
        Ok(Update::rewrite(self, archive, values)?)
    }
}

#[cfg(test)]
mod tests;
