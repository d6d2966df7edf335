/* Rules as read: fields, what is refused and with which words, what is ambiguous. */
#include <CUnit/CUnit.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "header_name.h"
#include "condition.h"
#include "policy.h"
#include "tap_main.h"

/* Rules are written with single quotes, which keeps C readable. */
static struct policy *policy_of(const char *rules, struct err *err)
{
    char *json = NULL;
    if (asprintf(&json, "{\"policy\":\"p\",\"rules\":[%s]}", rules) < 0)
        return NULL;
    for (char *c = json; *c; c++)
        if (*c == '\'')
            *c = '"';
    struct policy *p = policy_parse(json, strlen(json), err);
    free(json);
    return p;
}

static struct policy *good(const char *rules)
{
    struct err e = {0};
    struct policy *p = policy_of(rules, &e);
    if (p == NULL) {
        printf("# %s: %s\n", rules, e.text);
        CU_FAIL_FATAL("a policy");
    }
    return p;
}

static void fields(void)
{
    struct policy *p =
        good("{'allow':'a.com','with':{'bearer':'s1'}},"
             "{'allow':'b.com','with':{'basic':{'user':'x-access-token','password':'s2'}},"
             "'client_credential':'replace','cookies':'pass'},"
             "{'allow':'c.com','with':{'header':{'name':'X-Api-Key','secret':'s3','prefix':'k='}},"
             "'client_credential':'pass','set_headers':{'X-Team':'blue','x-n':''},"
             "'remove_headers':['User-Agent','x-b']},"
             "{'allow':'d.com','with':{'header':{'x-key':'s4'}},'client_credential':'refuse'},"
             "{'allow':'e.com','access':'read-only'},{'allow':'f.com','cookies':'drop','with':{'"
             "bearer':'s6'}},"
             "{'allow':'g.com','with':{'header':{'name':'authorization','secret':'s5',"
             "'prefix':'token ','suffix':'.'}}},"
             "{'allow':'h.com','with':{'bearer':'s7'},'websocket':true,'ranges':true}");
    const struct rule *r = policy_rule(p, 0);
    CU_ASSERT(strcmp(policy_name(p), "p") == 0 && r->index == 0);
    CU_ASSERT_STRING_EQUAL(r->text, "allow a.com");
    CU_ASSERT_EQUAL(r->credential->kind, CREDENTIAL_BEARER);
    CU_ASSERT_STRING_EQUAL(r->credential->secret, "s1");
    CU_ASSERT_STRING_EQUAL(r->credential->header, "authorization");
    CU_ASSERT_STRING_EQUAL(r->credential->prefix, "Bearer ");
    CU_ASSERT_STRING_EQUAL(r->credential->suffix, "");
    CU_ASSERT_PTR_NULL(r->credential->user);
    CU_ASSERT_EQUAL(r->client_credential, CLIENT_REFUSE);
    CU_ASSERT_FALSE(r->cookies);
    CU_ASSERT_FALSE(r->method_scoped);
    CU_ASSERT_EQUAL(r->n_edits, 0);
    r = policy_rule(p, 1);
    CU_ASSERT_EQUAL(r->credential->kind, CREDENTIAL_BASIC);
    CU_ASSERT_STRING_EQUAL(r->credential->user, "x-access-token");
    CU_ASSERT_STRING_EQUAL(r->credential->secret, "s2");
    CU_ASSERT_STRING_EQUAL(r->credential->prefix, "");
    CU_ASSERT_EQUAL(r->client_credential, CLIENT_REPLACE);
    CU_ASSERT(r->cookies);
    r = policy_rule(p, 2);
    CU_ASSERT_EQUAL(r->credential->kind, CREDENTIAL_HEADER);
    CU_ASSERT_STRING_EQUAL(r->credential->header, "x-api-key");
    CU_ASSERT_STRING_EQUAL(r->credential->prefix, "k=");
    CU_ASSERT_EQUAL(r->client_credential, CLIENT_PASS);
    CU_ASSERT_EQUAL_FATAL(r->n_edits, 4);
    CU_ASSERT_STRING_EQUAL(r->edits[0].name, "x-team");
    CU_ASSERT_STRING_EQUAL(r->edits[0].value, "blue");
    CU_ASSERT_STRING_EQUAL(r->edits[1].value, "");
    CU_ASSERT_STRING_EQUAL(r->edits[2].name, "user-agent");
    CU_ASSERT_PTR_NULL(r->edits[2].value);
    r = policy_rule(p, 3);
    CU_ASSERT_STRING_EQUAL(r->credential->header, "x-key");
    CU_ASSERT_STRING_EQUAL(r->credential->secret, "s4");
    CU_ASSERT_STRING_EQUAL(r->credential->prefix, "");
    r = policy_rule(p, 4);
    CU_ASSERT(r->method_scoped && r->cookies && !policy_rule(p, 5)->cookies);
    r = policy_rule(p, 6);
    CU_ASSERT(strcmp(r->credential->prefix, "token ") == 0 &&
              strcmp(r->credential->suffix, ".") == 0);
    const struct rule *more = policy_rule(p, 7);
    CU_ASSERT(more && more->websocket && more->ranges && !r->websocket && !r->ranges);
    CU_ASSERT_PTR_NULL(policy_rule(p, 8));
    CU_ASSERT_STRING_EQUAL(policy_rule_where(p, 6), "policy: rules[6]");
    policy_free(p);
}

