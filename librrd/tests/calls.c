/* Calls librrd's functions and prints what they give. Run with librrd and with kymo's, the output must be the
 * same. HARNESS_DAEMON is the address of a daemon whose directory is the working directory. */
#define RRD_EXPORT_DEPRECATED
#include <rrd.h>
#include <rrd_client.h>
#include <stdlib.h>

#define COUNT(list) ((int)(sizeof(list) / sizeof *(list)))
#define WORDS(...) COUNT(((char *[]){__VA_ARGS__})), (char *[]){__VA_ARGS__, NULL}
#define TEXTS(...) COUNT(((const char *[]){__VA_ARGS__})), (const char *[]){__VA_ARGS__}

static void error(const char *what)
{
    printf("  %s: [%s]\n", what, rrd_test_error() ? rrd_get_error() : "");
    rrd_clear_error();
}

static void facts(rrd_info_t *list)
{
    for (rrd_info_t *fact = list; fact; fact = fact->next) {
        if (strstr(fact->key, "cur_row"))
            fact->value.u_cnt = 0;
        printf("%d ", (int)fact->type);
    }
    printf("\n");
    rrd_info_print(list);
    rrd_info_free(list);
}

static void rows(int status, time_t start, time_t end, unsigned long step, unsigned long count, char **names,
                 rrd_value_t *values)
{
    if (status != 0) {
        error("rows");
        return;
    }
    printf("%ld %ld %lu %lu\n", (long)start, (long)end, step, count);
    for (unsigned long row = 0; row < (end - start) / step; row++) {
        for (unsigned long place = 0; place < count; place++) {
            unsigned long bits;
            memcpy(&bits, &values[row * count + place], sizeof bits);
            printf("%s=%lx ", names[place], bits);
        }
        printf("\n");
    }
    for (unsigned long place = 0; place < count; place++)
        free(names[place]);
    rrd_freemem(names);
    rrd_freemem(values);
}

static size_t count_bytes(const void *data, size_t length, void *user)
{
    (void)data;
    *(size_t *)user += length;
    return length;
}

static int own_rows(const char *name, enum cf_en cf, time_t *start, time_t *end, unsigned long *step,
                    unsigned long *count, char ***names, rrd_value_t **values)
{
    (void)name;
    *step = 300;
    *start -= *start % 300;
    *end += 300 - *end % 300;
    *count = 1;
    *names = malloc(sizeof **names);
    (*names)[0] = strdup("v");
    unsigned long length = (*end - *start) / 300;
    *values = malloc(length * sizeof **values);
    for (unsigned long row = 0; row < length; row++)
        (*values)[row] = row + cf;
    return 1;
}

static void helpers(void)
{
    printf("%s %.4f\n", rrd_strversion(), rrd_version());
    rrd_set_error("%d %s", 5, "five");
    error("set");
    unsigned long divided[] = {6, 9, 0};
    printf("%lu %s\n", rrd_lcd(divided), rrd_strerror(2));
    const char *functions[] = {"AVERAGE", "MIN", "MAX", "LAST", "HWPREDICT", "MHWPREDICT", "DEVPREDICT",
                               "SEASONAL", "DEVSEASONAL", "FAILURES", "FOO"};
    for (int place = 0; place < COUNT(functions); place++)
        printf("%d ", rrd_cf_conv(functions[place]));
    error("cf");
    const char *numbers[] = {"1", "1.5e3", "x", "", "  7 z", "-3.5abc", "inf", "-inf", "nan", "0x10", "1e2000",
                             "1e-400", "+5", ".5", "5.", "1e", "--5"};
    for (int place = 0; place < COUNT(numbers); place++) {
        char *end = NULL;
        double number = -77;
        int status = rrd_strtodbl(numbers[place], &end, &number, "number");
        printf("%d %g %ld", status, number, (long)(end - numbers[place]));
        error(numbers[place]);
        end = NULL;
        number = rrd_strtod(numbers[place], &end);
        printf("%g %ld\n", number, end ? (long)(end - numbers[place]) : -1);
    }
    const char *lengths[] = {"5", "5m", "1h", "90s", "0", "", "m", "5x", "1w", "1M", "1y", "5min"};
    for (int place = 0; place < COUNT(lengths); place++) {
        unsigned long value = 77;
        const char *problem = rrd_scaled_duration(lengths[place], 60, &value);
        printf("%s %s %lu\n", lengths[place], problem ? problem : "", value);
    }
    char text[40];
    int length = rrd_snprintf(text, sizeof text, "%s %d %lu %.2f", "ab", -5, 7ul, 3.14159);
    printf("%d %s\n", length, text);
    void **pointers = NULL;
    char **strings = NULL;
    size_t count = 0, texts = 0, room = 0;
    printf("%d %zu\n", rrd_add_ptr(&pointers, &count, strdup("p")), count);
    rrd_free_ptrs(&pointers, &count);
    for (int round = 0; round < 5; round++)
        rrd_add_strdup_chunk(&strings, &texts, "q", &room, 4);
    printf("%zu %zu %s\n", texts, room, strings[4]);
    rrd_free_ptrs((void ***)&strings, &texts);
    printf("%d %zu\n", strings == NULL, texts);
    printf("%d %d\n", rrd_mkdir_p("m1/m2", 0755), rrd_mkdir_p("m1/m2", 0755));
    printf("%d\n", rrd_random() >= 0);
    rrd_context_t *context = rrd_new_context();
    printf("%d\n", context->rrd_error[0]);
    rrd_free_context(context);
}

