/* One event with three integers, for LTTng-UST. */
#undef LTTNG_UST_TRACEPOINT_PROVIDER
#define LTTNG_UST_TRACEPOINT_PROVIDER kymo
#undef LTTNG_UST_TRACEPOINT_INCLUDE
#define LTTNG_UST_TRACEPOINT_INCLUDE "./probes.h"

#if !defined(KYMO_PROBES_H) || defined(LTTNG_UST_TRACEPOINT_HEADER_MULTI_READ)
#define KYMO_PROBES_H

#include <lttng/tracepoint.h>
#include <stdint.h>

LTTNG_UST_TRACEPOINT_EVENT(kymo, three,
    LTTNG_UST_TP_ARGS(uint64_t, number, uint64_t, twice, int64_t, less),
    LTTNG_UST_TP_FIELDS(
        lttng_ust_field_integer(uint64_t, number, number)
        lttng_ust_field_integer(uint64_t, twice, twice)
        lttng_ust_field_integer(int64_t, less, less)))

#endif

#include <lttng/tracepoint-event.h>
