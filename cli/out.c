#include "out.h"

#include "args.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CELLS_MAX = 4096, CELL_SIZE = 120 };

struct out_table {
    const char *const *titles;
    size_t columns, cells;
    char cell[CELLS_MAX][CELL_SIZE];
};

bool out_colours(FILE *f)
{
    const char *no = getenv("NO_COLOR"), *term = getenv("TERM");
    return !(no && *no) && term && strcmp(term, "dumb") != 0 && isatty(fileno(f));
}

void out_coloured(FILE *f, enum colour c, const char *text)
{
    static const char *const codes[] = {"", "\033[31m", "\033[32m", "\033[33m", "\033[2m"};
    if (c == COLOUR_NONE || !out_colours(f))
        fputs(text, f);
    else
        fprintf(f, "%s%s\033[0m", codes[c], text);
}

void out_error(const char *fmt, ...)
{
    va_list ap;
    out_coloured(stderr, COLOUR_RED, "durward:");
    fputc(' ', stderr);
    va_start(ap, fmt);
    vfprintf(stderr, fmt, ap);
    va_end(ap);
    fputc('\n', stderr);
}

int out_fail(const struct err *err)
{
    out_error("%s", err->text);
    return EXIT_NO;
}

const char *out_member(const json_t *o, const char *key)
{
    const char *s = json_string_value(json_object_get(o, key));
    return s ? s : "";
}

char *out_clean(const char *text, char *buf, size_t size)
{
    size_t n = 0;
    for (; text[n] && n + 1 < size; n++)
        buf[n] = text[n] >= 0x20 && text[n] < 0x7f ? text[n] : '?';
    buf[n] = 0;
    return buf;
}

int out_flush(void)
{
    if (fflush(stdout) == 0 && !ferror(stdout))
        return 0;
    out_error("cannot write the output: %s", strerror(errno));
    return -1;
}

int out_json(json_t *v)
{
    size_t flags = isatty(STDOUT_FILENO) ? JSON_INDENT(2) : JSON_COMPACT;
    int r = v ? json_dumpf(v, stdout, flags | JSON_PRESERVE_ORDER) : -1;
    json_decref(v);
    if (r < 0) {
        out_error("cannot write the output");
        return -1;
    }
    putchar('\n');
    return out_flush();
}

struct out_table *out_table_new(const char *const *titles)
{
    struct out_table *t = calloc(1, sizeof *t);
    if (t == NULL)
        abort();
    t->titles = titles;
    while (titles[t->columns])
        t->columns++;
    return t;
}

void out_table_cell(struct out_table *t, const char *text)
{
    if (t->cells < CELLS_MAX)
        out_clean(text ? text : "", t->cell[t->cells++], CELL_SIZE);
}

void out_table_print(struct out_table *t)
{
    for (size_t i = 0; i < t->columns; i++) {
        size_t width = strlen(t->titles[i]);
        for (size_t c = i; c < t->cells; c += t->columns)
            if (strlen(t->cell[c]) > width)
                width = strlen(t->cell[c]);
        for (size_t c = i; i + 1 < t->columns && c < t->cells; c += t->columns)
            for (size_t n = strlen(t->cell[c]); n < width; n++)
                memcpy(t->cell[c] + n, " ", 2);
        char title[CELL_SIZE];
        snprintf(title, sizeof title, "%-*s", i + 1 < t->columns ? (int)width : 0, t->titles[i]);
        out_coloured(stdout, COLOUR_DIM, title);
        fputs(i + 1 < t->columns ? "  " : "\n", stdout);
    }
    size_t columns = t->columns ? t->columns : 1;
    for (size_t c = 0; c < t->cells; c++)
        printf("%s%s", t->cell[c], (c + 1) % columns ? "  " : "\n");
    free(t);
}
