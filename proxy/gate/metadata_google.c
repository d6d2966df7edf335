/* Google Cloud: the metadata server, by name or by address. */
#include "metadata.h"

#include "base64.h"
#include "guard_placeholder_internal.h"
#include "placeholder.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

enum { LASTS = 3599, CLAIMS_MAX = 2048, AUDIENCE_MAX = 300 };

static const struct refusal *text_or_memory(struct prepared *ret, const char *text)
{
    return metadata_text(ret, text) < 0 ? &metadata_memory : NULL;
}

static const struct refusal *access_token(const struct metadata *q, struct prepared *ret)
{
    char text[PLACEHOLDER_MAX];
    if (guard_placeholder_of(q->gate, q->who, q->cloud->google->secret, text) < 0)
        return &metadata_placeholder;
    json_t *v = json_pack("{s:s, s:i, s:s}", "access_token", text, "expires_in", LASTS,
                          "token_type", "Bearer");
    return metadata_json(ret, v) < 0 ? &metadata_memory : NULL;
}

/* Whoever holds an ID token looks into it for its end. So it has the form of one, and the
 * placeholder where the signature would be. */
static int put_id_token(const struct metadata *q, const struct cloud_token *t, const char *text,
                        struct buf *to)
{
    const struct cloud_google *c = q->cloud->google;
    time_t now = time(NULL);
    json_t *v = json_pack("{s:s, s:s, s:s, s:b, s:I, s:I}", "iss", "https://accounts.google.com",
                          "aud", t->name, "email", c->email, "email_verified", 1, "iat",
                          (json_int_t)now, "exp", (json_int_t)now + LASTS);
    char *claims = v ? json_dumps(v, JSON_COMPACT) : NULL;
    int r = claims == NULL || base64url_append(to, SLICE("{\"alg\":\"RS256\",\"typ\":\"JWT\"}")) ||
                    buf_append_str(to, ".") || base64url_append(to, slice_str(claims)) ||
                    buf_printf(to, ".%s", text) < 0
                ? -1
                : 0;
    json_decref(v);
    free(claims);
    return r;
}

/* An ID token says to others who this is: only for an audience that the policy names. */
static const struct refusal *id_token(const struct metadata *q, struct prepared *ret)
{
    static const struct refusal unruled = {403, "metadata_audience"};
    const struct cloud_google *c = q->cloud->google;
    const struct cloud_token *t = NULL;
    char text[PLACEHOLDER_MAX];
    struct buf audience;
    buf_init(&audience, AUDIENCE_MAX);
    if (metadata_parameter(q, "audience", &audience) == 0)
        t = cloud_token_find(c->ids, c->n_ids, buf_slice(&audience));
    buf_free(&audience);
    if (t == NULL)
        return &unruled;
    if (guard_placeholder_of(q->gate, q->who, t->secret, text) < 0)
        return &metadata_placeholder;
    if (metadata_text(ret, "") < 0 || put_id_token(q, t, text, &ret->body) < 0)
        return &metadata_memory;
    return NULL;
}

static json_t *account(const struct cloud_google *c)
{
    json_t *scopes = json_array();
    for (const char *s = c->scopes, *end; (end = strchr(s, '\n')) != NULL; s = end + 1)
        if (json_array_append_new(scopes, json_stringn(s, (size_t)(end - s))) < 0)
            break;
    return json_pack("{s:[s], s:s, s:o}", "aliases", "default", "email", c->email, "scopes",
                     scopes);
}

static bool is_recursive(const struct metadata *q)
{
    struct buf v;
    buf_init(&v, 8);
    bool is = metadata_parameter(q, "recursive", &v) == 0 && slice_ieq_str(buf_slice(&v), "true");
    buf_free(&v);
    return is;
}

/* Below service-accounts/NAME; what: "" for itself. */
static const struct refusal *of_account(const struct metadata *q, struct slice what,
                                        struct prepared *ret)
{
    const struct cloud_google *c = q->cloud->google;
    if (slice_eq_str(what, "token"))
        return access_token(q, ret);
    if (slice_eq_str(what, "identity"))
        return id_token(q, ret);
    if (slice_eq_str(what, "email"))
        return text_or_memory(ret, c->email);
    if (slice_eq_str(what, "scopes"))
        return text_or_memory(ret, c->scopes);
    if (what.n > 0)
        return &metadata_unknown;
    if (!is_recursive(q))
        return text_or_memory(ret, "aliases\nemail\nidentity\nscopes\ntoken\n");
    return metadata_json(ret, account(c)) < 0 ? &metadata_memory : NULL;
}

static const struct refusal *accounts(const struct metadata *q, struct slice rest,
                                      struct prepared *ret)
{
    const struct cloud_google *c = q->cloud->google;
    ssize_t slash = slice_find(rest, '/');
    struct slice name = {rest.p, slash < 0 ? rest.n : (size_t)slash};
    struct slice what = {"", 0};
    char list[400];
    if (slash >= 0)
        what = (struct slice){rest.p + slash + 1, rest.n - (size_t)slash - 1};
    if (slice_eq_str(name, "default") || slice_eq_str(name, c->email))
        return of_account(q, what, ret);
    if (rest.n > 0)
        return &metadata_unknown;
    snprintf(list, sizeof list, "default/\n%s/\n", c->email);
    if (!is_recursive(q))
        return text_or_memory(ret, list);
    json_t *v = json_pack("{s:o, s:o}", "default", account(c), c->email, account(c));
    return metadata_json(ret, v) < 0 ? &metadata_memory : NULL;
}

static const struct refusal *told(const struct metadata *q, struct prepared *ret)
{
    static const struct slice below = SLICE_INIT("/computeMetadata/v1/instance/service-accounts");
    const struct cloud_google *c = q->cloud->google;
    struct slice path = metadata_path(q);
    char zone[400];
    snprintf(zone, sizeof zone, "projects/%s/zones/%s", *c->number ? c->number : c->project,
             c->zone);
    const struct {
        const char *path, *text;
    } texts[] = {
        {"/", "computeMetadata/\n"},
        {"/computeMetadata", "v1/\n"},
        {"/computeMetadata/v1", "instance/\nproject/\nuniverse/\n"},
        {"/computeMetadata/v1/project/project-id", c->project},
        {"/computeMetadata/v1/project/numeric-project-id", c->number},
        {"/computeMetadata/v1/instance/zone", *c->zone ? zone : ""},
        {"/computeMetadata/v1/universe/universe-domain", "googleapis.com"},
    };
    if (slice_starts(path, below) && (path.n == below.n || path.p[below.n] == '/')) {
        size_t skip = below.n + (path.n > below.n);
        return accounts(q, (struct slice){path.p + skip, path.n - skip}, ret);
    }
    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        if (slice_eq_str(path, texts[i].path) && *texts[i].text)
            return text_or_memory(ret, texts[i].text);
    return &metadata_unknown;
}

const struct refusal *metadata_google(const struct metadata *q, struct prepared *ret)
{
    static const struct refusal no_flavor = {403, "metadata_field"};
    if (!metadata_is_get(q))
        return &metadata_unknown;
    if (!metadata_says(q, "metadata-flavor", "Google"))
        return &no_flavor;
    const struct refusal *bad = told(q, ret);
    if (bad)
        return bad;
    ret->fields[ret->n_fields++] = (struct prepared_field){"metadata-flavor", "Google"};
    ret->fields[ret->n_fields++] = (struct prepared_field){"server", "Metadata Server for VM"};
    return NULL;
}
