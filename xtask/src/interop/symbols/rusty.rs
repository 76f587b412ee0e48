use std::ffi::{c_char, c_int};
unsafe extern "C" {
    fn lttng_ust__tracef(fmt: *const c_char, ...);
}
fn trace(n: i32) { unsafe { lttng_ust__tracef(c"%d".as_ptr(), n as c_int) } }
mod shapes {
    pub trait Area { fn area(&self) -> i32; }
    pub struct Square<T>(pub T);
    impl<T: Copy + Into<i32>> Area for Square<T> {
        #[inline(never)]
        fn area(&self) -> i32 { let s: i32 = self.0.into(); unsafe { super::lttng_ust__tracef(c"%d".as_ptr(), s) }; s * s + 1 }
    }
    #[inline(always)]
    pub fn inlined(n: i32) -> i32 { unsafe { super::lttng_ust__tracef(c"%d".as_ptr(), n) }; n + 1 }
}
#[inline(never)]
fn generic<A: shapes::Area>(a: &A) -> i32 { let r = shapes::inlined(a.area()); r + 1 }
fn main() {
    use shapes::Square;
    let f = |n: i32| { unsafe { lttng_ust__tracef(c"%d".as_ptr(), n) }; n };
    for i in 0..2 { trace(f(i) + generic(&Square(7u8)) + generic(&Square(i))); }
}
