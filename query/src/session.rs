//! A session: the tables of recordings and of Parquet files, functions and views.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use datafusion::catalog::TableProvider;
use datafusion::common::{Result, TableReference};
use datafusion::execution::SessionStateBuilder;
use datafusion::execution::memory_pool::FairSpillPool;
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::prelude::{ParquetReadOptions, SQLOptions, SessionConfig, SessionContext};

use crate::model::model_tables;
use crate::samples::other_tables;
use crate::scan::Events;
use crate::source::{EventTable, Source};
use crate::{functions, intervals, views};

/// What a session is made of.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) threads: usize,
    /// Bytes that operators may hold; what is beyond goes to temporary files.
    pub(crate) memory: usize,
}

/// Lets queries through, and nothing that makes tables, writes files or changes settings.
pub(crate) fn queries_only() -> SQLOptions {
    SQLOptions::new()
        .with_allow_ddl(false)
        .with_allow_dml(false)
        .with_allow_statements(false)
}

/// Tables that can be asked.
pub(crate) struct Session {
    pub(crate) context: SessionContext,
    pub(crate) source: Arc<Source>,
    is_ordered: Arc<AtomicBool>,
}

impl Session {
    /// # Errors
    ///
    /// A table cannot be made.
    pub(crate) async fn new(
        source: Source,
        parquet: &[PathBuf],
        settings: &Settings,
    ) -> Result<Self> {
        let source = Arc::new(source);
        let mut config = SessionConfig::new()
            .with_target_partitions(settings.threads)
            .with_information_schema(true)
            .with_default_catalog_and_schema("kymo", "main");
        config.options_mut().sql_parser.collect_spans = true;
        config.options_mut().sql_parser.map_string_types_to_utf8view = false;
        let runtime = RuntimeEnvBuilder::new()
            .with_memory_pool(Arc::new(FairSpillPool::new(settings.memory)))
            .build_arc()?;
        let state = SessionStateBuilder::new()
            .with_config(config)
            .with_runtime_env(runtime)
            .with_default_features();
        let state = state.build();
        let context = SessionContext::new_with_state(state);
        functions::register(&context);
        intervals::register(&context);
        let session = Self {
            context,
            source,
            is_ordered: Arc::new(AtomicBool::new(true)),
        };
        session.register(parquet).await?;
        Ok(session)
    }

    async fn register(&self, parquet: &[PathBuf]) -> Result<()> {
        let mut tables: BTreeMap<String, Vec<Arc<dyn TableProvider>>> = BTreeMap::new();
        let mut add = |name: &str, table: Arc<dyn TableProvider>| {
            tables.entry(name.to_owned()).or_default().push(table);
        };
        let events = |class| -> Result<Arc<dyn TableProvider>> {
            Ok(Arc::new(Events {
                table: Arc::new(EventTable::new(&self.source, class)?),
                is_ordered: Arc::clone(&self.is_ordered),
            }))
        };
        for class in self.source.class_names() {
            add(&class, events(Some(Arc::clone(&class)))?);
        }
        add("events", events(None)?);
        for table in other_tables(&self.source)
            .into_iter()
            .chain(model_tables(&self.source))
        {
            add(&table.name.clone(), Arc::new(table));
        }
        let mut of_files = Vec::new();
        for path in parquet {
            for (name, place) in parquet_tables(path)? {
                let options = ParquetReadOptions::default();
                let frame = self
                    .context
                    .read_parquet(place.to_string_lossy().into_owned(), options)
                    .await?;
                if is_class(&place) {
                    of_files.push((name.clone(), frame.clone()));
                }
                add(&name, frame.into_view());
            }
        }
        if !of_files.is_empty() {
            add("events", self.events_of_files(of_files)?);
        }
        for (name, tables) in tables {
            self.register_all(&name, tables)?;
        }
        views::register(&self.context).await
    }