static void says(const char *rules, const char *want)
{
    struct err e = {0};
    struct policy *p = policy_of(rules, &e);
    if (p || strstr(e.text, want) == NULL) {
        printf("# %s: %s\n", rules, p ? "accepted" : e.text);
        CU_FAIL("a refusal");
    }
    policy_free(p);
}

/* A13: a leading dot on a name under which anybody may get one. */
static void public_suffixes(void)
{
    static const char *const wide[] = {".com",
                                       ".dev",
                                       ".co.uk",
                                       ".CO.UK.",
                                       ".github.io",
                                       ".s3.amazonaws.com",
                                       ".s3.eu-west-1.amazonaws.com",
                                       ".s3-eu-west-1.amazonaws.com/x",
                                       ".workers.dev",
                                       ".io:8443/x"};
    char text[200];
    for (size_t i = 0; i < ARRAY_LEN(wide); i++) {
        snprintf(text, sizeof text, "{'allow':'%s'}", wide[i]);
        says(text, "anyone can get a name");
        snprintf(text, sizeof text, "{'allow':'%s','allow_public_suffix':true}", wide[i]);
        policy_free(good(text));
        snprintf(text, sizeof text, "{'deny':'%s'}", wide[i]); /* takes nothing from anybody */
        policy_free(good(text));
    }
}

static size_t no_field(const void *head UNUSED, const char *name UNUSED, struct slice *v UNUSED)
{
    return 0;
}

/* "name: value" pairs, NULL at the end. */
static size_t find_in(const void *head, const char *name, struct slice *v)
{
    size_t n = 0;
    for (const char *const *f = head; *f; f += 2)
        if (strcmp(f[0], name) == 0) {
            *v = slice_str(f[1]);
            n++;
        }
    return n;
}

static void queries(void)
{
    static const struct {
        const char *query;
        bool met;
    } rows[] = {
        {"", true},
        {"page=1", true},
        {"page=%31&state=open", true},
        {"state=closed", true},
        {"page", true},
        {"st%61te=open", true},
        {"state=all", false},
        {"other=1", false},
        {"page=1&page=2", false},
        {"page=1;other=2", false},
        {"page=1&", false},
        {"&", false},
        {"page=%", false},
        {"page=%2", false},
        {"page=%zz", false},
        {"page=%2531", false},
        {"page=%00", false},
        {"page=a+b", false},
        {"Page=1", false},
        {"state", false},
        {"=", false},
        {"page=1=2", true},
        {"page=a%26b", true},
    };
    struct policy *p = good("{'allow':'a.com','query':{'page':'*','state':['open','closed']}},"
                            "{'allow':'b.com','query':{}},{'allow':'c.com'}");
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const char *code = condition_query(policy_rule(p, 0), slice_str(rows[i].query), true);
        if ((code == NULL) != rows[i].met)
            printf("# ?%s\n", rows[i].query);
        CU_ASSERT_EQUAL(code == NULL, rows[i].met);
    }
    CU_ASSERT_PTR_NULL(condition_query(policy_rule(p, 0), SLICE(""), false));
    CU_ASSERT_PTR_NULL(condition_query(policy_rule(p, 1), SLICE(""), true));
    CU_ASSERT_STRING_EQUAL(condition_query(policy_rule(p, 1), SLICE("a"), true), "query");
    CU_ASSERT_PTR_NULL(condition_query(policy_rule(p, 2), SLICE("a;b&&%"), true));
    policy_free(p);
    says("{'allow':'a.com','query':['page']}", "must be a mapping");
    says("{'allow':'a.com','query':{'page':1}}", "write it in quotes");
    says("{'allow':'a.com','query':{'page':['*','1']}}", "stands alone");
    says("{'deny':'a.com','query':{}}", "no meaning on a deny rule");
}

static void headers(void)
{
    static const char *const right[] = {"x-api-version", "2", "accept", "a", NULL};
    static const char *const other[] = {"x-api-version", "3", NULL};
    static const char *const twice[] = {"x-api-version", "2", "x-api-version", "2", NULL};
    struct policy *p = good("{'allow':'a.com','headers':{'X-Api-Version':['1','2']}},"
                            "{'allow':'b.com','headers':{'accept':'*'}}");
    CU_ASSERT_PTR_NULL(condition_headers(policy_rule(p, 0), find_in, right));
    CU_ASSERT_STRING_EQUAL(condition_headers(policy_rule(p, 0), find_in, other), "header");
    CU_ASSERT_STRING_EQUAL(condition_headers(policy_rule(p, 0), find_in, twice), "header");
    CU_ASSERT_STRING_EQUAL(condition_headers(policy_rule(p, 0), no_field, NULL), "header");
    CU_ASSERT_PTR_NULL(condition_headers(policy_rule(p, 1), find_in, right));
    CU_ASSERT_STRING_EQUAL(condition_headers(policy_rule(p, 1), no_field, NULL), "header");
    policy_free(p);
    says("{'allow':'a.com','headers':{'authorization':'x'}}", "no condition can be on it");
    says("{'allow':'a.com','headers':{'host':'x'}}", "no condition can be on it");
    says("{'allow':'a.com','headers':{'a b':'x'}}", "not a header's name");
}

