/* Holds the kinds of derived secrets, writes the request of each that asks a token endpoint, and
 * reads the answer. derived_sign.c signs; derived_store.c asks stores. */
#include "derived_internal.h"

#include "aws_sign.h"
#include "base64.h"
#include "jwt.h"
#include "tls_sign.h"

#include <jansson.h>
#include <openssl/rand.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    LIFE_MAX = 86400,
    ASSERTION_LIFE = 300,
    GITHUB_JWT_LIFE = 540, /* of at most ten minutes */
    GITHUB_JWT_SKEW = 30,
};

/* Fields that name the secrets that a kind is made of. */
static const enum spec_field parts[DERIVED_KINDS][DERIVED_INPUTS_MAX] = {
    [DERIVED_OAUTH2] = {SPEC_CLIENT_SECRET, SPEC_REFRESH_TOKEN},
    [DERIVED_JWT] = {SPEC_KEY},
    [DERIVED_GOOGLE] = {SPEC_SERVICE_ACCOUNT},
    [DERIVED_GITHUB_APP] = {SPEC_KEY},
    [DERIVED_ENTRA] = {SPEC_CLIENT_SECRET, SPEC_ASSERTION},
    [DERIVED_TOKEN_EXCHANGE] = {SPEC_SUBJECT_TOKEN},
    [DERIVED_OAUTH_LOGIN] = {SPEC_SESSION},
    [DERIVED_AWS_KEY] = {SPEC_ACCESS_KEY_ID, SPEC_SECRET_ACCESS_KEY, SPEC_SESSION_TOKEN},
    [DERIVED_AWS_ROLE] = {SPEC_KEY},
    [DERIVED_AWS_WEB_IDENTITY] = {SPEC_JWT},
    [DERIVED_AWS_CONTAINER] = {SPEC_PATH, SPEC_TOKEN},
    [DERIVED_AWS_INSTANCE] = {SPEC_AUTH},
    [DERIVED_CERTIFICATE] = {SPEC_CERTIFICATE, SPEC_KEY},
    [DERIVED_HMAC_KEY] = {SPEC_KEY},
    [DERIVED_SIGNATURE_KEY] = {SPEC_KEY},
    [DERIVED_AZURE_KEY] = {SPEC_KEY},
    [DERIVED_SSH_KEY] = {SPEC_KEY},
    [DERIVED_SSH_SIGNING_KEY] = {SPEC_KEY},
    [DERIVED_SSH_CERTIFICATE] = {SPEC_CA},
    [DERIVED_SSH_PASSWORD] = {SPEC_PASSWORD},
    [DERIVED_POSTGRES_LOGIN] = {SPEC_PASSWORD},
    [DERIVED_REDIS_LOGIN] = {SPEC_PASSWORD},
    [DERIVED_MYSQL_LOGIN] = {SPEC_PASSWORD},
    [DERIVED_SMTP_LOGIN] = {SPEC_PASSWORD},
    [DERIVED_IMAP_LOGIN] = {SPEC_PASSWORD},
    [DERIVED_VAULT] = {SPEC_AUTH},
    [DERIVED_OPENBAO] = {SPEC_AUTH},
    [DERIVED_AWS_SECRET] = {SPEC_KEY},
    [DERIVED_AWS_PARAMETER] = {SPEC_KEY},
    [DERIVED_ONEPASSWORD] = {SPEC_TOKEN},
    [DERIVED_VAULT_TOKEN] = {SPEC_TOKEN},
    [DERIVED_VAULT_APPROLE] = {SPEC_SECRET_ID},
    [DERIVED_VAULT_KUBERNETES] = {SPEC_JWT},
};

const char *derived_text(const struct derived *m, enum spec_field field)
{
    const char *s = m->spec.text[field];
    return s ? s : "";
}

