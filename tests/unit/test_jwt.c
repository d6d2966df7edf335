/* Signed claims, verified here with the public key, and the requests that are made with them. */
#include "aws_sign.h"
#include "base64.h"
#include "derived_fixture.h"
#include "jwt.h"
#include "tap_main.h"

#include <jansson.h>
#include <openssl/ec.h>
#include <openssl/ecdsa.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void suite_jwt(void);

enum { NOW = 1767322800, PEM_MAX = 8192 };

static EVP_PKEY *rsa, *ec;
static char rsa_pem[PEM_MAX], ec_pem[PEM_MAX];

static void pem_of(EVP_PKEY *key, char to[PEM_MAX], const char *word)
{
    BIO *bio = BIO_new(BIO_s_mem());
    CU_ASSERT_EQUAL(PEM_write_bio_PKCS8PrivateKey(bio, key, word ? EVP_aes_128_cbc() : NULL, word,
                                                  word ? (int)strlen(word) : 0, NULL, NULL),
                    1);
    int n = BIO_read(bio, to, PEM_MAX - 1);
    to[n > 0 ? n : 0] = 0;
    BIO_free(bio);
}

static int setup(void)
{
    rsa = EVP_RSA_gen(2048);
    ec = EVP_EC_gen("P-256");
    return rsa && ec ? 0 : -1;
}

static int teardown(void)
{
    EVP_PKEY_free(rsa);
    EVP_PKEY_free(ec);
    return 0;
}

static struct slice cut(struct slice *s)
{
    ssize_t dot = slice_find(*s, '.');
    struct slice part = {s->p, dot < 0 ? s->n : (size_t)dot};
    *s = dot < 0 ? (struct slice){"", 0} : (struct slice){s->p + dot + 1, s->n - (size_t)dot - 1};
    return part;
}

static json_t *json_of(struct slice part)
{
    struct buf b;
    buf_init(&b, PEM_MAX);
    CU_ASSERT_EQUAL(base64url_decode(&b, part), 0);
    json_t *v = json_loadb((char *)buf_data(&b), buf_len(&b), JSON_REJECT_DUPLICATES, NULL);
    CU_ASSERT_PTR_NOT_NULL(v);
    buf_free(&b);
    return v;
}

/* ES256's signature is r and s, 32 bytes each (RFC 7518 3.4); OpenSSL wants DER. */
static bool verified(EVP_PKEY *key, struct slice text, struct slice part)
{
    struct buf sig;
    unsigned char *der = NULL;
    EVP_MD_CTX *md = EVP_MD_CTX_new();
    buf_init(&sig, PEM_MAX);
    bool ok = base64url_decode(&sig, part) == 0;
    const unsigned char *p = buf_data(&sig);
    size_t n = buf_len(&sig);
    if (key == ec) {
        ECDSA_SIG *es = ECDSA_SIG_new();
        ok = ok && n == 64 &&
             ECDSA_SIG_set0(es, BN_bin2bn(p, 32, NULL), BN_bin2bn(p + 32, 32, NULL)) == 1;
        int k = ok ? i2d_ECDSA_SIG(es, &der) : 0;
        ok = ok && k > 0;
        n = (size_t)(k > 0 ? k : 0);
        p = der;
        ECDSA_SIG_free(es);
    }
    ok = ok && EVP_DigestVerifyInit(md, NULL, EVP_sha256(), NULL, key) == 1 &&
         EVP_DigestVerify(md, p, n, (const unsigned char *)text.p, text.n) == 1;
    EVP_MD_CTX_free(md);
    OPENSSL_free(der);
    buf_free(&sig);
    return ok;
}

/* Head and claims of a token whose signature is good; the caller frees. */
static void opened(struct slice token, EVP_PKEY *key, json_t **head, json_t **claims)
{
    struct slice rest = token, h = cut(&rest), c = cut(&rest);
    CU_ASSERT(verified(key, (struct slice){token.p, h.n + 1 + c.n}, rest));
    CU_ASSERT_FALSE(verified(key, (struct slice){token.p, h.n + c.n}, rest));
    *head = json_of(h);
    *claims = json_of(c);
}

static const char *text(const json_t *v, const char *key)
{
    const char *s = json_string_value(json_object_get(v, key));
    return s ? s : "";
}

