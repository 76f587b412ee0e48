#include "tp.h"
#include <vector>
#include <string>
namespace shapes {
template <typename T> struct Box {
    T value;
    __attribute__((noinline)) int measure(const std::string &name) const {
        lttng_ust_tracepoint(sym, here, (int)value.size(), "cxx template");
        return (int)name.size();
    }
};
}
extern "C" int cxx_entry(int n) {
    shapes::Box<std::vector<int>> box{std::vector<int>(n)};
    auto lambda = [&](int k) { lttng_ust_tracepoint(sym, here, k, "cxx lambda"); return k; };
    return box.measure("x") + lambda(n);
}
