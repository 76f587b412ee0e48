//! What is released: a program, archives and packages, the same bytes from the same commit.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::Outcome;
use crate::args::Args;
use crate::process::{command, output, require, root};

/// Files as they are installed: their place in `packaging` or in the repository, and on the system.
const FILES: &[(&str, &str)] = &[
    (
        "packaging/kymo-serve.service",
        "usr/lib/systemd/system/kymo-serve.service",
    ),
    ("packaging/sysusers.conf", "usr/lib/sysusers.d/kymo.conf"),
    ("packaging/tmpfiles.conf", "usr/lib/tmpfiles.d/kymo.conf"),
    ("packaging/serve.toml", "etc/kymo/serve.toml"),
    ("LICENSE-MIT", "usr/share/doc/kymo/copyright"),
    ("LICENSE-APACHE", "usr/share/doc/kymo/LICENSE-APACHE"),
    ("NOTICE", "usr/share/doc/kymo/NOTICE"),
    ("CHANGELOG.md", "usr/share/doc/kymo/CHANGELOG.md"),
    ("README.md", "usr/share/doc/kymo/README.md"),
    // What it links to.
    ("LICENSE-MIT", "usr/share/doc/kymo/LICENSE-MIT"),
    ("ARCHITECTURE.md", "usr/share/doc/kymo/ARCHITECTURE.md"),
    ("CONTRIBUTING.md", "usr/share/doc/kymo/CONTRIBUTING.md"),
    ("SECURITY.md", "usr/share/doc/kymo/SECURITY.md"),
];

/// Recordings of the guides, below `examples`.
const EXAMPLES: &[&str] = &[
    "lttng-small",
    "lttng-discarded",
    "kernel-small",
    "munin",
    "vpp-small.cpel",
];

/// A target that needs nothing of the system, for `--static`.
const STATIC: &str = "x86_64-unknown-linux-musl";

/// What unwinds the stack of a static program, of LLVM: Debian has it for its own C library alone.
const UNWINDER: &str = "/usr/lib/llvm-14/lib/libunwind.a";
/// The one function of that library that it calls and musl does not have.
const FORTIFIED: &str = "\
#include <stdarg.h>
#include <stdio.h>
int __fprintf_chk(FILE *to, int flag, const char *format, ...) {
    va_list values;
    (void)flag;
    va_start(values, format);
    int written = vfprintf(to, format, values);
    va_end(values);
    return written;
}
";

/// Builds the program, and makes an archive, a Debian package and, where `rpmbuild` is, an RPM of it.
pub(crate) fn run(mut args: Args) -> Outcome {
    let program: Option<PathBuf> = args.value("--program")?;
    let to: Option<PathBuf> = args.value("--to")?;
    let alone = args.flag("--static");
    let verifies = args.flag("--verify");
    args.finish()?;
    if verifies && program.is_some() {
        return Err("`--verify` builds the program twice: leave out `--program`".into());
    }
    if verifies && !output(&mut git(&["status", "--porcelain"]))?.is_empty() {
        return Err("`--verify` builds the commit again: commit what has changed first".into());
    }
    for (tool, package) in [
        ("objcopy", "binutils"),
        ("dpkg-deb", "dpkg-dev"),
        ("tar", "tar"),
    ] {
        require(tool, package)?;
    }
    let to = to.unwrap_or_else(|| root().join("target/dist"));
    fs::create_dir_all(&to)?;
    let to = to.canonicalize()?;
    let release = Release {
        version: env!("CARGO_PKG_VERSION"),
        epoch: output(&mut git(&["log", "-1", "--format=%ct"]))?
            .trim()
            .to_owned(),
        to: &to,
    };
    let built = match program {
        Some(program) => program,
        None => release.build(&Place::here(), alone)?,
    };
    let name = if alone { "kymo-static" } else { "kymo" };
    let (program, debug) = split(&built, name, &to)?;
    println!(
        "{} ({} bytes)",
        program.display(),
        fs::metadata(&program)?.len()
    );
    if verifies {
        release.verify(alone, name)?;
    }
    if alone {
        return Ok(());
    }
    let machine = output(command("dpkg").arg("--print-architecture"))?
        .trim()
        .to_owned();
    let name = format!("kymo-{}-{machine}", release.version);

    let stage = to.join("stage");
    release.stage(&program, &stage)?;
    release.archive(&to.join(format!("{name}.tar.gz")), &stage, &[".".as_ref()])?;
    let debug_name = debug.file_name().unwrap_or_default();
    release.archive(&to.join(format!("{name}-debug.tar.gz")), &to, &[debug_name])?;
    release.rpm(&stage)?;
    release.deb(&stage, &program, &machine)
}