struct derived *derived_new(struct derived_spec *spec)
{
    struct derived *m = calloc(1, sizeof *m);
    if (m == NULL) {
        derived_spec_clear(spec);
        return NULL;
    }
    m->refresh = -1;
    m->spec = *spec;
    m->kind = spec->kind;
    for (size_t i = 0; i < DERIVED_INPUTS_MAX && parts[m->kind][i]; i++) {
        const char *name = m->spec.text[parts[m->kind][i]];
        if (name == NULL)
            continue;
        if (parts[m->kind][i] == SPEC_REFRESH_TOKEN)
            m->refresh = (int)m->n;
        m->inputs[m->n++] = name;
    }
    if (m->kind == DERIVED_VAULT_APPROLE || m->kind == DERIVED_VAULT_KUBERNETES) {
        if (asprintf(&m->renew, "%s/v1/auth/token/renew-self", derived_text(m, SPEC_ADDRESS)) < 0)
            m->renew = NULL;
    }
    if ((m->kind == DERIVED_POSTGRES_LOGIN && (m->scram = scram_keys_new()) == NULL) ||
        (m->kind == DERIVED_SSH_CERTIFICATE &&
         (m->certificates = ssh_certificates_new()) == NULL)) {
        derived_free(m);
        return NULL;
    }
    return m;
}

void derived_free(struct derived *m)
{
    if (m == NULL)
        return;
    derived_spec_clear(&m->spec);
    scram_keys_free(m->scram);
    ssh_certificates_free(m->certificates);
    free(m->renew);
    free(m);
}

const char *derived_input(const struct derived *m, size_t i)
{
    return i < m->n ? m->inputs[i] : NULL;
}

bool derived_signs(const struct derived *m)
{
    return (m->kind >= DERIVED_AWS_KEY && m->kind <= DERIVED_CERTIFICATE) ||
           m->kind >= DERIVED_HMAC_KEY;
}

bool derived_is_captured(const struct derived *m)
{
    return m->kind == DERIVED_CAPTURED;
}

bool derived_stays(const struct derived *m)
{
    return m->kind == DERIVED_CAPTURED && m->spec.text[SPEC_KEEP] != NULL;
}

const char *derived_claims(const struct derived *m)
{
    return m->kind == DERIVED_CAPTURED ? m->spec.text[SPEC_CLAIMS] : NULL;
}

bool derived_is_local(const struct derived *m)
{
    return m->kind == DERIVED_AWS_KEY || m->kind == DERIVED_CERTIFICATE ||
           m->kind >= DERIVED_HMAC_KEY;
}

bool derived_is_login(const struct derived *m)
{
    return m->kind == DERIVED_OAUTH_LOGIN;
}

bool derived_may_refresh(const struct derived *m)
{
    return strcmp(derived_text(m, SPEC_REFRESH), "yes") == 0;
}

bool derived_renewable(const struct derived *m)
{
    return !derived_is_local(m) && !derived_is_captured(m) && !derived_is_itself(m) &&
           !derived_signs(m) && (!derived_is_login(m) || derived_may_refresh(m));
}

static bool says(const json_t *session, const char *part, const char *wanted)
{
    const char *s = json_string_value(json_object_get(session, part));
    return s && strcmp(s, wanted) == 0;
}

/* A file may be written anew while we run, by a login of the same name at another server: neither
 * its token nor its client's secret is that server's whom the rules and the endpoint are of. */
static bool is_elsewhere(const struct derived *m, const json_t *session)
{
    return *derived_text(m, SPEC_RESOURCE) &&
           !(says(session, "resource", derived_text(m, SPEC_RESOURCE)) &&
             says(session, "token_url", derived_text(m, SPEC_ENDPOINT)));
}

struct secret *derived_session(const struct derived *m, const struct secret *session,
                               int64_t *until)
{
    struct slice text = secret_slice(session);
    json_t *v = json_loadb(text.p, text.n, 0, NULL);
    struct secret *access = is_elsewhere(m, v) ? NULL : derived_token(json_object_get(v, "access"));
    *until = json_integer_value(json_object_get(v, "expires"));
    json_decref(v);
    return access;
}

struct secret *derived_session_refresh(const struct secret *session)
{
    struct slice text = secret_slice(session);
    json_t *v = json_loadb(text.p, text.n, 0, NULL);
    struct secret *refresh = derived_token(json_object_get(v, "refresh"));
    json_decref(v);
    return refresh;
}

struct secret *derived_session_with(const struct secret *session, const struct secret *refresh)
{
    struct slice text = secret_slice(session), other = secret_slice(refresh);
    json_t *v = json_loadb(text.p, text.n, 0, NULL);
    int bad = json_object_set_new(v, "refresh", json_stringn(other.p, other.n));
    char *out = bad ? NULL : json_dumps(v, JSON_COMPACT);
    size_t n = out ? strlen(out) : 0;
    struct secret *s = n > 0 && n <= SECRET_MAX ? secret_new(out, n) : NULL;
    if (out)
        explicit_bzero(out, n);
    free(out);
    json_decref(v);
    return s;
}

