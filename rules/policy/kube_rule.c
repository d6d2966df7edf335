/* Reads a request as the API server of Kubernetes does, and holds it against a rule's entries. */
#include "kube_rule.h"

#include "ssh_rule.h"

#include <string.h>

enum { PARTS = 12, SELECTOR_MAX = 1024, WATCH_MAX = 32, QUERY_PARTS_MAX = 1000 };

const char *kube_verb_name(enum kube_verb v)
{
    static const char *const names[] = {
        "get", "list", "watch", "create", "update", "patch", "delete", "deletecollection", "proxy"};
    return (unsigned)v < ARRAY_LEN(names) ? names[v] : "";
}

/* ---- the query, as Go's net/url reads it ---- */

static int hex_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c = ascii_lower(c);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool escapes_are_whole(struct slice s)
{
    for (size_t i = 0; i < s.n; i++)
        if (s.p[i] == '%' &&
            (s.n - i < 3 || hex_value(s.p[i + 1]) < 0 || hex_value(s.p[i + 2]) < 0))
            return false;
    return true;
}

/* The next byte of a text whose escapes are whole. */
static char next_byte(struct slice *s)
{
    char c = s->p[0] == '+' ? ' ' : s->p[0];
    size_t n = 1;
    if (c == '%') {
        c = (char)(hex_value(s->p[1]) * 16 + hex_value(s->p[2]));
        n = 3;
    }
    *s = (struct slice){s->p + n, s->n - n};
    return c;
}

static bool reads_as(struct slice s, const char *text)
{
    while (s.n > 0 && *text)
        if (next_byte(&s) != *text++)
            return false;
    return s.n == 0 && *text == 0;
}

/* The next value of that name, as it is written. What Go leaves out (a part with ";", or a broken
 * escape) is left out. False: there are no more. */
static bool next_value(struct slice *query, const char *name, struct slice *ret)
{
    while (query->n > 0) {
        ssize_t amp = slice_find(*query, '&');
        struct slice part = {query->p, amp < 0 ? query->n : (size_t)amp};
        *query = amp < 0 ? SLICE("") : (struct slice){query->p + amp + 1, query->n - part.n - 1};
        ssize_t eq = slice_find(part, '=');
        struct slice key = {part.p, eq < 0 ? part.n : (size_t)eq};
        *ret = eq < 0 ? SLICE("") : (struct slice){part.p + eq + 1, part.n - (size_t)eq - 1};
        if (part.n > 0 && slice_find(part, ';') < 0 && escapes_are_whole(part) &&
            reads_as(key, name))
            return true;
    }
    return false;
}

static bool first_value(struct slice query, const char *name, struct slice *ret)
{
    return next_value(&query, name, ret);
}

/* Go takes a query of too many parts for none. */
static bool is_long(struct slice query)
{
    size_t n = 0;
    for (size_t i = 0; i < query.n; i++)
        n += query.p[i] == '&';
    return n >= QUERY_PARTS_MAX;
}

/* -1: it is longer than that. */
static int decode(struct slice s, char *to, size_t size, struct slice *ret)
{
    size_t n = 0;
    while (s.n > 0 && n < size)
        to[n++] = next_byte(&s);
    *ret = (struct slice){to, n};
    return s.n > 0 ? -1 : 0;
}

/* A flag that is there is set, but for "false" and "0"; the first one counts. -1: the server folds
 * letters beyond ASCII in one place, and in another it does not. */
static int watches(struct slice query)
{
    char text[WATCH_MAX];
    struct slice value, plain;
    if (!first_value(query, "watch", &value))
        return 0;
    if (decode(value, text, sizeof text, &plain) < 0)
        return -1;
    for (size_t i = 0; i < plain.n; i++)
        if (plain.p[i] < ' ' || plain.p[i] > '~')
            return -1;
    return !slice_ieq_str(plain, "false") && !slice_eq_str(plain, "0");
}

