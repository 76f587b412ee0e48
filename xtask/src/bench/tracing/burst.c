/* Records many events with three integers by LTTng-UST, and prints the nanoseconds of processor time of the thread that
   records. */
#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#define LTTNG_UST_TRACEPOINT_DEFINE
#include "probes.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static __attribute__((noinline)) void record(uint64_t events)
{
    for (uint64_t number = 0; number < events; number++)
        lttng_ust_tracepoint(kymo, three, number, number * 2, -(int64_t) number);
}

static uint64_t thread_time(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (uint64_t) now.tv_sec * 1000000000u + (uint64_t) now.tv_nsec;
}

int main(int count, char **args)
{
    if (count != 2)
        return 2;
    uint64_t events = strtoull(args[1], NULL, 10);
    record(events / 10);
    uint64_t before = thread_time();
    record(events);
    printf("%llu\n", (unsigned long long) (thread_time() - before));
    return 0;
}