static void plaintext(void)
{
    policy_free(good("{'allow':'http://a.com','with':{'bearer':'s'},'allow_plaintext':true}"));
    says("{'allow':'http://a.com','with':{'bearer':'s'}}", "allow_plaintext");
    says("{'allow':'http://a.com','with':{'bearer':'s'},'allow_plaintext':false}", "everybody");
    says("{'allow':'a.com','allow_plaintext':true}", "goes with 'with'");
}

static void ambiguous(void)
{
#define S "'with':{'bearer':'s'}"
#define T "'with':{'bearer':'t'}"
    says("{'allow':'ok.com'," S "},{'allow':'ok.com'," T "}", "GET https://ok.com/,");
    says("{'allow':'ok.com'," S "},{'allow':'ok.com'}", "rules[0]");
    says("{'allow':'ok.com/a/*'," S "},{'allow':'ok.com/*/b'}", "https://ok.com/a/b");
    says("{'allow':'ok.com/a*'},{'allow':'ok.com/*b'," T "}", "https://ok.com/axb");
    says("{'allow':'.ok.com/x'," S "},{'allow':'a.ok.com'}", "https://a.ok.com/x");
    says("{'allow':'.a.ok.com'},{'allow':'.ok.com/x'," S "}", "https://x.a.ok.com/x");
    says("{'allow':'ok.com/x','access':'read-only'},{'allow':'ok.com/x','methods':['GET','POST']," S
         "},{'allow':'ok.com/y'}",
         "strictly narrower");
    /* paths narrower, methods wider: neither contains the other */
    says("{'allow':'ok.com/x'},{'allow':'ok.com','access':'read-only'," S "}",
         "GET https://ok.com/x");
    says("{'allow':['b.com','ok.com/a/**']," S "},{'allow':['c.com','ok.com/*/x']," T "}",
         "https://ok.com/a/x");
    /* the same secret in another place is another credential */
    says("{'allow':'ok.com'," S "},{'allow':'ok.com','with':{'header':{'x-key':'s'}}}", "differ");
    says("{'allow':'ok.com/1/2/3/4/*'," S "},{'allow':'ok.com/1/2/3/4/*'," T "}", "differ");
    says("{'allow':'ok.com/1/2/3/4/*/6'," S "},{'allow':'ok.com/1/2/3/4/5/*'," T "}",
         "https://ok.com/1/2/3/4/5/6");
    /* these are clear */
    policy_free(good("{'allow':'ok.com'," S "},{'allow':'ok.com/x'," T "}"));
    policy_free(
        good("{'allow':'ok.com'," S "},{'allow':'ok.com/x'," S "},{'allow':'ok.com/*'," S "}"));
    policy_free(good("{'allow':'ok.com/a*'," S "},{'allow':'ok.com/b*'," T "}"));
    policy_free(good("{'allow':'ok.com','methods':['GET']," S
                     "},{'allow':'ok.com','methods':['PUT']," T "}"));
    policy_free(good("{'allow':'ok.com'," S "},{'allow':'ok.com:444'," T "}"));
    policy_free(good("{'allow':'ok.com'," S "},{'allow':'http://ok.com:443'}"));
    policy_free(good("{'allow':'ok.com'," S "},{'deny':'ok.com'}"));
    policy_free(good("{'allow':'ok.com'," S "},{'allow':'.ok.com'," T "}"));
    policy_free(good("{'allow':'ok.com/x','methods':['GET']," S "},{'allow':'ok.com'," T "}"));
    policy_free(good("{'allow':['ok.com','ok.com/x']," S "}"));
}

