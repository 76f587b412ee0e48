/* librrd's interface, as kymo's librrd.so.8 has it. Link with -lrrd.
 *
 * Functions that return int give 0 or -1 unless they say otherwise; rrd_get_error() says what was
 * wrong, until rrd_clear_error(). Results that are lists are the caller's: rrd_freemem() or free()
 * each string and the list, rrd_info_free() facts.
 *
 * The functions ending in _r may be called by any number of threads. Those with argc and argv take
 * the words of a command line of rrdtool, of which the first is the name of the command.
 */
#ifndef KYMO_RRD_H
#define KYMO_RRD_H

#include <stdio.h>
#include <string.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef double rrd_value_t;

/* The unknown value, and infinity. */
double rrd_set_to_DNAN(void);
double rrd_set_to_DINF(void);
#ifndef DNAN
#define DNAN rrd_set_to_DNAN()
#endif
#ifndef DINF
#define DINF rrd_set_to_DINF()
#endif

/* A file that rrd_open of rrd_format.h has opened. */
typedef struct rrd_file_t {
    size_t header_len;
    size_t file_len;
    size_t pos;
    void *pvt;
    struct rrd_t *rrd;
} rrd_file_t;

/* Facts: keys and values. */

typedef enum rrd_info_type {
    RD_I_VAL = 0, /* u_val: a number */
    RD_I_CNT,     /* u_cnt: a count or a time */
    RD_I_STR,     /* u_str: a text */
    RD_I_INT,     /* u_int: a status */
    RD_I_BLO      /* u_blo: bytes, such as a picture */
} rrd_info_type_t;

typedef struct rrd_blob_t {
    unsigned long size;
    unsigned char *ptr;
} rrd_blob_t;

typedef union rrd_infoval {
    unsigned long u_cnt;
    rrd_value_t u_val;
    char *u_str;
    int u_int;
    rrd_blob_t u_blo;
} rrd_infoval_t;

typedef struct rrd_info_t {
    char *key;
    rrd_info_type_t type;
    rrd_infoval_t value;
    struct rrd_info_t *next;
} rrd_info_t;

/* Puts a fact behind `last`, or begins a list if that is NULL. The key, of malloc(), becomes the list's;
 * texts and blobs are copied. Gives the new fact. */
rrd_info_t *rrd_info_push(rrd_info_t *last, char *key, rrd_info_type_t type, rrd_infoval_t value);
void rrd_info_print(rrd_info_t *facts);
void rrd_info_free(rrd_info_t *facts);

/* Commands. */

int rrd_create(int argc, char **argv);
int rrd_update(int argc, char **argv);
rrd_info_t *rrd_update_v(int argc, char **argv);
int rrd_fetch(int argc, char **argv, time_t *start, time_t *end, unsigned long *step,
              unsigned long *ds_cnt, char ***ds_namv, rrd_value_t **data);
rrd_info_t *rrd_info(int argc, char **argv);
time_t rrd_first(int argc, char **argv);
time_t rrd_last(int argc, char **argv);
int rrd_lastupdate(int argc, char **argv); /* prints */
char *rrd_list(int argc, char **argv);     /* names, a line each */
int rrd_dump(int argc, char **argv);
int rrd_restore(int argc, char **argv);
int rrd_tune(int argc, char **argv);
int rrd_resize(int argc, char **argv);
int rrd_flushcached(int argc, char **argv);

/* Draws. `prdata` are the texts of PRINT, ended by NULL, or NULL. A picture named `-` goes to the stream, or
 * to standard output if that is NULL. */
int rrd_graph(int argc, char **argv, char ***prdata, int *xsize, int *ysize, FILE *stream,
              double *ymin, double *ymax);
rrd_info_t *rrd_graph_v(int argc, char **argv);

/* Makes a table. If `xsize` is NULL, it is printed, too. */
int rrd_xport(int argc, char **argv, int *xsize, time_t *start, time_t *end, unsigned long *step,
              unsigned long *col_cnt, char ***legend_v, rrd_value_t **data);

/* The same without command lines. */

/* A last_up of -1 is ten seconds ago, a pdp_step of 0 is 300 or that of the template. */
int rrd_create_r(const char *filename, unsigned long pdp_step, time_t last_up, int argc,
                 const char **argv);
/* `sources` ends with NULL. */
int rrd_create_r2(const char *filename, unsigned long pdp_step, time_t last_up, int no_overwrite,
                  const char **sources, const char *tmplt, int argc, const char **argv);

