//! `kymo view`.

mod daemon;
pub(crate) mod remote;
mod save;
mod sql;
mod words;

use std::collections::HashMap;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::JoinHandle;

use kymo::AnyRecording;
use kymo::open::are_relative;
use kymo::timeline::{IndexOptions, default_directory};
use kymo_io::{Replace, STANDARD_INPUT, replace};
use kymo_model::Recording;
use kymo_view::{
    Api, ExportError, ExportOptions, Keep, Open, Opened, Reopen, Scene, SceneOptions, Server,
    ServerOptions,
};

use crate::args::view::View;
use crate::args::{Input, Selection, SymbolArgs};
use crate::grow::FileStates;
use crate::index::cached;
use crate::live::Live;
use crate::open::{Asked, Wanted, inputs_with, reopened, report_opening_faults};
use crate::outputs::refuse_file;
use crate::terminal::{Failure, Outcome, Terminal};
use daemon::Daemon;

fn refuse_export(path: &Path, force: bool) -> Result<(), Failure> {
    if path.as_os_str() == "-" {
        let problem = "error: a page is not written to standard output\nhint: specify a file, such as `page.html`";
        return Err(Failure::Usage(problem.to_owned()));
    }
    refuse_file(path, force)
}

/// Serves the page until it is closed, or writes what it shows.
pub(crate) fn run(args: &View, terminal: &Terminal) -> Result<Outcome, Failure> {
    if Live::is_in(&args.input) {
        let live = Live::in_background(&args.input, terminal)?;
        let mut args = args.clone();
        args.input = live.input().clone();
        return run(&args, terminal);
    }
    if let Some(path) = &args.export {
        refuse_export(path, args.force)?;
    }
    remote::install(args.token_file.as_deref(), args.ca.as_deref());
    if let Some(path) = args.assets.as_ref().filter(|path| !path.is_dir()) {
        return Err(Failure::Usage(format!(
            "error: `{}` of --assets is not a directory\nhint: the page's files are in crates/kymo-view/web",
            path.display()
        )));
    }
    crate::index::refuse_recordings(args.cache.as_deref())?;
    let (now, awaited) = what_is_there(args);
    for path in &awaited {
        terminal.warning(format_args!(
            "`{}` is empty: recordings are shown as they appear in it",
            path.display()
        ));
    }
    let is_live = can_grow(&args.input);
    let is_served = !args.text && args.export.is_none();
    // What comes to a directory that is empty is opened at once: it is not among these.
    let states = (is_live && is_served).then(|| States::look(now.paths.clone()));
    let mut server = None;
    // What is not there is reported, and no address.
    let is_there = now.paths.iter().all(|path| path.exists());
    if is_served && is_there {
        server = Some(start(args, terminal)?);
    }
    let index = index_options(args, terminal);
    let mut inputs = inputs_with(&now, asked(&index), terminal)?;
    if args.symbols.is_given() {
        inputs = args.symbols.apply(inputs, true, terminal)?;
    }
    let wanted = Wanted::new(&args.selection, inputs.gmt);
    let filter = wanted.filter(&inputs.recordings, terminal)?;
    wanted.warn(&inputs, &filter, terminal);
    let outcome = report_opening_faults(&inputs, terminal);
    let options = SceneOptions {
        windows: wanted.windows(&inputs.recordings)?,
        filter: wanted.query,
        index,
        threads: args.threads.count(),
        gmt: args.input.clock_gmt,
        is_live: false,
        is_relative: inputs.is_relative,
    };
    if args.text {
        let style = inputs.style();
        let text = Scene::new(inputs.recordings, options).text(width(args), &style);
        terminal.write(text.as_bytes())?;
        return Ok(outcome);
    }
    let is_waiting = inputs.recordings.is_empty();
    let notes = match (&args.notes, args.no_cache || is_waiting) {
        (Some(path), _) => Some(path.clone()),
        (None, true) => None,
        (None, false) => {
            let directory = args.cache.clone().or_else(default_directory);
            directory.map(|directory| Keep::path(&directory, &inputs.recordings))
        }
    };
    if let Some(path) = &args.export {
        let api = Api::new(Scene::new(inputs.recordings, options)).keeping(Keep::new(notes));
        export(path, args.export_size, &api, terminal)?;
        return Ok(outcome);
    }
    let (server, address) = match server {
        Some(started) => started,
        None => start(args, terminal)?,
    };
    if !args.no_open {
        open_browser(&address, terminal);
    }
    let options = SceneOptions { is_live, ..options };
    let server = match states {
        Some(states) => {
            let is_relative = (!is_waiting).then_some(inputs.is_relative);
            let mut files = Files::new(args, is_relative, &options, states);
            if let Some(daemon) = &mut files.daemon {
                daemon.show(&inputs.recordings);
            }
            server.following(Reopen::new(files))
        }
        None => server,
    };
    let api = Api::new(Scene::new(inputs.recordings, options)).keeping(Keep::new(notes));
    let api = api.saving(save::save(args)).querying(sql::sql(args));
    server.run(api.commanded(words::Words::new().for_page()));
    Ok(outcome)
}

