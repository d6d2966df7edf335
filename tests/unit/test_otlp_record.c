/* Records of the audit log as OTLP says them: severities, attributes, the numbers of traces, spans
 * of a request and its steps. */
#include <CUnit/CUnit.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "compiler.h"
#include "otlp_record.h"
#include "tap_main.h"

void suite_otlp_record(void);

static struct otlp_ids ids;

static int setup(void)
{
    int r = otlp_ids_init(&ids);
    memset(ids.key, 7, sizeof ids.key);
    return r;
}

static int teardown(void)
{
    otlp_ids_done(&ids);
    otlp_ids_done(&ids);
    return ids.begun == NULL ? 0 : -1;
}

/* Single quotes for double ones. The caller frees. */
static json_t *record(const char *text)
{
    char *t = strdup(text);
    for (char *p = t; *p; p++)
        if (*p == '\'')
            *p = '"';
    json_t *r = json_loads(t, 0, NULL);
    CU_ASSERT_PTR_NOT_NULL_FATAL(r);
    free(t);
    return r;
}

static const char *text(const json_t *o, const char *key)
{
    const char *s = json_string_value(json_object_get(o, key));
    return s ? s : "";
}

/* The value of an attribute, whatever its type; NULL: there is none. */
static const json_t *attribute(const json_t *o, const char *name)
{
    size_t i;
    json_t *a;
    json_array_foreach(json_object_get(o, "attributes"), i, a)
    {
        const json_t *v = json_object_get(a, "value");
        if (strcmp(text(a, "key"), name) == 0)
            return json_object_iter_value(json_object_iter((json_t *)(uintptr_t)v));
    }
    return NULL;
}

static bool says(const json_t *o, const char *name, const char *want)
{
    const char *s = json_string_value(attribute(o, name));
    return s && strcmp(s, want) == 0;
}

static void test_log(void)
{
    json_t *r =
        record("{'kind':'denied','id':'7-1','time':'2026-01-02T03:04:05.000000006Z',"
               "'received':'2026-01-02T03:04:06.000000005Z','code':'no_rule','method':'GET',"
               "'authority':'a.example','path':'/x','port':443,'late':true,'early':false,"
               "'list':[1],'empty':''}");
    json_t *l = otlp_log(&ids, r);
    CU_ASSERT_STRING_EQUAL(text(l, "timeUnixNano"), "1767323045000000006");
    CU_ASSERT_STRING_EQUAL(text(l, "observedTimeUnixNano"), "1767323046000000005");
    CU_ASSERT_STRING_EQUAL(text(l, "eventName"), "durward.denied");
    CU_ASSERT_STRING_EQUAL(text(l, "severityText"), "WARN");
    CU_ASSERT_EQUAL(json_integer_value(json_object_get(l, "severityNumber")), 13);
    CU_ASSERT_STRING_EQUAL(text(json_object_get(l, "body"), "stringValue"),
                           "denied no_rule GET a.example/x");
    CU_ASSERT_EQUAL(strlen(text(l, "traceId")), 32);
    CU_ASSERT_EQUAL(strlen(text(l, "spanId")), 16);
    CU_ASSERT(says(l, "durward.code", "no_rule") && says(l, "durward.port", "443"));
    CU_ASSERT(json_is_true(attribute(l, "durward.late")));
    CU_ASSERT(json_is_false(attribute(l, "durward.early")));
    CU_ASSERT_PTR_NULL(attribute(l, "durward.list"));
    CU_ASSERT_PTR_NULL(attribute(l, "durward.empty"));
    json_decref(l);
    json_decref(r);
    r = record("{'kind':'packet','target':'192.0.2.1:9','time':'yesterday'}");
    l = otlp_log(&ids, r);
    CU_ASSERT_STRING_EQUAL(text(l, "timeUnixNano"), "0");
    CU_ASSERT_STRING_EQUAL(text(json_object_get(l, "body"), "stringValue"), "packet 192.0.2.1:9");
    CU_ASSERT_PTR_NULL(json_object_get(l, "traceId"));
    json_decref(l);
    json_decref(r);
    r = record("{'kind':'x','time':'1960-01-01T00:00:00.000000000Z'}"); /* before the epoch */
    l = otlp_log(&ids, r);
    CU_ASSERT_STRING_EQUAL(text(l, "timeUnixNano"), "0");
    json_decref(l);
    json_decref(r);
}

