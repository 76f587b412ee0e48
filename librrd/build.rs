//! Compiles the functions that Rust cannot define, and names the library as programs look for it.

fn main() {
    println!("cargo::rerun-if-changed=src/variadic.c");
    cc::Build::new()
        .file("src/variadic.c")
        .warnings(true)
        .compile("kymo_librrd_variadic");
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,librrd.so.8");
}