/// One release: everything that its bytes depend on beside the sources.
struct Release<'a> {
    version: &'a str,
    /// The time of the commit in seconds: the only time in what is made.
    epoch: String,
    to: &'a Path,
}

/// Directories whose names no program may contain: each person has others.
struct Place {
    source: PathBuf,
    target: PathBuf,
    /// Cargo's own, with the sources of other crates.
    home: PathBuf,
}

impl Place {
    /// This clone.
    fn here() -> Self {
        let home = std::env::var_os("HOME").map_or_else(PathBuf::new, PathBuf::from);
        Self {
            source: root(),
            target: target(),
            home: std::env::var_os("CARGO_HOME").map_or_else(|| home.join(".cargo"), PathBuf::from),
        }
    }

    /// Another clone, which is built in another directory.
    fn elsewhere(directory: &Path) -> Outcome<Self> {
        let here = Self::here();
        let there = Self {
            source: directory.join("clone-of-the-commit"),
            target: directory.join("built"),
            home: here.home,
        };
        succeed(
            command("git")
                .args(["clone", "--quiet"])
                .arg(&here.source)
                .arg(&there.source),
        )?;
        Ok(there)
    }

    /// Options of compilers that replace its directories by words, each behind `option`. The last one that
    /// fits counts, and `target` is mostly below the sources.
    fn remapped(&self, option: &str) -> Vec<String> {
        let words = [
            (&self.source, "kymo"),
            (&self.home, "cargo"),
            (&self.target, "target"),
        ];
        let remap = |(path, word): (&PathBuf, &str)| format!("{option}={}={word}", path.display());
        words.map(remap).to_vec()
    }
}

