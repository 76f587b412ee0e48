/* A client of rrdcached and of `kymo serve`. There is one connection, which all threads share. Without one, the
 * functions fail and set no error message. */
#ifndef KYMO_RRD_CLIENT_H
#define KYMO_RRD_CLIENT_H

#include <rrd.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define RRDCACHED_DEFAULT_PORT "42217"
#define ENV_RRDCACHED_ADDRESS "RRDCACHED_ADDRESS"
#define ENV_RRDCACHED_STRIPPATH "RRDCACHED_STRIPPATH"

typedef struct rrdc_stats_s {
    const char *name;
    uint16_t type;
#define RRDC_STATS_TYPE_GAUGE 0x0001
#define RRDC_STATS_TYPE_COUNTER 0x0002
    uint16_t flags;
    union {
        uint64_t counter;
        double gauge;
    } value;
    struct rrdc_stats_s *next;
} rrdc_stats_t;

/* An address is unix:PATH, /PATH, HOST, HOST:PORT or [IPv6]:PORT; NULL is that of the environment. */
int rrdc_connect(const char *address);
int rrdc_is_connected(const char *address);
int rrdc_is_any_connected(void);
int rrdc_disconnect(void);

int rrdc_update(const char *filename, int values_num, const char *const *values);
int rrdc_flush(const char *filename);
int rrdc_flush_if_daemon(const char *address, const char *filename);
int rrdc_forget(const char *filename);
rrd_info_t *rrdc_info(const char *filename);
time_t rrdc_last(const char *filename);
time_t rrdc_first(const char *filename, int rraindex);
int rrdc_create(const char *filename, unsigned long pdp_step, time_t last_up, int no_overwrite, int argc,
                const char **argv);
int rrdc_create_r2(const char *filename, unsigned long pdp_step, time_t last_up, int no_overwrite,
                   const char **sources, const char *tmplt, int argc, const char **argv);
int rrdc_fetch(const char *filename, const char *cf, time_t *start, time_t *end, unsigned long *step,
               unsigned long *ds_cnt, char ***ds_namv, rrd_value_t **data);
int rrdc_stats_get(rrdc_stats_t **stats);
void rrdc_stats_free(rrdc_stats_t *stats);

#ifdef __cplusplus
}
#endif

#endif