    /// Makes tables of one name one table: rows of all, columns by name.
    fn register_all(&self, name: &str, tables: Vec<Arc<dyn TableProvider>>) -> Result<()> {
        // A table without columns of its own has nothing to add.
        let mut tables = tables.into_iter();
        let Some(first) = tables.next() else {
            return Ok(());
        };
        let mut all = first;
        for table in tables {
            let left = self.context.read_table(all)?;
            all = left
                .union_by_name(self.context.read_table(table)?)?
                .into_view();
        }
        self.context
            .register_table(TableReference::bare(name), all)?;
        Ok(())
    }

    /// The events of all classes that are in files.
    fn events_of_files(
        &self,
        classes: Vec<(String, datafusion::dataframe::DataFrame)>,
    ) -> Result<Arc<dyn TableProvider>> {
        use datafusion::logical_expr::lit;
        let mut all: Option<datafusion::dataframe::DataFrame> = None;
        for (name, frame) in classes {
            let own = if frame.schema().has_column_with_unqualified_name("event") {
                "_event"
            } else {
                "event"
            };
            let frame = frame.with_column(own, lit(name))?;
            all = Some(match all {
                Some(all) => all.union_by_name(frame)?,
                None => frame,
            });
        }
        match all {
            Some(all) => Ok(all.into_view()),
            None => Ok(self.context.read_empty()?.into_view()),
        }
    }

    /// Forgets that rows are in order of time: those of a stream are not.
    pub(crate) fn set_unordered(&self) {
        self.is_ordered.store(false, Ordering::Relaxed);
    }

    /// The names of tables and functions, and of the columns of tables.
    pub(crate) async fn names(&self) -> Vec<String> {
        let mut names = Vec::new();
        let catalog = self.context.catalog("kymo");
        if let Some(schema) = catalog.and_then(|catalog| catalog.schema("main")) {
            for name in schema.table_names() {
                if let Ok(Some(table)) = schema.table(&name).await {
                    names.extend(table.schema().fields().iter().map(|of| of.name().clone()));
                }
                names.push(name);
            }
        }
        names.extend(self.context.state().scalar_functions().keys().cloned());
        names.sort();
        names.dedup();
        names
    }
}

/// Whether a path is a Parquet file, or a directory of tables as kymo writes it.
pub(crate) fn is_parquet(path: &Path) -> bool {
    match path.is_dir() {
        true => parquet_tables(path).is_ok_and(|tables| !tables.is_empty()),
        false => path.is_file() && path.extension().is_some_and(|of| of == "parquet"),
    }
}

fn is_class(path: &Path) -> bool {
    let name = path.file_name().map(|name| name.to_string_lossy());
    name.is_some_and(|name| name.starts_with("class="))
}

/// The tables of a directory that kymo has written, or the one of a file.
fn parquet_tables(path: &Path) -> Result<Vec<(String, PathBuf)>> {
    if path.is_file() {
        let name = path
            .file_stem()
            .map(|name| name.to_string_lossy().into_owned());
        return Ok(vec![(name.unwrap_or_default(), path.to_path_buf())]);
    }
    let mut tables = Vec::new();
    for entry in std::fs::read_dir(path)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let is_whole = entry.path().join("part-0.parquet").is_file();
        let table = match name.strip_prefix("class=") {
            Some(class) => decoded(class),
            None if matches!(&*name, "samples" | "losses" | "packets") => name.clone(),
            None => continue,
        };
        if is_whole {
            // All that kymo writes of samples is what `samples_all` has.
            let table = if table == "samples" && name == "samples" {
                "samples_all".to_owned()
            } else {
                table
            };
            tables.push((table, entry.path()));
        }
    }
    tables.sort();
    Ok(tables)
}

/// A name of a directory without its percent-encoding.
fn decoded(name: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = name.as_bytes();
    while let Some((&first, left)) = rest.split_first() {
        let digits = left.get(..2).and_then(|of| std::str::from_utf8(of).ok());
        let value = digits.and_then(|of| u8::from_str_radix(of, 16).ok());
        match value.filter(|_| first == b'%') {
            Some(value) => {
                bytes.push(value);
                rest = &left[2..];
            }
            None => {
                bytes.push(first);
                rest = left;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