/* A number that Go's strconv.ParseInt reads, too; the first one counts. */
static bool is_number_or_none(struct slice query, const char *name)
{
    struct slice s;
    if (!first_value(query, name, &s))
        return true;
    for (size_t i = 0; i < s.n; i++)
        if (s.p[i] < '0' || s.p[i] > '9')
            return false;
    return s.n > 0 && s.n < 19;
}

/* One term of a field selector. -1: it has no operator. 1: it says this name. */
static int read_term(struct slice term, struct slice *name)
{
    static const struct slice field = SLICE_INIT("metadata.name");
    ssize_t eq = slice_find(term, '=');
    if (eq < 0)
        return -1;
    bool differs = eq > 0 && term.p[eq - 1] == '!';
    size_t from = (size_t)eq + 1;
    from += from < term.n && term.p[from] == '=' && !differs;
    struct slice left = {term.p, (size_t)eq - differs};
    *name = (struct slice){term.p + from, term.n - from};
    return !differs && slice_eq(left, field);
}

/* Of letters, digits and signs that mean one thing to everybody, and no dot segment. */
static bool is_plain_name(struct slice s)
{
    for (size_t i = 0; i < s.n; i++)
        if (!ascii_is_alnum(s.p[i]) && (s.p[i] == 0 || !strchr("-._:", s.p[i])))
            return false;
    return !slice_eq_str(s, ".") && !slice_eq_str(s, "..");
}

/* The name that `fieldSelector` asks for. Where the server might not read the query, or the
 * selector in another way, it is taken for none, which allows less. */
static void read_selected(struct slice query, struct kube_facts *f)
{
    char text[SELECTOR_MAX];
    struct slice s, name, found = {"", 0};
    if (!first_value(query, "fieldSelector", &s) || decode(s, text, sizeof text, &s) < 0 ||
        slice_find(s, '\\') >= 0 || first_value(query, "labelSelector", &name) ||
        !is_number_or_none(query, "limit") || !is_number_or_none(query, "timeoutSeconds"))
        return;
    for (;;) {
        ssize_t comma = slice_find(s, ',');
        struct slice term = {s.p, comma < 0 ? s.n : (size_t)comma};
        int r = term.n == 0 ? 0 : read_term(term, &name);
        if (r < 0)
            return;
        if (r == 1 && found.n == 0)
            found = name;
        if (comma < 0)
            break;
        s = (struct slice){s.p + comma + 1, s.n - (size_t)comma - 1};
    }
    if (found.n == 0 || found.n > KUBE_WORD_MAX || !is_plain_name(found))
        return;
    memcpy(f->selected, found.p, found.n);
    f->selected[found.n] = 0;
    f->name = (struct slice){f->selected, found.n};
}

/* ---- the path ---- */

/* Parts between slashes, those at both ends left off; the last has the rest. -1: there is an empty
 * one. */
static int split(struct slice path, struct slice parts[PARTS], size_t *n)
{
    *n = 0;
    while (path.n > 0 && path.p[0] == '/')
        path = (struct slice){path.p + 1, path.n - 1};
    while (path.n > 0 && path.p[path.n - 1] == '/')
        path.n--;
    while (path.n > 0) {
        ssize_t slash = *n == PARTS - 1 ? -1 : slice_find(path, '/');
        parts[*n] = (struct slice){path.p, slash < 0 ? path.n : (size_t)slash};
        if (parts[(*n)++].n == 0)
            return -1;
        path =
            slash < 0 ? SLICE("") : (struct slice){path.p + slash + 1, path.n - (size_t)slash - 1};
    }
    return 0;
}

static enum kube_verb verb_of(struct slice method)
{
    static const struct {
        const char *method;
        enum kube_verb verb;
    } table[] = {{"GET", KUBE_GET},    {"HEAD", KUBE_GET},    {"POST", KUBE_CREATE},
                 {"PUT", KUBE_UPDATE}, {"PATCH", KUBE_PATCH}, {"DELETE", KUBE_DELETE}};
    for (size_t i = 0; i < ARRAY_LEN(table); i++)
        if (slice_eq_str(method, table[i].method))
            return table[i].verb;
    return KUBE_OTHER;
}

