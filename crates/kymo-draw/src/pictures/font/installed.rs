//! Fonts that are installed on this machine.

use super::Face;
use fontdb::{Database, FaceInfo, Family, Query, Source, Style, Weight};
use std::path::PathBuf;

/// What the directories of fonts hold.
pub(super) struct Installed {
    database: Database,
}

impl Installed {
    /// Reads the names of all fonts in the directories of the system and of the user.
    pub(super) fn scan() -> Installed {
        let mut database = Database::new();
        database.load_system_fonts();
        // What `Sans` and `Serif` mean on systems that have DejaVu, as fontconfig decides.
        database.set_sans_serif_family("DejaVu Sans");
        database.set_serif_family("DejaVu Serif");
        database.set_monospace_family(super::BUILT_IN_FAMILY);
        Installed { database }
    }

    /// The file of a family and the number of the face in it.
    pub(super) fn find(&self, name: &str, bold: bool, italic: bool) -> Option<(PathBuf, u32)> {
        let family = match name.to_lowercase().as_str() {
            "sans" | "sans-serif" => Family::SansSerif,
            "serif" => Family::Serif,
            "mono" | "monospace" => Family::Monospace,
            _ => Family::Name(name),
        };
        let query = Query {
            families: &[family],
            weight: if bold { Weight::BOLD } else { Weight::NORMAL },
            style: if italic { Style::Italic } else { Style::Normal },
            ..Query::default()
        };
        let id = self.database.query(&query);
        match id.and_then(|id| self.database.face(id)) {
            Some(face) => file_of(face),
            None => self.narrower(name, bold, italic),
        }
    }

    /// The file of a family of which the database has only the first name: faces of `DejaVu Sans` are of
    /// `DejaVu Sans Condensed`, too.
    fn narrower(&self, name: &str, bold: bool, italic: bool) -> Option<(PathBuf, u32)> {
        let lower = name.to_lowercase();
        let begins = |(family, _): &(String, _)| {
            let rest = lower.strip_prefix(&family.to_lowercase());
            rest.is_some_and(|rest| rest.starts_with(' '))
        };
        let faces = self.database.faces();
        let mut faces: Vec<&FaceInfo> = faces
            .filter(|face| face.families.iter().any(begins))
            .collect();
        faces.sort_by_key(|face| {
            (
                (face.weight >= Weight::SEMIBOLD) != bold,
                (face.style != Style::Normal) != italic,
                &face.post_script_name,
            )
        });
        let mut files = faces.into_iter().filter_map(file_of);
        files.find(|(path, index)| {
            Face::read(path, *index)
                .is_ok_and(|face| face.second_family().as_deref() == Some(&lower))
        })
    }

    /// A font that has a character: regular ones first, then by name, so that the choice does not
    /// depend on the order of directories.
    pub(super) fn with_character(&self, character: char) -> Option<(PathBuf, u32)> {
        let mut faces: Vec<&FaceInfo> = self.database.faces().collect();
        faces.sort_by_key(|face| {
            (
                face.style != Style::Normal,
                face.weight != Weight::NORMAL,
                !face.monospaced,
                &face.post_script_name,
            )
        });
        faces.into_iter().filter_map(file_of).find(|(path, index)| {
            Face::read(path, *index).is_ok_and(|face| face.glyph(character).is_some())
        })
    }
}

fn file_of(face: &FaceInfo) -> Option<(PathBuf, u32)> {
    match &face.source {
        Source::File(path) | Source::SharedFile(path, _) => Some((path.clone(), face.index)),
        Source::Binary(_) => None,
    }
}