static void bad_rules(void)
{
    says("{}", "one of 'allow', 'ask', 'deny' or 'use'");
    says("{'allow':'a.com','ask':'b.com'}", "one of");
    says("{'ask':'a.com','deny':'b.com'}", "one of");
    says("{'ask':'a.com','tunnel':true}", "'ask' cannot hold in a tunnel");
    says("{'ask':'a.com/x'},{'allow':'a.com','tunnel':true}", "a rule here asks before anything");
    says("{'allow':'a.com','deny':'b.com'}", "one of");
    says("{'alow':'a.com'}", "did you mean 'allow'?");
    says("{'allow':'a.com','metods':['GET']}", "did you mean 'methods'?");
    says("{'ask':'a.com','on_reflect':'kill'}", "goes with 'with'");
    says("{'allow':'a.com','to':['10.0.0.1/8']}", "no bit set beyond");
    says("{'allow':'a.com','to':'10.0.0.0'}", "not a range");
    says("{'allow':'a.com','to':['10.0.0.0/8','0.0.0.0/0']}", "too wide");
    says("{'allow':'a.com','to':['fc00::/6']}", "too wide");
    says("{'allow':'a.com','to':['internal.corp/8']}", "not a range");
    says("{'allow':'a.com','to':[]}", "empty list");
    says("{'allow':'a.com','to':[1]}", "must be a string");
    says("{'deny':'a.com','to':['10.0.0.0/8']}", "no meaning on a deny");
    says("{'allow':'a.com','refs':[]}", "goes with 'git: push'");
    says("{'allow':'a.com/x/y','git':'fetch','refs':['refs/heads/x']}", "this rule fetches");
    says("{'allow':'a.com/x/y','git':'push','refs':[]}", "empty list");
    says("{'allow':'a.com/x/y','git':'push','refs':'main'}", "write refs/heads/NAME");
    says("{'allow':'a.com/x/y','git':'push','refs':'refs/heads/a b'}", "no reference can");
    says("{'allow':'a.com/x/y','git':'push','refs':'refs/**/x'}", "only as the last segment");
    says("{'allow':'a.com/x/y','git':'push','refs':{'force':true}}", "needs 'names'");
    says("{'allow':'a.com/x/y','git':'push','refs':{'names':'refs/heads/x','forced':true}}",
         "did you mean 'force'?");
    says("{'allow':'a.com','allow_plaintext':true}", "goes with 'with'");
    says("{'allow':'a.com','not_credentials':'x-foo-token'}", "goes with 'with'");
    says("{'allow':'a.com'," S ",'not_credentials':[]}", "empty list");
    says("{'allow':'a.com'," S ",'not_credentials':['x foo']}", "not a header's name");
    says("{'allow':'a.com'," S ",'not_credentials':'Host'}", "frames or routes");
    says("{'allow':'a.com'," S ",'not_credentials':['Authorization']}", "for a credential");
    says("{'allow':'a.com'," S ",'not_credentials':['x-foo-token','X_Api_Key']}", "X_Api_Key");
    says("{'allow':'a.com'," S ",'not_credentials':'cookie'}", "for a credential");
    says("{'allow':'a.com','with':{'header':{'x-mine':'s'}},'not_credentials':'X-Mine'}",
         "where this rule puts");
    says("{'use':'github'}", "preset");
    says("{'allow':[]}", "empty list");
    says("{'allow':['a.com',1]}", "must be a string");
    says("{'allow':{}}", "must be a string");
    says("{'allow':'a.com','methods':['get']}", "capitals");
    says("{'allow':'a.com','methods':['CONNECT']}", "CONNECT and TRACE");
    says("{'allow':'a.com','methods':['TRACE']}", "CONNECT and TRACE");
    says("{'allow':'a.com','methods':[]}", "empty list");
    says("{'allow':'a.com','access':'readonly'}", "the only word here is 'read-only'");
    says("{'allow':'a.com','access':'read-only','methods':['GET']}", "same thing");
    says("{'deny':'a.com','access':'read-only'}", "takes 'methods'");
    says("{'deny':'a.com'," S "}", "no meaning on a deny");
    says("{'deny':'a.com','cookies':'pass'}", "no meaning on a deny");
    says("{'deny':'a.com','websocket':true}", "no meaning on a deny");
    says("{'deny':'a.com','ranges':true}", "no meaning on a deny");
    says("{'allow':'a.com','websocket':'yes'}", "true or false");
    says("{'allow':'a.com/x/y','git':'fetch','websocket':true}", "git speaks no WebSocket");
    says("{'allow':'a.com','range':true," S "}", "did you mean 'ranges'?");
    says("{'deny':'a.com','git':'fetch'}", "no meaning on a deny");
}

