//! `import` of what other programs keep: files of Whisper, trees of Ganglia and Proxmox VE, journals of rrdcached.

#[path = "common/place.rs"]
mod place;

use std::path::PathBuf;

use place::Place;

impl Place {
    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, bytes: &[u8]) {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    }

    fn database(&self, name: &str, source: &str) {
        std::fs::create_dir_all(self.path(name).parent().unwrap()).unwrap();
        self.ok(&format!(
            "create @{name} -b 1600000000 -s 10 DS:{source}:GAUGE:20:U:U RRA:AVERAGE:0.5:1:10"
        ));
        self.ok(&format!("update @{name} 1600000010:1 1600000020:2"));
    }
}

/// A file that Whisper 1.1.10 has written: `create(path, [(10, 6), (60, 4)], 0.5, METHOD)`, then five values from
/// 1600000000 on, ten seconds apart.
fn whisper(method: u8) -> Vec<u8> {
    match method {
        1 => include_bytes!("data/average.wsp").to_vec(),
        _ => include_bytes!("data/sum.wsp").to_vec(),
    }
}

#[test]
fn files_of_whisper_become_databases() {
    let place = Place::new();
    place.write("a.wsp", &whisper(1));
    assert_eq!(place.ok("import @a.wsp @a.rrd --format amd64"), "");
    assert_eq!(
        place.ok("fetch @a.rrd AVERAGE -r 10 -s 1600000000 -e 1600000060"),
        "                          value\n\n\
         1600000010: 1.0000000000e+00\n1600000020: 2.0000000000e+00\n1600000030: 3.0000000000e+00\n\
         1600000040: 4.0000000000e+00\n1600000050: 5.0000000000e+00\n1600000060: -nan\n1600000070: -nan\n"
    );
    // It goes on as a database does.
    place.ok("update @a.rrd 1600000060:6");
    assert!(place.ok("lastupdate @a.rrd").ends_with("1600000060: 6\n"));
    place.write("sum.wsp", &whisper(2));
    let (done, warnings) = place.run("import @sum.wsp @sum.rrd RRA:AVERAGE:0.5:6:4");
    assert_eq!(done, Ok(String::new()));
    assert!(warnings.contains("found sum"), "{warnings}");
    place.write("half.wsp", &whisper(1)[..50]);
    let failure = place.run("import @half.wsp @half.rrd").0.unwrap_err();
    assert!(
        failure.contains("'@half.wsp': `points of archive 0` at offset 16"),
        "{failure}"
    );
    let failure = place.run("import @a.wsp @b.rrd --time x").0.unwrap_err();
    assert!(
        failure.contains("a file of Whisper, which has no columns"),
        "{failure}"
    );
}

/// A point that a disk or a wrong clock has damaged does not make all others older than the archives.
#[test]
fn points_of_whisper_later_than_the_clock_are_left_out() {
    let place = Place::new();
    for time in [u32::MAX, 1_700_000_000 + 400 * 86_400] {
        let mut bytes = whisper(1);
        // The first slot of the first archive.
        bytes[40..44].copy_from_slice(&time.to_be_bytes());
        place.write("a.wsp", &bytes);
        let (done, warnings) = place.run("import @a.wsp @a.rrd");
        assert_eq!(done, Ok(String::new()));
        assert!(
            warnings.contains("`points`: found 1 with other times")
                && warnings.contains("left out"),
            "{warnings}"
        );
        let rows = place.ok("fetch @a.rrd AVERAGE -r 10 -s 1600000010 -e 1600000050");
        assert!(rows.contains("1600000020: 2.0000000000e+00"), "{rows}");
        assert!(rows.contains("1600000050: 5.0000000000e+00"), "{rows}");
        place.ok("update @a.rrd 1600000060:6");
    }
}