int derived_refreshes(const struct derived *m)
{
    return m->refresh;
}

struct secret *derived_local(const struct derived *m, struct secret *const *inputs, struct err *err)
{
    if (m->kind == DERIVED_CERTIFICATE)
        return tls_pack(secret_slice(inputs[0]), secret_slice(inputs[1]), err);
    if (m->kind >= DERIVED_HMAC_KEY)
        return secret_ref(inputs[0]);
    struct slice token = m->n > 2 ? secret_slice(inputs[2]) : (struct slice){"", 0};
    struct secret *pair = aws_pair_pack(secret_slice(inputs[0]), secret_slice(inputs[1]), token);
    if (pair == NULL)
        err_set(err, ERR_PARSE, "its parts are not those of an AWS key");
    return pair;
}

/* ---- asking ---- */

int derived_form(struct buf *out, const char *name, struct slice value)
{
    if (value.n == 0)
        return 0;
    if (buf_printf(out, "%s%s=", buf_len(out) ? "&" : "", name) < 0)
        return -1;
    for (size_t i = 0; i < value.n; i++) {
        char c = value.p[i];
        int r = ascii_is_alnum(c) || (c && strchr("-._~", c))
                    ? buf_append(out, &c, 1)
                    : buf_printf(out, "%%%02X", (unsigned char)c);
        if (r < 0)
            return -1;
    }
    return 0;
}

static int put_spec(const struct derived *m, struct buf *out, enum spec_field f)
{
    return derived_form(out, spec_field_name(f), slice_str(derived_text(m, f)));
}

int derived_field(struct token_request *r, const char *name, const char *value)
{
    struct buf *to = token_request_field(r, name);
    return to ? buf_append_str(to, value) : -1;
}

/* RFC 6749 2.3.1: both parts form-encoded, then Basic. */
static int put_basic(struct token_request *r, struct slice user, struct slice password)
{
    struct buf pair;
    struct buf *to = token_request_field(r, "authorization");
    size_t skip = 2; /* "x=" of put_form */
    buf_init_wiped(&pair, 8192);
    int ok = to && derived_form(&pair, "u", user) == 0 && buf_append_str(&pair, ":") == 0;
    struct buf half;
    buf_init_wiped(&half, 8192);
    ok = ok && derived_form(&half, "p", password) == 0 &&
         buf_append(&pair, buf_data(&half) + skip, buf_len(&half) - skip) == 0;
    buf_free(&half);
    ok = ok && buf_append_str(to, "Basic ") == 0 &&
         base64_append(to, (struct slice){(char *)buf_data(&pair) + skip, buf_len(&pair) - skip}) ==
             0;
    buf_free(&pair);
    return ok ? 0 : -1;
}

static int ask_oauth2(const struct derived *m, struct secret *const *in, struct token_request *r)
{
    const char *id = derived_text(m, SPEC_CLIENT_ID);
    bool refresh = m->refresh >= 0, has_secret = m->n > (refresh ? 1u : 0u);
    bool basic = has_secret && strcmp(derived_text(m, SPEC_AUTH), "basic") == 0;
    struct buf *b = &r->body;
    int bad = derived_form(b, "grant_type",
                           refresh ? SLICE("refresh_token") : SLICE("client_credentials"));
    if (refresh)
        bad |= derived_form(b, "refresh_token", secret_slice(in[m->refresh]));
    bad |= put_spec(m, b, SPEC_SCOPE) | put_spec(m, b, SPEC_AUDIENCE);
    if (basic)
        return bad | put_basic(r, slice_str(id), secret_slice(in[0]));
    bad |= put_spec(m, b, SPEC_CLIENT_ID);
    return has_secret ? bad | derived_form(b, "client_secret", secret_slice(in[0])) : bad;
}

/* The command that makes such a login. */
static const char *login_hint(const struct derived *m)
{
    return m->kind == DERIVED_OAUTH_LOGIN && *derived_text(m, SPEC_RESOURCE)
               ? ": durward login mcp NAME URL"
               : "";
}