/* C26: nothing is promised of a host that a tunnel hides. */
static void tunnels(void)
{
    struct authority a = {.scheme = SCHEME_HTTPS, .kind = HOST_NAME, .port = 443, .host = "a.com"};
    struct policy *p = good("{'allow':['a.com','b.com:8443'],'tunnel':true},{'allow':'.com','allow_"
                            "public_suffix':true},"
                            "{'allow':'c.com','with':{'bearer':'s'}},{'deny':'d.com/x'}");
    CU_ASSERT(policy_has_tunnels(p));
    CU_ASSERT_PTR_EQUAL(policy_tunnel(p, &a), policy_rule(p, 0));
    CU_ASSERT_STRING_EQUAL(policy_rule(p, 0)->text, "allow a.com, b.com:8443 tunnel");
    a.port = 8443;
    CU_ASSERT_PTR_NULL(policy_tunnel(p, &a));
    a.port = 443;
    a.scheme = SCHEME_HTTP;
    CU_ASSERT_PTR_NULL(policy_tunnel(p, &a));
    policy_free(p);
    p = good("{'allow':'a.com','tunnel':true},{'deny':'a.com'}");
    a.scheme = SCHEME_HTTPS;
    CU_ASSERT_PTR_NULL(policy_tunnel(p, &a));
    policy_free(p);
    p = good("{'allow':'a.com','tunnel':false,'access':'read-only'}");
    CU_ASSERT_FALSE(policy_has_tunnels(p));
    policy_free(p);
    says("{'allow':'.a.com','tunnel':true}", "for one host over TLS");
    says("{'allow':'a.com/x','tunnel':true}", "without a path");
    says("{'allow':'a.com/**','tunnel':true}", "without a path");
    says("{'allow':'http://a.com','tunnel':true}", "over TLS");
    says("{'allow':'a.com','tunnel':'yes'}", "true or false");
    says("{'allow':'a.com','tunnel':true,'with':{'bearer':'s'}}", "'with' cannot hold in a tunnel");
    says("{'allow':'a.com','tunnel':true,'access':'read-only'}", "'access' cannot hold");
    says("{'allow':'a.com','tunnel':true,'query':{}}", "'query' cannot hold");
    says("{'deny':'a.com','tunnel':true}", "no meaning on a deny");
    says("{'allow':'a.com','tunnel':true},{'allow':'a.com/x','with':{'bearer':'s'}}",
         "sends a credential to the same host");
    says("{'allow':'a.com','tunnel':true},{'allow':'a.com:444','with':{'bearer':'s'}}",
         "sends a credential to the same host");
    says("{'allow':'.a.com','with':{'bearer':'s'}},{'allow':'x.a.com','tunnel':true}",
         "rules[1]: 'tunnel' for x.a.com");
    says("{'allow':'a.com','tunnel':true},{'allow':'a.com/x'}", "about paths or methods");
    says("{'allow':'a.com','tunnel':true},{'deny':'a.com/x'}", "about paths or methods");
    says("{'allow':'a.com','tunnel':true},{'deny':'a.com','methods':['POST']}", "paths or methods");
}

static void bad_inspections(void)
{
    says("{'allow':'a.com','graphql':'readonly'}", "the only word here is 'read-only'");
    says("{'allow':'a.com','graphql':[]}", "empty list");
    says("{'allow':'a.com','graphql':{}}", "limits nothing");
    says("{'allow':'a.com','graphql':{'read_only':false}}", "limits nothing");
    says("{'allow':'a.com','graphql':{'feilds':['a']}}", "did you mean 'fields'?");
    says("{'allow':'a.com','graphql':['Get*']}", "names are whole");
    says("{'allow':'a.com','graphql':true}", "must be a string");
    says("{'allow':'a.com','mcp':['x']}", "must be a mapping");
    says("{'allow':'a.com','mcp':{'methods':[]}}", "needs 'tools'");
    says("{'allow':'a.com','mcp':{'tools':[],'methods':['tools/call']}}", "name the tools");
    says("{'allow':'a.com','server_tools':'none'}", "[] allows none");
    says("{'allow':'a.com','server_tools':[1]}", "must be a string");
    says("{'allow':'a.com','graphql':'read-only','mcp':{'tools':[]}}", "keep one");
    says("{'allow':'a.com/x/y','git':'fetch','server_tools':[]}", "bodies of its own");
    says("{'deny':'a.com','graphql':'read-only'}", "no meaning on a deny");
    says("{'allow':'a.com','graphql':'read-only','websocket':true}", "in a WebSocket");
    says("{'allow':'api.openai.com','websocket':true,'with':{'bearer':'s'}}", "server_tools: any");
}

/* Slots that are no header field. */
static void places(void)
{
    struct policy *p =
        good("{'allow':'a.com','with':{'query':{'api_key':'s'}}},"
             "{'allow':'b.com','with':{'query':{'name':'k','secret':'s'}}},"
             "{'allow':'c.com','with':{'cookie':{'session':'s'}},'cookies':'pass'},"
             "{'allow':'d.com','with':{'placeholder':{'secret':'s','in':'path'}}},"
             "{'allow':'e.com','with':{'placeholder':{'secret':'s','in':['header','query'],"
             "'name':'X-Tok','count':2}}},"
             "{'allow':'f.com','with':{'placeholder':{'secret':'s','in':{'body':'/a/b'}}}},"
             "{'allow':'g.com','with':{'placeholder':{'secret':'s','in':[{'body':['t','/"
             "t']},'path']}}}");
    static const char *const texts[] = {
        "query parameter api_key",
        "query parameter k",
        "cookie session",
        "in place of its placeholder in path",
        "in place of its placeholder in header X-Tok or query X-Tok, 2 times",
        "in place of its placeholder in body /a/b",
        "in place of its placeholder in path or body t /t"};
    char text[300];
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        const struct credential *c = policy_rule(p, i)->credential;
        CU_ASSERT_STRING_EQUAL(credential_text(c, text, sizeof text), texts[i]);
        CU_ASSERT_STRING_EQUAL(c->secret, "s");
        CU_ASSERT_STRING_EQUAL(c->header, i == 4 ? "x-tok" : "");
    }
    CU_ASSERT_EQUAL(policy_rule(p, 4)->credential->places, PLACE_HEADER | PLACE_QUERY);
    policy_free(p);
