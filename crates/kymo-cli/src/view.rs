//! `kymo view`.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use kymo::timeline::{Cache, IndexOptions, default_directory};
use kymo_io::{Replace, STANDARD_INPUT, replace};
use kymo_view::{Api, ExportOptions, Keep, Reopen, Scene, SceneOptions, Server, ServerOptions};

use crate::args::Input;
use crate::args::view::View;
use crate::follow::fingerprint;
use crate::open::{Wanted, index_key, inputs, reopened, tell_opening_faults};
use crate::terminal::{Failure, Outcome, Terminal};

/// Serves the page until it is closed, or writes what it shows.
pub(crate) fn run(args: &View, terminal: &Terminal) -> Result<Outcome, Failure> {
    let inputs = inputs(&args.input, false, terminal)?;
    let wanted = Wanted::new(&args.selection, inputs.gmt);
    let filter = wanted.filter(&inputs.recordings, terminal)?;
    wanted.warn(&inputs, &filter, terminal);
    let outcome = tell_opening_faults(&inputs, terminal);
    let options = SceneOptions {
        windows: wanted.windows(&inputs.recordings)?,
        filter: wanted.query,
        index: index_options(args, terminal),
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
    let notes = match (&args.notes, args.no_cache) {
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
    let server = Server::bind(&ServerOptions {
        port: args.port.unwrap_or(0),
        hosts: args.host.clone(),
        stay: args.stay,
        assets: args.assets.clone(),
    });
    let server = server.map_err(|error| Failure::Usage(format!("error: {error}")))?;
    let address = match &args.at {
        Some(state) => format!("{}#at={state}", server.address()),
        None => server.address(),
    };
    terminal.write(format!("{address}\n").as_bytes())?;
    if !args.no_open {
        open_browser(&address, terminal);
    }
    let is_live = can_grow(&args.input);
    let options = SceneOptions { is_live, ..options };
    let server = match is_live {
        true => server.following(reopen(args, inputs.is_relative, &options)),
        false => server,
    };
    server.run(Api::new(Scene::new(inputs.recordings, options)).keeping(Keep::new(notes)));
    Ok(outcome)
}

/// Whether recordings may grow: standard input is read once.
fn can_grow(input: &Input) -> bool {
    input
        .paths
        .iter()
        .all(|path| path.as_os_str() != STANDARD_INPUT)
}

/// Opens the recordings again when their files have changed.
fn reopen(args: &View, is_relative: bool, options: &SceneOptions) -> Reopen {
    let (input, selection) = (args.input.clone(), args.selection.clone());
    let gmt = input.clock_gmt || is_relative;
    let (index, threads, is_gmt) = (options.index.clone(), options.threads, options.gmt);
    let mut state = fingerprint(&input.paths);
    Reopen::new(move || {
        let now = fingerprint(&input.paths);
        if now == state {
            return None;
        }
        // What is just being written may not make sense yet: then it is looked at again.
        let recordings = reopened(&input)?;
        state = now;
        let wanted = Wanted::new(&selection, gmt);
        let options = SceneOptions {
            windows: wanted.windows(&recordings).ok()?,
            filter: wanted.query,
            index: index.clone(),
            threads,
            gmt: is_gmt,
            is_live: true,
            is_relative,
        };
        Some((recordings, options))
    })
}

/// The columns of the terminal, unless others are asked for.
fn width(args: &View) -> usize {
    let terminal = || terminal_size::terminal_size().map(|(width, _)| width.0);
    usize::from(args.width.or_else(terminal).unwrap_or(100))
}

/// Writes the page as one file.
fn export(path: &Path, size: usize, api: &Api, terminal: &Terminal) -> Result<(), Failure> {
    let exported = api.export(ExportOptions { size });
    let exported = exported
        .map_err(|error| Failure::Usage(format!("error: cannot export the page: {error}")))?;
    let write = |file: &mut File| file.write_all(exported.page.as_bytes());
    replace(path, Replace::NEW, write).map_err(|error| {
        Failure::Usage(format!("error: cannot write `{}`: {error}", path.display()))
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

fn index_options(args: &View, terminal: &Terminal) -> IndexOptions {
    let mut options = IndexOptions::default();
    let directory = args.cache.clone().or_else(default_directory);
    match (args.no_cache, directory, index_key(&args.input)) {
        (true, ..) | (_, None, _) => {}
        (_, _, None) => terminal.warning(
            "summaries of recordings that are opened with a key are not kept in the cache",
        ),
        (_, Some(directory), Some(key)) => {
            options.cache = Some(Cache::new(directory));
            options.opened = key;
        }
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
            .all(|of| std::env::var_os(of).is_none()) =>
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
            "cannot open the browser with `{program}`: {error}"
        ));
        terminal.hint("open the address above in a browser");
    }
}
