/* `graphql`, `server_tools` and `refs` of a rule, and which of them it has; `mcp` is read in
 * rule_mcp.c, `llm` in rule_llm.c. */
#include <string.h>

#include "llm.h"
#include "mcp.h"
#include "rule.h"

enum { WORDS_MAX = 256 };

/* Where a model may be asked to use tools of its provider. A leading dot: names under it too. */
static const char *const model_hosts[] = {
    "api.openai.com",
    ".api.openai.com",
    ".openai.azure.com",
    "api.anthropic.com",
    "generativelanguage.googleapis.com",
    ".aiplatform.googleapis.com",
    "openrouter.ai",
    "api.x.ai",
    "api.mistral.ai",
    "api.groq.com",
};

int rule_words_read(struct arena *a, const struct node *n, enum rule_words how,
                    struct word_list *ret, struct err *err)
{
    size_t count;
    if (how != RULE_WORDS && json_is_array(n->value) && json_array_size(n->value) == 0)
        return 0;
    if (node_strings(n, &count, err) < 0)
        return -1;
    if (count > WORDS_MAX)
        return node_fail(n, err, "more than %d names", WORDS_MAX);
    const char **list = arena_zalloc(a, count, sizeof *list);
    for (size_t i = 0; i < count; i++) {
        struct node item;
        if (node_strings_at(n, i, &item, &list[i], err) < 0)
            return -1;
        if (how != RULE_WORDS_PATTERNS && strchr(list[i], '*'))
            return node_fail(&item, err, "'%.60s': names are whole, there is no '*' here", list[i]);
        if (strlen(list[i]) > MCP_PATTERN_MAX)
            return node_fail(&item, err, "'%.60s...' is longer than %d bytes", list[i],
                             MCP_PATTERN_MAX);
        list[i] = arena_str(a, list[i]);
    }
    *ret = (struct word_list){list, count};
    return 0;
}

static const struct key graphql_keys[] = {
    KEY("read_only", AS(bool), "", ""),
    KEY("operations", AS(strings), "", ""),
    KEY("fields", AS(strings), "", ""),
};

static int read_graphql_map(struct arena *a, const struct node *n, struct inspection *in,
                            struct err *err)
{
    struct node at;
    if (node_keys(n, KEYS(graphql_keys), err) < 0)
        return -1;
    if (node_get(n, "read_only", &at) && node_bool(&at, &in->read_only, err) < 0)
        return -1;
    in->by_name = node_get(n, "operations", &at);
    if (in->by_name && rule_words_read(a, &at, RULE_WORDS, &in->operations, err) < 0)
        return -1;
    in->by_field = node_get(n, "fields", &at);
    if (in->by_field && rule_words_read(a, &at, RULE_WORDS, &in->fields, err) < 0)
        return -1;
    if (!in->read_only && !in->by_name && !in->by_field)
        return node_fail(n, err, "this limits nothing; say read_only, operations or fields");
    return 0;
}

static int read_graphql(struct arena *a, const struct node *n, struct inspection *in,
                        struct err *err)
{
    in->kind = INSPECT_GRAPHQL;
    if (json_is_object(n->value))
        return read_graphql_map(a, n, in, err);
    if (json_is_string(n->value)) {
        static const char *const words[] = {"read-only"};
        size_t word;
        in->read_only = true;
        return node_word(n, words, ARRAY_LEN(words), &word, err);
    }
    in->by_name = true;
    return rule_words_read(a, n, RULE_WORDS, &in->operations, err);
}

/* The host of a table entry and a pattern's have a name in common. */
static bool hosts_meet(const struct pattern *p, const char *host)
{
    struct slice known = slice_str(host + (host[0] == '.')), mine = p->host;
    char under[HOST_TEXT_MAX + 1];
    if (p->kind != HOST_NAME)
        return false;
    if (slice_eq(known, mine))
        return (host[0] == '.') == p->subdomains;
    bool longer = mine.n > known.n;
    struct slice is = longer ? mine : known, below = longer ? known : mine;
    if (below.n >= sizeof under - 1)
        return false;
    under[0] = '.';
    memcpy(under + 1, below.p, below.n);
    /* the shorter one must be of subdomains to have the longer one */
    return (longer ? host[0] == '.' : p->subdomains) &&
           slice_ends(is, (struct slice){under, below.n + 1});
}

bool rule_names_model(const struct rule_entry *e)
{
    for (size_t i = 0; i < e->n_arms; i++)
        for (size_t j = 0; j < ARRAY_LEN(model_hosts); j++)
            if (hosts_meet(&e->arms[i].pattern, model_hosts[j]))
                return true;
    return false;
}

/* "any": no inspection at all. */
int rule_server_tools_read(struct arena *a, const struct node *n, struct inspection *in, bool *any,
                           struct err *err)
{
    in->kind = INSPECT_SERVER_TOOLS;
    *any = json_is_string(n->value) && strcmp(json_string_value(n->value), "any") == 0;
    if (*any)
        return 0;
    if (!json_is_array(n->value))
        return node_fail(n, err, "'server_tools' is 'any' or a list of tools; [] allows none");
    return rule_words_read(a, n, RULE_WORDS_OR_NONE, &in->tools, err);
}

/* "refs/heads/agent-*": whole names, "*" inside a segment, "**" as the last one. */
static int check_ref(const struct node *n, const char *ref, struct err *err)
{
    const char *rest = strstr(ref, "**");
    if (strncmp(ref, "refs/", 5) != 0 || ref[5] == 0)
        return node_fail(n, err, "'%.80s' is not a reference; write refs/heads/NAME", ref);
    if (strpbrk(ref, " ~^:?[\\") || strstr(ref, "//") || strstr(ref, ".."))
        return node_fail(n, err, "'%.80s': no reference can have such a name", ref);
    if (rest && (rest[2] != 0 || rest[-1] != '/'))
        return node_fail(n, err, "'%.80s': '**' only as the last segment", ref);
    return 0;
}

