/* Prints a record as one line in columns. What is not printable ASCII is written as an escape, so
 * that a record cannot drive the terminal. */
#include "audit_view.h"

#include "audit_read.h"
#include "out.h"
#include "slice.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { KIND_WIDTH = 11, SANDBOX_WIDTH = 29, TIME_SHOWN = 23, DAY_SHOWN = 10 };

static enum colour colour_of(enum record_kind k)
{
    switch (k) {
    case RECORD_DENIED:
    case RECORD_TLS_REFUSED:
        return COLOUR_RED;
    case RECORD_ABORTED:
        return COLOUR_YELLOW;
    case RECORD_ADMITTED:
    case RECORD_COMPLETED:
        return COLOUR_GREEN;
    default:
        return COLOUR_DIM;
    }
}

/* Text from a record. The log keeps each byte that is not printable ASCII as one code point up to
 * U+00FF; it is shown as \xNN, and a backslash of the text itself likewise, so nothing in a record
 * can drive the terminal or be taken for another text. */
static size_t put(const char *text)
{
    size_t width = 0;
    for (const unsigned char *p = (const unsigned char *)text; *p; p++) {
        unsigned c = *p;
        if (c >= 0x20 && c <= 0x7e && c != '\\') {
            putchar((int)c);
            width++;
            continue;
        }
        if ((c == 0xc2 || c == 0xc3) && (p[1] & 0xc0U) == 0x80)
            c = (c & 3U) << 6 | (*++p & 0x3fU);
        printf("\\x%02x", c);
        width += 4;
    }
    return width;
}

static void pad(size_t width, size_t have)
{
    for (; have < width; have++)
        putchar(' ');
    putchar(' ');
}

/* ", word" or nothing */
static void put_more(const char *before, const char *text)
{
    if (*text == 0)
        return;
    printf("%s", before);
    put(text);
}

static void put_subject(const struct query_row *r)
{
    put_more(" ", r->event);
    put_more(" ", r->method);
    if (*r->authority)
        putchar(' ');
    if (strcmp(r->scheme, "http") == 0)
        printf("http://");
    put(r->authority);
    put(r->path);
    put_more(" ", r->target);
    put_more(" at ", r->address);
    if (r->count >= 0)
        printf(" x%lld", (long long)r->count);
}

/* For a reader the day stands alone when it changes; for a program each time is whole. */
static void put_time(struct audit_view *v, const char *time)
{
    char shown[TIME_SHOWN + 2];
    bool person = isatty(STDOUT_FILENO);
    if (person && strncmp(v->day, time, DAY_SHOWN) != 0) {
        snprintf(v->day, sizeof v->day, "%.*s", DAY_SHOWN, time);
        out_coloured(stdout, COLOUR_DIM, v->day);
        putchar('\n');
    }
    snprintf(shown, sizeof shown, "%.*sZ", TIME_SHOWN, time);
    put(person && strlen(shown) > DAY_SHOWN ? shown + DAY_SHOWN + 1 : shown);
}

void audit_view_row(void *arg, const struct query_row *row)
{
    struct audit_view *v = arg;
    const char *kind = record_kind_name(row->kind);
    v->rows++;
    if (v->raw) {
        fwrite(row->line.p, 1, row->line.n, stdout);
        putchar('\n');
        return;
    }
    put_time(v, row->time);
    putchar(' ');
    pad(SANDBOX_WIDTH, put(*row->sandbox ? row->sandbox : "-"));
    out_coloured(stdout, colour_of(row->kind), kind);
    pad(KIND_WIDTH, strlen(kind));
    put_subject(row);
    put_more("  ", row->code);
    if (row->status >= 0)
        printf("  %lld", (long long)row->status);
    if (row->kind == RECORD_LIFECYCLE || row->kind == RECORD_CONNECTION ||
        row->kind == RECORD_ABORTED || row->kind == RECORD_TLS_REFUSED)
        put_more("  ", row->detail);
    put_more("  with ", row->credential);
    if (row->kind != RECORD_LIFECYCLE && row->kind != RECORD_DNS)
        put_more("  #", row->id);
    if (audit_is_probe(row))
        printf("  (probe)");
    putchar('\n');
}