impl Release<'_> {
    /// Builds the program with all of its features. A static one needs no library of the system; its standard
    /// library is built of the compiler's own sources: Debian's rustc-web, rust-web-src, musl-tools and
    /// libunwind-14-dev.
    fn build(&self, place: &Place, is_static: bool) -> Outcome<PathBuf> {
        let mut cargo = command(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        cargo
            .current_dir(&place.source)
            .args(["build", "--profile", "dist", "--locked"])
            .args(["--package", "kymo-cli", "--features", "arrow,tls"])
            .env("CARGO_HOME", &place.home)
            .env("CARGO_TARGET_DIR", &place.target)
            .env("SOURCE_DATE_EPOCH", &self.epoch)
            .env("CARGO_INCREMENTAL", "0")
            // Of what is in C and assembly (TLS).
            .env("CFLAGS", place.remapped("-ffile-prefix-map").join(" "));
        let mut flags = place.remapped("--remap-path-prefix");
        if !is_static {
            // Functions of the same instructions are one: types of the same size have many. The compiler brings this
            // linker along here; that of other machines may not know it.
            if cfg!(all(
                target_arch = "x86_64",
                target_os = "linux",
                target_env = "gnu"
            )) {
                flags.push("-Clink-arg=-Wl,--icf=all".to_owned());
            }
            cargo.env("CARGO_ENCODED_RUSTFLAGS", flags.join("\u{1f}"));
            succeed(&mut cargo)?;
            return Ok(place.target.join("dist/kymo"));
        }
        require("musl-gcc", "musl-tools")?;
        let directory = tempfile::tempdir()?;
        let linker = static_linker(directory.path())?;
        flags.extend([
            // What a program begins with is that of musl-tools, which knows no static programs at any address.
            "-Clink-self-contained=no".to_owned(),
            "-Crelocation-model=static".to_owned(),
        ]);
        succeed(
            cargo
                .args(["-Zbuild-std", "--target", STATIC])
                .env("CARGO_ENCODED_RUSTFLAGS", flags.join("\u{1f}"))
                .env("RUSTC", "/usr/bin/rustc")
                .env("RUSTC_BOOTSTRAP", "1")
                .env("CC_x86_64_unknown_linux_musl", "musl-gcc")
                .env("CARGO_TARGET_X86_64_UNKNOWN_LINUX_MUSL_LINKER", linker),
        )?;
        Ok(place.target.join(STATIC).join("dist/kymo"))
    }

    /// Builds the commit once more, elsewhere, and compares the bytes.
    fn verify(&self, is_static: bool, name: &str) -> Outcome {
        let directory = tempfile::Builder::new().prefix("kymo-dist").tempdir()?;
        let place = Place::elsewhere(directory.path())?;
        let built = self.build(&place, is_static)?;
        let (program, debug) = split(&built, name, directory.path())?;
        for there in [program, debug] {
            let here = self.to.join(there.file_name().unwrap_or_default());
            if fs::read(&here)? != fs::read(&there)? {
                // They are needed to find out why.
                let _ = directory.keep();
                let (here, there) = (here.display(), there.display());
                return Err(format!("two builds differ: compare {here} and {there}").into());
            }
        }
        println!("a second build, from a clone in another directory, has the same bytes");
        Ok(())
    }

    /// Puts everything that is installed below a directory.
    fn stage(&self, program: &Path, stage: &Path) -> Outcome {
        if stage.exists() {
            fs::remove_dir_all(stage)?;
        }
        install(program, &stage.join("usr/bin/kymo"), 0o755)?;
        for (from, to) in FILES {
            install(&root().join(from), &stage.join(to), 0o644)?;
        }
        let mut documents = files(&root().join("docs"))?;
        let is_read = |it: &OsStr| it == "md" || it == "svg" || it == "png";
        documents.retain(|path| path.extension().is_some_and(is_read));
        for name in EXAMPLES {
            documents.extend(files(&root().join("examples").join(name))?);
        }
        for path in documents {
            let name = path.strip_prefix(root())?;
            install(&path, &stage.join("usr/share/doc/kymo").join(name), 0o644)?;
        }
        for (shell, to) in [
            ("bash", "usr/share/bash-completion/completions/kymo"),
            ("zsh", "usr/share/zsh/site-functions/_kymo"),
            ("fish", "usr/share/fish/vendor_completions.d/kymo.fish"),
        ] {
            let script = output(command(program).args(["completions", shell]))?;
            write(&stage.join(to), script.as_bytes(), 0o644)?;
        }
        let pages = stage.join("usr/share/man/man1");
        fs::create_dir_all(&pages)?;
        succeed(command(program).arg("man").arg(&pages))?;
        let mut gzip = command("gzip");
        gzip.args(["-9", "-n", "--"]);
        for page in fs::read_dir(&pages)? {
            gzip.arg(page?.path());
        }
        succeed(&mut gzip)
    }

    /// Writes an archive of members of a directory: sorted, with owner and group 0 and the commit's time.
    fn archive(&self, to: &Path, directory: &Path, members: &[&std::ffi::OsStr]) -> Outcome {
        succeed(
            command("tar")
                .args(["--sort=name", "--owner=0", "--group=0", "--numeric-owner"])
                .args(["--format=gnu", "--use-compress-program=gzip -9n"])
                .arg(format!("--mtime=@{}", self.epoch))
                .arg("-cf")
                .arg(to)
                .arg("-C")
                .arg(directory)
                .args(members),
        )?;
        println!("{}", to.display());
        Ok(())
    }

    /// Makes the Debian package of the staged files.
    fn deb(&self, stage: &Path, program: &Path, machine: &str) -> Outcome {
        install(
            &root().join("packaging/apparmor"),
            &stage.join("etc/apparmor.d/kymo-serve"),
            0o644,
        )?;
        let zsh = stage.join("usr/share/zsh");
        fs::create_dir_all(zsh.join("vendor-completions"))?;
        fs::rename(
            zsh.join("site-functions/_kymo"),
            zsh.join("vendor-completions/_kymo"),
        )?;
        fs::remove_dir(zsh.join("site-functions"))?;
        let control = format!(
            "Package: kymo\n\
             Version: {}\n\
             Architecture: {machine}\n\
             Maintainer: The kymo developers <kymo@localhost>\n\
             Section: utils\n\
             Priority: optional\n\
             Installed-Size: {}\n\
             Depends: libc6 (>= {}), libgcc-s1\n\
             Recommends: tzdata\n\
             Description: reads, converts, merges, queries and shows performance records\n \
             kymo reads CTF traces, CPEL and elog event logs of VPP, RRD files of every machine and\n \
             metrics of collectd; converts, merges, queries and shows them; and keeps databases in\n \
             place of rrdcached.\n",
            self.version,
            installed_size(stage)?,
            glibc(program)?,
        );
        write(&stage.join("DEBIAN/control"), control.as_bytes(), 0o644)?;
        let configuration = b"/etc/apparmor.d/kymo-serve\n/etc/kymo/serve.toml\n";
        write(&stage.join("DEBIAN/conffiles"), configuration, 0o644)?;
        for script in ["postinst", "prerm", "postrm"] {
            install(
                &root().join("packaging/debian").join(script),
                &stage.join("DEBIAN").join(script),
                0o755,
            )?;
        }
        let package = self.to.join(format!("kymo_{}_{machine}.deb", self.version));
        succeed(
            command("dpkg-deb")
                .env("SOURCE_DATE_EPOCH", &self.epoch)
                .args(["--build", "--root-owner-group", "-Zxz"])
                .arg(stage)
                .arg(&package),
        )?;
        println!("{}", package.display());
        Ok(())
    }

    /// Makes the RPM of the staged files.
    fn rpm(&self, stage: &Path) -> Outcome {
        if require("rpmbuild", "rpm").is_err() {
            println!("no RPM is made: `rpmbuild` is not installed (Debian package rpm)");
            return Ok(());
        }
        let work = tempfile::tempdir()?;
        let tree = work.path().join("tree");
        succeed(command("cp").arg("-a").arg(stage).arg(&tree))?;
        succeed(
            command("rpmbuild")
                .env("SOURCE_DATE_EPOCH", &self.epoch)
                .args([
                    "-bb",
                    "--quiet",
                    "--define",
                    &format!("kymo_version {}", self.version),
                ])
                .args(["--define", &format!("_topdir {}", work.path().display())])
                .args(["--define", &format!("_rpmdir {}", self.to.display())])
                .args(["--define", "_rpmfilename %%{NAME}-%%{VERSION}.%%{ARCH}.rpm"])
                .args(["--define", "_buildhost kymo", "--buildroot"])
                .arg(&tree)
                .arg(root().join("packaging/kymo.spec")),
        )
    }
}