#define W(x) "{'allow':'a.com','with':{" x "}}"
    says(W("'query':{'a b':'s'}"), "not a name here");
    says(W("'query':{'name':'k'}"), "needs both");
    says(W("'query':'s'"), "must be a mapping");
    says(W("'cookie':{'a;b':'s'}"), "not a name here");
    says(W("'placeholder':{'secret':'s'}"), "needs both");
    says(W("'placeholder':{'secret':'s','in':'cookie'}"), "one of: header, query, path, body");
    says(W("'placeholder':{'secret':'s','in':['path','path']}"), "twice");
    says(W("'placeholder':{'secret':'s','in':'body'}"), "{ body: /auth/token }");
    says(W("'placeholder':{'secret':'s','in':['path','body']}"), "{ body: /auth/token }");
    says(W("'placeholder':{'secret':'s','in':[]}"), "'in' is empty");
    says(W("'placeholder':{'secret':'s','in':{'body':'a b'}}"), "is not a field of a body");
    says(W("'placeholder':{'secret':'s','in':{'body':'/'}}"), "is not a field of a body");
    says(W("'placeholder':{'secret':'s','in':{'body':'/a~2'}}"), "is not a field of a body");
    says(W("'placeholder':{'secret':'s','in':{'bod':'/a'}}"), "did you mean 'body'");
    says(W("'placeholder':{'secret':'s','in':[{'body':'/a'},{'body':'b'}]}"), "stands twice");
    says(W("'placeholder':{'secret':'s','in':'query'}"), "which header or query parameter");
    says(W("'placeholder':{'secret':'s','in':'path','name':'x'}"), "no meaning for a path");
    says(W("'placeholder':{'secret':'s','in':'header','name':'host'}"), "not a header in which");
    says(W("'placeholder':{'secret':'s','in':'header','name':'cookie'}"), "not a header in which");
    says(W("'placeholder':{'secret':'s','in':'path','count':0}"), "'count'");
    says(W("'placeholder':{'secret':'s','in':'path','count':17}"), "'count'");
    says("{'allow':'a.com','client_credential':'pass',"
         "'with':{'placeholder':{'secret':'s','in':'path'}}}",
         "does not go with this kind");
    /* the same secret in another place is another credential */
    says(W("'query':{'a':'s'}") "," W("'query':{'b':'s'}"), "differ");
#undef W
}

static void beside(void)
{
#define W(x) "{'allow':'a.com','with':{'placeholder':{'secret':'s'," x "}}}"
    struct policy *p = good(W("'in':{'body':'/r'},'beside':{'grant':'refresh','v':'1'}"));
    CU_ASSERT_STRING_EQUAL(policy_rule(p, 0)->credential->beside, "grant=refresh\nv=1");
    policy_free(p);
    p = good(W("'in':{'body':['/r','r']},'beside':{'grant':'refresh','scope':'*'},"
               "'or':{'code':'*','grant':'code'}"));
    CU_ASSERT_STRING_EQUAL(policy_rule(p, 0)->credential->beside,
                           "grant=refresh\n?scope\n|\n?code\ngrant=code");
    policy_free(p);
    says(W("'in':'path','beside':{'a':'b'}"), "goes with 'in: { body: FIELD }' alone");
    says(W("'in':{'body':['r','/r/s']},'beside':{'a':'b'}"), "one of the body's top");
    says(W("'in':{'body':'/r~1s'},'beside':{'a':'b'}"), "one of the body's top");
    says(W("'in':{'body':'/r'},'or':{'a':'b'}"), "'or' goes with 'beside'");
    says(W("'in':{'body':'/r'},'beside':{'a':'b'},'or':{}"), "'or' is empty");
    says(W("'in':{'body':'/r'},'beside':{'a':'b'},'or':{'c':'**'}"), "letters, digits");
    says(W("'in':[{'body':'/r'},'path'],'beside':{'a':'b'}"), "goes with");
    says(W("'in':{'body':'/r'},'beside':{}"), "'beside' is empty");
    says(W("'in':{'body':'/r'},'beside':'a'"), "must be a mapping");
    says(W("'in':{'body':'/r'},'beside':{'a':1}"), "");
    says(W("'in':{'body':'/r'},'beside':{'a b':'c'}"), "letters, digits");
    says(W("'in':{'body':'/r'},'beside':{'a':'b%20c'}"), "letters, digits");
    says(W("'in':{'body':'/r'}") "," W("'in':{'body':'/r'},'beside':{'a':'b'}"), "differ");
#undef W
}