/// Starts the server and prints its address: a browser can read the page while recordings are opened.
fn start(args: &View, terminal: &Terminal) -> Result<(Server, String), Failure> {
    let server = Server::bind(&ServerOptions {
        port: args.port.unwrap_or(0),
        hosts: args.host.clone(),
        stay: args.stay,
        assets: args.assets.clone(),
    });
    let mut server = server.map_err(|error| Failure::Usage(format!("error: {error}")))?;
    server.start();
    let address = match &args.at {
        Some(state) => format!("{}#at={state}", server.address()),
        None => server.address(),
    };
    terminal.write(format!("{address}\n").as_bytes())?;
    Ok((server, address))
}

/// What is asked of traces: those that are being written may have metadata that is cut off.
fn asked(index: &IndexOptions) -> Asked {
    Asked {
        cut_metadata: true,
        cache: index.cache.clone(),
        ..Asked::default()
    }
}

/// The recordings that can be opened now, and directories that are empty still: a server shows what comes. What places
/// recordings on the time line must know all recordings.
fn what_is_there(args: &View) -> (Input, Vec<PathBuf>) {
    let mut now = args.input.clone();
    if args.text || args.export.is_some() || is_aligned(&now) {
        return (now, Vec::new());
    }
    let is_empty =
        |path: &PathBuf| std::fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_none());
    let (awaited, there) = now.paths.into_iter().partition(is_empty);
    now.paths = there;
    (now, awaited)
}

/// Whether where a recording is on the time line depends on options, and perhaps on others.
fn is_aligned(input: &Input) -> bool {
    !input.offset.is_empty() || !input.align.is_empty() || input.align_event.is_some()
}

/// Whether recordings may grow: standard input is read once.
fn can_grow(input: &Input) -> bool {
    input
        .paths
        .iter()
        .all(|path| path.as_os_str() != STANDARD_INPUT)
}

/// What files are like before they are opened: what changes meanwhile is noticed. A thread looks, which of thousands
/// takes nearly as long as opening them.
struct States {
    paths: Vec<PathBuf>,
    thread: Option<JoinHandle<FileStates>>,
}

impl States {
    fn look(paths: Vec<PathBuf>) -> Self {
        let own = paths.clone();
        let look = move || FileStates::of(&own);
        // Servers are asked one after the other.
        let is_near = !paths.iter().any(|path| remote::is_url(path));
        let thread = is_near.then(|| std::thread::Builder::new().spawn(look).ok());
        Self {
            paths,
            thread: thread.flatten(),
        }
    }

    fn wait(self) -> FileStates {
        let states = self.thread.and_then(|thread| thread.join().ok());
        states.unwrap_or_else(|| FileStates::of(&self.paths))
    }
}

