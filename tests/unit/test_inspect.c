/* What is made of bodies: GraphQL documents, MCP messages, requests to models. */
#include <CUnit/CUnit.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "graphql.h"
#include "inspect.h"
#include "mcp.h"
#include "policy.h"
#include "tap_main.h"

/* Single quotes for double ones. */
static char *quoted(const char *s)
{
    char *t = strdup(s);
    for (char *p = t; p && *p; p++)
        if (*p == '\'')
            *p = '"';
    return t;
}

static struct policy *policy_with(const char *extra)
{
    struct err err = {0};
    char *text = NULL;
    if (asprintf(&text, "{'policy':'p','rules':[{'allow':'a.com',%s}]}", extra) < 0)
        return NULL;
    char *json = quoted(text);
    struct policy *p = policy_parse(json, strlen(json), &err);
    if (p == NULL)
        printf("# %s: %s\n", extra, err.text);
    CU_ASSERT_PTR_NOT_NULL_FATAL(p);
    free(json);
    free(text);
    return p;
}

/* What it says to a POST of this body: 0 passes, else the status; *code then. */
static unsigned post(const char *rule, const char *type, struct slice body, const char **code)
{
    struct policy *p = policy_with(rule);
    const struct inspection *in = policy_rule(p, 0)->inspection;
    struct inspect_request r = {.method = SLICE("POST"),
                                .n_types = type != NULL,
                                .type = slice_str(type),
                                .has_body = true,
                                .length = body.n};
    struct inspect_result why = {0};
    enum inspect_answer a = INSPECT_PASS;
    if (in) {
        a = inspect_head(in, &r, &why);
        if (a == INSPECT_MORE)
            a = inspect_body(in, &r, body, true, &why);
    }
    CU_ASSERT_NOT_EQUAL(a, INSPECT_MORE);
    policy_free(p);
    *code = a == INSPECT_REFUSED ? why.code : "ok";
    return a == INSPECT_REFUSED ? why.status : 0;
}

static void expect(const char *rule, const char *type, const char *body, const char *want)
{
    const char *code;
    char *text = quoted(body);
    post(rule, type, slice_str(text), &code);
    if (strcmp(code, want) != 0) {
        printf("# %s: %s: %s, expected %s\n", rule, body, code, want);
        CU_FAIL("an answer");
    }
    free(text);
}

#define JSON "application/json"

struct told {
    char text[512];
};

static bool told_operation(void *arg, enum graphql_type type, struct slice name)
{
    struct told *t = arg;
    size_t n = strlen(t->text);
    snprintf(t->text + n, sizeof t->text - n, "%c:%.*s ", "?qms"[type], SL(name));
    return true;
}

static bool told_field(void *arg, struct slice name)
{
    struct told *t = arg;
    size_t n = strlen(t->text);
    snprintf(t->text + n, sizeof t->text - n, ".%.*s ", SL(name));
    return true;
}

static void reads(const char *text, const char *want)
{
    struct told t = {""};
    struct graphql_visitor v = {told_operation, told_field, &t};
    int r = graphql_read(slice_str(text), &v);
    const char *got = r == 0 ? t.text : r < 0 ? "no" : "stopped";
    if (strcmp(got, want) != 0) {
        printf("# %s: %s, expected %s\n", text, got, want);
        CU_FAIL("operations");
    }
}

static void documents(void)
{
    reads("{a}", "q: .a ");
    reads("query{a}", "q: .a ");
    reads("query Q{x:a(b:1,c:\"}\"){d}}", "q:Q .a ");
    reads("mutation M($a:[Int!]!=[1] @d(x:$a),$b:S){a b}", "m:M .a .b ");
    reads("subscription S @x {a}", "s:S .a ");
    reads("query A{a} mutation B{b} fragment F on T{c}", "q:A .a m:B .b ");
    reads("{...F ...on T{b} ... @include(if:true){c}} fragment F on T{c}", "q: . . . ");
    reads("# mutation {\n,,{a} # }", "q: .a ");
    reads("{a(b:\"\"\"\\\"\"\" } mutation M { \"\"\")}", "q: .a ");
    reads("{a(b:\"\\\"} mutation M {b\")}", "q: .a ");
    reads("{a(b:\"\\u0022} mutation M {b\")}", "q: .a ");
    reads("query query{query} mutation mutation{mutation}", "q:query .query m:mutation .mutation ");
    reads("{a(b:[{c:$d,e:-1.5e+3},null,true,X])}", "q: .a ");
    reads("{on}", "q: .on ");
    reads("{fragment:on}", "q: .on ");
}