/* Who the client is, where the file says it, and for what the token is (RFC 8707). */
static int put_login_client(const struct derived *m, const json_t *client, struct token_request *r)
{
    const char *id = json_string_value(json_object_get(client, "id"));
    const char *secret = json_string_value(json_object_get(client, "secret"));
    const char *auth = json_string_value(json_object_get(client, "auth"));
    bool basic = secret && auth && strcmp(auth, "client_secret_basic") == 0;
    int bad = put_spec(m, &r->body, SPEC_RESOURCE);
    if (id == NULL)
        id = derived_text(m, SPEC_CLIENT_ID);
    if (basic)
        return bad | put_basic(r, slice_str(id), slice_str(secret));
    bad |= derived_form(&r->body, "client_id", slice_str(id));
    return secret ? bad | derived_form(&r->body, "client_secret", slice_str(secret)) : bad;
}

/* The session is that which was read under the lock. */
static int ask_login(const struct derived *m, struct secret *const *in, struct token_request *r,
                     struct err *err)
{
    struct slice text = secret_slice(in[0]);
    const char *id = derived_text(m, SPEC_CLIENT_ID);
    json_t *session = json_loadb(text.p, text.n, 0, NULL);
    const char *token = json_string_value(json_object_get(session, "refresh"));
    if (is_elsewhere(m, session)) {
        json_decref(session);
        return err_set(err, ERR_UNREADY,
                       "its file is a login at another server now, or at another authorization "
                       "server: start anew what was started before");
    }
    int bad = token && *token ? 0
                              : err_set(err, ERR_UNREADY,
                                        "its file holds no refresh token; log in "
                                        "again on the host%s",
                                        login_hint(m));
    if (bad == 0 && strcmp(derived_text(m, SPEC_ENCODING), "json") == 0) {
        json_t *v = json_pack("{s:s, s:s, s:s}", "grant_type", "refresh_token", "refresh_token",
                              token, "client_id", id);
        char *body = v ? json_dumps(v, JSON_COMPACT) : NULL;
        bad = body ? buf_append_str(&r->body, body) : -1;
        if (body)
            explicit_bzero(body, strlen(body));
        free(body);
        json_decref(v);
        bad |= derived_field(r, "content-type", "application/json");
    } else if (bad == 0) {
        bad = derived_form(&r->body, "grant_type", SLICE("refresh_token")) |
              derived_form(&r->body, "refresh_token", slice_str(token)) |
              put_login_client(m, json_object_get(session, "client"), r) |
              derived_field(r, "content-type", "application/x-www-form-urlencoded");
    }
    json_decref(session);
    return bad;
}

static int ask_entra(const struct derived *m, struct secret *const *in, struct token_request *r)
{
    struct buf *b = &r->body;
    bool asserts = *derived_text(m, SPEC_ASSERTION);
    int bad =
        derived_form(b, "grant_type", SLICE("client_credentials")) | put_spec(m, b, SPEC_CLIENT_ID);
    if (asserts) /* RFC 7523 2.2 */
        bad |= derived_form(b, "client_assertion_type",
                            SLICE("urn:ietf:params:oauth:client-assertion-type:jwt-bearer"));
    bad |= derived_form(b, asserts ? "client_assertion" : "client_secret", secret_slice(in[0]));
    return bad | put_spec(m, b, SPEC_SCOPE);
}

static void set_text(json_t *claims, const char *name, const char *value)
{
    if (*value && json_object_set_new(claims, name, json_string(value)) < 0)
        abort(); /* memory is out */
}

static void set_times(json_t *claims, time_t from, int life)
{
    if (json_object_set_new(claims, "iat", json_integer(from)) < 0 ||
        json_object_set_new(claims, "exp", json_integer(from + life)) < 0)
        abort();
}

static int sign_claims(struct buf *out, const char *algorithm, const char *key_id, json_t *claims,
                       struct slice pem, struct err *err)
{
    char *json = json_dumps(claims, JSON_COMPACT);
    int r = json ? jwt_sign(out, algorithm, key_id, slice_str(json), pem, err) : -1;
    free(json);
    json_decref(claims);
    return r;
}

/* RFC 7523 2.1. */
static int put_assertion(struct token_request *r, struct slice jwt)
{
    return derived_form(&r->body, "grant_type",
                        SLICE("urn:ietf:params:oauth:grant-type:jwt-bearer")) |
           derived_form(&r->body, "assertion", jwt);
}