/* Passes over readings that are not after the last update. */
#define RRD_SKIP_PAST_UPDATES 0x01

int rrd_update_r(const char *filename, const char *tmplt, int argc, const char **argv);
int rrd_updatex_r(const char *filename, const char *tmplt, int extra_flags, int argc,
                  const char **argv);
/* Rows that are written come behind the last fact of the list. */
int rrd_update_v_r(const char *filename, const char *tmplt, int argc, const char **argv,
                   rrd_info_t *pcdp_summary);

/* start, end and step say what is wanted, and then what was found. */
int rrd_fetch_r(const char *filename, const char *cf, time_t *start, time_t *end, unsigned long *step,
                unsigned long *ds_cnt, char ***ds_namv, rrd_value_t **data);
rrd_info_t *rrd_info_r(const char *filename);
time_t rrd_first_r(const char *filename, const int rraindex);
time_t rrd_last_r(const char *filename);
int rrd_lastupdate_r(const char *filename, time_t *last_update, unsigned long *ds_count,
                     char ***ds_names, char ***last_ds);
char *rrd_list_r(int recursive, char *dirname);

/* The header of a dump: none (0), one with a DTD (1) or with a schema (2). Without a name, it is printed. */
int rrd_dump_r(const char *filename, char *outname);
int rrd_dump_opt_r(const char *filename, char *outname, int header);
typedef size_t (*rrd_output_callback_t)(const void *data, size_t length, void *user);
int rrd_dump_cb_r(const char *filename, int header, rrd_output_callback_t cb, void *user);

/* Errors. */

typedef struct rrd_context {
    char lib_errstr[256];
    char rrd_error[4096];
} rrd_context_t;

#if defined(__GNUC__)
__attribute__((format(printf, 1, 2)))
#endif
void rrd_set_error(char *format, ...);
void rrd_clear_error(void);
int rrd_test_error(void);
char *rrd_get_error(void);
const char *rrd_strerror(int error);
rrd_context_t *rrd_get_context(void); /* that of the thread */
rrd_context_t *rrd_new_context(void);
void rrd_free_context(rrd_context_t *context);

/* Times such as `noon yesterday`. */

typedef enum {
    ABSOLUTE_TIME,
    RELATIVE_TO_START_TIME,
    RELATIVE_TO_END_TIME,
    RELATIVE_TO_EPOCH
} rrd_timetype_t;

typedef struct rrd_time_value {
    rrd_timetype_t type;
    long offset;
    struct tm tm;
} rrd_time_value_t;

#define TIME_OK NULL

/* Gives what is wrong, or TIME_OK. */
char *rrd_parsetime(const char *text, rrd_time_value_t *time);
int rrd_proc_start_end(rrd_time_value_t *start, rrd_time_value_t *end, time_t *start_time,
                       time_t *end_time);

/* Helpers. */

char *rrd_strversion(void);
double rrd_version(void);
void rrd_freemem(void *memory);
long rrd_random(void);
int rrd_mkdir_p(const char *pathname, mode_t mode);

/* Lists of pointers that grow. They give 1, or 0 if memory is full. */
int rrd_add_ptr(void ***list, size_t *length, void *pointer);
int rrd_add_ptr_chunk(void ***list, size_t *length, void *pointer, size_t *room, size_t chunk);
int rrd_add_strdup(char ***list, size_t *length, char *string);
int rrd_add_strdup_chunk(char ***list, size_t *length, char *string, size_t *room, size_t chunk);
void rrd_free_ptrs(void ***list, size_t *length);

/* A count, or how many times `divisor` seconds a length of time such as `5m` is. Gives what is wrong, or
 * NULL. */
const char *rrd_scaled_duration(const char *token, unsigned long divisor, unsigned long *value);

/* The number at the beginning of a text, whatever the locale is. rrd_strtodbl gives 2 if the text is a number,
 * 1 if its beginning is, else 0. */
double rrd_strtod(const char *text, char **end);
unsigned int rrd_strtodbl(const char *text, char **end, double *number, const char *error);
int rrd_snprintf(char *to, size_t size, const char *format, ...);

/* Numbers that end with 0: the greatest that divides all. */
unsigned long rrd_lcd(unsigned long *numbers);

#ifdef RRD_EXPORT_DEPRECATED
#include <rrd_format.h>
#endif

#ifdef __cplusplus
}
#endif

#endif
