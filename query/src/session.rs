//! A session: the tables of recordings and of Parquet files, functions and views.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use datafusion::catalog::TableProvider;
use datafusion::common::{DataFusionError, ParamValues, Result, TableReference, plan_err};
use datafusion::execution::SendableRecordBatchStream;
use datafusion::execution::SessionStateBuilder;
use datafusion::execution::disk_manager::DiskManagerBuilder;
use datafusion::execution::memory_pool::{FairSpillPool, MemoryLimit};
use datafusion::execution::runtime_env::{RuntimeEnv, RuntimeEnvBuilder};
use datafusion::prelude::{SQLOptions, SessionConfig, SessionContext};
use datafusion::sql::parser::{DFParser, Statement};
use datafusion::sql::sqlparser::dialect::GenericDialect;
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::tokenizer::{Token, Tokenizer};
use kymo_io::{Entry, EntryKind, RemoteTree};

use crate::args::Parameter;
use crate::cluster::{Remote, ShareWork};
use crate::errors::{is_join_too_large, is_out_of_order, suggest_table};
use crate::facts::fact_tables;
use crate::model::model_tables;
use crate::objects::{self, Stores};
use crate::samples::other_tables;
use crate::scan::{Events, ScanSettings};
use crate::source::{EventTable, Source};
use crate::spill::Spills;
use crate::streamed::Made;
use crate::{bounded, files, functions, intervals, macros, views};

/// The table with the events of all classes.
const EVENTS: &str = "events";

/// What a session is made of.
#[derive(Clone)]
pub(crate) struct Settings {
    pub(crate) threads: usize,
    /// Memory that operators may hold; what is beyond goes to temporary files.
    pub(crate) runtime: Arc<RuntimeEnv>,
    /// Those who read, if this process does not.
    pub(crate) remote: Option<Arc<Remote>>,
    /// Whether statements that make tables, write files or change settings are rejected.
    pub(crate) is_read_only: bool,
}

/// Limits the memory of operators to a number of bytes.
///
/// # Errors
///
/// There is no place for temporary files.
pub(crate) fn runtime(memory: usize) -> Result<Arc<RuntimeEnv>> {
    RuntimeEnvBuilder::new()
        .with_memory_pool(Arc::new(FairSpillPool::new(memory)))
        .with_object_store_registry(Arc::new(Stores::default()))
        .with_disk_manager_builder(
            DiskManagerBuilder::default().with_temp_file_factory(Arc::new(Spills)),
        )
        .build_arc()
}

/// How plans are made and run, here and by workers.
pub(crate) fn session_config(threads: usize, runtime: &RuntimeEnv) -> SessionConfig {
    let mut config = SessionConfig::new()
        .with_target_partitions(threads)
        .with_information_schema(true)
        .with_default_catalog_and_schema("kymo", "main");
    // What sorts keep for merging what they have written: with little memory, the usual part would be all of it.
    if let MemoryLimit::Finite(limit) = runtime.memory_pool.memory_limit() {
        let part = limit / (32 * threads.max(1));
        config.options_mut().execution.sort_spill_reservation_bytes =
            part.clamp(64 << 10, 10 << 20);
    }
    config.options_mut().sql_parser.collect_spans = true;
    config.options_mut().sql_parser.map_string_types_to_utf8view = false;
    config
}

/// How many operators a statement may have: each may be a level of its tree, through which everything recurses.
const MOST_OPERATORS: usize = 2000;

/// Bytes of the stack of each thread that plans or computes, of which those are taken that are needed.
pub(crate) const STACK: usize = 256 << 20;

/// The statements of a text.
///
/// # Errors
///
/// The text is no SQL, or a statement has too many operators.
pub(crate) fn statements(sql: &str) -> Result<VecDeque<Statement>> {
    // What cannot be cut into tokens, the parser rejects with its place.
    let tokens = Tokenizer::new(&GenericDialect {}, sql).tokenize();
    let mut operators = 0;
    for token in tokens.unwrap_or_default() {
        match token {
            Token::SemiColon => operators = 0,
            // What stands between operands, is repeated, or ends something.
            Token::Comma
            | Token::Period
            | Token::LParen
            | Token::RParen
            | Token::Whitespace(_)
            | Token::Number(..)
            | Token::SingleQuotedString(_) => {}
            Token::Word(word) if !NESTING.contains(&word.keyword) => {}
            _ => operators += 1,
        }
        if operators > MOST_OPERATORS {
            return plan_err!(
                "a statement has more than {MOST_OPERATORS} operators\nhint: `x IN (...)` in place of `x = ... OR x = ...`"
            );
        }
    }
    DFParser::parse_sql(sql)
}