static int ask_jwt(const struct derived *m, struct secret *const *in, time_t now,
                   struct token_request *r, struct err *err)
{
    struct buf jwt;
    const char *subject = derived_text(m, SPEC_SUBJECT), *audience = derived_text(m, SPEC_AUDIENCE);
    json_t *claims = json_object();
    set_text(claims, "iss", derived_text(m, SPEC_ISSUER));
    set_text(claims, "sub", *subject ? subject : derived_text(m, SPEC_ISSUER));
    set_text(claims, "aud", *audience ? audience : derived_text(m, SPEC_TOKEN_URL));
    set_times(claims, now, ASSERTION_LIFE);
    unsigned char raw[16]; /* endpoints take each assertion once */
    char id[2 * sizeof raw + 1] = "";
    if (RAND_bytes(raw, sizeof raw) != 1)
        return err_set(err, ERR_INTERNAL, "no random bytes");
    for (size_t i = 0; i < sizeof raw; i++)
        snprintf(id + 2 * i, 3, "%02x", raw[i]);
    set_text(claims, "jti", id);
    buf_init_wiped(&jwt, 16384);
    int bad = sign_claims(&jwt, derived_text(m, SPEC_ALGORITHM), derived_text(m, SPEC_KEY_ID),
                          claims, secret_slice(in[0]), err);
    bad = bad < 0 ? -1 : put_assertion(r, buf_slice(&jwt)) | put_spec(m, &r->body, SPEC_SCOPE);
    buf_free(&jwt);
    return bad;
}

static int ask_google(const struct derived *m, struct secret *const *in, time_t now,
                      struct token_request *r, struct err *err)
{
    struct slice file = secret_slice(in[0]);
    json_t *account = json_loadb(file.p, file.n, JSON_REJECT_DUPLICATES, NULL);
    const char *email = json_string_value(json_object_get(account, "client_email"));
    const char *pem = json_string_value(json_object_get(account, "private_key"));
    const char *key_id = json_string_value(json_object_get(account, "private_key_id"));
    struct buf jwt;
    int bad = -1;
    buf_init_wiped(&jwt, 16384);
    if (email && pem) {
        json_t *claims = json_object();
        set_text(claims, "iss", email);
        set_text(claims, "sub", derived_text(m, SPEC_SUBJECT));
        set_text(claims, "aud", derived_text(m, SPEC_TOKEN_URL));
        set_text(claims, "scope", derived_text(m, SPEC_SCOPE));
        set_text(claims, "target_audience", derived_text(m, SPEC_AUDIENCE));
        set_times(claims, now, 3600);
        bad = sign_claims(&jwt, "RS256", key_id ? key_id : "", claims, slice_str(pem), err);
        bad = bad < 0 ? -1 : put_assertion(r, buf_slice(&jwt));
    } else {
        err_set(err, ERR_PARSE, "its service account has no client_email or private_key");
    }
    buf_free(&jwt);
    json_decref(account);
    return bad;
}

static int ask_github(const struct derived *m, struct secret *const *in, time_t now,
                      struct token_request *r, struct err *err)
{
    json_t *claims = json_object();
    struct buf *to = token_request_field(r, "authorization");
    set_text(claims, "iss", derived_text(m, SPEC_APP_ID));
    set_times(claims, now - GITHUB_JWT_SKEW, GITHUB_JWT_LIFE);
    int bad = buf_append_str(to, "Bearer ");
    bad |= sign_claims(to, "RS256", "", claims, secret_slice(in[0]), err);
    return bad | derived_field(r, "user-agent", "durward");
}

/* Path and host of an https URL that was checked with the configuration. */
static void split_url(const char *url, struct slice *host, struct slice *path)
{
    const char *rest = url + strlen("https://");
    size_t n = strcspn(rest, "/");
    *host = (struct slice){rest, n};
    *path = rest[n] ? slice_str(rest + n) : SLICE("/");
}

