#include "tp.h"
void in_plugin(int n) { lttng_ust_tracepoint(sym, here, n, "plugin"); }
