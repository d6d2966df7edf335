/* `audit.notify`, and what it shares with `audit.anchor`: where we send to by ourselves. */
#include "config_tree.h"
#include "quantity.h"
#include "rule.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>

enum { URL_MAX = 1000, WITHIN_MIN = 10, COUNT_MAX = 1000000000 };

/* ---- places ---- */

/* http:// only to an address of this machine: nothing of it is on a wire. */
static int check_url(const struct node *n, const char *url, struct authority *a, struct err *err)
{
    bool tls = strncmp(url, "https://", 8) == 0;
    const char *rest = tls ? url + 8 : url + strlen("http://");
    if (!tls && strncmp(url, "http://", 7) != 0)
        return node_fail(n, err, "'%.200s' is not an https:// URL", url);
    size_t host = strcspn(rest, "/?");
    if (strlen(url) > URL_MAX || strpbrk(rest, "#*\\ \"<>") || strstr(rest, "..") ||
        strchr(rest + host, '%') ||
        authority_parse(a, tls ? SCHEME_HTTPS : SCHEME_HTTP, (struct slice){rest, host}) < 0)
        return node_fail(n, err, "'%.200s' is not a plain https://HOST[:PORT]/PATH", url);
    for (const char *p = url; *p; p++)
        if (*p <= ' ' || *p > '~')
            return node_fail(n, err, "the URL has bytes that are not printable ASCII");
    bool loopback = (a->kind == HOST_IPV4 && a->ip[0] == 127) || strcmp(a->host, "::1") == 0;
    if (!tls && !loopback)
        return node_fail(n, err,
                         "'%.200s': in clear only to an address of this machine, such as "
                         "http://127.0.0.1:4318; else https://",
                         url);
    return 0;
}

static const struct key place_keys[] = {
    KEY("url", AS(url), "", ""),
    KEY("to", AS(ranges), "", ""),
};

int config_read_place(struct config *c, const struct node *n, enum exporter_place p,
                      struct err *err)
{
    struct config_place *place = &c->places[p];
    struct rule judged = {0};
    struct node at = *n, to;
    struct authority a;
    const char *url;
    if (json_is_object(n->value)) {
        if (node_keys(n, KEYS(place_keys), err) < 0)
            return -1;
        if (!node_get(n, "url", &at))
            return node_fail(n, err, "'%s' needs 'url'", n->key);
        if (rule_to_read(c->arena, n, &judged, err) < 0)
            return -1;
        place->to = node_get(n, "to", &to) ? to.value : NULL;
    }
    if (node_string(&at, &url, err) < 0 || check_url(&at, url, &a, err) < 0)
        return -1;
    place->url = arena_str(c->arena, url);
    return 0;
}

const char *config_exporter_url(const struct config *c, enum exporter_place p)
{
    return c->places[p].url;
}

/* An address that the URL names is one that the operator wrote: no range need say so again. */
static json_t *ranges_of(const struct config_place *place)
{
    struct authority a;
    const char *rest = strstr(place->url, "//") + 2;
    json_t *list = json_is_array(place->to) ? json_copy(place->to) : json_array();
    if (json_is_string(place->to))
        json_array_append(list, place->to);
    if (authority_parse(&a, SCHEME_HTTPS, (struct slice){rest, strcspn(rest, "/?")}) == 0 &&
        a.kind != HOST_NAME)
        json_array_append_new(list, json_sprintf("%s/%d", a.host, a.kind == HOST_IPV4 ? 32 : 128));
    return list;
}

char *config_exporter_json(const struct config *c)
{
    json_t *rules = json_array();
    for (size_t i = 0; i < EXPORTER_PLACES; i++) {
        const struct config_place *place = &c->places[i];
        json_t *to = place->url ? ranges_of(place) : NULL, *rule;
        if (to == NULL)
            continue;
        rule = json_pack("{s:s%, s:[s]}", "allow", place->url, strcspn(place->url, "?"), "methods",
                         "POST");
        if (rule && json_array_size(to) > 0)
            json_object_set(rule, "to", to);
        json_decref(to);
        if (json_array_append_new(rules, rule) < 0)
            abort(); /* memory is out */
    }
    json_t *all = json_pack("{s:s, s:o}", "policy", "exporter", "rules", rules);
    char *text = all && json_array_size(rules) > 0 ? json_dumps(all, JSON_COMPACT) : NULL;
    json_decref(all);
    return text;
}