#[test]
fn trees_become_trees() {
    let place = Place::new();
    place.write("w/servers/web1/load.wsp", &whisper(1));
    place.write("w/servers/web2/load.wsp", &whisper(1)[..40]);
    place.write("w/notes.txt", b"no metric");
    let (done, warnings) = place.run("import --from whisper @w @out");
    assert_eq!(done, Err("'@w': 1 files could not be imported".to_owned()));
    assert!(warnings.contains("servers/web2/load.wsp"), "{warnings}");
    assert!(place.path("out/servers/web1/load.rrd").is_file());

    place.database("g/Web/h1/load_one.rrd", "sum");
    place.database("g/__SummaryInfo__/load_one.rrd", "sum");
    assert_eq!(
        place.ok("import --from ganglia @g @out"),
        "2 databases imported, 0 other files passed over\n"
    );
    assert_eq!(
        place.ok("lastupdate @out/h1/ganglia-Web/load_one.rrd"),
        " value\n\n1600000020: 2\n"
    );

    place.database("p/pve2-node/n1", "cpu");
    place.database("p/pve2-vm/100", "cpu");
    place.database("p/pve2-storage/n1/local", "used");
    place.write("p/pve2-vm/notes", b"no database");
    assert_eq!(
        place.ok("import --from proxmox @p @out"),
        "3 databases imported, 1 other files passed over\n"
    );
    for file in [
        "n1/pve/node.rrd",
        "100/pve/vm.rrd",
        "n1/pve-local/storage.rrd",
    ] {
        assert!(place.path("out").join(file).is_file(), "{file}");
    }
    place.database("p/pve-node-9.0/n1", "cpu");
    let (done, warnings) = place.run("import --from proxmox @p @again");
    assert!(done.is_err());
    assert!(
        warnings.contains("`kymo rrd merge` makes one of both"),
        "{warnings}"
    );
    for (line, problem) in [
        (
            "import @p @out",
            "'@p' is a directory: --from says what it holds",
        ),
        (
            "import --from x @p @out",
            "--from: found 'x', expected whisper",
        ),
        (
            "import --from ganglia @p @out -s 5",
            "the databases of a tree have",
        ),
    ] {
        let failure = place.run(line).0.unwrap_err();
        assert!(
            failure.starts_with(problem) || failure.contains(problem),
            "{failure}"
        );
    }
}

#[test]
fn journals_of_rrdcached_update_databases() {
    let place = Place::new();
    place.database("db/a.rrd", "x");
    place.database("db/b.rrd", "x");
    let directory = place.0.path().display().to_string();
    // What stands in the database already, what was written, what is pending.
    place.write(
        "j/rrd.journal.1600000000.000001",
        format!(
            "update {directory}/db/a.rrd 1600000020:2\nupdate {directory}/db/a.rrd 1600000030:3\n"
        )
        .as_bytes(),
    );
    place.write(
        "j/rrd.journal.1600003600.000001",
        format!("wrote {directory}/db/b.rrd\nupdate b.rrd 1600000040:4\nupdate /etc/c.rrd 1:1\ngarbage\n").as_bytes(),
    );
    let (done, warnings) = place.run("import --from rrdcached @j @db");
    assert_eq!(
        done,
        Err("'@j': 1 database could not be updated".to_owned())
    );
    assert!(
        warnings.contains("'/etc/c.rrd': it is not below '@db'"),
        "{warnings}"
    );
    assert!(
        warnings.contains("1 lines are cut off, or neither"),
        "{warnings}"
    );
    assert!(
        place
            .ok("lastupdate @db/a.rrd")
            .ends_with("1600000030: 3\n")
    );
    assert!(
        place
            .ok("lastupdate @db/b.rrd")
            .ends_with("1600000040: 4\n")
    );
    let failure = place.run("import --from rrdcached @db @db").0.unwrap_err();
    assert!(failure.contains("begins with `rrd.journal.`"), "{failure}");
}