static void test_sign(void)
{
    struct buf out;
    struct err err = {0};
    json_t *head, *claims;
    pem_of(rsa, rsa_pem, NULL);
    pem_of(ec, ec_pem, NULL);
    for (int i = 0; i < 20; i++) { /* a half that begins with a zero byte keeps its length */
        bool es = i & 1;
        buf_init(&out, 16384);
        CU_ASSERT_EQUAL(jwt_sign(&out, es ? "ES256" : "RS256", es ? "k\"1" : "",
                                 SLICE("{\"a\":\"\xc3\xbc\"}"), slice_str(es ? ec_pem : rsa_pem),
                                 &err),
                        0);
        opened(buf_slice(&out), es ? ec : rsa, &head, &claims);
        CU_ASSERT_STRING_EQUAL(text(head, "alg"), es ? "ES256" : "RS256");
        CU_ASSERT_STRING_EQUAL(text(head, "typ"), "JWT");
        CU_ASSERT_STRING_EQUAL(text(head, "kid"), es ? "k\"1" : "");
        CU_ASSERT_STRING_EQUAL(text(claims, "a"), "\xc3\xbc");
        json_decref(head);
        json_decref(claims);
        buf_free(&out);
    }
}

static void not_signed(const char *algorithm, const char *pem, const char *says)
{
    struct buf out;
    struct err err = {0};
    buf_init(&out, 16384);
    CU_ASSERT_EQUAL(jwt_sign(&out, algorithm, "", SLICE("{}"), slice_str(pem), &err), -1);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, says));
    CU_ASSERT_PTR_NULL(strstr(err.text, "MII"));
    buf_free(&out);
}

static void test_keys(void)
{
    char pem[PEM_MAX];
    EVP_PKEY *weak = EVP_RSA_gen(1024), *wide = EVP_EC_gen("P-384");
    struct buf out;
    struct err err = {0};
    not_signed("RS256", ec_pem, "its key is not");
    not_signed("ES256", rsa_pem, "its key is not");
    pem_of(weak, pem, NULL);
    not_signed("RS256", pem, "its key is not");
    pem_of(wide, pem, NULL);
    not_signed("ES256", pem, "its key is not");
    pem_of(rsa, pem, "word"); /* nobody is asked for it */
    not_signed("RS256", pem, "not a private key");
    not_signed("RS256", "", "not a private key");
    not_signed("ES256", "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n",
               "not a private key");
    buf_init(&out, 100); /* no room for the signature */
    CU_ASSERT_EQUAL(jwt_sign(&out, "RS256", "", SLICE("{}"), slice_str(rsa_pem), &err), -1);
    buf_free(&out);
    EVP_PKEY_free(weak);
    EVP_PKEY_free(wide);
}

/* ---- what is asked with them ---- */

static const char injection[] =
    "grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Ajwt-bearer&assertion=";

static struct slice assertion(const struct token_request *r)
{
    struct slice body = buf_slice(&r->body), all = {body.p + sizeof injection - 1, 0};
    CU_ASSERT_FATAL(slice_starts(body, slice_str(injection)));
    all.n = body.n - (sizeof injection - 1);
    ssize_t end = slice_find(all, '&');
    return (struct slice){all.p, end < 0 ? all.n : (size_t)end};
}

static void test_bearer(void)
{
    struct err err = {0};
    struct token_request r;
    json_t *head, *claims;
    char first[64];
    struct secret *in[DERIVED_INPUTS_MAX] = {secret_new(ec_pem, strlen(ec_pem))};
    struct derived *m = derived_made(
        "{\"kind\":\"jwt\",\"endpoint\":\"https://a.example/t\",\"token_url\":"
        "\"https://a.example/t\",\"algorithm\":\"ES256\",\"key_id\":\"k1\",\"issuer\":\"me\","
        "\"scope\":\"x y\",\"key\":\"k\"}");
    for (int i = 0; i < 2; i++) {
        CU_ASSERT_EQUAL_FATAL(derived_request(m, in, NULL, NOW, &r, &err), 0);
        CU_ASSERT(slice_ends(buf_slice(&r.body), SLICE("&scope=x%20y")));
        CU_ASSERT(
            slice_eq_str(derived_field(&r, "content-type"), "application/x-www-form-urlencoded"));
        opened(assertion(&r), ec, &head, &claims);
        CU_ASSERT_STRING_EQUAL(text(claims, "iss"), "me");
        CU_ASSERT_STRING_EQUAL(text(claims, "sub"), "me");
        CU_ASSERT_STRING_EQUAL(text(claims, "aud"), "https://a.example/t");
        CU_ASSERT_EQUAL(json_integer_value(json_object_get(claims, "iat")), NOW);
        json_int_t life = json_integer_value(json_object_get(claims, "exp")) - NOW;
        CU_ASSERT(life > 0 && life <= 3600);
        CU_ASSERT_EQUAL(strlen(text(claims, "jti")), 32);
        CU_ASSERT(i == 0 || strcmp(first, text(claims, "jti")) != 0); /* each is of its own */
        snprintf(first, sizeof first, "%s", text(claims, "jti"));
        json_decref(head);
        json_decref(claims);
        token_request_free(&r);
    }
    derived_free(m);
    m = derived_made(
        "{\"kind\":\"jwt\",\"endpoint\":\"https://a.example/t\",\"algorithm\":\"ES256\","
        "\"issuer\":\"me\",\"subject\":\"you\",\"audience\":\"them\",\"key\":\"k\"}");
    CU_ASSERT_EQUAL_FATAL(derived_request(m, in, NULL, NOW, &r, &err), 0);
    opened(assertion(&r), ec, &head, &claims);
    CU_ASSERT_STRING_EQUAL(text(claims, "sub"), "you");
    CU_ASSERT_STRING_EQUAL(text(claims, "aud"), "them");
    json_decref(head);
    json_decref(claims);
    token_request_free(&r);
    secret_unref(in[0]);
    in[0] = secret_new(rsa_pem, strlen(rsa_pem)); /* not the kind of key that was said */
    CU_ASSERT_EQUAL(derived_request(m, in, NULL, NOW, &r, &err), -1);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "its key is not"));
    CU_ASSERT_EQUAL(slice_find_slice(buf_slice(&r.body), SLICE("assertion")), -1);
    token_request_free(&r);
    derived_free(m);
    secret_unref(in[0]);
}

