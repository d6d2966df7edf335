/* AWS: the instance's metadata service, of which only the second version is spoken (a token of a
 * session first), and the endpoint for credentials that containers have. */
#include "metadata.h"

#include "base64.h"
#include "guard_placeholder_internal.h"
#include "placeholder.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { MAC = 32, EXPIRY = 8, TOKEN_BYTES = EXPIRY + MAC, TTL_MAX = 21600, LASTS = 6 * 3600 };

#define CREDENTIALS "/latest/meta-data/iam/security-credentials"

/* ---- tokens ---- */

static uint64_t seconds_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_BOOTTIME, &now);
    return (uint64_t)now.tv_sec;
}

/* Of this gate and of this sandbox alone, whoever else it serves. */
static int sign(const struct metadata *q, const unsigned char expiry[EXPIRY],
                unsigned char mac[MAC])
{
    unsigned char text[EXPIRY + sizeof q->who->sandbox];
    unsigned n = MAC;
    size_t name = strlen(q->who->sandbox);
    memcpy(text, expiry, EXPIRY);
    memcpy(text + EXPIRY, q->who->sandbox, name);
    return HMAC(EVP_sha256(), q->gate->metadata_key, sizeof q->gate->metadata_key, text,
                EXPIRY + name, mac, &n) != NULL &&
                   n == MAC
               ? 0
               : -1;
}

int metadata_token_make(const struct metadata *q, uint32_t seconds, struct buf *ret)
{
    unsigned char all[TOKEN_BYTES];
    uint64_t expiry = seconds_now() + seconds;
    for (size_t i = 0; i < EXPIRY; i++)
        all[i] = (unsigned char)(expiry >> (8 * (EXPIRY - 1 - i)));
    return sign(q, all, all + EXPIRY) < 0
               ? -1
               : base64url_append(ret, (struct slice){(const char *)all, sizeof all});
}

bool metadata_token_good(const struct metadata *q, struct slice text)
{
    unsigned char mac[MAC];
    struct buf all;
    uint64_t expiry = 0;
    bool good = false;
    buf_init(&all, TOKEN_BYTES);
    if (text.n < METADATA_TOKEN_MAX && base64url_decode(&all, text) == 0 &&
        buf_len(&all) == TOKEN_BYTES && sign(q, buf_data(&all), mac) == 0 &&
        CRYPTO_memcmp(mac, buf_data(&all) + EXPIRY, MAC) == 0) {
        for (size_t i = 0; i < EXPIRY; i++)
            expiry = expiry << 8 | buf_data(&all)[i];
        good = seconds_now() < expiry;
    }
    buf_free(&all);
    return good;
}

/* PUT /latest/api/token */
static const struct refusal *give_token(const struct metadata *q, struct prepared *ret)
{
    static const char lasts[] = "x-aws-ec2-metadata-token-ttl-seconds";
    const struct field *f = http_head_find(q->head, lasts);
    uint64_t seconds;
    if (f == NULL || http_head_count(q->head, lasts) != 1 ||
        slice_u64(f->value, TTL_MAX, &seconds) < 0 || seconds == 0)
        return &metadata_field;
    if (metadata_text(ret, "") < 0 || metadata_token_make(q, (uint32_t)seconds, &ret->body) < 0)
        return &metadata_memory;
    struct prepared_field *to = &ret->fields[ret->n_fields++];
    to->name = lasts;
    snprintf(to->value, sizeof to->value, "%u", (unsigned)seconds);
    return NULL;
}

/* ---- what is told ---- */

static void timestamp(time_t at, char to[32])
{
    struct tm tm;
    strftime(to, 32, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&at, &tm));
}

/* All three are the placeholder: whatever is signed with them is signed anew. */
static const struct refusal *credentials(const struct metadata *q, bool container,
                                         struct prepared *ret)
{
    const struct cloud_aws *c = q->cloud->aws;
    char text[PLACEHOLDER_MAX], now[32], end[32], arn[400];
    if (guard_placeholder_of(q->gate, q->who, c->secret, text) < 0)
        return &metadata_placeholder;
    timestamp(time(NULL), now);
    timestamp(time(NULL) + LASTS, end);
    json_t *v = json_pack("{s:s, s:s, s:s, s:s}", "AccessKeyId", text, "SecretAccessKey", text,
                          "Token", text, "Expiration", end);
    snprintf(arn, sizeof arn, "arn:aws:iam::%s:role/%s", c->account, c->role);
    int bad = v == NULL;
    if (container && *c->account)
        bad |= json_object_set_new(v, "RoleArn", json_string(arn)) < 0;
    if (!container)
        bad |= json_object_set_new(v, "Code", json_string("Success")) < 0 ||
               json_object_set_new(v, "Type", json_string("AWS-HMAC")) < 0 ||
               json_object_set_new(v, "LastUpdated", json_string(now)) < 0;
    if (bad) {
        json_decref(v);
        return &metadata_memory;
    }
    return metadata_json(ret, v) < 0 ? &metadata_memory : NULL;
}

/* Where it is, for libraries that ask for their region. */
static const struct refusal *document(const struct cloud_aws *c, struct prepared *ret)
{
    json_t *v = json_pack("{s:s, s:s}", "region", c->region, "version", "2017-09-30");
    if (v && *c->account && json_object_set_new(v, "accountId", json_string(c->account)) < 0) {
        json_decref(v);
        return &metadata_memory;
    }
    return metadata_json(ret, v) < 0 ? &metadata_memory : NULL;
}

static const struct refusal *told(const struct metadata *q, struct prepared *ret)
{
    const struct cloud_aws *c = q->cloud->aws;
    struct slice path = metadata_path(q), behind = SLICE(CREDENTIALS "/");
    char zone[300];
    snprintf(zone, sizeof zone, "%sa", c->region);
    const struct {
        const char *path, *text;
    } texts[] = {
        {CREDENTIALS, c->role},
        {"/latest/meta-data/placement/region", c->region},
        {"/latest/meta-data/placement/availability-zone", *c->region ? zone : ""},
        {"/latest/meta-data", *c->region ? "iam/\nplacement/" : "iam/"},
    };
    if (slice_starts(path, behind) &&
        slice_eq_str((struct slice){path.p + behind.n, path.n - behind.n}, c->role))
        return credentials(q, false, ret);
    if (slice_eq_str(path, "/latest/dynamic/instance-identity/document") && *c->region)
        return document(c, ret);
    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        if (slice_eq_str(path, texts[i].path) && *texts[i].text)
            return metadata_text(ret, texts[i].text) < 0 ? &metadata_memory : NULL;
    return &metadata_unknown;
}

const struct refusal *metadata_aws(const struct metadata *q, struct prepared *ret)
{
    static const struct refusal no_token = {401, "metadata_token"};
    if (strcmp(q->at->host, CLOUD_CONTAINER) == 0) {
        if (!metadata_is_get(q) || !slice_eq_str(metadata_path(q), "/v1/credentials"))
            return &metadata_unknown;
        const struct refusal *bad = metadata_own(q, "authorization", q->cloud->aws->secret);
        return bad ? bad : credentials(q, true, ret);
    }
    if (slice_eq_str(metadata_path(q), "/latest/api/token"))
        return slice_eq_str(q->head->method, "PUT") ? give_token(q, ret) : &metadata_unknown;
    if (!metadata_is_get(q))
        return &metadata_unknown;
    const struct field *f = http_head_find(q->head, "x-aws-ec2-metadata-token");
    bool once = f && http_head_count(q->head, "x-aws-ec2-metadata-token") == 1;
    return once && metadata_token_good(q, f->value) ? told(q, ret) : &no_token;
}