/// An update that a database refuses, or that would keep all later ones out, is left out by itself.
#[test]
fn updates_of_a_journal_that_are_refused_keep_no_others_out() {
    let place = Place::new();
    place.database("db/a.rrd", "x");
    place.database("db/b.rrd", "x");
    place.write(
        "j/rrd.journal.1600000000.000001",
        b"update a.rrd 1600000020:2\nupdate a.rrd 1600000030:3\nupdate a.rrd 1600000040:4:4\n\
          update a.rrd 1734560000:5\nupdate a.rrd N:6\nupdate a.rrd 1600000050:x\n\
          update a.rrd 1600000060:6\nupdate b.rrd 1600000030:3:3\nupdate c.rrd 1600000030:3\n",
    );
    let (done, warnings) = place.run("import --from rrdcached @j @db");
    assert_eq!(
        done,
        Err("'@j': refused 5 updates, and 1 database could not be updated".to_owned())
    );
    for message in [
        "'a.rrd': the update '1600000040:4:4' is left out: found extra data",
        "'a.rrd': the update '1734560000:5' is left out: its time is more than a day later than the clock",
        "'a.rrd': the update 'N:6' is left out: it does not begin with seconds",
        "'a.rrd': the update '1600000050:x' is left out: ",
        "'b.rrd': the update '1600000030:3:3' is left out: found extra data",
        "'c.rrd': opening '",
    ] {
        assert!(warnings.contains(message), "{message}: {warnings}");
    }
    let rows = place.ok("fetch @db/a.rrd AVERAGE -r 10 -s 1600000020 -e 1600000060");
    assert!(rows.contains("1600000030: 3.0000000000e+00"), "{rows}");
    assert!(
        place
            .ok("lastupdate @db/a.rrd")
            .ends_with("1600000060: 6\n")
    );
    assert!(place.ok("lastupdate @db/b.rrd").contains("1600000020: "));
    // What is not stored is not counted.
    place.write(
        "k",
        b"update a.rrd 1600000060:6\nupdate a.rrd 1600000070:7\n",
    );
    assert_eq!(
        place.ok("import --from rrdcached @k @db"),
        "1 update of 1 database from 1 file of a journal, 1 passed over as not after the last update\n"
    );
}

/// carbon's trees have links to other disks.
#[cfg(unix)]
#[test]
fn linked_directories_are_followed_once() {
    use std::os::unix::fs::symlink;
    let place = Place::new();
    place.write("w/web/load.wsp", &whisper(1));
    place.write("disk2/db/load.wsp", &whisper(1));
    symlink(place.path("disk2"), place.path("w/linked")).unwrap();
    // Circles, and another name of a directory that is there by its own.
    symlink("..", place.path("w/web/up")).unwrap();
    symlink("web", place.path("w/again")).unwrap();
    std::fs::create_dir(place.path("w/a")).unwrap();
    symlink("../web", place.path("w/a/web")).unwrap();
    symlink("gone", place.path("w/gone")).unwrap();
    assert_eq!(
        place.ok("import --from whisper @w @out"),
        "2 databases imported, 0 other files passed over\n"
    );
    assert!(place.path("out/web/load.rrd").is_file());
    assert!(place.path("out/linked/db/load.rrd").is_file());
}

#[test]
fn databases_that_exist_are_kept() {
    let place = Place::new();
    place.write("w/a.wsp", &whisper(1));
    let line = "import --from whisper @w @out --no-overwrite";
    assert_eq!(
        place.ok(line),
        "1 databases imported, 0 other files passed over\n"
    );
    place.ok("update @out/a.rrd 1600000060:6");
    place.write("w/b.wsp", &whisper(1));
    assert_eq!(
        place.ok(line),
        "1 databases imported, 1 that exist kept, 0 other files passed over\n"
    );
    assert!(
        place
            .ok("lastupdate @out/a.rrd")
            .ends_with("1600000060: 6\n")
    );
    // Two files for one database are a failure, also if it exists.
    place.database("p/pve2-node/n1", "cpu");
    place.ok("import --from proxmox @p @pout --no-overwrite");
    place.database("p/pve-node-9.0/n1", "cpu");
    let (done, warnings) = place.run("import --from proxmox @p @pout --no-overwrite");
    assert_eq!(done, Err("'@p': 1 files could not be imported".to_owned()));
    assert!(
        warnings.contains("`kymo rrd merge` makes one of both"),
        "{warnings}"
    );
}
