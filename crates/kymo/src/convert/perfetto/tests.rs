//! A trace decoded again.
