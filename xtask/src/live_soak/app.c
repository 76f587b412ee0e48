// Records events with numbers: THREADS threads, RATE events a second together, for SECONDS.
#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#define LTTNG_UST_TRACEPOINT_DEFINE
#include "tp.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static long threads, seconds;
static double rate;

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec + t.tv_nsec * 1e-9;
}

static void *record(void *argument) {
  long thread = (long) argument;
  uint64_t number = 0, total = (uint64_t) (rate * seconds / threads);
  double begun = now();
  while (number < total) {
    uint64_t due = (uint64_t) ((now() - begun) * rate / threads);
    if (due > total)
      due = total;
    for (; number < due; number++)
      lttng_ust_tracepoint(soak, tick, (uint32_t) thread, number);
    struct timespec pause = {0, 2000000};
    nanosleep(&pause, NULL);
  }
  return (void *) number;
}

int main(int count, char **words) {
  if (count != 4)
    return 2;
  threads = atol(words[1]);
  rate = atof(words[2]);
  seconds = atol(words[3]);
  pthread_t all[64];
  for (long thread = 0; thread < threads && thread < 64; thread++)
    pthread_create(&all[thread], NULL, record, (void *) thread);
  for (long thread = 0; thread < threads && thread < 64; thread++) {
    void *number;
    pthread_join(all[thread], &number);
    printf("%lu\n", (unsigned long) number);
  }
  return 0;
}