/* namespaces/NAME/RESOURCE/... is of that namespace; namespaces/NAME/status is of the namespace. */
static void take_space(struct slice **at, size_t *n, struct kube_facts *f)
{
    if (!slice_eq_str((*at)[0], "namespaces") || *n < 2)
        return;
    f->space = (*at)[1];
    if (*n < 3 || slice_eq_str((*at)[2], "status") || slice_eq_str((*at)[2], "finalize"))
        return;
    *at += 2;
    *n -= 2;
}

/* What is behind the version. -1: the server cannot read it either. */
static int read_resource(struct slice *at, size_t n, struct slice method, struct kube_facts *f)
{
    f->is_resource = true;
    f->verb = verb_of(method);
    bool watch = slice_eq_str(at[0], "watch");
    if (watch || slice_eq_str(at[0], "proxy")) {
        if (n < 2)
            return -1;
        f->verb = watch ? KUBE_WATCH : KUBE_PROXY;
        at++;
        n--;
    }
    take_space(&at, &n, f);
    f->resource = at[0];
    if (n > 1)
        f->name = at[1];
    if (n > 2 && f->verb != KUBE_PROXY)
        f->subresource = at[2];
    return 0;
}

/* A stream into a container is made, by whichever method it is asked for. */
static bool is_stream(const struct kube_facts *f)
{
    return slice_eq_str(f->resource, "pods") && f->group.n == 0 &&
           (slice_eq_str(f->subresource, "exec") || slice_eq_str(f->subresource, "attach") ||
            slice_eq_str(f->subresource, "portforward"));
}

static int settle_verb(struct slice query, struct kube_facts *f)
{
    if (f->name.n == 0 && f->verb == KUBE_GET) {
        int watch = watches(query);
        if (watch < 0)
            return -1;
        f->verb = watch ? KUBE_WATCH : KUBE_LIST;
        read_selected(query, f);
    }
    if (f->name.n == 0 && f->verb == KUBE_DELETE)
        f->verb = KUBE_DELETECOLLECTION;
    if (is_stream(f) && f->verb == KUBE_GET)
        f->verb = KUBE_CREATE;
    return 0;
}

/* Escapes may stand only where nothing of the resource is named: behind a subresource. */
static bool is_plain(struct slice path, const struct kube_facts *f)
{
    if (f->subresource.n > 0)
        path.n = (size_t)(f->subresource.p + f->subresource.n - path.p);
    return slice_find(path, '%') < 0;
}

int kube_read(struct slice method, struct slice path, struct slice query, struct kube_facts *ret)
{
    struct slice parts[PARTS], *at = parts;
    size_t n, least = 3;
    memset(ret, 0, sizeof *ret);
    ret->path = path;
    ret->query = query;
    ret->verb = verb_of(method);
    ret->group = ret->resource = ret->subresource = ret->space = ret->name = SLICE("");
    if (is_long(query) || split(path, parts, &n) < 0)
        return -1;
    bool grouped = n > 0 && slice_eq_str(parts[0], "apis");
    if (grouped && n > 3)
        ret->group = parts[1];
    least += grouped;
    if (n >= least && (grouped || slice_eq_str(parts[0], "api"))) {
        at += least - 1;
        if (read_resource(at, n - (least - 1), method, ret) < 0 || settle_verb(query, ret) < 0)
            return -1;
    }
    return is_plain(path, ret) ? 0 : -1;
}

/* ---- entries ---- */

bool kube_matches(const char *pattern, struct slice name)
{
    const char *p = pattern, *star = NULL;
    size_t i = 0, mark = 0;
    while (i < name.n) {
        if (*p == '*') {
            star = p++;
            mark = i;
        } else if (*p && *p == name.p[i]) {
            p++;
            i++;
        } else if (star) {
            p = star + 1;
            i = ++mark;
        } else {
            return false;
        }
    }
    while (*p == '*')
        p++;
    return *p == 0;
}