/// Words that make a level of a statement's tree each time they are repeated.
const NESTING: &[Keyword] = &[
    Keyword::AND,
    Keyword::OR,
    Keyword::XOR,
    Keyword::NOT,
    Keyword::IS,
    Keyword::LIKE,
    Keyword::BETWEEN,
    Keyword::UNION,
    Keyword::INTERSECT,
    Keyword::EXCEPT,
    Keyword::JOIN,
    Keyword::SELECT,
];

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
    pub(crate) scans: Arc<ScanSettings>,
    is_read_only: bool,
    /// Whether hash joins are avoided for the statement in hand.
    has_other_joins: AtomicBool,
}

impl Session {
    /// # Errors
    ///
    /// A table cannot be made.
    pub(crate) async fn new(
        source: Arc<Source>,
        parquet: &[PathBuf],
        settings: &Settings,
    ) -> Result<Self> {
        let mut config = session_config(settings.threads, &settings.runtime);
        if settings.remote.is_some() {
            let optimizer = &mut config.options_mut().optimizer;
            // What one part of a plan finds out while it runs does not reach others in other processes.
            optimizer.enable_dynamic_filter_pushdown = false;
            optimizer.enable_topk_dynamic_filter_pushdown = false;
            optimizer.enable_join_dynamic_filter_pushdown = false;
            optimizer.enable_aggregate_dynamic_filter_pushdown = false;
            optimizer.enable_physical_uncorrelated_scalar_subquery = false;
            // Rows that come from one unit are not worth being spread.
            optimizer.enable_round_robin_repartition = false;
        }
        let mut state = SessionStateBuilder::new()
            .with_config(config)
            .with_runtime_env(Arc::clone(&settings.runtime))
            .with_default_features();
        if let Some(remote) = &settings.remote {
            // It comes last.
            state = state.with_physical_optimizer_rule(Arc::new(ShareWork(Arc::clone(remote))));
        }
        let context = SessionContext::new_with_state(state.build());
        functions::register(&context);
        bounded::bound(&context);
        intervals::register(&context);
        macros::register(&context);
        let session = Self {
            context,
            source,
            scans: Arc::default(),
            is_read_only: settings.is_read_only,
            has_other_joins: AtomicBool::new(false),
        };
        session.register(parquet).await?;
        Ok(session)
    }

    /// Begins to answer a statement.
    ///
    /// # Errors
    ///
    /// It is wrong.
    pub(crate) async fn start(
        &self,
        statement: Statement,
        parameters: &[Parameter],
    ) -> Result<SendableRecordBatchStream> {
        let context = &self.context;
        let plan = context.state().statement_to_plan(statement).await;
        let plan = plan.map_err(|error| suggest_table(error, &self.tables()))?;
        if self.is_read_only {
            queries_only().verify_plan(&plan)?;
        }
        let frame = context.execute_logical_plan(plan).await?;
        let values = parameters.iter();
        let values = values.map(|value| (value.name.clone(), value.value.clone()));
        let values: ParamValues = values.collect::<HashMap<_, _>>().into();
        frame.with_param_values(values)?.execute_stream().await
    }

    /// The names of the tables.
    pub(crate) fn tables(&self) -> Vec<String> {
        let catalog = self.context.catalog("kymo");
        let schema = catalog.and_then(|catalog| catalog.schema("main"));
        let mut names = schema
            .map(|schema| schema.table_names())
            .unwrap_or_default();
        names.sort();
        names
    }

