/* What is in a database file, as C structs of this machine, and functions that read and write it.
 * Programs define RRD_EXPORT_DEPRECATED and include rrd.h. */
#ifndef KYMO_RRD_FORMAT_H
#define KYMO_RRD_FORMAT_H

#include <rrd.h>

#ifdef __cplusplus
extern "C" {
#endif

#define RRD_COOKIE "RRD"
#define RRD_VERSION3 "0003"
#define RRD_VERSION4 "0004"
#define RRD_VERSION5 "0005"
#define FLOAT_COOKIE ((double)8.642135E130)

#define DS_NAM_SIZE 20
#define DST_SIZE 20
#define CF_NAM_SIZE 20
#define LAST_DS_LEN 30
#define MAX_RRA_PAR_EN 10
#define MAX_CDP_PAR_EN 10
#define MAX_CDP_FAILURES_IDX 8
#define MAX_FAILURES_WINDOW_LEN 28

typedef union unival {
    unsigned long u_cnt;
    rrd_value_t u_val;
} unival;

/* Once, at the beginning. */
typedef struct stat_head_t {
    char cookie[4];
    char version[5];
    double float_cookie;
    unsigned long ds_cnt;
    unsigned long rra_cnt;
    unsigned long pdp_step;
    unival par[10];
} stat_head_t;

/* Of each data source. */
enum dst_en { DST_COUNTER = 0, DST_ABSOLUTE, DST_GAUGE, DST_DERIVE, DST_CDEF, DST_DCOUNTER, DST_DDERIVE };
enum ds_param_en { DS_mrhb_cnt = 0, DS_min_val, DS_max_val, DS_cdef = DS_mrhb_cnt };

typedef struct ds_def_t {
    char ds_nam[DS_NAM_SIZE];
    char dst[DST_SIZE];
    unival par[10];
} ds_def_t;

/* Of each archive. */
enum cf_en {
    CF_AVERAGE = 0,
    CF_MINIMUM,
    CF_MAXIMUM,
    CF_LAST,
    CF_HWPREDICT,
    CF_SEASONAL,
    CF_DEVPREDICT,
    CF_DEVSEASONAL,
    CF_FAILURES,
    CF_MHWPREDICT
};
enum rra_par_en {
    RRA_cdp_xff_val = 0,
    RRA_hw_alpha = 1,
    RRA_hw_beta = 2,
    RRA_dependent_rra_idx = 3,
    RRA_period = 4,
    RRA_seasonal_gamma = 1,
    RRA_seasonal_smoothing_window = 2,
    RRA_seasonal_smooth_idx = 4,
    RRA_delta_pos = 1,
    RRA_delta_neg = 2,
    RRA_window_len = 4,
    RRA_failure_threshold = 5
};

typedef struct rra_def_t {
    char cf_nam[CF_NAM_SIZE];
    unsigned long row_cnt;
    unsigned long pdp_cnt;
    unival par[MAX_RRA_PAR_EN];
} rra_def_t;

/* Once: the last update. Files before version 3 have the time alone. */
typedef struct live_head_t {
    time_t last_up;
    long last_up_usec;
} live_head_t;

/* Of each data source: the last reading, and the data point under way. */
enum pdp_par_en { PDP_unkn_sec_cnt = 0, PDP_val };

typedef struct pdp_prep_t {
    char last_ds[LAST_DS_LEN];
    unival scratch[10];
} pdp_prep_t;

/* Of each archive and data source: the row under way. */
enum cdp_par_en {
    CDP_val = 0,
    CDP_unkn_pdp_cnt,
    CDP_hw_intercept,
    CDP_hw_last_intercept,
    CDP_hw_slope,
    CDP_hw_last_slope,
    CDP_null_count,
    CDP_last_null_count,
    CDP_primary_val = 8,
    CDP_secondary_val = 9,
    CDP_hw_seasonal = CDP_hw_intercept,
    CDP_hw_last_seasonal = CDP_hw_last_intercept,
    CDP_seasonal_deviation = CDP_hw_intercept,
    CDP_last_seasonal_deviation = CDP_hw_last_intercept,
    CDP_init_seasonal = CDP_null_count
};

typedef struct cdp_prep_t {
    unival scratch[MAX_CDP_PAR_EN];
} cdp_prep_t;

/* Of each archive: the row written last. The values of all rows follow. */
typedef struct rra_ptr_t {
    unsigned long cur_row;
} rra_ptr_t;

typedef struct rrd_t {
    stat_head_t *stat_head;
    ds_def_t *ds_def;
    rra_def_t *rra_def;
    live_head_t *live_head;
    time_t *legacy_last_up; /* of files before version 3, else NULL */
    pdp_prep_t *pdp_prep;
    cdp_prep_t *cdp_prep;
    rra_ptr_t *rra_ptr;
    rrd_value_t *rrd_value;
    void *__mmap_start;
    long __mmap_size;
} rrd_t;

/* Flags of rrd_open. A file of another machine, or a portable one, is shown as one of this machine and can only
 * be read. Files are not created. */
#define RRD_READONLY (1 << 0)
#define RRD_READWRITE (1 << 1)

void rrd_init(rrd_t *rrd);
void rrd_free(rrd_t *rrd);
rrd_file_t *rrd_open(const char *const filename, rrd_t *rrd, unsigned flags);
int rrd_close(rrd_file_t *file);
ssize_t rrd_read(rrd_file_t *file, void *buffer, size_t count);
ssize_t rrd_write(rrd_file_t *file, const void *buffer, size_t count);
off_t rrd_seek(rrd_file_t *file, off_t offset, int whence);
off_t rrd_tell(rrd_file_t *file);
void rrd_flush(rrd_file_t *file);
int rrd_lock(rrd_file_t *file);
void rrd_dontneed(rrd_file_t *file, rrd_t *rrd);

/* -1 if there is no such consolidation function. */
int rrd_cf_conv(const char *name);
/* Makes rows of `step` seconds at least of rows of `cur_step`. Gives 1, or 0. */
int rrd_reduce_data(enum cf_en cf, unsigned long cur_step, time_t *start, time_t *end,
                    unsigned long *step, unsigned long *ds_cnt, rrd_value_t **data);

/* Rows that the program has itself, for files named `cb//...`. The function gives 1, names and values of
 * malloc(), and times: a row for each step after `start`, up to `end`. If it fails, it calls rrd_set_error() and
 * gives -1; what it gave before is not used then. rrd.h of librrd does not declare these, so that programs that
 * include rrd.h alone have declarations of their own. */
typedef int (*rrd_fetch_cb_t)(const char *filename, enum cf_en cf, time_t *start, time_t *end,
                              unsigned long *step, unsigned long *ds_cnt, char ***ds_namv,
                              rrd_value_t **data);
int rrd_fetch_cb_register(rrd_fetch_cb_t function);

#ifdef __cplusplus
}
#endif

#endif
