//! The inputs kept in `fuzz/corpus`, once each.

use std::path::Path;

#[test]
fn every_kept_input_is_withstood() {
    let corpora = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus");
    for (name, check) in kymo_fuzz::CHECKS {
        let corpus = corpora.join(name);
        let mut inputs = 0;
        for entry in std::fs::read_dir(&corpus).expect("every check has a corpus") {
            let path = entry.expect("the corpus can be listed").path();
            let data = std::fs::read(&path).expect("an input can be read");
            println!("{}", path.display());
            check(&data);
            inputs += 1;
        }
        assert!(inputs > 0, "no inputs for {name}");
    }
}

#[test]
fn every_check_has_a_target() {
    let targets = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/fuzz_targets");
    for (name, _) in kymo_fuzz::CHECKS {
        let text = std::fs::read_to_string(targets.join(format!("{name}.rs")))
            .expect("every check has a target");
        let call = format!("libfuzzer_sys::fuzz_target!(|data: &[u8]| kymo_fuzz::{name}(data));");
        assert!(text.contains(&call), "{name}: {text}");
    }
    let files = std::fs::read_dir(&targets).expect("the targets can be listed");
    assert_eq!(files.count(), kymo_fuzz::CHECKS.len());
}