static bool any_matches(const char *const *patterns, size_t n, struct slice name)
{
    for (size_t i = 0; i < n; i++)
        if (name.n > 0 && kube_matches(patterns[i], name))
            return true;
    return n == 0;
}

static bool is_word(const char *word, struct slice s)
{
    return (strcmp(word, "*") == 0 && s.n > 0) || slice_eq_str(s, word);
}

/* "*" alone is every resource of every group, but for their subresources; as a subresource it is
 * each but `proxy`: what goes through that is not in words of Kubernetes, and has to be named. */
static bool resource_matches(const struct kube_resource *r, const struct kube_facts *f)
{
    bool group = strcmp(r->group, "*") == 0 || slice_eq_str(f->group, r->group);
    bool sub = slice_eq_str(f->subresource, "proxy") ? strcmp(r->subresource, "proxy") == 0
                                                     : is_word(r->subresource, f->subresource);
    return group && sub && is_word(r->resource, f->resource);
}

/* The words of an exec with blanks between. -1: that would not say what they are, or they are too
 * many. */
static int plain_command(struct slice query, char *to, size_t size, struct slice *ret)
{
    struct slice word, plain;
    size_t n = 0;
    while (next_value(&query, "command", &word)) {
        if (n > 0 && n < size)
            to[n++] = ' ';
        if (decode(word, to + n, size - n, &plain) < 0 || plain.n == 0)
            return -1;
        for (size_t i = 0; i < plain.n; i++)
            if (plain.p[i] <= ' ' || plain.p[i] > '~')
                return -1;
        n += plain.n;
    }
    *ret = (struct slice){to, n};
    return n > 0 ? 0 : -1;
}

static bool command_matches(const struct kube_entry *e, const struct kube_facts *f)
{
    char text[SSH_TEXT_MAX];
    struct slice command;
    if (e->n_commands == 0)
        return true;
    if (plain_command(f->query, text, sizeof text, &command) < 0)
        return false;
    for (size_t i = 0; i < e->n_commands; i++)
        if (ssh_command_matches(e->commands[i], command))
            return true;
    return false;
}

static bool entry_allows(const struct kube_entry *e, const struct kube_facts *f)
{
    bool named = false;
    if (f->verb >= KUBE_VERBS || !(e->verbs & 1u << f->verb))
        return false;
    for (size_t i = 0; i < e->n_resources && !named; i++)
        named = resource_matches(&e->resources[i], f);
    return named && any_matches(e->spaces, e->n_spaces, f->space) &&
           any_matches(e->names, e->n_names, f->name) && command_matches(e, f);
}

/* What Kubernetes lets everybody read who has logged in (system:discovery). */
static bool is_discovery(const struct kube_facts *f)
{
    static const struct slice whole[] = {
        SLICE_INIT("/api"),    SLICE_INIT("/apis"),    SLICE_INIT("/healthz"), SLICE_INIT("/livez"),
        SLICE_INIT("/readyz"), SLICE_INIT("/openapi"), SLICE_INIT("/version")};
    static const struct slice below[] = {SLICE_INIT("/api/"), SLICE_INIT("/apis/"),
                                         SLICE_INIT("/openapi/")};
    struct slice path = f->path;
    while (path.n > 1 && path.p[path.n - 1] == '/')
        path.n--;
    if (f->is_resource || f->verb != KUBE_GET)
        return false;
    for (size_t i = 0; i < ARRAY_LEN(whole); i++)
        if (slice_eq(path, whole[i]) || (i < ARRAY_LEN(below) && slice_starts(path, below[i])))
            return true;
    return false;
}

int kube_decide(const struct kube_terms *t, const struct kube_facts *f)
{
    if (is_discovery(f))
        return KUBE_DISCOVERY;
    for (size_t i = 0; f->is_resource && i < t->n_entries; i++)
        if (entry_allows(&t->entries[i], f))
            return (int)i + 1;
    return -1;
}