static void reentrant(void)
{
    printf("%d", rrd_create_r("t.rrd", 300, 1000000200, TEXTS("DS:a:GAUGE:600:0:U", "DS:b:COUNTER:600:U:1000",
                                                             "RRA:AVERAGE:0.5:1:10", "RRA:MAX:0.5:3:10")));
    error("create");
    printf("%d", rrd_create_r2("t.rrd", 300, 1000000200, 1, NULL, NULL, TEXTS("DS:a:GAUGE:600:0:U", "RRA:LAST:0:1:1")));
    error("create, no overwrite");
    printf("%d", rrd_create_r2("t2.rrd", 0, -1, 1, (const char *[]){"t.rrd", NULL}, "t.rrd", 0, NULL));
    error("create of another");
    printf("%d", rrd_create_r("t3.rrd", 300, 1000000200, TEXTS("DS:a:GAUGE:600:0:U")));
    error("create without archives");
    printf("%d", rrd_update_r("t.rrd", NULL, TEXTS("1000000500:1:5", "1000000800:2:305", "1000001100.5:3:900")));
    error("update");
    printf("%d", rrd_update_r("t.rrd", NULL, TEXTS("1000000500:1:5")));
    error("update again");
    printf("%d", rrd_updatex_r("t.rrd", NULL, RRD_SKIP_PAST_UPDATES, TEXTS("1000000500:1:5")));
    error("update, skip");
    printf("%d", rrd_update_r("t.rrd", "a", TEXTS("1000001400:9")));
    error("template");
    printf("%d", rrd_update_r("t.rrd", "zz", TEXTS("1000001700:9")));
    error("wrong template");
    printf("%d", rrd_update_r("t.rrd", NULL, TEXTS("1000001700:9:x")));
    error("wrong value");
    printf("%d", rrd_update_r("none.rrd", NULL, TEXTS("1000001700:9:2")));
    error("no file");
    rrd_infoval_t value = {.u_int = 42};
    rrd_info_t *head = rrd_info_push(NULL, strdup("head"), RD_I_INT, value);
    value.u_str = "text";
    rrd_info_push(head, strdup("second"), RD_I_STR, value);
    printf("%d", rrd_update_v_r("t.rrd", NULL, TEXTS("1000001800:9:1000", "1000002400:U:1300"), head->next));
    error("update_v");
    facts(head);
    const char *functions[] = {"AVERAGE", "LAST", "HWPREDICT", "FOO"};
    for (int place = 0; place < COUNT(functions); place++) {
        time_t start = 1000000000, end = 1000003000;
        unsigned long step = 1, count;
        char **names;
        rrd_value_t *values;
        int status = rrd_fetch_r("t.rrd", functions[place], &start, &end, &step, &count, &names, &values);
        if (place == 0) {
            unsigned long longer = 900;
            printf("%d %lu\n", rrd_reduce_data(CF_AVERAGE, step, &start, &end, &longer, &count, &values), longer);
            step = longer;
        }
        rows(status, start, end, step, count, names, values);
    }
    facts(rrd_info_r("t.rrd"));
    rrd_info_r("none.rrd");
    error("info");
    printf("%ld %ld %ld", (long)rrd_first_r("t.rrd", 1), (long)rrd_first_r("t.rrd", 7), (long)rrd_last_r("t.rrd"));
    error("first");
    time_t last;
    unsigned long count;
    char **names, **readings;
    printf("%d ", rrd_lastupdate_r("t.rrd", &last, &count, &names, &readings));
    for (unsigned long place = 0; place < count; place++) {
        printf("%s=%s ", names[place], readings[place]);
        free(names[place]);
        free(readings[place]);
    }
    free(names);
    free(readings);
    printf("%ld\n", (long)last);
    for (int header = 0; header < 3; header++) {
        size_t length = 0;
        printf("%d ", rrd_dump_cb_r("t.rrd", header, count_bytes, &length));
        printf("%zu %d\n", length, rrd_dump_opt_r("t.rrd", "t.xml", header));
    }
    printf("%d", rrd_dump_r("none.rrd", "n.xml"));
    error("dump");
}