int derived_sign_post(const struct derived *m, const struct secret *key, const char *service,
                      const char *type, const char *target, time_t now, struct token_request *r,
                      struct err *err)
{
    struct aws_pair pair;
    struct aws_scope s = {.time = ""};
    struct slice host, path;
    struct buf text;
    struct tm tm;
    char hash[AWS_HEX + 1], sig[AWS_HEX + 1], names[96];
    if (aws_pair_open(secret_slice(key), &pair) < 0)
        return err_set(err, ERR_PARSE, "its key is none");
    bool session = pair.token.n > 0;
    split_url(r->url, &host, &path);
    gmtime_r(&now, &tm);
    strftime(s.time, sizeof s.time, "%Y%m%dT%H%M%SZ", &tm);
    snprintf(s.region, sizeof s.region, "%s", derived_text(m, SPEC_REGION));
    snprintf(s.service, sizeof s.service, "%s", service);
    snprintf(names, sizeof names, "content-type;host;x-amz-date%s%s",
             session ? ";x-amz-security-token" : "", target ? ";x-amz-target" : "");
    buf_init_wiped(&text, AWS_TOKEN_MAX + 4096);
    int bad = aws_hash(buf_slice(&r->body), hash);
    bad |= buf_printf(&text, "POST\n%.*s\n\ncontent-type:%s\nhost:%.*s\nx-amz-date:%s\n", SL(path),
                      type, SL(host), s.time);
    if (session)
        bad |= buf_printf(&text, "x-amz-security-token:%.*s\n", SL(pair.token));
    if (target)
        bad |= buf_printf(&text, "x-amz-target:%s\n", target);
    bad |= buf_printf(&text, "\n%s\n%s", names, hash);
    bad |= aws_hash(buf_slice(&text), s.hash);
    bad |= bad == 0 ? aws_sign(&pair, &s, sig) : -1;
    buf_free(&text);
    bad |= derived_field(r, "x-amz-date", s.time);
    if (target)
        bad |= derived_field(r, "x-amz-target", target);
    struct buf *auth = token_request_field(r, "authorization");
    if (bad || auth == NULL ||
        buf_printf(auth,
                   "AWS4-HMAC-SHA256 Credential=%.*s/%.8s/%s/%s/aws4_request, "
                   "SignedHeaders=%s, Signature=%s",
                   SL(pair.id), s.time, s.region, service, names, sig) < 0)
        return -1;
    struct buf *token = session ? token_request_field(r, "x-amz-security-token") : NULL;
    return token ? buf_append_slice(token, pair.token) : 0;
}

/* AssumeRole is itself a signed request: its few fields are canonical as they stand. */
static int ask_sts(const struct derived *m, struct secret *const *in, time_t now,
                   struct token_request *r, struct err *err)
{
    struct buf *b = &r->body;
    int bad = derived_form(b, "Action", SLICE("AssumeRole")) |
              derived_form(b, "Version", SLICE("2011-06-15")) |
              derived_form(b, "RoleArn", slice_str(derived_text(m, SPEC_ROLE_ARN))) |
              derived_form(b, "RoleSessionName", slice_str(derived_text(m, SPEC_SESSION_NAME))) |
              derived_form(b, "ExternalId", slice_str(derived_text(m, SPEC_EXTERNAL_ID))) |
              derived_form(b, "DurationSeconds", slice_str(derived_text(m, SPEC_DURATION)));
    return bad | derived_sign_post(m, in[0], "sts", "application/x-www-form-urlencoded", NULL, now,
                                   r, err);
}

int derived_request(const struct derived *m, struct secret *const *in, const struct secret *old,
                    time_t now, struct token_request *r, struct err *err)
{
    int bad;
    token_request_init(r, derived_text(m, SPEC_ENDPOINT));
    err->text[0] = 0;
    bad = derived_field(r, "accept", "application/json");
    if (m->kind != DERIVED_GITHUB_APP && m->kind != DERIVED_OAUTH_LOGIN &&
        m->kind < DERIVED_VAULT && !derived_is_ambient(m))
        bad |= derived_field(r, "content-type", "application/x-www-form-urlencoded");
    switch (m->kind) {
    case DERIVED_OAUTH2:
        bad |= ask_oauth2(m, in, r);
        break;
    case DERIVED_JWT:
        bad |= ask_jwt(m, in, now, r, err);
        break;
    case DERIVED_GOOGLE:
        bad |= ask_google(m, in, now, r, err);
        break;
    case DERIVED_GITHUB_APP:
        bad |= ask_github(m, in, now, r, err);
        break;
    case DERIVED_ENTRA:
        bad |= ask_entra(m, in, r);
        break;
    case DERIVED_OAUTH_LOGIN:
        bad |= ask_login(m, in, r, err);
        break;
    case DERIVED_AWS_ROLE:
        bad |= ask_sts(m, in, now, r, err);
        break;
    case DERIVED_AWS_KEY:
        bad = -1;
        break;
    case DERIVED_TOKEN_EXCHANGE:
    case DERIVED_GOOGLE_INSTANCE:
    case DERIVED_AZURE_INSTANCE:
    case DERIVED_AWS_WEB_IDENTITY:
    case DERIVED_AWS_CONTAINER:
    case DERIVED_AWS_INSTANCE:
    case DERIVED_AWS_SESSION:
        bad |= derived_ambient_ask(m, in, r, err);
        break;
    default:
        bad |= derived_store_ask(m, in, old, now, r, err);
    }
    if (bad && err->text[0] == 0)
        err_set(err, ERR_INTERNAL, "the request to its endpoint cannot be written");
    return bad ? -1 : 0;
}