/* ---- tracing ---- */

static void below(struct config *c, enum exporter_place p, const struct config_place *base,
                  const char *path)
{
    char url[URL_MAX + 32];
    size_t n = strlen(base->url);
    snprintf(url, sizeof url, "%.*s%s", (int)(n - (base->url[n - 1] == '/')), base->url, path);
    c->places[p] = (struct config_place){arena_str(c->arena, url), base->to};
}

static const struct key tracing_keys[] = {
    KEY("otlp", REF(place), "required",
        "URL below which there are `v1/logs` and `v1/traces`; a URL or `{ url, to }` as `webhook` "
        "above. In clear to an address of this machine only"),
    KEY("logs", AS(bool), "`true`", "`false`: no log records"),
    KEY("spans", AS(bool), "`true`", "`false`: no spans"),
};

int config_read_tracing(struct config *c, const struct node *n, struct err *err)
{
    struct node at;
    bool logs = true, spans = true;
    if (node_keys(n, KEYS(tracing_keys), err) < 0)
        return -1;
    if (!node_get(n, "otlp", &at))
        return node_fail(n, err, "'tracing' needs 'otlp', such as http://127.0.0.1:4318");
    if (config_read_place(c, &at, EXPORTER_LOGS, err) < 0)
        return -1;
    struct config_place base = c->places[EXPORTER_LOGS];
    if (strchr(base.url, '?'))
        return node_fail(&at, err, "'otlp' is the URL below which there are v1/logs and v1/traces");
    if (node_key_bool(n, "logs", &logs, err) < 0 || node_key_bool(n, "spans", &spans, err) < 0)
        return -1;
    if (!logs && !spans)
        return node_fail(n, err, "'tracing' with neither 'logs' nor 'spans' sends nothing");
    c->places[EXPORTER_LOGS] = (struct config_place){NULL, NULL};
    if (logs)
        below(c, EXPORTER_LOGS, &base, "/v1/logs");
    if (spans)
        below(c, EXPORTER_TRACES, &base, "/v1/traces");
    return 0;
}

/* ---- thresholds ---- */

static const struct key threshold_keys[] = {
    KEY("bytes_up", AS(bytes), "",
        "so many bytes of request bodies (KB, MB, GB, TB are decimal); what lasts counts with each "
        "`progress` record"),
    KEY("hosts", UINT(1, NOTIFY_HOSTS_MAX), "", "so many distinct hosts asked for, at most 1000"),
    KEY("denied", UINT(1, COUNT_MAX), "", "denied requests"),
    KEY("names_refused", UINT(1, COUNT_MAX), "", "DNS names that were refused"),
    KEY("packets_refused", UINT(1, COUNT_MAX), "", "packets that were refused"),
    KEY("foreign_credentials", UINT(1, COUNT_MAX), "",
        "credentials that are not the sandbox's own"),
    KEY("cross_sandbox", UINT(1, COUNT_MAX), "", "placeholders of another sandbox"),
    KEY("misplaced", UINT(1, COUNT_MAX), "",
        "placeholders where they have no place, or not as often as the rule says (codes "
        "`secret_blocked`, `placeholder_count`)"),
    KEY("reflected", UINT(1, COUNT_MAX), "", "secrets that an origin sent back"),
    KEY("log_bytes", AS(bytes), "", "so many bytes of the log"),
    KEY("within", AS(duration), "", ""),
    KEY("then", WORDS_OF(config_notify_thens), "", ""),
};

static int read_limit(const struct node *n, struct config_threshold *t, struct err *err)
{
    const struct key *k = node_key(threshold_keys, n->key);
    unsigned count;
    if (t->measure == NOTIFY_BYTES_UP || t->measure == NOTIFY_LOG_BYTES) {
        if (quantity_bytes(n, &t->limit, err) < 0)
            return -1;
        return t->limit ? 0 : node_fail(n, err, "'%s' is at least 1KB", n->key);
    }
    if (node_uint(n, (unsigned)k->least, (unsigned)k->most, &count, err) < 0)
        return -1;
    t->limit = count;
    return 0;
}