/// Makes, in a directory, what links static programs: with a library `unwind`. Its directory is not an option of the
/// compiler, since these are part of the names in a program.
fn static_linker(directory: &Path) -> Outcome<PathBuf> {
    let library = directory.join("libunwind.a");
    install(UNWINDER.as_ref(), &library, 0o644)
        .map_err(|error| format!("{error} (Debian package libunwind-14-dev)"))?;
    let (source, object) = (directory.join("fortified.c"), directory.join("fortified.o"));
    fs::write(&source, FORTIFIED)?;
    succeed(
        command("musl-gcc")
            .args(["-O2", "-c"])
            .arg(&source)
            .arg("-o")
            .arg(&object),
    )?;
    succeed(command("ar").arg("r").arg(&library).arg(&object))?;
    let linker = directory.join("musl-gcc");
    let script = format!(
        "#!/bin/sh\nexec musl-gcc \"$@\" -L'{}'\n",
        directory.display()
    );
    write(&linker, script.as_bytes(), 0o755)?;
    Ok(linker)
}

/// The size of all files of a package in KiB, each rounded up, as Debian counts it.
fn installed_size(stage: &Path) -> Outcome<u64> {
    let mut sum = 0;
    for file in files(stage)? {
        sum += file.symlink_metadata()?.len().div_ceil(1024);
    }
    Ok(sum)
}