static void bad_signatures(void)
{
    says("{'allow':'a.com','with':{'hmac':{'key':'s','text':'a'}}}", "needs 'key', 'text' and");
    says("{'allow':'a.com','with':{'hmac':{'key':'s','text':'a','headers':{}}}}", "{signature}");
#define HMAC(text, name, value)                                                                  \
    "{'allow':'a.com','with':{'hmac':{'key':'s','text':'" text "','headers':{'" name "':'" value \
    "'}}}}"
    says(HMAC("{x}", "a", "{signature}"), "in braces stand method");
    says(HMAC("{signature}", "a", "{signature}"), "in braces stand method");
    says(HMAC("{header:}", "a", "{signature}"), "in braces stand method");
    says(HMAC("{body", "a", "{signature}"), "in braces stand method");
    says(HMAC("}", "a", "{signature}"), "in braces stand method");
    says(HMAC("a", "a", "{body}{signature}"), "in braces stand signature");
    says(HMAC("a", "a", "x"), "holds \"{signature}\"");
    says(HMAC("a", "host", "{signature}"), "not a header in which");
    says(HMAC("a", "cookie", "{signature}"), "not a header in which");
    says(HMAC("a", "a", "{signature}','b':'{signature}"), "does already");
#undef HMAC
#define SIGN(rest) "{'allow':'a.com','with':{'signature':{'key':'s'," rest "}}}"
    says(SIGN("'label':'a'"), "needs both");
    says(SIGN("'components':[]"), "empty list");
    says(SIGN("'components':['@status']"), "not a component");
    says(SIGN("'components':['Date']"), "not a component");
    says(SIGN("'components':['connection']"), "not a component");
    says(SIGN("'components':['date','date']"), "stands twice");
    says(SIGN("'components':['date'],'label':'A'"), "begins with a letter");
    says(SIGN("'components':['date'],'expires':0"), "");
#undef SIGN
}

static void bad_certificates(void)
{
    says("{'allow':'a.com','with':{'client_certificate':'s','postgres_login':'s'}}",
         "goes with patterns of postgres://");
    says("{'allow':'a.com','with':{'client_certificate':'s','ssh_key':'s'}}", "stands alone");
    says("{'allow':'postgres://a.com/b','with':{'client_certificate':'s','redis_login':'s',"
         "'postgres_login':'s'}}",
         "stands alone");
    says("{'allow':'smtp://a.com','with':{'client_certificate':'s','smtp_login':'s'}}",
         "stands alone");
    says("{'allow':'imaps://a.com','with':{'client_certificate':'s'}}", "no meaning for imaps://");
    says("{'allow':'ssh://u@a.com/o/**','with':{'client_certificate':'s'}}",
         "no meaning for ssh://");
    says("{'allow':'redis://a.com','allow_plaintext':true,'with':{'client_certificate':'s'}}",
         "no meaning for redis://");
    says("{'allow':'redis://a.com','allow_plaintext':true,"
         "'with':{'client_certificate':'s','redis_login':'s'}}",
         "no meaning for redis://");
    says("{'allow':'mysql://a.com/b','with':{'client_certificate':'s'}}",
         "write 'with: { client_certificate: SECRET, mysql_login: SECRET }'");
    says("{'allow':'mysql://a.com/b','with':{'client_certificate':'s','redis_login':'s'}}",
         "what goes with mysql://");
}

static void bad_credentials(void)
{
    says("{'allow':'http://a.com'," S "}", "http:// carries no credential");
    says("{'allow':['a.com','http://a.com:8080/x']," S "}", "http:// carries no credential");
    says("{'allow':'a.com','with':{}}", "one of bearer, basic, header");
    says("{'allow':'a.com','with':{'bearer':'s','header':{'x-k':'t'}}}", "one of bearer");
    says("{'allow':'a.com','with':{'client_certificate':{}}}", "string");
    says("{'allow':'a.com','with':{'client_certificate':'s','bearer':'s'}}", "stands alone");
    says("{'allow':'a.com','client_certificate':'s'}", "nothing beside it");
    says("{'allow':'a.com','client_certificate':'s','with':{'bearer':'s'}}", "nothing beside it");
    says("{'allow':'http://a.com','allow_plaintext':true,'with':{'client_certificate':'s'}}",
         "needs TLS");
    says("{'allow':'a.com','capture':{'a':'s'}}", "goes with 'with'");
    says("{'allow':'a.com'," S ",'capture':{}}", "1 to 8 fields");
    says("{'allow':'a.com'," S ",'capture':{'a..b':'s'}}", "not a field of a reply");
    says("{'allow':'a.com'," S ",'capture':{'a.':'s'}}", "not a field of a reply");
    says("{'allow':'a.com'," S ",'capture':{'*x':'s'}}", "not a field of a reply");
    says("{'allow':'a.com'," S ",'websocket':true,'capture':{'a':'s'}}", "whole replies");
    says("{'allow':'a.com','with':{'baerer':'s'}}", "did you mean 'bearer'?");
    says("{'allow':'a.com','with':'s'}", "such as { bearer: SECRET }");
    says("{'allow':'a.com','with':{'basic':'s'}}", "{ user: NAME, password: SECRET }");
    says("{'allow':'a.com','with':{'bearer':''}}", "is empty");
    says("{'allow':'a.com','with':{'bearer':'a b'}}", "not a secret's name");
    says("{'allow':'a.com','with':{'basic':{'user':'u'}}}", "needs both");
    says("{'allow':'a.com','with':{'basic':{'user':'u:v','password':'s'}}}", "without a colon");
    says("{'allow':'a.com','with':{'header':{'name':'x-k'}}}", "needs both");
    says("{'allow':'a.com','with':{'header':{'host':'s'}}}", "frames or routes");
    says("{'allow':'a.com','with':{'header':{'name':'Content-Length','secret':'s'}}}", "frames");
    says("{'allow':'a.com','with':{'header':{'proxy-authorization':'s'}}}", "frames or routes");
    says("{'allow':'a.com','with':{'header':{'cookie':'s'}}}", "with: { cookie: ");
    says("{'allow':'a.com','with':{'header':{'x key':'s'}}}", "not a header's name");
    says("{'allow':'a.com','with':{'header':{'name':'x-k','secret':'s','prefix':'a\\nb'}}}",
         "printable");
    says("{'allow':'a.com','client_credential':'pass'}", "goes with 'with'");
    says("{'allow':'a.com'," S ",'client_credential':'keep'}", "one of: refuse, replace, pass");
    says("{'allow':'a.com'," S ",'cookies':true}", "quotes");
    says("{'allow':'a.com','cookies':'drop'}", "'cookies' goes with 'with'");
    says("{'allow':'a.com','cookies':'pass'}", "'cookies' goes with 'with'");
    says("{'allow':'a.com','git':'clone'}", "one of: fetch, push");
    says("{'allow':'a.com','git':'fetch'}", "names the repository");
    says("{'allow':'a.com/','git':'fetch'}", "names the repository");
    says("{'allow':'a.com/x/**','git':'fetch'}", "no '**' in a git rule");
    says("{'allow':'a.com/x/y/','git':'fetch'}", "end in a slash");
    says("{'allow':'a.com/x/y','git':'fetch','methods':['GET']}", "methods already");
}