/* A service account's file, as Google gives it. */
static struct secret *account(const char *email, const char *pem, const char *key_id)
{
    json_t *v = json_object();
    if (email)
        json_object_set_new(v, "client_email", json_string(email));
    if (pem)
        json_object_set_new(v, "private_key", json_string(pem));
    if (key_id)
        json_object_set_new(v, "private_key_id", json_string(key_id));
    char *s = json_dumps(v, 0);
    struct secret *ret = secret_new(s, strlen(s));
    free(s);
    json_decref(v);
    return ret;
}

static void test_google(void)
{
    struct err err = {0};
    struct token_request r;
    json_t *head, *claims;
    struct secret *in[DERIVED_INPUTS_MAX] = {account("a@b.example", rsa_pem, "id1")};
    struct derived *m =
        derived_made("{\"kind\":\"google\",\"endpoint\":\"https://g.example/t\",\"token_url\":"
                     "\"https://g.example/t\",\"scope\":\"s\",\"subject\":\"u@b.example\","
                     "\"service_account\":\"k\"}");
    CU_ASSERT_EQUAL_FATAL(derived_request(m, in, NULL, NOW, &r, &err), 0);
    opened(assertion(&r), rsa, &head, &claims);
    CU_ASSERT_STRING_EQUAL(text(head, "kid"), "id1");
    CU_ASSERT_STRING_EQUAL(text(claims, "iss"), "a@b.example");
    CU_ASSERT_STRING_EQUAL(text(claims, "sub"), "u@b.example");
    CU_ASSERT_STRING_EQUAL(text(claims, "aud"), "https://g.example/t");
    CU_ASSERT_STRING_EQUAL(text(claims, "scope"), "s");
    CU_ASSERT_PTR_NULL(json_object_get(claims, "target_audience"));
    json_decref(head);
    json_decref(claims);
    token_request_free(&r);
    secret_unref(in[0]);
    struct secret *bad[] = {account(NULL, rsa_pem, NULL), account("a@b", NULL, "x"),
                            secret_new("[]", 2), secret_new("no JSON", 7),
                            secret_new("{\"client_email\":1,\"private_key\":2}", 34)};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        in[0] = bad[i];
        CU_ASSERT_EQUAL(derived_request(m, in, NULL, NOW, &r, &err), -1);
        CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "no client_email or private_key"));
        token_request_free(&r);
        secret_unref(bad[i]);
    }
    in[0] = account("a@b.example", "no key", NULL);
    CU_ASSERT_EQUAL(derived_request(m, in, NULL, NOW, &r, &err), -1);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "not a private key"));
    token_request_free(&r);
    secret_unref(in[0]);
    derived_free(m);
}