static void commands(void)
{
    printf("%d", rrd_create(WORDS("create", "c.rrd", "--start", "1000000000", "--step", "60", "DS:x:GAUGE:120:U:U", "RRA:LAST:0:1:5")));
    error("create");
    printf("%d", rrd_update(WORDS("update", "t.rrd", "1000003000:1:1600")));
    error("update");
    printf("%d", rrd_update(WORDS("update", "-q", "t.rrd", "N:1")));
    error("update -q");
    facts(rrd_update_v(WORDS("updatev", "t.rrd", "1000003300:1:1600")));
    facts(rrd_update_v(WORDS("updatev", "t.rrd", "5:1:1")));
    error("updatev");
    printf("%ld %ld\n", (long)rrd_last(WORDS("last", "t.rrd")), (long)rrd_first(WORDS("first", "t.rrd", "--rraindex", "1")));
    printf("%d\n", rrd_lastupdate(WORDS("lastupdate", "t.rrd")));
    facts(rrd_info(WORDS("info", "t.rrd")));
    printf("%d", rrd_tune(WORDS("tune", "t.rrd", "-h", "zz:900")));
    error("tune");
    printf("%d", rrd_resize(WORDS("resize", "t.rrd", "0", "GROW", "5")));
    error("resize");
    printf("%d", rrd_dump(WORDS("dump", "t.rrd", "o.xml")));
    printf("%d", rrd_restore(WORDS("restore", "o.xml", "r.rrd")));
    error("dump, restore");
    time_t start, end;
    unsigned long step, count;
    char **names, **texts = NULL;
    rrd_value_t *values;
    int width = 0, height = 0;
    double least = 0, most = 0;
    int status = rrd_xport(WORDS("xport", "-s", "1000000000", "-e", "1000003000", "DEF:a=t.rrd:a:AVERAGE", "CDEF:b=a,2,*", "XPORT:a:la", "XPORT:b:lb"),
                           &width, &start, &end, &step, &count, &names, &values);
    rows(status, start, end, step, count, names, values);
    status = rrd_graph(WORDS("graph", "g.png", "--imginfo", "I %s %lu %lu", "-s", "1000000000", "-e", "1000003000", "DEF:a=t.rrd:a:AVERAGE",
                             "LINE:a#ff0000:leg", "PRINT:a:AVERAGE:%.2lf", "PRINT:a:MAX:m %.1lf"),
                       &texts, &width, &height, NULL, &least, &most);
    printf("%d %d %d %g %g\n", status, width, height, least, most);
    for (int place = 0; texts && texts[place]; place++) {
        printf("%s\n", texts[place]);
        free(texts[place]);
    }
    free(texts);
    FILE *stream = fopen("s.svg", "w");
    status = rrd_graph(WORDS("graph", "-", "-a", "SVG", "-s", "1000000000", "-e", "1000003000", "DEF:a=t.rrd:a:AVERAGE", "LINE:a#ff0000"),
                       &texts, &width, &height, stream, &least, &most);
    printf("%d %d %d\n", status, texts == NULL, ftell(stream) > 1000);
    fclose(stream);
    facts(rrd_graph_v(WORDS("graphv", "g.png", "-s", "1000000000", "-e", "1000003000", "DEF:a=t.rrd:a:AVERAGE", "LINE:a#ff0000:leg", "PRINT:a:AVERAGE:%.2lf")));
    rrd_graph_v(WORDS("graphv", "g.png", "LINE:nothing#ff0000"));
    error("graphv");
    rrd_fetch_cb_register(own_rows);
    facts(rrd_graph_v(WORDS("graphv", "g.png", "-s", "1000000000", "-e", "1000003000", "DEF:a=cb//x:v:MAX:step=900", "LINE:a#ff0000", "PRINT:a:AVERAGE:%.2lf")));
    rrd_fetch_cb_register(NULL);
}

static void files(void)
{
    rrd_t rrd;
    rrd_init(&rrd);
    rrd_file_t *file = rrd_open("t.rrd", &rrd, RRD_READWRITE);
    printf("%zu %zu %lu %lu %s %s %ld %s\n", file->header_len, file->file_len, rrd.stat_head->ds_cnt, rrd.stat_head->rra_cnt,
           rrd.ds_def[1].ds_nam, rrd.rra_def[1].cf_nam, (long)rrd.live_head->last_up, rrd.pdp_prep[1].last_ds);
    double number = 5;
    printf("%d %ld ", rrd_lock(file), (long)rrd_seek(file, file->header_len, SEEK_SET));
    printf("%ld %ld ", (long)rrd_write(file, &number, sizeof number), (long)rrd_tell(file));
    number = 0;
    rrd_seek(file, -(off_t)sizeof number, SEEK_CUR);
    printf("%ld %g\n", (long)rrd_read(file, &number, sizeof number), number);
    rrd_seek(file, 0, SEEK_END);
    printf("%ld\n", (long)rrd_read(file, &number, sizeof number));
    rrd_dontneed(file, &rrd);
    rrd_flush(file);
    printf("%d\n", rrd_close(file));
    rrd_free(&rrd);
    rrd_init(&rrd);
    printf("%d", rrd_open("none.rrd", &rrd, RRD_READONLY) == NULL);
    error("open");
    rrd_free(&rrd);
}