static void bad_edits(void)
{
    static const char *const names[] = {
        "authorization",
        "Proxy-Authorization",
        "proxy-x",
        "cookie",
        "Set-Cookie",
        "x-api-key",
        "host",
        "Content-Length",
        "transfer-encoding",
        "Connection",
        "keep-alive",
        "te",
        "trailer",
        "upgrade",
        "expect",
        "x-forwarded-for",
        "forwarded",
        "x-auth-token",
        "private-token",
        "x-vault-token",
        "x-amz-security-token",
        "api-key",
        "accept-encoding",
        "x-http-method-override",
        "durward-denied",
        "x-proxy-error",
        "x-client-secret",
        "http2-settings",
        "via",
        "x-original-url",
    };
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        char rule[200];
        snprintf(rule, sizeof rule, "{'allow':'a.com','set_headers':{'%s':'x'}}", names[i]);
        says(rule, names[i]);
        snprintf(rule, sizeof rule, "{'allow':'a.com','remove_headers':'%s'}", names[i]);
        says(rule, names[i]);
    }
    says("{'allow':'a.com','set_headers':{'x':'a\\r\\nb'}}", "printable");
    says("{'allow':'a.com','set_headers':{'x':' a'}}", "printable");
    says("{'allow':'a.com','set_headers':{'x':1}}", "quotes");
    says("{'allow':'a.com','set_headers':{'x:y':'1'}}", "not a header's name");
    says("{'allow':'a.com','set_headers':{'x':'1'},'remove_headers':['X']}", "edited twice");
    CU_ASSERT_TRUE(header_name_is_credential(SLICE("X-RapidAPI-Key")));
    CU_ASSERT_TRUE(header_name_is_credential(SLICE("cf-access-jwt-assertion")));
    CU_ASSERT_FALSE(header_name_is_credential(SLICE("user-agent")));
    CU_ASSERT_FALSE(header_name_is_reserved(SLICE("x-team")));
    struct err e;
    CU_ASSERT_PTR_NULL(policy_parse("", 0, &e));
    CU_ASSERT_PTR_NULL(policy_parse("[]", 2, &e));
    CU_ASSERT_PTR_NULL(policy_parse("{\"rules\":[]}", 12, &e));
    CU_ASSERT_PTR_NULL(policy_parse("{\"policy\":\"p\"}", 14, &e));
}

void suite_rule(void);

void suite_rule(void)
{
    CU_pSuite s = CU_add_suite("rule", NULL, NULL);
    CU_add_test(s, "fields of a rule", fields);
    CU_add_test(s, "ambiguous rules", ambiguous);
    CU_add_test(s, "bad rules", bad_rules);
    CU_add_test(s, "what is asked of bodies", bad_inspections);
    CU_add_test(s, "C26: tunnels", tunnels);
    CU_add_test(s, "bad credentials", bad_credentials);
    CU_add_test(s, "bad certificates", bad_certificates);
    CU_add_test(s, "bad signatures", bad_signatures);
    CU_add_test(s, "credentials that are no header", places);
    CU_add_test(s, "what stands beside a placeholder", beside);
    CU_add_test(s, "headers that may not be edited", bad_edits);
    CU_add_test(s, "A13: public suffixes", public_suffixes);
    CU_add_test(s, "query", queries);
    CU_add_test(s, "headers", headers);
    CU_add_test(s, "allow_plaintext", plaintext);
}

void tap_suites(void)
{
    suite_rule();
}