static const char *const bad_documents[] = {"",
                                            " ",
                                            "#",
                                            "{}",
                                            "{a",
                                            "{a}}",
                                            "{a}{b}",
                                            "{a} query B{b}",
                                            "query A{b} {a}",
                                            "fragment F on T{a}",
                                            "type T{a:Int}",
                                            "extend type T{a:Int}",
                                            "schema{query:Q}",
                                            "\"d\" query{a}",
                                            "\"\"\"d\"\"\" {a}",
                                            "Query{a}",
                                            "query A",
                                            "query(){a}",
                                            "{a()}",
                                            "{a(b)}",
                                            "{a(b:)}",
                                            "{a:}",
                                            "{a(b:01)}",
                                            "{a(b:1a)}",
                                            "{a(b:1.)}",
                                            "{a(b:.5)}",
                                            "{a(b:-)}",
                                            "{a(b:\"\n\")}",
                                            "{a(b:\"\\x\")}",
                                            "{a(b:\"\\ud83d\\ude00\")}",
                                            "{a(b:\"\\u12\")}",
                                            "{a(b:\"c)}",
                                            "{a(b:\"\"\"c)}",
                                            "{a ..b}",
                                            "{a ... }",
                                            "{a . . .b}",
                                            "fragment on on T{a} {b}",
                                            "fragment F($a:Int) on T{a} {b}",
                                            "{a}; mutation{b}",
                                            "{a} 'x'",
                                            "{a}\v",
                                            "\xef\xbb\xbf{a}",
                                            "{\xc3\xa9}",
                                            "#\xe2\x80\xa8 mutation{a}\n{a}",
                                            "{a(b:{c:1)}",
                                            "{a(b:[1)}",
                                            "query A($b:Int,$c){a}",
                                            "query A($b:[Int){a}",
                                            "{a@}"};

static void no_documents(void)
{
    for (size_t i = 0; i < ARRAY_LEN(bad_documents); i++)
        reads(bad_documents[i], "no");
    char deep[2 * GRAPHQL_DEPTH + 8] = "";
    for (size_t i = 0; i < GRAPHQL_DEPTH + 1; i++)
        memcpy(deep + 2 * i, "{a", 2);
    reads(deep, "no");
    struct told t = {""};
    struct graphql_visitor v = {told_operation, NULL, &t};
    CU_ASSERT_EQUAL(graphql_read((struct slice){"{a}\0mutation{b}", 15}, &v), -1);
    char *large = calloc(1, GRAPHQL_MAX + 2);
    memset(large, ' ', GRAPHQL_MAX + 1);
    memcpy(large, "{a}", 3);
    CU_ASSERT_EQUAL(graphql_read((struct slice){large, GRAPHQL_MAX}, &v), 0);
    CU_ASSERT_EQUAL(graphql_read((struct slice){large, GRAPHQL_MAX + 1}, &v), -1);
    free(large);
}

static void graphql_bodies(void)
{
    static const char ro[] = "'graphql':'read-only'", named[] = "'graphql':['GetIt','SetIt']",
                      fields[] = "'graphql':{'fields':['issue']}";
    expect(ro, JSON, "{'query':'{a}'}", "ok");
    expect(ro, JSON "; charset=UTF-8", "{'query':'query Q{a}','operationName':'Q','variables':{}}",
           "ok");
    expect(ro, "application/graphql", "{a}", "ok");
    expect(ro, "application/graphql", "mutation{a}", "graphql");
    expect(ro, JSON, "{'query':'mutation{a}'}", "graphql");
    expect(ro, JSON, "{'query':'query A{a} mutation B{b}','operationName':'A'}", "graphql");
    expect(ro, JSON, "{'query':'subscription{a}'}", "graphql");
    expect(ro, JSON, "{'query':'\\u006dutation{a}'}", "graphql");
    expect(ro, JSON, "[{'query':'{a}'}]", "graphql");
    expect(ro, JSON, "{'query':'{a}','Query':'mutation{a}'}", "graphql");
    expect(ro, JSON, "{'query':'{a}','query':'mutation{a}'}", "body_ambiguous");
    expect(ro, JSON, "{'query':'{a}','id':'x'}", "graphql");
    expect(ro, JSON, "{'query':'{a}','extensions':{'persistedQuery':{}}}", "graphql");
    expect(ro, JSON, "{'query':'{a}','extensions':{'tracing':true}}", "ok");
    expect(ro, JSON, "{'extensions':{}}", "graphql");
    expect(ro, JSON, "{'query':['mutation{a}']}", "graphql");
    expect(ro, JSON, "{'query':'{a}'} {}", "body_ambiguous");
    expect(ro, JSON, "{a}", "body_ambiguous");
    expect(ro, JSON, "\xef\xbb\xbf{'query':'{a}'}", "body_ambiguous");
    expect(ro, JSON "; charset=utf-7", "{'query':'{a}'}", "content_type");
    expect(ro, "text/plain", "{'query':'{a}'}", "content_type");
    expect(ro, NULL, "{'query':'{a}'}", "content_type");
    expect(ro, "application/x-www-form-urlencoded", "query={a}", "content_type");
    expect(ro, "application/graphql", "{a(b:'\xff')}", "body_ambiguous");
    expect(named, JSON, "{'query':'query GetIt{a}'}", "ok");
    expect(named, JSON, "{'query':'query GetIt{a} mutation SetIt{b}'}", "ok");
    expect(named, JSON, "{'query':'query GetIt{a} mutation Other{b}','operationName':'GetIt'}",
           "graphql");
    expect(named, JSON, "{'query':'{a}'}", "graphql");
    expect(fields, JSON, "{'query':'mutation M{issue{id}}'}", "ok");
    expect(fields, JSON, "{'query':'{issue:viewer{id}}'}", "graphql");
    expect(fields, JSON, "{'query':'{...F} fragment F on Query{viewer}'}", "graphql");
}

