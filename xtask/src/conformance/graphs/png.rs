//! Comparing PNG.

use std::io::Read as _;

use flate2::read::ZlibDecoder;

/// The greatest difference of a part of a pixel that may be.
const MOST: u8 = 8;

/// A picture of 8 bits per channel.
struct Pixels {
    width: usize,
    height: usize,
    /// Bytes of a pixel.
    depth: usize,
    rows: Vec<u8>,
}

/// How much two pictures of the same size differ.
pub(crate) struct Difference {
    /// The greatest difference of a part of a pixel.
    pub(crate) worst: u8,
    /// The mean of all of them.
    pub(crate) mean: f64,
    /// How many are greater than they may be.
    pub(crate) far: usize,
}

impl std::fmt::Display for Difference {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { worst, mean, far } = self;
        write!(
            formatter,
            "{far} bytes differ by more than {MOST}, {worst} at most, {mean:.4} on average"
        )
    }
}

/// Fails if the sizes of two pictures differ.
pub(crate) fn difference(expected: &[u8], found: &[u8]) -> Result<Difference, String> {
    let (expected, found) = (decode(expected)?, decode(found)?);
    let size = |picture: &Pixels| (picture.width, picture.height, picture.depth);
    if size(&expected) != size(&found) {
        let (expected, found) = (size(&expected), size(&found));
        return Err(format!(
            "expected width, height and depth {expected:?}, found {found:?}"
        ));
    }
    let parts = expected.rows.iter().zip(&found.rows);
    let differences = parts.map(|(a, b)| a.abs_diff(*b));
    let sum: u64 = differences.clone().map(u64::from).sum();
    Ok(Difference {
        worst: differences.clone().max().unwrap_or_default(),
        mean: sum as f64 / expected.rows.len().max(1) as f64,
        far: differences.filter(|difference| *difference > MOST).count(),
    })
}

/// Compares two pictures.
pub(super) fn compare(expected: &[u8], found: &[u8]) -> Result<(), String> {
    let difference = difference(expected, found)?;
    match difference.far {
        0 => Ok(()),
        _ => Err(difference.to_string()),
    }
}

fn decode(file: &[u8]) -> Result<Pixels, String> {
    let mut chunks = file.get(8..).ok_or("not a PNG")?;
    let mut header = None;
    let mut packed = Vec::new();
    while let Some((length, rest)) = chunks.split_first_chunk::<4>() {
        let length = u32::from_be_bytes(*length) as usize;
        let kind = rest.get(..4).ok_or("a chunk is cut off")?;
        let body = rest.get(4..4 + length).ok_or("a chunk is cut off")?;
        match kind {
            b"IHDR" => header = body.get(..10).map(<[u8]>::to_vec),
            b"IDAT" => packed.extend_from_slice(body),
            _ => {}
        }
        chunks = rest.get(8 + length..).unwrap_or_default();
    }
    let header = header.ok_or("no header")?;
    let side = |at: usize| {
        u32::from_be_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]) as usize
    };
    let (width, height) = (side(0), side(4));
    let depth = match (header[8], header[9]) {
        (8, 2) => 3,
        (8, 6) => 4,
        other => return Err(format!("pixels of kind {other:?}")),
    };
    let mut lines = Vec::new();
    let unpacked = ZlibDecoder::new(&*packed).read_to_end(&mut lines);
    unpacked.map_err(|error| error.to_string())?;
    let length = width * depth;
    let mut rows: Vec<u8> = Vec::with_capacity(length * height);
    for line in lines.chunks_exact(length + 1) {
        let above = rows.len().checked_sub(length);
        let begin = rows.len();
        for (at, byte) in line[1..].iter().enumerate() {
            let left = if at < depth {
                0
            } else {
                rows[begin + at - depth]
            };
            let up = above.map_or(0, |above| rows[above + at]);
            let corner = match above {
                Some(above) if at >= depth => rows[above + at - depth],
                _ => 0,
            };
            let guess = match line[0] {
                0 => 0,
                1 => left,
                2 => up,
                3 => left.midpoint(up),
                _ => nearest(left, up, corner),
            };
            rows.push(byte.wrapping_add(guess));
        }
    }
    Ok(Pixels {
        width,
        height,
        depth,
        rows,
    })
}

/// Paeth's predictor.
fn nearest(left: u8, up: u8, corner: u8) -> u8 {
    let sum = i16::from(left) + i16::from(up) - i16::from(corner);
    let distance = |byte: u8| sum.abs_diff(i16::from(byte));
    match (distance(left), distance(up), distance(corner)) {
        (a, b, c) if a <= b && a <= c => left,
        (_, b, c) if b <= c => up,
        _ => corner,
    }
}