static void test_severity(void)
{
    static const char *const rows[][2] = {
        {"{'kind':'lifecycle','event':'threshold'}", "ERROR"},
        {"{'kind':'lifecycle','event':'started'}", "INFO"},
        {"{'kind':'denied'}", "WARN"},
        {"{'kind':'aborted'}", "WARN"},
        {"{'kind':'tls_refused'}", "WARN"},
        {"{'kind':'dns','code':'dns_denied'}", "WARN"},
        {"{'kind':'dns','code':'ok'}", "INFO"},
        {"{'kind':'admitted','event':'threshold'}", "INFO"},
        {"{}", "INFO"},
        {"{'kind':7}", "INFO"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        json_t *r = record(rows[i][0]), *l = otlp_log(&ids, r);
        CU_ASSERT_STRING_EQUAL(text(l, "severityText"), rows[i][1]);
        json_decref(l);
        json_decref(r);
    }
}

/* The trace is the request's, whichever record speaks of it; other requests and logs have others.
 */
static void test_traces(void)
{
    json_t *a = record("{'kind':'admitted','id':'7-1'}"),
           *b = record("{'kind':'scrubbed','request':'7-1','id':'7-9'}"),
           *c = record("{'kind':'admitted','id':'7-2'}");
    struct otlp_ids other = {0};
    CU_ASSERT_EQUAL_FATAL(otlp_ids_init(&other), 0);
    json_t *la = otlp_log(&ids, a), *lb = otlp_log(&ids, b), *lc = otlp_log(&ids, c),
           *lo = otlp_log(&other, a);
    CU_ASSERT_STRING_EQUAL(text(la, "traceId"), text(lb, "traceId"));
    CU_ASSERT_STRING_EQUAL(text(la, "spanId"), text(lb, "spanId"));
    CU_ASSERT_STRING_NOT_EQUAL(text(la, "traceId"), text(lc, "traceId"));
    CU_ASSERT_STRING_NOT_EQUAL(text(la, "traceId"), text(lo, "traceId"));
    json_decref(la);
    json_decref(lb);
    json_decref(lc);
    json_decref(lo);
    json_decref(a);
    json_decref(b);
    json_decref(c);
    otlp_ids_done(&other);
}

static size_t spans(const char *r, json_t *ret[OTLP_SPANS])
{
    json_t *o = record(r);
    size_t n = otlp_spans(&ids, o, ret);
    json_decref(o);
    return n;
}

static void drop(json_t *s[OTLP_SPANS], size_t n)
{
    for (size_t i = 0; i < n; i++)
        json_decref(s[i]);
}

#define BEGUN                                                                                \
    "{'kind':'admitted','id':'9-1','time':'2026-01-02T03:04:05.000000000Z','method':'POST'," \
    "'authority':'a.example','scheme':'https','path':'/x','rule':'r1','credential':'key'}"

static void test_spans(void)
{
    json_t *s[OTLP_SPANS];
    CU_ASSERT_EQUAL(spans("{'kind':'denied','id':'9-1'}", s), 0);
    CU_ASSERT_EQUAL(spans(BEGUN, s), 0);
    CU_ASSERT_EQUAL(spans(BEGUN, s), 0); /* again: the newer one is kept */
    size_t n = spans("{'kind':'completed','id':'9-1','time':'2026-01-02T03:04:06.000000000Z',"
                     "'ms':900,'queue_ms':1,'dial_ms':20,'tls_ms':30,'first_ms':400,'status':503,"
                     "'bytes_up':10,'bytes_down':20,'address':'192.0.2.1','protocol':'h2',"
                     "'tls':'1.3','sandbox':'sb','policy':'p','code':'ok'}",
                     s);
    CU_ASSERT_EQUAL_FATAL(n, 5);
    CU_ASSERT_STRING_EQUAL(text(s[0], "name"), "POST a.example");
    CU_ASSERT_STRING_EQUAL(text(s[0], "startTimeUnixNano"), "1767323045100000000");
    CU_ASSERT_STRING_EQUAL(text(s[0], "endTimeUnixNano"), "1767323046000000000");
    CU_ASSERT_PTR_NULL(json_object_get(s[0], "parentSpanId"));
    CU_ASSERT(says(s[0], "http.request.method", "POST") && says(s[0], "durward.rule", "r1") &&
              says(s[0], "durward.credential", "key") &&
              says(s[0], "http.response.status_code", "503") &&
              says(s[0], "http.request.body.size", "10") && says(s[0], "durward.id", "9-1"));
    CU_ASSERT_PTR_NULL(attribute(s[0], "error.type"));
    CU_ASSERT_EQUAL(json_integer_value(json_object_get(json_object_get(s[0], "status"), "code")),
                    2);
    static const char *const names[] = {"queue", "dial", "tls", "first byte"};
    const char *end = text(s[0], "startTimeUnixNano");
    for (size_t i = 1; i < n; i++) { /* one after the other, each below the request */
        CU_ASSERT_STRING_EQUAL(text(s[i], "name"), names[i - 1]);
        CU_ASSERT_STRING_EQUAL(text(s[i], "startTimeUnixNano"), end);
        CU_ASSERT_STRING_EQUAL(text(s[i], "parentSpanId"), text(s[0], "spanId"));
        CU_ASSERT_STRING_EQUAL(text(s[i], "traceId"), text(s[0], "traceId"));
        end = text(s[i], "endTimeUnixNano");
    }
    CU_ASSERT_STRING_EQUAL(end, "1767323045551000000");
    drop(s, n);
    /* its beginning was given up with its end: a second end knows nothing of it */
    n = spans("{'kind':'aborted','id':'9-1','time':'2026-01-02T03:04:07.000000000Z',"
              "'code':'upstream_tls'}",
              s);
    CU_ASSERT_EQUAL_FATAL(n, 1);
    CU_ASSERT_STRING_EQUAL(text(s[0], "name"), "request ");
    CU_ASSERT_STRING_EQUAL(text(s[0], "startTimeUnixNano"), text(s[0], "endTimeUnixNano"));
    CU_ASSERT(says(s[0], "error.type", "upstream_tls"));
    CU_ASSERT_STRING_EQUAL(text(json_object_get(s[0], "status"), "message"), "upstream_tls");
    drop(s, n);
    /* without a duration: from the time of the beginning */
    CU_ASSERT_EQUAL(spans(BEGUN, s), 0);
    n = spans("{'kind':'completed','id':'9-1','time':'2026-01-02T03:04:09.000000000Z',"
              "'status':200,'code':'ok','dial_ms':-5}",
              s);
    CU_ASSERT_EQUAL_FATAL(n, 2);
    CU_ASSERT_STRING_EQUAL(text(s[0], "startTimeUnixNano"), "1767323045000000000");
    CU_ASSERT_PTR_NULL(json_object_get(s[0], "status"));
    CU_ASSERT_STRING_EQUAL(text(s[1], "startTimeUnixNano"), text(s[1], "endTimeUnixNano"));
    drop(s, n);
}

/* More than are kept: none is taken for another's beginning. */
static void test_many(void)
{
    json_t *s[OTLP_SPANS];
    char line[160];
    size_t known = 0;
    for (int i = 0; i < 2 * OTLP_OPEN; i++) {
        snprintf(line, sizeof line,
                 "{'kind':'admitted','id':'m-%d','method':'M%d','authority':'a'}", i, i);
        CU_ASSERT_EQUAL_FATAL(spans(line, s), 0);
    }
    for (int i = 0; i < 2 * OTLP_OPEN; i++) {
        char name[32];
        snprintf(line, sizeof line, "{'kind':'completed','id':'m-%d'}", i);
        snprintf(name, sizeof name, "M%d a", i);
        size_t n = spans(line, s);
        CU_ASSERT_EQUAL_FATAL(n, 1);
        bool its = strcmp(text(s[0], "name"), name) == 0;
        CU_ASSERT(its || strcmp(text(s[0], "name"), "request ") == 0);
        known += its;
        drop(s, n);
    }
    printf("# %zu of %d known\n", known, 2 * OTLP_OPEN);
    CU_ASSERT(known > OTLP_OPEN / 2 && known <= OTLP_OPEN);
}

void suite_otlp_record(void)
{
    CU_pSuite s = CU_add_suite("otlp_record", setup, teardown);
    CU_add_test(s, "a record", test_log);
    CU_add_test(s, "severities", test_severity);
    CU_add_test(s, "numbers of traces", test_traces);
    CU_add_test(s, "a request and its steps", test_spans);
    CU_add_test(s, "more beginnings than are kept", test_many);
}

void tap_suites(void)
{
    suite_otlp_record();
}
