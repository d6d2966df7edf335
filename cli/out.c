/* Prints errors, tables and JSON. A table is collected before it is printed, because a column is as
 * wide as its widest cell. */
#include "out.h"

#include "args.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
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

void out_harmless(char *text)
{
    for (char *p = text; *p; p++)
        if (((unsigned char)*p < ' ' && *p != '\n' && *p != '\t') || *p == 0x7f)
            *p = '?';
}

static void say(const char *fmt, va_list ap)
{
    char text[4096];
    out_coloured(stderr, COLOUR_RED, "durward:");
    vsnprintf(text, sizeof text, fmt, ap);
    out_harmless(text);
    fprintf(stderr, " %s\n", text);
}

void out_error(const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    say(fmt, ap);
    va_end(ap);
}

static bool quiet;

void out_be_quiet(void)
{
    quiet = true;
}

bool out_is_quiet(void)
{
    return quiet;
}

void out_note(const char *fmt, ...)
{
    va_list ap;
    if (quiet)
        return;
    va_start(ap, fmt);
    say(fmt, ap);
    va_end(ap);
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

static int write_all(int fd, const char *from, size_t n)
{
    while (n > 0) {
        ssize_t w = write(fd, from, n);
        if (w < 0 && errno != EINTR)
            return -1;
        from += w > 0 ? w : 0;
        n -= w > 0 ? (size_t)w : 0;
    }
    return fsync(fd);
}

/* What replaces a file is written beside it, whole, before that goes. */
int out_file(const char *file, int mode, bool replace, const void *p, size_t n, struct err *err)
{
    char part[PATH_MAX];
    struct stat st;
    bool there = replace && lstat(file, &st) == 0;
    if (snprintf(part, sizeof part, "%s%s", file, replace ? ".new" : "") >= (int)sizeof part)
        return err_set(err, ERR_LIMIT, "%.200s...: the name is too long", file);
    if (there && !S_ISREG(st.st_mode))
        return err_set(err, ERR_DENIED, "%s is not a regular file; it stays", file);
    int fd = open(part, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_EXCL, mode);
    if (fd < 0)
        return err_sys(err, "%s", part);
    int r = there && fchmod(fd, st.st_mode & 0777) < 0 ? -1 : write_all(fd, p, n);
    if (r < 0)
        err_sys(err, "cannot write %s", part);
    if (close(fd) < 0 && r == 0)
        r = err_sys(err, "cannot write %s", part);
    if (r == 0 && replace && rename(part, file) < 0)
        r = err_sys(err, "cannot replace %s", file);
    if (r < 0)
        (void)unlink(part);
    return r;
}

static int64_t now_ms(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000 + 1;
}

void out_progress(struct out_progress *p, const char *fmt, ...)
{
    int64_t now = now_ms();
    va_list ap;
    if (p->begun == 0)
        p->begun = now;
    if (now - p->begun < 500 || now - p->shown < 200 || !isatty(STDERR_FILENO))
        return;
    p->shown = now;
    fputc('\r', stderr);
    va_start(ap, fmt);
    vfprintf(stderr, fmt, ap);
    va_end(ap);
    fputs("\033[K", stderr);
}

void out_progress_end(struct out_progress *p)
{
    if (p->shown)
        fputs("\r\033[K", stderr);
    *p = (struct out_progress){0};
}

const char *out_span(int64_t seconds, char *to, size_t size)
{
    static const struct {
        int64_t of;
        char unit;
    } units[] = {{86400, 'd'}, {3600, 'h'}, {60, 'm'}, {1, 's'}};
    size_t i = 0;
    while (i + 1 < ARRAY_LEN(units) && seconds < 2 * units[i].of)
        i++;
    snprintf(to, size, "%lld%c", (long long)((seconds < 0 ? 0 : seconds) / units[i].of),
             units[i].unit);
    return to;
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

void out_table_number(struct out_table *t, int64_t n)
{
    char text[24];
    snprintf(text, sizeof text, "%lld", (long long)n);
    out_table_cell(t, text);
}

void out_table_print(struct out_table *t)
{
    if (t->cells == 0) { /* who has nothing to show says so in words */
        free(t);
        return;
    }
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

int out_list(json_t *all, bool json, const char *const *titles, const char *none,
             void (*row)(struct out_table *t, const json_t *o))
{
    size_t i;
    const json_t *o;
    if (json)
        return out_json(all) < 0 ? EXIT_NO : EXIT_OK;
    struct out_table *t = json_array_size(all) > 0 ? out_table_new(titles) : NULL;
    if (t == NULL)
        out_error("%s", none);
    json_array_foreach(all, i, o)
    {
        row(t, o);
    }
    if (t)
        out_table_print(t);
    json_decref(all);
    return out_flush() < 0 ? EXIT_NO : EXIT_OK;
}
