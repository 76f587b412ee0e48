//! Stacks for classes that lie deep within each other.
//!
//! What walks classes recurses, and any thread's stack has room for some levels. Classes that
//! are nested deeper are handled on a thread of their own, whose stack has room for [`MAX_LEVELS`].

use std::cell::Cell;
use std::{panic, thread};

use crate::class::{FieldClass, TraceClass};

/// How many structures, arrays, optionals and variants may lie within each other in a scope's
/// structure. babeltrace2 reads as many.
pub const MAX_LEVELS: usize = 2048;

/// How many field classes may lie within each other: the scope's structure and what the
/// innermost compound holds come on top.
const HEIGHT: usize = MAX_LEVELS + 2;

/// How many field classes there is room for on any stack.
const USUAL: usize = 64;

/// Address space for a stack, in bytes. Memory is taken as it is used: some 10 KiB a level without
/// optimization.
const STACK: usize = 128 << 20;

thread_local! {
    /// How many field classes there is room for on this thread's stack.
    static ROOM: Cell<usize> = const { Cell::new(USUAL) };
    /// Whether there was no room.
    static MISSED: Cell<bool> = const { Cell::new(false) };
}

/// Whether this thread's stack has room for field classes of a height.
pub(crate) fn has_room(height: usize) -> bool {
    let has = height <= ROOM.get();
    if !has {
        MISSED.set(true);
    }
    has
}

/// The result of something that asks [`has_room`]; if it was refused, of a second attempt on a
/// larger stack.
pub(crate) fn retry<T: Send>(task: impl Fn() -> T + Sync) -> T {
    let before = MISSED.replace(false);
    let result = task();
    let missed = MISSED.replace(before);
    match missed && ROOM.get() < HEIGHT {
        true => on_large_stack(&task).unwrap_or(result),
        false => result,
    }
}

/// Runs something that recurses over the classes of traces, on a larger stack if they need one.
/// `None` if they lie deeper within each other than [`MAX_LEVELS`].
pub fn with_room<T: Send>(traces: &[&TraceClass], task: impl Fn() -> T + Sync) -> Option<T> {
    let room = ROOM.get();
    let needs_more = |trace: &&TraceClass| {
        let mut classes = trace.structures();
        classes.any(|class| is_higher(class, room))
    };
    if !traces.iter().any(needs_more) {
        return Some(retry(task));
    }
    let mut classes = traces.iter().flat_map(|trace| trace.structures());
    let is_too_high = classes.any(|class| class.walk().any(|(around, _)| around >= HEIGHT));
    match is_too_high {
        true => None,
        false => Some(on_large_stack(&task).unwrap_or_else(&task)),
    }
}

/// Whether more classes than a number lie within each other; recursion ends there.
fn is_higher(class: &FieldClass, than: usize) -> bool {
    let Some(than) = than.checked_sub(1) else {
        return true;
    };
    match class {
        FieldClass::Struct { members, .. } => {
            let mut members = members.iter();
            members.any(|member| is_higher(&member.class, than))
        }
        FieldClass::Variant { options, .. } => {
            let mut options = options.iter();
            options.any(|option| is_higher(&option.class, than))
        }
        FieldClass::Array { element: part, .. } | FieldClass::Optional { content: part, .. } => {
            is_higher(part, than)
        }
        _ => false,
    }
}

/// `None` if the system has no threads.
fn on_large_stack<T: Send>(task: &(impl Fn() -> T + Sync)) -> Option<T> {
    thread::scope(|scope| {
        let spawned = thread::Builder::new()
            .stack_size(STACK)
            .spawn_scoped(scope, || {
                ROOM.set(HEIGHT);
                task()
            });
        match spawned.ok()?.join() {
            Ok(result) => Some(result),
            Err(panic) => panic::resume_unwind(panic),
        }
    })
}