static void graphql_get(void)
{
    static const struct {
        const char *method, *query, *code;
    } rows[] = {
        {"GET", "query=%7Ba%7D", "ok"},
        {"GET", "query={a}&operationName=A&variables=%7B%7D", "ok"},
        {"GET", "query=query+A{a}", "ok"},
        {"GET", "query=mutation{a}", "graphql"},
        {"GET", "query={a}&query=mutation{a}", "graphql"},
        {"GET", "query={a}&extensions={}", "graphql"},
        {"GET", "quer%79={a}", "graphql"},
        {"GET", "Query=mutation{a}&query={a}", "graphql"},
        {"GET", "query={a};query=mutation{a}", "graphql"},
        {"GET", "query={a}%2", "body_ambiguous"},
        {"GET", "query=%zz", "body_ambiguous"},
        {"GET", "", "graphql"},
        {"GET", NULL, "graphql"},
        {"HEAD", "query={a}", "ok"},
        {"DELETE", "query={a}", "graphql"},
    };
    struct policy *p = policy_with("'graphql':'read-only'");
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct inspect_request r = {.method = slice_str(rows[i].method),
                                    .query = slice_str(rows[i].query),
                                    .has_query = rows[i].query != NULL};
        struct inspect_result why = {.code = "ok"};
        enum inspect_answer a = inspect_head(policy_rule(p, 0)->inspection, &r, &why);
        if (strcmp(a == INSPECT_PASS ? "ok" : why.code, rows[i].code) != 0)
            printf("# %s %s: %s\n", rows[i].method, rows[i].query, why.code);
        CU_ASSERT_STRING_EQUAL(a == INSPECT_PASS ? "ok" : why.code, rows[i].code);
    }
    struct inspect_request r = {.method = SLICE("POST"),
                                .query = SLICE("query=mutation{a}"),
                                .has_query = true,
                                .n_types = 1,
                                .type = SLICE(JSON),
                                .has_body = true};
    struct inspect_result why;
    CU_ASSERT_EQUAL(inspect_head(policy_rule(p, 0)->inspection, &r, &why), INSPECT_REFUSED);
    policy_free(p);
}

static void mcp_bodies(void)
{
    static const char rule[] = "'mcp':{'tools':['read_file'],'methods':['resources/list']}";
    expect(rule, JSON, "{'jsonrpc':'2.0','id':1,'method':'initialize','params':{}}", "ok");
    expect(rule, JSON, "{'jsonrpc':'2.0','method':'notifications/initialized'}", "ok");
    expect(rule, JSON, "{'jsonrpc':'2.0','id':1,'method':'tools/list'}", "ok");
    expect(rule, JSON, "{'jsonrpc':'2.0','id':1,'method':'resources/list'}", "ok");
    expect(rule, JSON, "{'jsonrpc':'2.0','id':1,'method':'resources/read'}", "mcp");
    expect(rule, JSON,
           "{'jsonrpc':'2.0','id':1,'method':'tools/call','params':{'name':'read_file'}}", "ok");
    expect(rule, JSON, "{'jsonrpc':'2.0','id':1,'method':'tools/call','params':{'name':'rm'}}",
           "mcp");
    expect(rule, JSON,
           "{'jsonrpc':'2.0','id':1,'method':'tools/"
           "call','params':{'name':'read_file','Name':'rm','arguments':{}}}",
           "mcp");
    expect(
        rule, JSON,
        "{'jsonrpc':'2.0','id':1,'method':'tools/call','params':{'name':'read_file','name':'rm'}}",
        "body_ambiguous");
    expect(rule, JSON,
           "{'jsonrpc':'2.0','id':1,'method':'ping','Method':'tools/call','params':{'name':'rm'}}",
           "mcp");
    expect(rule, JSON, "{'jsonrpc':'2.0','id':1,'method':'tools/call'}", "mcp");
    expect(rule, JSON, "{'jsonrpc':'2.0','id':1,'method':'tools/call','params':['rm']}", "mcp");
    expect(rule, JSON, "{'jsonrpc':'2.0','id':1,'method':'tools\\/call','params':{'name':'rm'}}",
           "mcp");
    expect(rule, JSON, "{'jsonrpc':'2.0','id':1,'method':'Tools/Call','params':{'name':'rm'}}",
           "mcp");
    expect(rule, JSON,
           "[{'jsonrpc':'2.0','id':1,'method':'ping'},{'jsonrpc':'2.0','id':1,'method':'tools/"
           "call','params':{'name':'rm'}}]",
           "mcp");
    expect(
        rule, JSON,
        "[{'jsonrpc':'2.0','id':1,'method':'ping'},{'jsonrpc':'2.0','id':1,'method':'tools/list'}]",
        "ok");
    expect(rule, JSON, "[[{'jsonrpc':'2.0','id':1,'method':'ping'}]]", "mcp");
    expect(rule, JSON, "[]", "mcp");
    expect(rule, JSON, "{'jsonrpc':'2.0','id':7,'result':{}}", "ok");
    expect(rule, JSON,
           "{'jsonrpc':'2.0','id':7,'result':{},'method':'tools/call','params':{'name':'rm'}}",
           "mcp");
    expect(rule, JSON, "{'id':7}", "mcp");
    expect(rule, JSON, "'x'", "body_ambiguous");
    expect(rule, "text/plain", "{'jsonrpc':'2.0','id':1,'method':'ping'}", "content_type");
}