static void test_others(void)
{
    struct err err = {0};
    struct token_request r;
    json_t *head, *claims;
    struct secret *in[DERIVED_INPUTS_MAX] = {secret_new("s&1", 3)};
    struct derived *m =
        derived_made("{\"kind\":\"entra\",\"endpoint\":\"https://e.example/t\",\"client_id\":\"i\","
                     "\"scope\":\"https://x/.default\",\"client_secret\":\"k\"}");
    CU_ASSERT_EQUAL(derived_request(m, in, NULL, NOW, &r, &err), 0);
    CU_ASSERT(slice_eq_str(buf_slice(&r.body),
                           "grant_type=client_credentials&client_id=i&client_secret=s%261&"
                           "scope=https%3A%2F%2Fx%2F.default"));
    token_request_free(&r);
    derived_free(m);
    secret_unref(in[0]);
    in[0] = secret_new(rsa_pem, strlen(rsa_pem));
    m = derived_made(
        "{\"kind\":\"github_app\",\"endpoint\":\"https://g.example/\",\"app_id\":\"7\","
        "\"key\":\"k\"}");
    CU_ASSERT_EQUAL_FATAL(derived_request(m, in, NULL, NOW, &r, &err), 0);
    struct slice auth = derived_field(&r, "authorization");
    CU_ASSERT_FATAL(slice_starts(auth, SLICE("Bearer ")));
    opened((struct slice){auth.p + 7, auth.n - 7}, rsa, &head, &claims);
    CU_ASSERT_STRING_EQUAL(text(claims, "iss"), "7");
    json_int_t iat = json_integer_value(json_object_get(claims, "iat")),
               exp = json_integer_value(json_object_get(claims, "exp"));
    CU_ASSERT(iat < NOW && exp > NOW && exp - iat <= 600); /* GitHub takes ten minutes */
    json_decref(head);
    json_decref(claims);
    token_request_free(&r);
    derived_free(m);
    secret_unref(in[0]);
}

static void test_roles(void)
{
    static const char role[] =
        "{\"kind\":\"aws_role\",\"endpoint\":\"https://sts.example/\",\"region\":\"eu-west-1\","
        "\"role_arn\":\"arn:aws:iam::1:role/r\",\"session_name\":\"s\",\"external_id\":\"e\","
        "\"duration\":\"900\",\"key\":\"k\"}";
    struct err err = {0};
    struct token_request r;
    struct aws_pair pair;
    struct secret *in[DERIVED_INPUTS_MAX] = {aws_pair_pack(SLICE("AKID"), SLICE("key"), SLICE(""))};
    struct derived *m = derived_made(role);
    CU_ASSERT_EQUAL_FATAL(derived_request(m, in, NULL, NOW, &r, &err), 0);
    CU_ASSERT(slice_eq_str(buf_slice(&r.body),
                           "Action=AssumeRole&Version=2011-06-15&RoleArn=arn%3Aaws%3Aiam%3A%3A1%3A"
                           "role%2Fr&RoleSessionName=s&ExternalId=e&DurationSeconds=900"));
    CU_ASSERT(slice_starts(derived_field(&r, "authorization"),
                           SLICE("AWS4-HMAC-SHA256 Credential=AKID/20260102/eu-west-1/sts/"
                                 "aws4_request, SignedHeaders=content-type;host;x-amz-date, ")));
    CU_ASSERT(slice_eq_str(derived_field(&r, "x-amz-date"), "20260102T030000Z"));
    CU_ASSERT_EQUAL(derived_field(&r, "x-amz-security-token").n, 0);
    token_request_free(&r);
    secret_unref(in[0]);
    in[0] = secret_new("no pair", 7);
    CU_ASSERT_EQUAL(derived_request(m, in, NULL, NOW, &r, &err), -1);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "its key is none"));
    CU_ASSERT_EQUAL(derived_field(&r, "authorization").n, 0);
    token_request_free(&r);
    secret_unref(in[0]);
    derived_free(m);
    /* a key of the store's, in its parts: nobody is asked */
    m = derived_made("{\"kind\":\"aws_key\",\"access_key_id\":\"a\",\"secret_access_key\":\"b\"}");
    CU_ASSERT(derived_is_local(m) && derived_signs(m) && !derived_is_captured(m));
    in[0] = secret_new("AKID", 4);
    in[1] = secret_new("key", 3);
    CU_ASSERT_EQUAL(derived_request(m, in, NULL, NOW, &r, &err), -1);
    token_request_free(&r);
    struct secret *got = derived_local(m, in, &err);
    CU_ASSERT_PTR_NOT_NULL_FATAL(got);
    CU_ASSERT(aws_pair_open(secret_slice(got), &pair) == 0 && slice_eq_str(pair.id, "AKID") &&
              slice_eq_str(pair.key, "key") && pair.token.n == 0);
    secret_unref(got);
    secret_unref(in[0]);
    in[0] = secret_new("AK\nID", 5);
    CU_ASSERT_PTR_NULL(derived_local(m, in, &err));
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "not those of an AWS key"));
    secret_unref(in[0]);
    secret_unref(in[1]);
    derived_free(m);
}