/* ---- the answer ---- */

struct secret *derived_token(const json_t *v)
{
    const char *s = json_string_value(v);
    size_t n = json_string_length(v);
    if (s == NULL || n == 0 || n > SECRET_MAX)
        return NULL;
    for (size_t i = 0; i < n; i++)
        if (s[i] <= 0x20 || s[i] >= 0x7f) /* RFC 6750 2.1 and more */
            return NULL;
    return secret_new(s, n);
}

/* A part of the life is left out, for clocks and for what is under way. */
unsigned derived_life(int64_t seconds)
{
    if (seconds > LIFE_MAX)
        seconds = LIFE_MAX;
    int64_t margin = seconds / 10 < 60 ? seconds / 10 + 1 : 60;
    return seconds > margin ? (unsigned)(seconds - margin) : 0;
}

#define TIME_MOST (INT64_C(1) << 40)

/* JSON's numbers reach further than any clock. */
static int64_t whole(const json_t *v)
{
    double d = json_number_value(v);
    return d > TIME_MOST ? TIME_MOST : d < -TIME_MOST ? -TIME_MOST : (int64_t)d;
}

/* "2026-01-02T03:04:05Z", or seconds since the epoch (STS as JSON). */
int64_t derived_until(const json_t *v, time_t now)
{
    struct tm tm = {0};
    const char *s = json_string_value(v);
    if (json_is_number(v))
        return whole(v) - (int64_t)now;
    const char *end = s ? strptime(s, "%Y-%m-%dT%H:%M:%S", &tm) : NULL;
    return end && (*end == 'Z' || *end == '.') ? (int64_t)timegm(&tm) - (int64_t)now : -1;
}

static int64_t expires_in(const json_t *v)
{
    const char *s = json_string_value(v);
    uint64_t n;
    if (json_is_number(v))
        return whole(v);
    return s && slice_u64(slice_str(s), LIFE_MAX, &n) == 0 ? (int64_t)n : -1;
}

/* The "exp" of an ID token. It is ours, over verified TLS: its signature is its user's business. */
static int64_t id_token_life(const struct secret *token, time_t now)
{
    struct slice all = secret_slice(token);
    ssize_t dot = slice_find(all, '.');
    struct slice rest = {all.p + dot + 1, all.n - (size_t)dot - 1};
    ssize_t end = dot < 0 ? -1 : slice_find(rest, '.');
    struct buf text;
    int64_t life = -1;
    buf_init_wiped(&text, 16384);
    if (end > 0 && base64url_decode(&text, (struct slice){rest.p, (size_t)end}) == 0) {
        struct slice claims = buf_slice(&text);
        json_t *v = json_loadb(claims.p, claims.n, 0, NULL);
        json_t *exp = json_object_get(v, "exp");
        life = json_is_number(exp) ? whole(exp) - (int64_t)now : -1;
        json_decref(v);
    }
    buf_free(&text);
    return life;
}

static int take_pair(const json_t *v, time_t now, struct derived_answer *ret)
{
    const json_t *c = json_object_get(
        json_object_get(json_object_get(v, "AssumeRoleResponse"), "AssumeRoleResult"),
        "Credentials");
    const char *id = json_string_value(json_object_get(c, "AccessKeyId"));
    const char *key = json_string_value(json_object_get(c, "SecretAccessKey"));
    const char *token = json_string_value(json_object_get(c, "SessionToken"));
    if (id && key && token)
        ret->value = aws_pair_pack(slice_str(id), slice_str(key), slice_str(token));
    ret->seconds = derived_life(derived_until(json_object_get(c, "Expiration"), now));
    return ret->value ? 0 : -1;
}

