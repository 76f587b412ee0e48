//! stub
pub(crate) fn begins(_b: &[u8]) -> bool {
    false
}
