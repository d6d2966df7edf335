/* Azure: tokens of a managed identity, of an instance (IMDS) and of App Service. */
#include "metadata.h"

#include "guard_placeholder_internal.h"
#include "placeholder.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

enum { LASTS = 24 * 3600, PARAMETER_MAX = 300 };

static const struct refusal unruled = {400, "metadata_audience"};

/* Each way of naming an identity of the user's is by its client's id here. */
static bool is_other(const struct metadata *q)
{
    static const char *const names[] = {"client_id", "object_id", "principal_id", "msi_res_id",
                                        "mi_res_id"};
    struct slice rest = q->head->query;
    struct guard_part part;
    while (q->head->has_query && guard_next_part(&rest, false, &part))
        for (size_t i = 0; i < ARRAY_LEN(names); i++)
            if (slice_eq_str(part.name, names[i]) &&
                (i > 0 || !slice_ieq_str(part.value, q->cloud->azure->client_id)))
                return true;
    return false;
}

/* The token for the resource that is asked for. */
static const struct cloud_token *wanted(const struct metadata *q)
{
    const struct cloud_azure *c = q->cloud->azure;
    const struct cloud_token *t = NULL;
    struct buf resource;
    buf_init(&resource, PARAMETER_MAX);
    if (metadata_parameter(q, "resource", &resource) == 0)
        t = cloud_token_find(c->tokens, c->n_tokens, buf_slice(&resource));
    buf_free(&resource);
    return t;
}

static const struct refusal *give(const struct metadata *q, struct prepared *ret)
{
    const struct cloud_token *t = is_other(q) ? NULL : wanted(q);
    char text[PLACEHOLDER_MAX], end[24], now[24], lasts[24];
    if (t == NULL)
        return &unruled;
    if (guard_placeholder_of(q->gate, q->who, t->secret, text) < 0)
        return &metadata_placeholder;
    snprintf(now, sizeof now, "%lld", (long long)time(NULL));
    snprintf(end, sizeof end, "%lld", (long long)time(NULL) + LASTS);
    snprintf(lasts, sizeof lasts, "%d", LASTS);
    json_t *v = json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:s}", "access_token", text, "client_id",
                          q->cloud->azure->client_id, "expires_in", lasts, "expires_on", end,
                          "not_before", now, "resource", t->name, "token_type", "Bearer");
    return metadata_json(ret, v) < 0 ? &metadata_memory : NULL;
}

const struct refusal *metadata_azure(const struct metadata *q, struct prepared *ret)
{
    struct slice path = metadata_path(q);
    if (!metadata_is_get(q))
        return &metadata_unknown;
    if (slice_eq_str(path, "/msi/token")) {
        const struct refusal *bad =
            metadata_own(q, "x-identity-header", q->cloud->azure->tokens[0].secret);
        return bad ? bad : give(q, ret);
    }
    if (!slice_eq_str(path, "/metadata/identity/oauth2/token"))
        return &metadata_unknown;
    return metadata_says(q, "metadata", "true") ? give(q, ret) : &metadata_field;
}