/* A token of these types is worth something only with a proof of each request's own, or is none to
 * send. Others are sent as they are, whatever a vendor calls them ("bot"): the rule says where. */
static bool is_sent_alone(const json_t *type)
{
    static const char *const others[] = {"dpop", "pop", "mac", "hawk", "n_a"};
    const char *s = json_string_value(type);
    for (size_t i = 0; s && i < ARRAY_LEN(others); i++)
        if (slice_ieq_str(slice_str(s), others[i]))
            return false;
    return true;
}

static int take_token(const struct derived *m, const json_t *v, time_t now,
                      struct derived_answer *ret)
{
    int64_t life;
    if (m->refresh >= 0 || m->kind == DERIVED_OAUTH_LOGIN)
        ret->rotated = derived_token(json_object_get(v, "refresh_token"));
    if (m->kind == DERIVED_GITHUB_APP) {
        ret->value = derived_token(json_object_get(v, "token"));
        life = derived_until(json_object_get(v, "expires_at"), now);
    } else if (m->kind == DERIVED_GOOGLE && *derived_text(m, SPEC_AUDIENCE)) {
        ret->value = derived_token(json_object_get(v, "id_token"));
        life = ret->value ? id_token_life(ret->value, now) : -1;
    } else {
        if (!is_sent_alone(json_object_get(v, "token_type")))
            return -1;
        ret->value = derived_token(json_object_get(v, "access_token"));
        life = expires_in(json_object_get(v, "expires_in"));
        ret->until = life < 0 ? 0 : (int64_t)now + life;
    }
    ret->seconds = derived_life(life < 0 ? DERIVED_LIFE : life);
    return ret->value ? 0 : -1;
}

/* Some endpoints say with 200 that they give none. */
static bool says_error(const json_t *v)
{
    return json_is_string(json_object_get(v, "error"));
}

/* An error code of theirs may be shown: a short word (of RFC 6749, or AWS's), no text of the
 * request. */
static int refused(const struct derived *m, unsigned status, const json_t *v, struct err *err)
{
    const char *word = json_string_value(json_object_get(v, "error"));
    const char *type = json_string_value(json_object_get(v, "__type"));
    const char *hash = type ? strchr(type, '#') : NULL, *hint = derived_store_hint(m, status);
    word = word ? word : hash ? hash + 1 : type;
    size_t n = word ? strlen(word) : 0;
    bool plain = n > 0 && n <= 40 &&
                 strspn(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_-.") == n;
    bool again = (status == 400 || status == 401) && *login_hint(m);
    return err_set(err, ERR_DENIED, "its endpoint answered %u%s%s%s%s%s%s", status,
                   plain ? " " : "", plain ? word : "", hint ? ": " : "", hint ? hint : "",
                   again ? "; log in again on the host" : "", again ? login_hint(m) : "");
}

int derived_reply(const struct derived *m, unsigned status, struct slice body, time_t now,
                  struct derived_answer *ret, struct err *err)
{
    *ret = (struct derived_answer){.value = NULL};
    json_t *v = json_loadb(body.p, body.n, 0, NULL);
    int r;
    if (status != 200 && status != 201) {
        r = refused(m, status, v, err);
    } else {
        r = derived_is_ambient(m)         ? derived_ambient_take(m, v, body, now, ret)
            : m->kind >= DERIVED_VAULT    ? derived_store_take(m, v, ret)
            : m->kind == DERIVED_AWS_ROLE ? take_pair(v, now, ret)
                                          : take_token(m, v, now, ret);
        if (r == 0 && ret->seconds == 0 && !derived_is_stored(m))
            r = -1;
        if (r < 0) {
            secret_unref(ret->value);
            *ret = (struct derived_answer){.rotated = ret->rotated};
            if (derived_is_stored(m))
                derived_store_absent(m, err);
            else if (says_error(v))
                refused(m, status, v, err);
            else
                err_set(err, ERR_PARSE, "its endpoint answered without a token that can be used");
        }
    }
    json_decref(v);
    return r;
}