/// Opens the recordings of the command again.
struct Files {
    input: Input,
    selection: Selection,
    symbols: SymbolArgs,
    index: IndexOptions,
    threads: usize,
    /// Whether times count from the zero of clocks, as soon as that is known.
    is_relative: Option<bool>,
    /// What the files were like.
    state: FileStates,
    /// Below which directories others may be added.
    allowed: Vec<PathBuf>,
    added: usize,
    /// What holds updates of the files.
    daemon: Option<Daemon>,
}

/// Recordings that may be added.
const MOST_ADDED: usize = 1000;

impl Files {
    fn new(args: &View, is_relative: Option<bool>, options: &SceneOptions, states: States) -> Self {
        Self {
            input: args.input.clone(),
            selection: args.selection.clone(),
            symbols: args.symbols.clone(),
            index: options.index.clone(),
            threads: options.threads,
            is_relative,
            state: states.wait(),
            allowed: args.add.clone(),
            added: 0,
            daemon: args.daemon.clone().map(Daemon::new),
        }
    }

    fn open(&self, input: &Input, shown: &[AnyRecording]) -> Option<Opened> {
        self.opened(input, reopened(input, asked(&self.index), shown)?)
    }

    /// Databases of which some have changed: only these are opened again, however many others there are.
    fn refreshed(&self, now: &FileStates, shown: &[AnyRecording]) -> Option<Opened> {
        if is_aligned(&self.input) {
            return None;
        }
        let changed = now.changed_since(&self.state)?;
        let databases = shown.iter().map(|recording| match recording {
            AnyRecording::Rrd(database) => Some(AnyRecording::Rrd(database.clone())),
            _ => None,
        });
        let mut recordings = databases.collect::<Option<Vec<_>>>()?;
        let places = shown
            .iter()
            .enumerate()
            .map(|(at, recording)| (recording.path(), at));
        let places: HashMap<&Path, usize> = places.collect();
        // Each file is shown once.
        let is_one = places.len() == shown.len();
        if !is_one || !changed.iter().all(|path| places.contains_key(path)) {
            return None;
        }
        let input = Input {
            paths: changed.iter().map(|path| path.to_path_buf()).collect(),
            ..self.input.clone()
        };
        let again = reopened(&input, asked(&self.index), &[])?;
        if again.len() != changed.len() {
            return None;
        }
        for recording in again {
            let at = *places.get(recording.path())?;
            recordings[at] = recording;
        }
        self.opened(&self.input, recordings)
    }

    /// Recordings that were opened, and how they are shown.
    fn opened(&self, input: &Input, mut recordings: Vec<AnyRecording>) -> Option<Opened> {
        let is_relative = self
            .is_relative
            .unwrap_or_else(|| are_relative(&recordings));
        if self.symbols.is_given() {
            recordings = self.symbols.apply_again(recordings, true).ok()?;
        }
        let gmt = input.clock_gmt || is_relative;
        let wanted = Wanted::new(&self.selection, gmt);
        let options = SceneOptions {
            windows: wanted.windows(&recordings).ok()?,
            filter: wanted.query,
            index: self.index.clone(),
            threads: self.threads,
            gmt: input.clock_gmt,
            is_live: true,
            is_relative,
        };
        Some((recordings, options))
    }

    /// Follows what is shown now.
    fn take(&mut self, (recordings, options): &Opened) {
        self.is_relative.get_or_insert(options.is_relative);
        if let Some(daemon) = &mut self.daemon {
            daemon.show(recordings);
        }
    }
}

impl Open for Files {
    fn changed(&mut self, shown: &[AnyRecording]) -> Option<Opened> {
        if let Some(daemon) = &mut self.daemon {
            daemon.flush();
        }
        let now = FileStates::of(&self.input.paths);
        if now == self.state {
            return None;
        }
        // What is just being written may not make sense yet: then it is looked at again.
        let opened = self.refreshed(&now, shown);
        let opened = opened.or_else(|| self.open(&self.input, shown))?;
        self.take(&opened);
        self.state = now;
        Some(opened)
    }

