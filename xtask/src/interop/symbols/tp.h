#undef LTTNG_UST_TRACEPOINT_PROVIDER
#define LTTNG_UST_TRACEPOINT_PROVIDER sym
#undef LTTNG_UST_TRACEPOINT_INCLUDE
#define LTTNG_UST_TRACEPOINT_INCLUDE "./tp.h"
#if !defined(_TP_H) || defined(LTTNG_UST_TRACEPOINT_HEADER_MULTI_READ)
#define _TP_H
#include <lttng/tracepoint.h>
LTTNG_UST_TRACEPOINT_EVENT(sym, here, LTTNG_UST_TP_ARGS(int, n, const char *, where),
  LTTNG_UST_TP_FIELDS(lttng_ust_field_integer(int, n, n) lttng_ust_field_string(where, where)))
#endif
#include <lttng/tracepoint-event.h>