    async fn register(&self, parquet: &[PathBuf]) -> Result<()> {
        let mut tables: BTreeMap<String, Vec<Arc<dyn TableProvider>>> = BTreeMap::new();
        let mut add = |name: &str, table: Arc<dyn TableProvider>| {
            tables.entry(name.to_owned()).or_default().push(table);
        };
        let events = |class| -> Result<Arc<dyn TableProvider>> {
            Ok(Arc::new(Events {
                table: Arc::new(EventTable::new(&self.source, class)?),
                settings: Arc::clone(&self.scans),
            }))
        };
        let own: Vec<Made> = other_tables(&self.source)
            .into_iter()
            .chain(model_tables(&self.source))
            .chain(fact_tables(&self.source))
            .collect();
        let classes = self.source.class_names();
        // What is asked of all events, or of slices, must not get the columns of a class that is called so.
        let is_taken = |name: &str| name == EVENTS || own.iter().any(|table| table.name == name);
        let is_class = |name: &str| classes.iter().any(|class| **class == *name);
        let table_of = |class: &str| {
            let mut name = class.to_owned();
            while is_taken(&name) || (name != class && is_class(&name)) {
                name.insert(0, '_');
            }
            name
        };
        for class in &classes {
            add(&table_of(class), events(Some(Arc::clone(class)))?);
        }
        add(EVENTS, events(None)?);
        let mut of_files = Vec::new();
        for path in parquet {
            for table in parquet_tables(path)? {
                let frame = files::read(&self.context, table.locations).await?;
                let name = match table.is_class {
                    true => {
                        of_files.push((table.name.clone(), frame.clone()));
                        table_of(&table.name)
                    }
                    false => table.name,
                };
                add(&name, frame.into_view());
            }
        }
        if !of_files.is_empty() {
            add(EVENTS, self.events_of_files(of_files)?);
        }
        for table in own {
            add(&table.name.clone(), Arc::new(table));
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

    /// Whether a statement that failed without a row may be answered with another plan, which it gets then: with sorting if
    /// rows are not in order of time, and with joins whose rows can go to temporary files if one does not fit into memory.
    pub(crate) fn plan_otherwise(&self, error: &DataFusionError) -> bool {
        if is_out_of_order(error) {
            return self.scans.is_ordered.swap(false, Ordering::Relaxed);
        }
        let has_other = is_join_too_large(error) && self.prefer_hash_joins(false);
        self.has_other_joins.fetch_or(has_other, Ordering::Relaxed);
        has_other
    }

    /// Lets the next statement have usual plans.
    pub(crate) fn plan_as_usual(&self) {
        if self.has_other_joins.swap(false, Ordering::Relaxed) {
            self.prefer_hash_joins(true);
        }
    }

    /// Whether hash joins were preferred before.
    fn prefer_hash_joins(&self, is_preferred: bool) -> bool {
        let state = self.context.state_ref();
        let mut state = state.write();
        let optimizer = &mut state.config_mut().options_mut().optimizer;
        std::mem::replace(&mut optimizer.prefer_hash_join, is_preferred)
    }

    /// The names of tables and functions, and of the columns of tables.
    pub(crate) async fn names(&self) -> Vec<String> {
        let mut names = Vec::new();
        let catalog = self.context.catalog("kymo");
        if let Some(schema) = catalog.and_then(|catalog| catalog.schema("main")) {
            for name in schema.table_names() {
                if let Ok(Some(table)) = schema.table(&name).await {
                    names.extend(
                        table
                            .schema()
                            .fields()
                            .iter()
                            .map(|field| field.name().clone()),
                    );
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
    parquet_tables(path).is_ok_and(|tables| !tables.is_empty())
}

/// A table that is a Parquet file or a directory of them.
struct ParquetTable {
    name: String,
    /// Paths or URLs.
    locations: Vec<String>,
    /// Whether its rows are the events of a class.
    is_class: bool,
}

/// The tables of a directory that kymo has written, or the one of a file.
fn parquet_tables(path: &Path) -> Result<Vec<ParquetTable>> {
    match path.to_str().filter(|_| objects::is_url(path)) {
        Some(url) => {
            let tree = objects::tree(url)?;
            match tree.is_object() {
                true => Ok(file_table(path, tree.tables_at(path))),
                false => directory_tables(
                    tree.list(path)?,
                    |part| tree.tables_at(part),
                    |part| tree.kind(part).is_ok_and(|kind| kind == EntryKind::File),
                ),
            }
        }
        None if path.is_dir() => directory_tables(kymo_io::list(path)?, local, Path::is_file),
        None if path.is_file() => Ok(file_table(path, local(path))),
        None => Ok(Vec::new()),
    }
}

/// How DataFusion reads a file or a directory of this machine.
fn local(path: &Path) -> Vec<String> {
    vec![path.to_string_lossy().into_owned()]
}

/// The table of a file, if it is one.
fn file_table(path: &Path, locations: Vec<String>) -> Vec<ParquetTable> {
    let name = path.file_stem().map(|name| name.to_string_lossy());
    match path.extension().is_some_and(|ending| ending == "parquet") {
        true => vec![ParquetTable {
            name: name.unwrap_or_default().into_owned(),
            locations,
            is_class: false,
        }],
        false => Vec::new(),
    }
}

/// The tables of a directory with these entries.
fn directory_tables(
    entries: Vec<Entry>,
    locations: impl Fn(&Path) -> Vec<String>,
    is_file: impl Fn(&Path) -> bool,
) -> Result<Vec<ParquetTable>> {
    let mut tables = Vec::new();
    for entry in entries {
        let name = entry.name.to_string_lossy();
        let class = name.strip_prefix("class=");
        let table = match (class, &*name) {
            (Some(class), _) => decoded(class),
            // All that kymo writes of samples is what `samples_all` has.
            (None, "samples") => "samples_all".to_owned(),
            (None, "losses" | "packets") => name.to_string(),
            _ => continue,
        };
        if is_file(&entry.path.join("part-0.parquet")) {
            tables.push(ParquetTable {
                name: table,
                locations: locations(&entry.path),
                is_class: class.is_some(),
            });
        }
    }
    tables.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(tables)
}

/// A name of a directory without its percent-encoding.
fn decoded(name: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = name.as_bytes();
    while let Some((&first, left)) = rest.split_first() {
        let digits = left
            .get(..2)
            .and_then(|digits| std::str::from_utf8(digits).ok());
        let value = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
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