    fn added(&mut self, path: &Path, shown: &[AnyRecording]) -> Result<Opened, String> {
        if self.allowed.is_empty() {
            return Err(
                "recordings can be added if `kymo view` is started with `--add DIR`".into(),
            );
        }
        if self.added >= MOST_ADDED {
            return Err(format!("{MOST_ADDED} recordings were added already"));
        }
        // What lies elsewhere and what does not exist look alike.
        let real = std::fs::canonicalize(path).ok();
        let is_allowed = |real: &PathBuf| {
            let mut allowed = self
                .allowed
                .iter()
                .filter_map(|directory| std::fs::canonicalize(directory).ok());
            allowed.any(|directory| real.starts_with(directory))
        };
        let Some(real) = real.filter(is_allowed) else {
            return Err(format!(
                "`{}` is not below a directory of `--add`",
                path.display()
            ));
        };
        let mut input = self.input.clone();
        if input
            .paths
            .iter()
            .any(|path| std::fs::canonicalize(path).is_ok_and(|shown| shown == real))
        {
            return Err(format!("`{}` is shown already", path.display()));
        }
        input.paths.push(real);
        let count = reopened(&self.input, asked(&self.index), shown)
            .map_or(0, |recordings| recordings.len());
        let opened = self
            .open(&input, shown)
            .filter(|(recordings, _)| recordings.len() > count);
        let opened = opened.ok_or_else(|| format!("`{}` is not a recording", path.display()))?;
        self.take(&opened);
        self.state = FileStates::of(&input.paths);
        self.input = input;
        self.added += 1;
        Ok(opened)
    }
}

/// The columns of the terminal, unless others are asked for.
fn width(args: &View) -> usize {
    let terminal = || terminal_size::terminal_size().map(|(width, _)| width.0);
    usize::from(args.width.or_else(terminal).unwrap_or(100))
}

/// Writes the page as one file.
fn export(path: &Path, size: usize, api: &Api, terminal: &Terminal) -> Result<(), Failure> {
    let exported = api.export(ExportOptions { size });
    let exported = exported.map_err(|error| {
        let hint = match &error {
            ExportError::TooSmall(needed) => {
                format!(
                    "\nhint: use `--export-size {needed}` or more, for example the default, 16M"
                )
            }
            _ => String::new(),
        };
        Failure::Usage(format!("error: cannot export the page: {error}{hint}"))
    })?;
    let write = |file: &mut File| file.write_all(exported.page.as_bytes());
    replace(path, Replace::NEW, write).map_err(|error| {
        Failure::Usage(format!(
            "error: cannot write `{}`: {}",
            path.display(),
            kymo_io::reason(&error)
        ))
    })?;
    if !exported.is_whole {
        terminal.warning(format_args!(
            "the page holds the first {} events of the range; the overview is complete",
            exported.events
        ));
        terminal.hint("choose a range with `--begin` and `--end`, or a larger `--export-size`");
    }
    Ok(())
}

/// Databases of at most this size are drawn from their own archives: an index of each of thousands of files would take
/// longer than it saves.
const MOST_UNINDEXED: u64 = 256 << 10;

fn index_options(args: &View, terminal: &Terminal) -> IndexOptions {
    let (mut options, problem) = cached(&args.input, args.cache.as_deref(), args.no_cache);
    options.unindexed_bytes = MOST_UNINDEXED;
    if let Some(problem) = problem {
        terminal.warning(problem);
    }
    options
}

/// Opens the browser, where there is one.
fn open_browser(address: &str, terminal: &Terminal) {
    let program = match std::env::consts::OS {
        "macos" => "open",
        "windows" => "explorer",
        // Without a display, there is none.
        _ if ["DISPLAY", "WAYLAND_DISPLAY"]
            .iter()
            .all(|name| std::env::var_os(name).is_none()) =>
        {
            return;
        }
        _ => "xdg-open",
    };
    let mut command = Command::new(program);
    command.arg(address);
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    if let Err(error) = command.spawn() {
        terminal.warning(format_args!(
            "cannot open the browser with `{program}`: {}",
            kymo_io::reason(&error)
        ));
        terminal.hint("open the address above in a browser");
    }
}
