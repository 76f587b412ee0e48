//! `kymo view`.

use std::process::{Command, Stdio};

use kymo::timeline::{Cache, IndexOptions, default_directory};
use kymo_view::{Api, Scene, SceneOptions, Server, ServerOptions};

use crate::args::view::View;
use crate::open::{Wanted, index_key, inputs, tell_opening_faults};
use crate::terminal::{Failure, Outcome, Terminal};

/// Serves the page until it is closed.
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
        is_relative: inputs.is_relative,
    };
    let server = Server::bind(&ServerOptions {
        port: args.port.unwrap_or(0),
        hosts: args.host.clone(),
        stay: args.stay,
        assets: args.assets.clone(),
    });
    let server = server.map_err(|error| Failure::Usage(format!("error: {error}")))?;
    let address = server.address();
    terminal.write(format!("{address}\n").as_bytes())?;
    if !args.no_open {
        open_browser(&address, terminal);
    }
    server.run(Api::new(Scene::new(inputs.recordings, options)));
    Ok(outcome)
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