/* A patch of any type but these three can make (server-side apply); an update can where the
 * resource's strategy says AllowCreateOnUpdate, in any version until 1.34. */
bool kube_may_make(const struct kube_facts *f, struct slice type)
{
    static const char *const patches[] = {"application/json-patch+json",
                                          "application/merge-patch+json",
                                          "application/strategic-merge-patch+json"};
    static const char *const updated[] = {"services",     "endpoints",    "events",
                                          "limitranges",  "leases",       "roles",
                                          "rolebindings", "clusterroles", "clusterrolebindings"};
    if (f->subresource.n > 0)
        return false;
    if (f->verb == KUBE_PATCH) {
        for (size_t i = 0; i < ARRAY_LEN(patches); i++)
            if (slice_eq_str(type, patches[i]))
                return false;
        return true;
    }
    for (size_t i = 0; f->verb == KUBE_UPDATE && i < ARRAY_LEN(updated); i++)
        if (slice_eq_str(f->resource, updated[i]))
            return true;
    return false;
}

/* ---- for people ---- */

bool kube_streams(const struct kube_entry *e)
{
    static const char *const streams[] = {"exec", "attach", "portforward"};
    bool found = false;
    for (size_t i = 0; i < e->n_resources; i++)
        for (size_t k = 0; k < ARRAY_LEN(streams); k++)
            found = found || strcmp(e->resources[i].subresource, streams[k]) == 0;
    return found && e->verbs & 1u << KUBE_CREATE;
}

bool kube_names_new(const struct kube_entry *e)
{
    bool found = false;
    for (size_t i = 0; i < e->n_resources; i++)
        found = found || e->resources[i].subresource[0] == 0;
    return found && e->n_names > 0 && e->verbs == 1u << KUBE_CREATE;
}

int kube_text(const struct kube_facts *f, struct buf *to)
{
    if (!f->is_resource)
        return 0;
    return buf_printf(to, "%s %.*s%s%.*s%s%.*s %.*s%s%.*s", kube_verb_name(f->verb),
                      SL(f->resource), f->group.n ? "." : "", SL(f->group),
                      f->subresource.n ? "/" : "", SL(f->subresource), SL(f->space),
                      f->space.n ? "/" : "", SL(f->name));
}

/* A word in quotes, where without them it could be read as another or as several. */
static int put_word(struct slice word, struct buf *to)
{
    bool quoted = word.n == 0;
    for (struct slice s = word; s.n > 0 && !quoted;) {
        char c = next_byte(&s);
        quoted = c <= ' ' || c > '~' || c == '"' || c == '\\';
    }
    int r = quoted ? buf_append_str(to, "\"") : 0;
    while (r == 0 && word.n > 0) {
        char c = next_byte(&word);
        r = c == '"' || c == '\\' ? buf_printf(to, "\\%c", c)
            : c < ' ' || c > '~'  ? buf_printf(to, "\\x%02x", (unsigned char)c)
                                  : buf_append(to, &c, 1);
    }
    return r == 0 && quoted ? buf_append_str(to, "\"") : r;
}

/* As much as there is room for. */
static int put_command(const struct kube_facts *f, struct buf *to)
{
    struct slice query = f->query, word;
    for (bool first = true; next_value(&query, "command", &word); first = false)
        if ((!first && buf_append_str(to, " ") < 0) || put_word(word, to) < 0)
            return -1;
    return 0;
}

void kube_command(const struct kube_facts *f, struct buf *to)
{
    static const char cut[] = KUBE_COMMAND_CUT;
    struct buf text;
    if (!is_stream(f) || !slice_eq_str(f->subresource, "exec"))
        return;
    buf_init(&text, KUBE_COMMAND_MAX - (sizeof cut - 1));
    bool whole = put_command(f, &text) == 0;
    if (buf_append_slice(to, buf_slice(&text)) < 0 || (!whole && buf_append_str(to, cut) < 0))
        buf_clear(to); /* of a smaller bound than this one */
    buf_free(&text);
}