/* A call of write with these arguments. */
static void expect_write(const char *condition, const char *arguments, const char *want)
{
    char rule[400], body[400];
    snprintf(rule, sizeof rule,
             "'mcp':{'tools':[{'name':'wr*','arguments':{'/a':%s}},{'name':'write'}]}", condition);
    snprintf(body, sizeof body,
             "{'jsonrpc':'2.0','id':1,'method':'tools/call','params':{'name':'write','arguments':{"
             "%s}}}",
             arguments);
    expect(rule, JSON, body, want);
}

static void mcp_arguments(void)
{
    static const struct {
        const char *condition, *arguments, *want;
    } rows[] = {
        {"{'equals':'x'}", "'a':'x'", "ok"},
        {"{'equals':'x'}", "'a':'X'", "mcp"},
        {"{'equals':1}", "'a':1.0", "ok"},
        {"{'equals':1}", "'a':true", "mcp"},
        {"{'equals':true}", "'a':true", "ok"},
        {"{'equals':false}", "'a':0", "mcp"},
        {"{'equals':null}", "'a':null", "ok"},
        {"{'equals':null}", "", "mcp"},
        {"{'one_of':['x',2]}", "'a':2", "ok"},
        {"{'one_of':['x',2]}", "'a':'2'", "mcp"},
        {"{'one_of':['x'],'absent':true}", "", "ok"},
        {"{'one_of':['x'],'absent':true}", "'A':'y'", "mcp"},
        {"{'absent':true}", "'b':1", "ok"},
        {"{'absent':true}", "'a':null", "mcp"},
        {"{'range':[0,10]}", "'a':10", "ok"},
        {"{'range':[0,10]}", "'a':10.5", "mcp"},
        {"{'range':[0,10]}", "'a':'5'", "mcp"},
        {"{'range':[0,1e17]}", "'a':9007199254740993", "mcp"},
        {"{'pattern':'/w/*.txt'}", "'a':'/w/x.txt'", "ok"},
        {"{'pattern':'/w/*.txt'}", "'a':'/w/x/y.txt'", "mcp"},
        {"{'pattern':'/w/**'}", "'a':'/w/x/y'", "ok"},
        {"{'pattern':'/w/**'}", "'a':'/w/../y'", "mcp"},
        {"{'pattern':'/w/**'}", "'a':'/w/%2E%2e/y'", "mcp"},
        {"{'pattern':'/w/**'}", "'a':'/w\\\\..\\\\y'", "mcp"},
        {"{'pattern':'/w/**'}", "'a':'/w/..'", "mcp"},
        {"{'pattern':'/w/**'}", "'a':'/w/.\\t./y'", "mcp"},
        {"{'pattern':'/w/**'}", "'a':'/w/.\\r\\n./.\\n./y'", "mcp"},
        {"{'pattern':'/w/*'}", "'a':'/w/..?x'", "mcp"},
        {"{'pattern':'/w/*'}", "'a':'/w/..#x'", "mcp"},
        {"{'pattern':'/w/**'}", "'a':'/w/..;/y'", "mcp"},
        {"{'pattern':'**'}", "'a':'Two lines.\\n\\tWhat now? Well...'", "ok"},
        {"{'pattern':'/w/**'}", "'a':'/w/.. '", "mcp"},
        {"{'pattern':'/w/../y'}", "'a':'/w/../y'", "ok"},
        {"{'pattern':['a','**b']}", "'a':'x/b'", "ok"},
        {"{'pattern':'a*b*c'}", "'a':'aXbXbXc'", "ok"},
        {"{'pattern':'a*b*c'}", "'a':'aXbXbX'", "mcp"},
        {"{'pattern':'*'}", "'a':''", "ok"},
        {"{'pattern':'*'}", "'a':['x']", "mcp"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        expect_write(rows[i].condition, rows[i].arguments, rows[i].want);
    static const char nested[] = "'mcp':{'tools':[{'name':'t','arguments':{'/a~1b/1/~0c':{'equals':"
                                 "1}}}]}";
    expect(nested, JSON,
           "{'jsonrpc':'2.0','id':1,'method':'tools/call','params':{'name':'t','arguments':{'a/b':["
           "0,{'~c':1}]}}}",
           "ok");
    expect(nested, JSON,
           "{'jsonrpc':'2.0','id':1,'method':'tools/call','params':{'name':'t','arguments':{'a/b':["
           "{'~c':1}]}}}",
           "mcp");
    expect(nested, JSON,
           "{'jsonrpc':'2.0','id':1,'method':'tools/call','params':{'name':'t','arguments':{'a/b':"
           "'x'}}}",
           "mcp");
}

/* A star in the host of a URL. */
static void mcp_hosts(void)
{
    static const struct {
        const char *condition, *arguments, *want;
    } rows[] = {
        {"{'pattern':'https://*.ex.com/**'}", "'a':'https://a-1.b.ex.com/x?y#z'", "ok"},
        {"{'pattern':'https://*.ex.com/**'}", "'a':'https://evil.com#.ex.com/x'", "mcp"},
        {"{'pattern':'https://*.ex.com/**'}", "'a':'https://evil.com?.ex.com/x'", "mcp"},
        {"{'pattern':'https://**.ex.com/**'}", "'a':'https://evil.com/.ex.com/x'", "mcp"},
        {"{'pattern':'https://*.ex.com/**'}", "'a':'https://evil.com\\\\.ex.com/x'", "mcp"},
        {"{'pattern':'https://ex.com*'}", "'a':'https://ex.com@evil.com'", "mcp"},
        {"{'pattern':'http*://*.ex.com/**'}", "'a':'https://a.ex.com/x'", "ok"},
        {"{'pattern':'*://*.ex.com/**'}", "'a':'git+ssh://a.ex.com/x'", "ok"},
        {"{'pattern':'http*://*.ex.com/**'}", "'a':'https:evil.com://a.ex.com/'", "mcp"},
        {"{'pattern':'http*://*.ex.com/**'}", "'a':'https:\\\\evil.com\\\\://a.ex.com/'", "mcp"},
        {"{'pattern':'**://*.ex.com/**'}", "'a':'https:/evil.com/://a.ex.com/'", "mcp"},
        {"{'pattern':'https://**'}", "'a':'https://ex.com/a/b?c'", "ok"},
        {"{'pattern':'http*://**'}", "'a':'https:evil.com://ex.com/'", "mcp"},
        {"{'pattern':'**'}", "'a':'What now? . '", "ok"},
        {"{'pattern':'**'}", "'a':' a/../b'", "mcp"},
        {"{'pattern':'**'}", "'a':' ../b'", "mcp"},
        {"{'pattern':'**'}", "'a':'a/.. '", "mcp"},
        {"{'pattern':'**'}", "'a':'a/.. /b'", "mcp"},
        {"{'pattern':'**'}", "'a':'a/.\\t./b'", "mcp"},
        {"{'pattern':'*/fix-*'}", "'a':'agent/fix-#12?'", "ok"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        expect_write(rows[i].condition, rows[i].arguments, rows[i].want);
}

static bool fits_model(const char *p, const char *t, bool in_path)
{
    size_t n = in_path && p[0] == '*' && p[1] == '*' ? 2 : 1;
    if (*p != '*')
        return *p == *t && (*p == 0 || fits_model(p + 1, t + 1, in_path));
    return fits_model(p + n, t, in_path) ||
           (*t && (!in_path || n == 2 || *t != '/') && fits_model(p, t + 1, in_path));
}

/* Patterns without a host, against what each of them means. */
static void mcp_patterns(void)
{
    static const char letters[] = "*/ab*";
    uint32_t x = 1;
    for (unsigned i = 0; i < 200000; i++) {
        char word[2][8] = {{0}};
        for (size_t k = 0; k < 14; k++, x = x * 1664525 + 1013904223)
            if (word[k / 7][k % 7] == 0 && (x >> 28) < 13 && (k % 7 == 0 || word[k / 7][k % 7 - 1]))
                word[k / 7][k % 7] = letters[k < 7 ? (x >> 20) % 5 : 1 + (x >> 20) % 3];
        bool in_path = x >> 31, want = fits_model(word[0], word[1], in_path);
        if (mcp_pattern_fits(word[0], slice_str(word[1]), in_path) != want) {
            printf("# '%s' and '%s': %d\n", word[0], word[1], want);
            CU_FAIL("a pattern fits what it means");
            return;
        }
    }
}

static void mcp_rules_read(void)
{
    static const char *const bad[] = {
        "{'tools':['a'],'on_refused':'other'}",
        "{'tools':[{'ask':true}]}",
        "{'tools':[{'name':'a','arguments':{}}]}",
        "{'tools':[{'name':'a','arguments':{'x':{'equals':1}}}]}",
        "{'tools':[{'name':'a','arguments':{'/x~2':{'equals':1}}}]}",
        "{'tools':[{'name':'a','arguments':{'/x':{}}}]}",
        "{'tools':[{'name':'a','arguments':{'/x':{'equals':1,'pattern':'x'}}}]}",
        "{'tools':[{'name':'a','arguments':{'/x':{'absent':false}}}]}",
        "{'tools':[{'name':'a','arguments':{'/x':{'range':[2,1]}}}]}",
        "{'tools':[{'name':'a','arguments':{'/x':{'one_of':[]}}}]}",
        "{'tools':[{'name':'a','arguments':{'/x':{'equals':[1]}}}]}",
        "{'tools':[{'name':'a','arguments':{'/x':{'equals':9007199254740993}}}]}",
        "{'tools':[],'methods':['tools/call']}",
        "{'tools':[],'server':{'sampling':'no'}}",
        "{'tools':[],'server':{'other':'pass'}}",
        "{'methods':['a']}",
    };
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct err err = {0};
        char text[300];
        snprintf(text, sizeof text, "{'policy':'p','rules':[{'allow':'a.com','mcp':%s}]}", bad[i]);
        char *json = quoted(text);
        struct policy *p = policy_parse(json, strlen(json), &err);
        if (p)
            printf("# %s is read\n", bad[i]);
        CU_ASSERT_PTR_NULL(p);
        policy_free(p);
        free(json);
    }
}

static void mcp_calls(void)
{
    static const struct {
        const char *body, *calls, *detail;
        bool batch, ask;
    } rows[] = {
        {"{'jsonrpc':'2.0','id':-7,'method':'tools/call','params':{'name':'a','arguments':{'p':'v',"
         "'q r':1}}}",
         "c-7\n", "tools/call a (p, q?r)", false, false},
        {"[{'jsonrpc':'2.0','id':'\\u00e9\\n','method':'ping'},{'jsonrpc':'2.0','id':2,'method':"
         "'tools/call','params':{'name':'asked'}}]",
         "r\"\\u00E9\\n\"\nc2\n", "2 messages, one is tools/call asked", true, true},
        {"{'jsonrpc':'2.0','method':'notifications/x'}", "", "notifications/x", false, false},
    };
    struct policy *p = policy_with("'mcp':{'tools':['a',{'name':'asked','ask':true}]}");
    struct inspect_request r = {
        .method = SLICE("POST"), .n_types = 1, .type = SLICE(JSON), .has_body = true};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct inspect_result why;
        char *text = quoted(rows[i].body);
        CU_ASSERT_EQUAL(
            inspect_body(policy_rule(p, 0)->inspection, &r, slice_str(text), true, &why),
            INSPECT_PASS);
        CU_ASSERT_STRING_EQUAL(why.calls, rows[i].calls);
        CU_ASSERT_STRING_EQUAL(why.detail, rows[i].detail);
        CU_ASSERT_EQUAL(why.batch, rows[i].batch);
        CU_ASSERT_EQUAL(why.ask, rows[i].ask);
        free(text);
    }
    static const char *const refused[] = {
        /* one approval is of one call */
        "[{'jsonrpc':'2.0','id':1,'method':'tools/call','params':{'name':'asked'}},"
        "{'jsonrpc':'2.0','id':2,'method':'tools/call','params':{'name':'asked'}}]",
        /* what it subscribes to is a resource */
        "{'jsonrpc':'2.0','id':1,'method':'subscriptions/listen','params':{'notifications':"
        "{'resourceSubscriptions':['file:///etc/shadow']}}}"};
    for (size_t i = 0; i < ARRAY_LEN(refused); i++) {
        struct inspect_result why;
        char *text = quoted(refused[i]);
        CU_ASSERT_EQUAL(
            inspect_body(policy_rule(p, 0)->inspection, &r, slice_str(text), true, &why),
            INSPECT_REFUSED);
        free(text);
    }
    policy_free(p);
}

static const char *const asks[] = {
    "{'tools':[{'type':'web_search'}]}",
    "{'tools':[{'type':'web_search_preview'}]}",
    "{'tools':[{'type':'web_search_20250305','name':'web_search'}]}",
    "{'tools':[{'type':'code_interpreter','container':{'type':'auto'}}]}",
    "{'tools':[{'type':'file_search','vector_store_ids':[]}]}",
    "{'tools':[{'type':'computer_use_preview'}]}",
    "{'tools':[{'type':'mcp','server_url':'https://x'}]}",
    "{'tools':[{'type':'image_generation'}]}",
    "{'tools':[{'type':'shell','environment':{'type':'container_auto'}}]}",
    "{'tools':[{'type':'web_fetch_20250910','name':'web_fetch'}]}",
    "{'tools':[{'type':'code_execution_20250825','name':'code_execution'}]}",
    "{'tools':[{'type':'mcp_toolset','mcp_server_name':'x'}]}",
    "{'tools':[{'type':'something_new'}]}",
    "{'tools':[{'type':'function'},{'type':'web_search'}]}",
    "{'Tools':[{'type':'web_search'}]}",
    "{'tool\xc5\xbf':[{'type':'web_search'}]}",
    "{'tools':[{'type':'function','Type':'web_search'}]}",
    "{'tools':[{'google_search':{}}]}",
    "{'tools':{'googleSearch':{}}}",
    "{'tools':[{'functionDeclarations':[],'urlContext':{}}]}",
    "{'tools':['web_search']}",
    "{'tools':[{'type':['web_search']}]}",
    "{'mcp_servers':[{'type':'url','url':'https://x'}]}",
    "{'web_search_options':{}}",
    "{'input_file_id':'file-1','endpoint':'/v1/responses'}",
    "{'requests':[{'params':{'tools':[{'type':'web_search_20250305'}]}}]}",
    "{'session':{'tools':[{'type':'mcp'}]}}",
};
static const char *const harmless[] = {
    "{'model':'m','messages':[{'role':'user','content':'{\\'tools\\':[]}'}]}",
    "{'tools':[{'type':'function','function':{'name':'web_search','parameters':{}}}]}",
    "{'tools':[{'name':'f','description':'d','input_schema':{'properties':{'tools':"
    "{'type':'array'}}}}]}",
    "{'tools':[{'type':'custom','name':'x'},{'type':'bash_20250124','name':'bash'},"
    "{'type':'text_editor_20250728','name':'e'}]}",
    "{'tools':[{'functionDeclarations':[{'name':'f'}]}]}",
    "{'tools':null,'mcp_servers':[]}",
    "{'tools':[]}",
    "[1,2]",
};

static void model_bodies(void)
{
    static const char none[] = "'server_tools':[]", search[] = "'server_tools':['web_search']",
                      any[] = "'server_tools':'any'";
    for (size_t i = 0; i < ARRAY_LEN(asks); i++) {
        expect(none, JSON, asks[i], "server_tool");
        expect(any, JSON, asks[i], "ok");
    }
    for (size_t i = 0; i < 3; i++)
        expect(search, JSON, asks[i], "ok");
    for (size_t i = 3; i < 13; i++)
        expect(search, JSON, asks[i], "server_tool");
    for (size_t i = 0; i < ARRAY_LEN(harmless); i++)
        expect(none, JSON, harmless[i], "ok");
    expect(none, NULL, asks[0], "server_tool");
    expect(none, "text/plain", asks[0], "content_type");
    expect(none, "application/x-www-form-urlencoded", "a=b", "content_type");
    expect(none, "multipart/form-data; boundary=x", "--x\r\n", "ok");
    expect(none, "multipart/form-data; boundary=x", asks[0], "body_ambiguous");
    expect(none, JSON, "{'a':1", "body_ambiguous");
    expect(none, JSON, "{'tools':[],'tools':[{'type':'mcp'}]}", "body_ambiguous");
}

/* By itself where a known model is asked with a credential, and nowhere else. */
static void model_hosts(void)
{
    static const struct {
        const char *rule;
        bool on;
    } rows[] = {
        {"'allow':'api.openai.com/v1/**','with':{'bearer':'s'}", true},
        {"'allow':'.openai.com','with':{'bearer':'s'}", true},
        {"'allow':'eu.api.openai.com','with':{'bearer':'s'}", true},
        {"'allow':'me.openai.azure.com','with':{'header':{'api-key':'s'}}", true},
        {"'allow':['x.com','api.anthropic.com'],'with':{'bearer':'s'}", true},
        {"'allow':'api.openai.com'", false},
        {"'allow':'platform.openai.com','with':{'bearer':'s'}", false},
        {"'allow':'.api.anthropic.com','with':{'bearer':'s'}", false},
        {"'allow':'xapi.openai.com','with':{'bearer':'s'}", false},
        {"'allow':'api.openai.com','with':{'bearer':'s'},'server_tools':'any'", false},
        {"'allow':'api.github.com','with':{'bearer':'s'}", false},
        {"'allow':'10.0.0.1','server_tools':[]", true},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct err err = {0};
        char text[300];
        snprintf(text, sizeof text, "{'policy':'p','rules':[{%s}]}", rows[i].rule);
        char *json = quoted(text);
        struct policy *p = policy_parse(json, strlen(json), &err);
        if (p == NULL || (policy_rule(p, 0)->inspection != NULL) != rows[i].on)
            printf("# %s %s\n", rows[i].rule, err.text);
        CU_ASSERT_PTR_NOT_NULL_FATAL(p);
        CU_ASSERT_EQUAL(policy_rule(p, 0)->inspection != NULL, rows[i].on);
        policy_free(p);
        free(json);
    }
}

static void too_large(void)
{
    const char *code;
    size_t n = INSPECT_LARGE + 1;
    char *big = malloc(n);
    memset(big, ' ', n);
    big[0] = '[';
    big[n - 2] = ']';
    CU_ASSERT_EQUAL(post("'server_tools':[]", JSON, (struct slice){big, n - 1}, &code), 0);
    CU_ASSERT_EQUAL(post("'server_tools':[]", JSON, (struct slice){big, n}, &code), 413);
    CU_ASSERT_STRING_EQUAL(code, "too_large_to_inspect");
    /* few bytes, many values: memory is bounded too */
    for (size_t i = 0; i + 1 < INSPECT_LARGE / 4; i += 2)
        memcpy(big + i, i ? ",1" : "[1", 2);
    big[INSPECT_LARGE / 4] = ']';
    CU_ASSERT_EQUAL(
        post("'server_tools':[]", JSON, (struct slice){big, INSPECT_LARGE / 4 + 1}, &code), 413);
    free(big);
}

static void coded(void)
{
    struct policy *p = policy_with("'server_tools':[]");
    struct inspect_request r = {.method = SLICE("POST"),
                                .n_types = 1,
                                .type = SLICE(JSON),
                                .coded = true,
                                .has_body = true};
    struct inspect_result why = {0};
    CU_ASSERT_EQUAL(inspect_head(policy_rule(p, 0)->inspection, &r, &why), INSPECT_REFUSED);
    CU_ASSERT_STRING_EQUAL(why.code, "content_coding");
    CU_ASSERT_EQUAL(why.status, 415);
    policy_free(p);
}

/* What `durward explain` and the console say of a rule. */
static void in_words(void)
{
    static const char *const rows[][2] = {
        {"'graphql':{'read_only':true}", "GraphQL, queries only"},
        {"'graphql':{'operations':['A','B'],'fields':['f']}", "GraphQL, operations A, B, fields f"},
        {"'mcp':{'tools':['t']}", "MCP, tools t"},
        {"'mcp':{'tools':[],'methods':['m/x']}", "MCP, tools none, methods m/x"},
        {"'server_tools':['web_search']", "tools that a model's provider runs: web_search"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char text[128], cut[12];
        struct policy *p = policy_with(rows[i][0]);
        const struct inspection *in = policy_rule(p, 0)->inspection;
        CU_ASSERT_PTR_NOT_NULL_FATAL(in);
        CU_ASSERT_STRING_EQUAL(inspection_text(in, text, sizeof text), rows[i][1]);
        inspection_text(in, cut, sizeof cut); /* a short buffer: cut, and no further */
        CU_ASSERT(strlen(cut) == sizeof cut - 1 && strncmp(cut, rows[i][1], strlen(cut)) == 0);
        policy_free(p);
    }
}

static void suite_inspect(void)
{
    CU_pSuite s = CU_add_suite("inspect", NULL, NULL);
    CU_add_test(s, "GraphQL documents", documents);
    CU_add_test(s, "what is none", no_documents);
    CU_add_test(s, "GraphQL bodies", graphql_bodies);
    CU_add_test(s, "GraphQL in a query", graphql_get);
    CU_add_test(s, "MCP messages", mcp_bodies);
    CU_add_test(s, "arguments of MCP tools", mcp_arguments);
    CU_add_test(s, "hosts in arguments of MCP tools", mcp_hosts);
    CU_add_test(s, "patterns of MCP as they are meant", mcp_patterns);
    CU_add_test(s, "rules of MCP that are none", mcp_rules_read);
    CU_add_test(s, "what is told of MCP messages", mcp_calls);
    CU_add_test(s, "tools of a model's provider", model_bodies);
    CU_add_test(s, "where they are asked about", model_hosts);
    CU_add_test(s, "bounds", too_large);
    CU_add_test(s, "content codings", coded);
    CU_add_test(s, "in words", in_words);
}

void tap_suites(void)
{
    suite_inspect();
}
