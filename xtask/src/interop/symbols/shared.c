#include "tp.h"
__attribute__((noinline)) static void deep(int n) { lttng_ust_tracepoint(sym, here, n, "shared deep"); }
void in_shared(int n) { deep(n); lttng_ust_tracepoint(sym, here, n, "shared"); }
