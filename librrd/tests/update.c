/* Updates files and prints the CPU time that takes: update FILES ROUNDS [THREADS]. With threads, each updates all
 * files, and it fails unless each file has every reading of some thread. */
#include <pthread.h>
#include <rrd.h>
#include <stdlib.h>
#include <sys/resource.h>

static int files, rounds, threads = 1;
static const long begin = 1700000000;

static void name(char *to, int file)
{
    snprintf(to, 32, "u%d.rrd", file);
}

static void *update(void *which)
{
    long thread = (long)which, refused = 0;
    char file[32], reading[64];
    const char *readings[] = {reading};
    for (int round = 1; round <= rounds; round++) {
        snprintf(reading, sizeof reading, "%ld:%d.5", begin + 60L * (round * threads + thread), round);
        for (int place = 0; place < files; place++) {
            name(file, place);
            if (rrd_updatex_r(file, NULL, RRD_SKIP_PAST_UPDATES, 1, readings) != 0) {
                if (refused++ == 0)
                    fprintf(stderr, "%s: %s\n", file, rrd_get_error());
                rrd_clear_error();
            }
        }
    }
    return (void *)refused;
}

static double seconds(struct timeval time)
{
    return time.tv_sec + time.tv_usec / 1e6;
}

int main(int argc, char **argv)
{
    const char *definitions[] = {"DS:a:GAUGE:120:U:U", "RRA:AVERAGE:0.5:1:1200", "RRA:AVERAGE:0.5:60:1200", "RRA:MAX:0.5:60:1200"};
    char file[32];
    if (argc < 3)
        return 2;
    files = atoi(argv[1]);
    rounds = atoi(argv[2]);
    if (argc > 3)
        threads = atoi(argv[3]);
    for (int place = 0; place < files; place++) {
        name(file, place);
        if (rrd_create_r(file, 60, begin, 4, definitions) != 0) {
            fprintf(stderr, "%s\n", rrd_get_error());
            return 1;
        }
    }
    struct rusage before, after;
    getrusage(RUSAGE_SELF, &before);
    pthread_t running[64];
    long refused = 0;
    for (long thread = 0; thread < threads; thread++)
        pthread_create(&running[thread], NULL, update, (void *)thread);
    for (int thread = 0; thread < threads; thread++) {
        void *result;
        pthread_join(running[thread], &result);
        refused += (long)result;
    }
    getrusage(RUSAGE_SELF, &after);
    double user = seconds(after.ru_utime) - seconds(before.ru_utime);
    double system = seconds(after.ru_stime) - seconds(before.ru_stime);
    printf("%ld updates, %ld refused, %.2f us CPU each (%.2f user, %.2f system), %ld KiB at most\n", (long)files * rounds * threads, refused,
           (user + system) * 1e6 / ((double)files * rounds * threads), user * 1e6 / ((double)files * rounds * threads),
           system * 1e6 / ((double)files * rounds * threads), after.ru_maxrss);
    return refused != 0;
}