/* A field too long for what it goes into is no request, and not half of one. */
static void test_too_long(void)
{
    struct err err = {0};
    struct token_request r;
    char *big = malloc(SECRET_MAX);
    CU_ASSERT_PTR_NOT_NULL_FATAL(big);
    memset(big, '&', SECRET_MAX);
    struct secret *in[DERIVED_INPUTS_MAX] = {secret_new(big, SECRET_MAX)};
    static const char *const auths[] = {"basic", "post"};
    for (size_t i = 0; i < ARRAY_LEN(auths); i++) {
        char spec[256];
        snprintf(spec, sizeof spec,
                 "{\"kind\":\"oauth2\",\"endpoint\":\"https://a.example/t\",\"client_id\":\"i\","
                 "\"client_secret\":\"k\",\"auth\":\"%s\"}",
                 auths[i]);
        struct derived *m = derived_made(spec);
        CU_ASSERT_EQUAL(derived_request(m, in, NULL, NOW, &r, &err), -1);
        CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "cannot be written"));
        CU_ASSERT_EQUAL(derived_field(&r, "authorization").n, 0);
        token_request_free(&r);
        derived_free(m);
    }
    secret_unref(in[0]);
    free(big);
}

/* Times that no clock shows: none of them makes a credential last. */
static void test_times(void)
{
    static const struct {
        const char *expires;
        unsigned seconds;
    } rows[] = {{"-1e300", 269},
                {"1e300", 86340},
                {"-9.3e18", 269},
                {"9.3e18", 86340},
                {"-9223372036854775808", 269},
                {"9223372036854775807", 86340},
                {"0", 269}};
    struct derived *m = derived_made("{\"kind\":\"github_app\",\"endpoint\":\"https://g.example/\","
                                     "\"app_id\":\"7\",\"key\":\"k\"}"),
                   *role =
                       derived_made("{\"kind\":\"aws_role\",\"endpoint\":\"https://s.example/\","
                                    "\"key\":\"k\"}"),
                   *id = derived_made("{\"kind\":\"google\",\"endpoint\":\"https://g.example/\","
                                      "\"audience\":\"a\",\"service_account\":\"k\"}");
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct derived_answer got;
        struct err err = {0};
        char body[400], claims[80];
        struct buf token;
        snprintf(body, sizeof body, "{\"token\":\"g\",\"expires_at\":%s}", rows[i].expires);
        CU_ASSERT_EQUAL(derived_reply(m, 200, slice_str(body), NOW, &got, &err), 0);
        CU_ASSERT_EQUAL(got.seconds, rows[i].seconds);
        secret_unref(got.value);
        snprintf(body, sizeof body,
                 "{\"AssumeRoleResponse\":{\"AssumeRoleResult\":{\"Credentials\":{\"AccessKeyId\":"
                 "\"A\",\"SecretAccessKey\":\"k\",\"SessionToken\":\"t\",\"Expiration\":%s}}}}",
                 rows[i].expires);
        CU_ASSERT_EQUAL(derived_reply(role, 200, slice_str(body), NOW, &got, &err),
                        rows[i].seconds == 269 ? -1 : 0);
        secret_unref(got.value);
        buf_init(&token, 400);
        snprintf(claims, sizeof claims, "{\"exp\":%s}", rows[i].expires);
        CU_ASSERT(buf_append_str(&token, "{\"id_token\":\"e30.") == 0 &&
                  base64url_append(&token, slice_str(claims)) == 0 &&
                  buf_append_str(&token, ".x\"}") == 0);
        CU_ASSERT_EQUAL(derived_reply(id, 200, buf_slice(&token), NOW, &got, &err), 0);
        CU_ASSERT_EQUAL(got.seconds, rows[i].seconds);
        secret_unref(got.value);
        buf_free(&token);
    }
    derived_free(m);
    derived_free(role);
    derived_free(id);
}

void suite_jwt(void)
{
    CU_pSuite s = CU_add_suite("jwt", setup, teardown);
    CU_add_test(s, "signatures that verify", test_sign);
    CU_add_test(s, "keys that are refused", test_keys);
    CU_add_test(s, "JWT bearer (RFC 7523)", test_bearer);
    CU_add_test(s, "service accounts", test_google);
    CU_add_test(s, "Entra and GitHub Apps", test_others);
    CU_add_test(s, "AWS roles and keys", test_roles);
    CU_add_test(s, "more than there is room for", test_too_long);
    CU_add_test(s, "ends of lives that no clock shows", test_times);
}

void tap_suites(void)
{
    suite_jwt();
}