static int read_threshold(const struct node *n, struct config_threshold *t, struct err *err)
{
    struct node at;
    size_t then = 0;
    if (node_keys(n, KEYS(threshold_keys), err) < 0)
        return -1;
    for (int m = 1; m < NOTIFY_MEASURES; m++) {
        if (!node_get(n, config_notify_measure(m), &at))
            continue;
        if (t->measure)
            return node_fail(&at, err, "one measure an entry: '%s' is another one",
                             config_notify_measure(m));
        t->measure = (enum notify_measure)m;
        if (read_limit(&at, t, err) < 0)
            return -1;
    }
    if (t->measure == 0)
        return node_fail(n, err, "an entry of 'when' needs what is counted, such as 'denied: 100'");
    if (!node_get(n, "within", &at))
        return node_fail(n, err, "an entry of 'when' needs 'within', such as 10m");
    if (quantity_duration(&at, &t->seconds, err) < 0)
        return -1;
    if (t->seconds < WITHIN_MIN)
        return node_fail(&at, err, "'within' is at least %ds", WITHIN_MIN);
    if (node_key_word(n, threshold_keys, "then", &then, err) < 0)
        return -1;
    t->then = (enum notify_then)then;
    return 0;
}

int config_read_syslog(struct config *c, const struct node *n, const char **ret, struct err *err)
{
    struct sockaddr_un sa;
    const char *path = NULL;
    bool on = false;
    if (!json_is_string(n->value)) {
        if (node_bool(n, &on, err) < 0)
            return -1;
        *ret = on ? "/dev/log" : NULL;
        return 0;
    }
    if (node_string(n, &path, err) < 0)
        return -1;
    if (path[0] != '/' || strlen(path) >= sizeof sa.sun_path)
        return node_fail(n, err,
                         "'syslog' is true, or the absolute path of a socket (at most %zu "
                         "bytes)",
                         sizeof sa.sun_path - 1);
    *ret = arena_str(c->arena, path);
    return *ret ? 0 : err_set(err, ERR_INTERNAL, "out of memory");
}

static const struct key notify_keys[] = {
    KEY("when", OWN, "required",
        "1 to 16 thresholds, each with one measure, `within` and perhaps `then`. Counted for each "
        "sandbox by itself (everybody at a listener with a policy is one)"),
    KEY("webhook", REF(place), "none",
        "a URL that gets each notice by POST, as JSON. https://, verified as origins are "
        "(`upstream.ca` too), or http:// to an address of this machine. Any 2xx is good. `{ url: "
        "URL, to: [10.0.0.0/8] }` where its name leads to private addresses. The URL is neither "
        "logged nor recorded"),
    KEY("command", AS(command), "none",
        "`[PROGRAM, ...]` gets it as a line on its standard input, environment as of a secret's "
        "command; one at a time, at most 30 s, good when it exits with 0"),
    KEY("syslog", AS(syslog), "`false`",
        "`true`: to /dev/log (authpriv.notice), where journald listens, too; or the path of "
        "another such socket"),
};

int config_read_notify(struct config *c, const struct node *n, struct err *err)
{
    struct config_notify *to = &c->audit.notify;
    struct node at, item;
    if (node_keys(n, KEYS(notify_keys), err) < 0)
        return -1;
    if (!node_get(n, "when", &at))
        return node_fail(n, err, "'notify' needs 'when', a list of thresholds");
    if (node_is_array(&at, err) < 0)
        return -1;
    to->n = json_array_size(at.value);
    if (to->n == 0 || to->n > NOTIFY_MAX)
        return node_fail(&at, err, "'when' has 1 to %d entries", NOTIFY_MAX);
    for (size_t i = 0; i < to->n; i++) {
        item = node_item(&at, i);
        if (read_threshold(&item, &to->when[i], err) < 0)
            return -1;
    }
    if ((node_get(n, "webhook", &at) && config_read_place(c, &at, EXPORTER_WEBHOOK, err) < 0) ||
        (node_get(n, "command", &at) &&
         config_read_command(c, &at, CONFIG_PROGRAM_FILE, &to->command, err) < 0))
        return -1;
    return node_get(n, "syslog", &at) ? config_read_syslog(c, &at, &to->syslog, err) : 0;
}