static int read_refs_list(struct arena *a, const struct node *n, struct inspection *in,
                          struct err *err)
{
    size_t count;
    if (node_strings(n, &count, err) < 0)
        return -1;
    if (count > WORDS_MAX)
        return node_fail(n, err, "more than %d names", WORDS_MAX);
    const char **list = arena_zalloc(a, count, sizeof *list);
    for (size_t i = 0; i < count; i++) {
        struct node item;
        if (node_strings_at(n, i, &item, &list[i], err) < 0 || check_ref(&item, list[i], err) < 0)
            return -1;
        list[i] = arena_str(a, list[i]);
    }
    in->refs = (struct word_list){list, count};
    return 0;
}

static const struct key refs_keys[] = {
    KEY("names", OWN, "", ""),
    KEY("force", AS(bool), "", ""),
    KEY("delete", AS(bool), "", ""),
};

static int read_refs(struct arena *a, const struct node *n, struct inspection *in, struct err *err)
{
    struct node at;
    in->refs_given = true;
    if (!json_is_object(n->value))
        return read_refs_list(a, n, in, err);
    if (node_keys(n, KEYS(refs_keys), err) < 0)
        return -1;
    if (!node_get(n, "names", &at))
        return node_fail(n, err, "'refs' needs 'names'");
    if (read_refs_list(a, &at, in, err) < 0)
        return -1;
    if (node_get(n, "force", &at) && node_bool(&at, &in->force, err) < 0)
        return -1;
    return node_get(n, "delete", &at) ? node_bool(&at, &in->deletes, err) : 0;
}

/* A git rule always asks: whether a git-lfs batch loads up or down stands in its body. */
static int read_git_inspection(struct arena *a, const struct node *rule, struct rule_entry *ret,
                               struct inspection *in, struct err *err)
{
    struct node refs;
    in->kind = INSPECT_GIT;
    in->push = ret->push;
    if (!node_get(rule, "refs", &refs))
        return 0;
    if (!ret->push)
        return node_fail(&refs, err, "'refs' narrows 'git: push'; this rule fetches");
    return read_refs(a, &refs, in, err);
}

int rule_refs_read(struct arena *a, const struct node *rule, struct rule_entry *ret,
                   struct err *err)
{
    struct node refs;
    if (!node_get(rule, "refs", &refs))
        return 0;
    struct inspection *in = arena_zalloc(a, 1, sizeof *in);
    in->kind = INSPECT_GIT;
    in->push = true;
    ret->rule.inspection = in;
    return read_refs(a, &refs, in, err);
}

/* Frames are not read for what these ask about. */
static int check_websocket(const struct node *rule, const struct inspection *in, struct err *err)
{
    struct node n;
    if (in->kind == 0 || in->kind == INSPECT_GIT || !node_get(rule, "websocket", &n))
        return 0;
    if (in->kind == INSPECT_LLM && (in->llm->apis & LLM_SESSION_APIS))
        return 0; /* its events are read (llm_session.h) */
    if (in->kind == INSPECT_SERVER_TOOLS)
        return node_fail(&n, err,
                         "a WebSocket to a model may ask for its provider's tools unseen; say "
                         "'server_tools: any' too");
    return node_fail(
        &n, err,
        "what graphql, mcp and llm ask about is not looked for in a WebSocket, but for "
        "events of the APIs 'openai' and 'azure'");
}

int rule_inspection_read(struct arena *a, const struct node *rule, struct rule_entry *ret,
                         struct err *err)
{
    struct inspection *in = arena_zalloc(a, 1, sizeof *in);
    struct node graphql, mcp, tools, llm;
    bool any = false;
    int r = 0;
    bool has_graphql = node_get(rule, "graphql", &graphql), has_mcp = node_get(rule, "mcp", &mcp),
         has_tools = node_get(rule, "server_tools", &tools), has_llm = node_get(rule, "llm", &llm);
    const struct node *first = has_graphql ? &graphql : has_mcp ? &mcp : has_llm ? &llm : &tools;
    if (has_graphql + has_mcp + (has_tools || has_llm) > 1)
        return node_fail(has_llm   ? &llm
                         : has_mcp ? &mcp
                                   : &tools,
                         err, "a body is one of graphql, mcp and a request to a model; keep one");
    if (ret->git && (has_graphql || has_mcp || has_tools || has_llm))
        return node_fail(first, err, "a git rule has bodies of its own");
    struct node refs;
    if (!ret->git && node_get(rule, "refs", &refs))
        return node_fail(&refs, err, "'refs' goes with 'git: push'");
    if (ret->git)
        r = read_git_inspection(a, rule, ret, in, err);
    else if (has_graphql)
        r = read_graphql(a, &graphql, in, err);
    else if (has_mcp)
        r = rule_mcp_read(a, &mcp, rule, in, err);
    else if (has_llm)
        r = rule_llm_read(a, &llm, has_tools ? &tools : NULL, ret, in, err);
    else if (has_tools)
        r = rule_server_tools_read(a, &tools, in, &any, err);
    else if (!ret->deny && ret->rule.credential && rule_names_model(ret))
        in->kind = INSPECT_SERVER_TOOLS; /* none is allowed unless said */
    ret->rule.inspection = in->kind && !any ? in : NULL;
    ret->rule.uncounted = !ret->deny && !has_llm && ret->rule.credential && rule_names_model(ret);
    return r < 0 || any ? r : check_websocket(rule, in, err);
}