/// Parts a program from its debug information, which debuggers find by its name.
fn split(built: &Path, name: &str, to: &Path) -> Outcome<(PathBuf, PathBuf)> {
    let program = to.join(name);
    let debug = to.join(format!("{name}.debug"));
    succeed(
        command("objcopy")
            .arg("--only-keep-debug")
            .arg(built)
            .arg(&debug),
    )?;
    succeed(
        command("objcopy")
            .arg("--strip-all")
            .arg(built)
            .arg(&program),
    )?;
    succeed(
        command("objcopy")
            .current_dir(to)
            .arg(format!("--add-gnu-debuglink={name}.debug"))
            .arg(&program),
    )?;
    Ok((program, debug))
}

fn target() -> PathBuf {
    let named = std::env::var_os("CARGO_TARGET_DIR").map(std::path::absolute);
    named
        .and_then(Result::ok)
        .unwrap_or_else(|| root().join("target"))
}

fn git(words: &[&str]) -> Command {
    let mut git = command("git");
    git.current_dir(root()).args(words);
    git
}

/// Runs a command whose failure ends the run.
fn succeed(command: &mut Command) -> Outcome {
    match command.status()?.success() {
        true => Ok(()),
        false => Err(format!("{command:?} failed").into()),
    }
}

/// Copies a file with a mode.
fn install(from: &Path, to: &Path, mode: u32) -> Outcome {
    let bytes = fs::read(from).map_err(|error| format!("{}: {error}", from.display()))?;
    write(to, &bytes, mode)
}

fn write(to: &Path, bytes: &[u8], mode: u32) -> Outcome {
    use std::os::unix::fs::PermissionsExt;
    if let Some(directory) = to.parent() {
        fs::create_dir_all(directory)?;
    }
    fs::write(to, bytes)?;
    fs::set_permissions(to, fs::Permissions::from_mode(mode))?;
    Ok(())
}

/// The files at or below a path.
fn files(path: &Path) -> Outcome<Vec<PathBuf>> {
    if !path.is_dir() {
        return Ok(vec![path.to_path_buf()]);
    }
    let mut found = Vec::new();
    for entry in fs::read_dir(path)? {
        found.extend(files(&entry?.path())?);
    }
    Ok(found)
}

/// The newest version of the C library that a program asks for.
fn glibc(program: &Path) -> Outcome<String> {
    let symbols = output(command("objdump").arg("-T").arg(program))?;
    let versions = symbols.split("GLIBC_").skip(1).filter_map(|rest| {
        let end = rest.find(|byte: char| !byte.is_ascii_digit() && byte != '.')?;
        let numbers: Vec<u32> = rest[..end]
            .split('.')
            .map_while(|part| part.parse().ok())
            .collect();
        Some((numbers, rest[..end].to_owned()))
    });
    let newest = versions
        .max()
        .ok_or("the program asks for no version of the C library")?;
    Ok(newest.1)
}