static void times(void)
{
    const char *texts[] = {"1600000000", "1600000000-1d", "20200105", "31.12.2020 10:30", "jan 5 2020 10:30", "noon 1/5/2020", "end-1d", "start+2h",
                           "foo", "10:30:15", "1/5/37", "end-1month", "-1x y", "now 5m", "10:00 jan 5 2020 -1 month 2 days"};
    for (int place = 0; place < COUNT(texts); place++) {
        rrd_time_value_t time;
        char *problem = rrd_parsetime(texts[place], &time);
        printf("%s: %s", texts[place], problem ? problem : "");
        if (problem == TIME_OK)
            printf("%d %ld %d-%d-%d %d:%d:%d %d", time.type, time.offset, time.tm.tm_year, time.tm.tm_mon, time.tm.tm_mday, time.tm.tm_hour,
                   time.tm.tm_min, time.tm.tm_sec, time.tm.tm_isdst);
        printf("\n");
    }
    const char *spans[][2] = {{"end-1d", "1600000000"}, {"1600000000", "start+1h"}, {"end-1month", "1603623600"}, {"end-1d", "start+1d"},
                              {"start+5", "1600000000"}, {"1600000000", "end-5"}, {"20200101", "20200201"}, {"1600000000", "1500000000"}};
    for (int place = 0; place < COUNT(spans); place++) {
        rrd_time_value_t from, until;
        time_t start = 0, end = 0;
        rrd_parsetime(spans[place][0], &from);
        rrd_parsetime(spans[place][1], &until);
        printf("%d %ld %ld", rrd_proc_start_end(&from, &until, &start, &end), (long)start, (long)end);
        error(spans[place][0]);
    }
}

static void client(const char *address)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/d.rrd", getenv("PWD"));
    rrdc_stats_t *stats = NULL;
    printf("%d %d %d %d\n", rrdc_is_any_connected(), rrdc_flush(path), rrdc_connect(NULL), rrdc_stats_get(&stats));
    if (address == NULL)
        return;
    printf("%d", rrdc_connect(address));
    error("connect");
    printf("%d %d\n", rrdc_is_connected(address), rrdc_is_connected("unix:/other"));
    printf("%d\n", rrdc_create_r2(path, 300, 1000000200, 0, NULL, NULL, TEXTS("DS:a:GAUGE:600:0:U", "RRA:AVERAGE:0.5:1:10")));
    printf("%d", rrdc_create(path, 300, 1000000200, 1, TEXTS("DS:a:GAUGE:600:0:U", "RRA:AVERAGE:0.5:1:10")));
    printf(" %d", rrd_test_error());
    rrd_clear_error();
    const char *const readings[] = {"1000000500:1", "1000000800:2"};
    printf(" %d", rrdc_update(path, COUNT(readings), readings));
    printf(" %d", rrdc_update(path, COUNT(readings), readings));
    printf(" %d\n", rrd_test_error());
    rrd_clear_error();
    printf("%ld %ld %d\n", (long)rrdc_last(path), (long)rrdc_first(path, 0), rrdc_flush(path));
    facts(rrdc_info(path));
    time_t start = 1000000000, end = 1000001200;
    unsigned long step = 1, count;
    char **names;
    rrd_value_t *values;
    int status = rrdc_fetch(path, "AVERAGE", &start, &end, &step, &count, &names, &values);
    rows(status, start, end, step, count, names, values);
    printf("%d\n", rrdc_stats_get(&stats));
    for (rrdc_stats_t *fact = stats; fact; fact = fact->next)
        printf("%s %d\n", fact->name, fact->type);
    rrdc_stats_free(stats);
    printf("%d %d\n", rrdc_flush_if_daemon(address, path), rrdc_forget(path));
    printf("%d", rrdc_forget("/none"));
    error("forget");
    printf("%d\n", rrdc_disconnect());
}

int main(void)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    unsetenv("RRDCACHED_ADDRESS");
    helpers();
    reentrant();
    commands();
    files();
    times();
    client(getenv("HARNESS_DAEMON"));
    return 0;
}
