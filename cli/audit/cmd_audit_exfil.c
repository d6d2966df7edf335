/* durward audit exfil: who may have carried data out, and where to. */
#include "audit_read.h"
#include "exfil.h"
#include "out.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct arg_option audit_exfil_options[] = {
    AUDIT_OPTION_SINCE, AUDIT_OPTION_SANDBOX, AUDIT_OPTION_POLICY, AUDIT_OPTIONS_WHERE, {0}};

enum { ROWS = 20 }; /* destinations that are printed of a sandbox; --json has all */

static void take(void *arg, const struct query_row *row)
{
    if (!audit_is_probe(row))
        exfil_add(arg, row);
}

static uint64_t number(const json_t *o, const char *key)
{
    return (uint64_t)json_integer_value(json_object_get(o, key));
}

static const char *text(const json_t *o, const char *key)
{
    const char *s = json_string_value(json_object_get(o, key));
    return s ? s : "";
}

static void cell_number(struct out_table *t, uint64_t n)
{
    char s[24];
    snprintf(s, sizeof s, "%" PRIu64, n);
    out_table_cell(t, s);
}

static void cell_bytes(struct out_table *t, uint64_t n)
{
    static const char *const units[] = {"B", "KB", "MB", "GB", "TB"};
    char s[32];
    double v = (double)n;
    size_t i = 0;
    for (; v >= 1000 && i + 1 < ARRAY_LEN(units); i++)
        v /= 1000;
    snprintf(s, sizeof s, i && v < 10 ? "%.1f %s" : "%.0f %s", v, units[i]);
    out_table_cell(t, s);
}

static void add_sign(char *to, size_t size, const json_t *o, const char *key, const char *name)
{
    uint64_t n = number(o, key);
    size_t used = strlen(to);
    if (n)
        snprintf(to + used, size - used, "%s%s %" PRIu64, used ? ", " : "", name, n);
}

static void print_boxes(const json_t *list)
{
    static const char *const titles[] = {"SANDBOX", "POLICY", "OUT",   "IN",    "HOSTS", "REQUESTS",
                                         "DENIED",  "NAMES",  "BURST", "SIGNS", NULL};
    struct out_table *t = out_table_new(titles);
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *o = json_array_get(list, i);
        char signs[200] = "";
        add_sign(signs, sizeof signs, o, "foreign_credentials", "foreign credential");
        add_sign(signs, sizeof signs, o, "cross_sandbox", "another's placeholder");
        add_sign(signs, sizeof signs, o, "misplaced", "misplaced placeholder");
        add_sign(signs, sizeof signs, o, "reflected", "secret reflected");
        add_sign(signs, sizeof signs, o, "packets_refused", "packets refused");
        out_table_cell(t, text(o, "sandbox")[0] ? text(o, "sandbox") : "-");
        out_table_cell(t, text(o, "policy"));
        cell_bytes(t, number(o, "bytes_up"));
        cell_bytes(t, number(o, "bytes_down"));
        cell_number(t, number(o, "hosts"));
        cell_number(t, number(o, "requests"));
        cell_number(t, number(o, "denied"));
        cell_number(t, number(o, "names_refused"));
        cell_number(t, number(o, "burst"));
        out_table_cell(t, signs[0] ? signs : "-");
    }
    out_table_print(t);
}

static void print_places(const json_t *list)
{
    static const char *const titles[] = {"SANDBOX",  "DESTINATION", "OUT", "IN",
                                         "REQUESTS", "DENIED",      NULL};
    struct out_table *t = out_table_new(titles);
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *o = json_array_get(list, i), *places = json_object_get(o, "destinations");
        for (size_t j = 0; j < json_array_size(places) && j < ROWS; j++) {
            const json_t *p = json_array_get(places, j);
            out_table_cell(t, text(o, "sandbox")[0] ? text(o, "sandbox") : "-");
            out_table_cell(t, text(p, "host"));
            cell_bytes(t, number(p, "bytes_up"));
            cell_bytes(t, number(p, "bytes_down"));
            cell_number(t, number(p, "requests"));
            cell_number(t, number(p, "denied"));
        }
    }
    putchar('\n');
    out_table_print(t);
}

static int report(const char *dir, const struct query_filter *f,
                  const struct audit_asked *asked UNUSED, bool json)
{
    struct err err = {0};
    struct exfil *e = exfil_new();
    int r = e ? audit_each(dir, f, take, e, &err) : err_set(&err, ERR_INTERNAL, "out of memory");
    json_t *list = r == 0 ? exfil_report(e) : NULL;
    if (list == NULL) {
        out_error("%s", r == 0 ? "out of memory" : err.text);
        exfil_free(e);
        return EXIT_NO;
    }
    if (exfil_left_out(e))
        out_error("%" PRIu64 " records found no room; narrow it with --since or --sandbox",
                  exfil_left_out(e));
    exfil_free(e);
    if (json)
        return out_json(list) < 0 ? EXIT_NO : EXIT_OK;
    if (json_array_size(list)) {
        print_boxes(list);
        print_places(list);
    }
    json_decref(list);
    return out_flush() < 0 ? EXIT_NO : EXIT_OK;
}

int audit_run_exfil(int argc, char **argv)
{
    struct audit_asked asked = {0};
    struct query_filter f = {.kinds = 1U << RECORD_ADMITTED | 1U << RECORD_DENIED |
                                      1U << RECORD_COMPLETED | 1U << RECORD_ABORTED |
                                      1U << RECORD_DNS | 1U << RECORD_PACKET};
    return audit_run_report(args_verb(audit_verbs, "audit exfil"), argc, argv, &asked, &f, report);
}
