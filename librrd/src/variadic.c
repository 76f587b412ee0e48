/* What only C can define: functions with variable arguments, and the thread's context, which one of
   them writes. variadic.rs exports them. */
#include <stdarg.h>
#include <stdio.h>

struct kymo_context {
    char lib_errstr[256];
    char rrd_error[4096];
};

static _Thread_local struct kymo_context context;

struct kymo_context *kymo_librrd_context(void)
{
    return &context;
}

void kymo_librrd_set_error(char *format, ...)
{
    /* The arguments may point into the message that there is. */
    char text[sizeof context.rrd_error];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    snprintf(context.rrd_error, sizeof context.rrd_error, "%s", text);
}

int kymo_librrd_snprintf(char *to, size_t size, const char *format, ...)
{
    va_list arguments;
    int length;

    va_start(arguments, format);
    length = vsnprintf(to, size, format, arguments);
    va_end(arguments);
    return length;
}
