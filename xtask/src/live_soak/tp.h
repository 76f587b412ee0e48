#undef LTTNG_UST_TRACEPOINT_PROVIDER
#define LTTNG_UST_TRACEPOINT_PROVIDER soak
#undef LTTNG_UST_TRACEPOINT_INCLUDE
#define LTTNG_UST_TRACEPOINT_INCLUDE "./tp.h"
#if !defined(SOAK_TP_H) || defined(LTTNG_UST_TRACEPOINT_HEADER_MULTI_READ)
#define SOAK_TP_H
#include <lttng/tracepoint.h>
#include <stdint.h>
LTTNG_UST_TRACEPOINT_EVENT(
  soak, tick, LTTNG_UST_TP_ARGS(uint32_t, thread, uint64_t, number),
  LTTNG_UST_TP_FIELDS(lttng_ust_field_integer(uint32_t, thread, thread)
                      lttng_ust_field_integer(uint64_t, number, number)))
#endif
#include <lttng/tracepoint-event.h>
