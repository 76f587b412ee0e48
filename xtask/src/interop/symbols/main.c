#include "tp.h"
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
void in_shared(int n);
int cxx_entry(int n);
static inline __attribute__((always_inline)) void inlined(int n) {
    lttng_ust_tracepoint(sym, here, n, "inlined");
}
__attribute__((noinline)) static int local_function(int n) {
    lttng_ust_tracepoint(sym, here, n, "local");
    return n + 1;
}
__attribute__((noinline)) int global_function(int n) {
    inlined(n);
    return local_function(n) + 1;
}
int main(int argc, char **argv) {
    int rounds = argc > 1 ? atoi(argv[1]) : 2;
    for (int i = 0; i < rounds; i++) {
        lttng_ust_tracepoint(sym, here, i, "main");
        global_function(i);
        in_shared(i);
        cxx_entry(i);
        void *plugin = dlopen(argc > 2 ? argv[2] : "./libplugin.so", RTLD_NOW);
        if (!plugin) { fprintf(stderr, "%s\n", dlerror()); return 1; }
        void (*f)(int) = (void (*)(int))dlsym(plugin, "in_plugin");
        f(i);
        dlclose(plugin);
    }
    return 0;
}
