/* Detectors of secrets that begin with something published: tokens by prefix, alphabet and length,
 * private keys in PEM, JSON web tokens, passwords in URLs. */
#include "detector_internal.h"

#include <string.h>

enum {
    NEEDS_DIGIT = 1, /* else it is words with hyphens between them */
    BEHIND_NAME =
        2, /* the prefix is a name, and the value stands behind "=", ": \"" and the like */
    BETWEEN_MAX = 8,
    DIFFERENT_MIN = 4 /* bytes in a token */
};

struct shape {
    const char *prefix; /* three bytes or more */
    enum detector what;
    unsigned alphabet, min, max, flags; /* of what follows the prefix */
};

static const struct shape shapes[] = {
    {"AKIA", DETECT_AWS, CLASS_UPDIGIT, 16, 16, 0},
    {"ASIA", DETECT_AWS, CLASS_UPDIGIT, 16, 16, 0},
    {"ABIA", DETECT_AWS, CLASS_UPDIGIT, 16, 16, 0},
    {"ACCA", DETECT_AWS, CLASS_UPDIGIT, 16, 16, 0},
    {"aws_secret_access_key", DETECT_AWS, CLASS_BASE64, 40, 40, BEHIND_NAME},
    {"AWS_SECRET_ACCESS_KEY", DETECT_AWS, CLASS_BASE64, 40, 40, BEHIND_NAME},
    {"aws_secret_key", DETECT_AWS, CLASS_BASE64, 40, 40, BEHIND_NAME},
    {"AWS_SECRET_KEY", DETECT_AWS, CLASS_BASE64, 40, 40, BEHIND_NAME},
    {"SecretAccessKey", DETECT_AWS, CLASS_BASE64, 40, 40, BEHIND_NAME},
    {"secretAccessKey", DETECT_AWS, CLASS_BASE64, 40, 40, BEHIND_NAME},
    {"AIza", DETECT_GOOGLE, CLASS_NAME, 35, 35, 0},
    {"GOCSPX-", DETECT_GOOGLE, CLASS_NAME, 28, 28, 0},
    {"ya29.", DETECT_GOOGLE, CLASS_DOTTED, 24, 1000, 0},
    {"AccountKey=", DETECT_AZURE, CLASS_BASE64, 86, 90, 0},
    {"SharedAccessKey=", DETECT_AZURE, CLASS_BASE64, 43, 90, 0},
    {"ghp_", DETECT_GITHUB, CLASS_ALNUM, 36, 255, 0},
    {"gho_", DETECT_GITHUB, CLASS_ALNUM, 36, 255, 0},
    {"ghu_", DETECT_GITHUB, CLASS_ALNUM, 36, 255, 0},
    {"ghs_", DETECT_GITHUB, CLASS_ALNUM, 36, 255, 0},
    {"ghr_", DETECT_GITHUB, CLASS_ALNUM, 36, 255, 0},
    {"github_pat_", DETECT_GITHUB, CLASS_WORD, 22, 255, 0},
    {"glpat-", DETECT_GITLAB, CLASS_DOTTED, 20, 300, 0},
    {"gldt-", DETECT_GITLAB, CLASS_DOTTED, 20, 300, 0},
    {"glrt-", DETECT_GITLAB, CLASS_DOTTED, 20, 300, 0},
    {"glcbt-", DETECT_GITLAB, CLASS_DOTTED, 20, 300, 0},
    {"glptt-", DETECT_GITLAB, CLASS_DOTTED, 40, 300, 0},
    {"glsoat-", DETECT_GITLAB, CLASS_DOTTED, 20, 300, 0},
    {"glft-", DETECT_GITLAB, CLASS_DOTTED, 20, 300, 0},
    {"glffct-", DETECT_GITLAB, CLASS_DOTTED, 20, 300, 0},
    {"glimt-", DETECT_GITLAB, CLASS_DOTTED, 20, 300, 0},
    {"glagent-", DETECT_GITLAB, CLASS_DOTTED, 40, 300, 0},
    {"gloas-", DETECT_GITLAB, CLASS_DOTTED, 40, 300, 0},
    {"GR1348941", DETECT_GITLAB, CLASS_NAME, 20, 20, 0},
    {"xoxb-", DETECT_SLACK, CLASS_NAME, 20, 255, NEEDS_DIGIT},
    {"xoxp-", DETECT_SLACK, CLASS_NAME, 20, 255, NEEDS_DIGIT},
    {"xoxa-", DETECT_SLACK, CLASS_NAME, 12, 255, NEEDS_DIGIT},
    {"xoxr-", DETECT_SLACK, CLASS_NAME, 12, 255, NEEDS_DIGIT},
    {"xoxo-", DETECT_SLACK, CLASS_NAME, 20, 255, NEEDS_DIGIT},
    {"xoxs-", DETECT_SLACK, CLASS_NAME, 20, 255, NEEDS_DIGIT},
    {"xoxe-", DETECT_SLACK, CLASS_NAME, 20, 300, NEEDS_DIGIT},
    {"xoxe.", DETECT_SLACK, CLASS_NAME, 20, 300, NEEDS_DIGIT},
    {"xapp-", DETECT_SLACK, CLASS_NAME, 20, 255, NEEDS_DIGIT},
    {"hooks.slack.com/services/", DETECT_SLACK, CLASS_SLASHED, 40, 90, 0},
    {"hooks.slack.com/workflows/", DETECT_SLACK, CLASS_SLASHED, 40, 90, 0},
    {"hooks.slack.com/triggers/", DETECT_SLACK, CLASS_SLASHED, 40, 90, 0},
    {"sk_live_", DETECT_STRIPE, CLASS_ALNUM, 16, 255, 0},
    {"sk_test_", DETECT_STRIPE, CLASS_ALNUM, 16, 255, 0},
    {"rk_live_", DETECT_STRIPE, CLASS_ALNUM, 16, 255, 0},
    {"rk_test_", DETECT_STRIPE, CLASS_ALNUM, 16, 255, 0},
    {"sk_prod_", DETECT_STRIPE, CLASS_ALNUM, 16, 255, 0},
    {"rk_prod_", DETECT_STRIPE, CLASS_ALNUM, 16, 255, 0},
    {"whsec_", DETECT_STRIPE, CLASS_BASE64, 32, 255, 0},
    {"sk-", DETECT_MODEL, CLASS_NAME, 32, 255, NEEDS_DIGIT},
    {"gsk_", DETECT_MODEL, CLASS_ALNUM, 48, 60, 0},
    {"xai-", DETECT_MODEL, CLASS_ALNUM, 70, 90, 0},
    {"pplx-", DETECT_MODEL, CLASS_ALNUM, 40, 60, 0},
    {"hf_", DETECT_MODEL, CLASS_ALNUM, 34, 40, 0},
    {"r8_", DETECT_MODEL, CLASS_ALNUM, 37, 37, 0},
    {"api_org_", DETECT_MODEL, CLASS_ALNUM, 34, 34, 0},
    {"npm_", DETECT_TOKEN, CLASS_ALNUM, 36, 36, 0},
    {"pypi-AgEI", DETECT_TOKEN, CLASS_NAME, 50, 1000, 0},
    {"rubygems_", DETECT_TOKEN, CLASS_HEX, 48, 48, 0},
    {"dckr_pat_", DETECT_TOKEN, CLASS_NAME, 27, 60, 0},
    {"SG.", DETECT_TOKEN, CLASS_DOTTED | CLASS_ENTROPY, 66, 66, 0},
    {"dop_v1_", DETECT_TOKEN, CLASS_HEX, 64, 64, 0},
    {"doo_v1_", DETECT_TOKEN, CLASS_HEX, 64, 64, 0},
    {"dor_v1_", DETECT_TOKEN, CLASS_HEX, 64, 64, 0},
    {"shpat_", DETECT_TOKEN, CLASS_ALNUM, 32, 32, 0},
    {"shpca_", DETECT_TOKEN, CLASS_ALNUM, 32, 32, 0},
    {"shppa_", DETECT_TOKEN, CLASS_ALNUM, 32, 32, 0},
    {"shpss_", DETECT_TOKEN, CLASS_ALNUM, 32, 32, 0},
    {"key-", DETECT_TOKEN, CLASS_HEX, 32, 32, 0},
    {"sq0atp-", DETECT_TOKEN, CLASS_NAME, 22, 22, 0},
    {"sq0csp-", DETECT_TOKEN, CLASS_NAME, 43, 43, 0},
    {"hvs.", DETECT_TOKEN, CLASS_NAME, 24, 255, 0},
    {"hvb.", DETECT_TOKEN, CLASS_NAME, 24, 500, 0},
    {"dapi", DETECT_TOKEN, CLASS_HEX, 32, 32, 0},
    {"lin_api_", DETECT_TOKEN, CLASS_ALNUM, 40, 40, 0},
    {"ntn_", DETECT_TOKEN, CLASS_ALNUM, 40, 60, 0},
    {"AGE-SECRET-KEY-1", DETECT_TOKEN, CLASS_UPDIGIT, 58, 58, 0},
    {"glsa_", DETECT_TOKEN, CLASS_WORD, 41, 41, 0},
    {"glc_", DETECT_TOKEN, CLASS_BASE64, 32, 400, 0},
    {"PMAK-", DETECT_TOKEN, CLASS_NAME, 59, 59, 0},
    {"NRAK-", DETECT_TOKEN, CLASS_ALNUM, 27, 27, 0},
    {"ATATT3", DETECT_TOKEN, CLASS_NAME | CLASS_BASE64, 100, 255, 0},
    {"ATCTT3", DETECT_TOKEN, CLASS_NAME | CLASS_BASE64, 100, 255, 0},
    {"pscale_tkn_", DETECT_TOKEN, CLASS_DOTTED | CLASS_ENTROPY, 32, 64, 0},
    {"pscale_pw_", DETECT_TOKEN, CLASS_DOTTED | CLASS_ENTROPY, 32, 64, 0},
    {"dp.pt.", DETECT_TOKEN, CLASS_ALNUM, 40, 44, 0},
    {"figd_", DETECT_TOKEN, CLASS_NAME, 40, 60, 0},
    {"tskey-", DETECT_TOKEN, CLASS_NAME, 20, 100, NEEDS_DIGIT},
    {"sntrys_", DETECT_TOKEN, CLASS_BASE64 | CLASS_WORD, 80, 400, 0},
    {"sbp_", DETECT_TOKEN, CLASS_HEX, 40, 40, 0},
    {"pscale_oauth_", DETECT_TOKEN, CLASS_DOTTED | CLASS_ENTROPY, 32, 64, 0},
    {"ops_eyJ", DETECT_TOKEN, CLASS_ENTROPY, 200, 1000, 0},
    {"CLOJARS_", DETECT_TOKEN, CLASS_ALNUM, 60, 60, 0},
    {"v1.0-", DETECT_TOKEN, CLASS_NAME, 171, 171, 0},
    {"dnkey-", DETECT_TOKEN, CLASS_ENTROPY, 60, 90, 0},
    {"duffel_test_", DETECT_TOKEN, CLASS_ENTROPY, 43, 43, 0},
    {"duffel_live_", DETECT_TOKEN, CLASS_ENTROPY, 43, 43, 0},
    {"dt0c01.", DETECT_TOKEN, CLASS_DOTTED, 89, 89, 0},
    {"EZAK", DETECT_TOKEN, CLASS_ALNUM, 54, 54, 0},
    {"EZTK", DETECT_TOKEN, CLASS_ALNUM, 54, 54, 0},
    {"EAAM", DETECT_TOKEN, CLASS_ALNUM, 100, 1000, 0},
    {"EAAC", DETECT_TOKEN, CLASS_ALNUM, 100, 1000, 0},
    {"EAAA", DETECT_TOKEN, CLASS_NAME, 56, 64, NEEDS_DIGIT},
    {"FLWPUBK_TEST-", DETECT_TOKEN, CLASS_NAME, 32, 40, 0},
    {"FLWSECK_TEST-", DETECT_TOKEN, CLASS_NAME, 12, 40, 0},
    {"fo1_", DETECT_TOKEN, CLASS_NAME, 43, 43, 0},
    {"fm1r_", DETECT_TOKEN, CLASS_ENTROPY, 100, 1000, 0},
    {"fm1a_", DETECT_TOKEN, CLASS_ENTROPY, 100, 1000, 0},
    {"fm2_", DETECT_TOKEN, CLASS_ENTROPY, 100, 1000, 0},
    {"fio-u-", DETECT_TOKEN, CLASS_ENTROPY, 64, 64, 0},
    {"eyJrIjoi", DETECT_TOKEN, CLASS_BASE64, 64, 400, 0},
    {"atlasv1.", DETECT_TOKEN, CLASS_ENTROPY, 60, 70, 0},
    {"NRJS-", DETECT_TOKEN, CLASS_HEX, 19, 19, 0},
    {"NRII-", DETECT_TOKEN, CLASS_NAME, 32, 32, 0},
    {"ico-", DETECT_TOKEN, CLASS_ALNUM, 32, 32, NEEDS_DIGIT},
    {"API-", DETECT_TOKEN, CLASS_UPDIGIT, 26, 26, NEEDS_DIGIT},
    {"sha256~", DETECT_TOKEN, CLASS_NAME, 43, 43, 0},
    {"pnu_", DETECT_TOKEN, CLASS_ALNUM, 36, 36, 0},
    {"pul-", DETECT_TOKEN, CLASS_HEX, 40, 40, 0},
    {"rdme_", DETECT_TOKEN, CLASS_ALNUM, 70, 70, 0},
    {"tk-us-", DETECT_TOKEN, CLASS_NAME, 48, 48, 0},
    {"xkeysib-", DETECT_TOKEN, CLASS_NAME, 81, 81, 0},
    {"shippo_live_", DETECT_TOKEN, CLASS_HEX, 40, 40, 0},
    {"shippo_test_", DETECT_TOKEN, CLASS_HEX, 40, 40, 0},
    {"LTAI", DETECT_TOKEN, CLASS_ALNUM, 20, 20, NEEDS_DIGIT},
    {"tfp_", DETECT_TOKEN, CLASS_DOTTED | CLASS_ENTROPY, 59, 59, 0},
    {"AQVN", DETECT_TOKEN, CLASS_NAME, 35, 38, NEEDS_DIGIT},
    {"pk.", DETECT_TOKEN, CLASS_DOTTED, 83, 90, NEEDS_DIGIT},
    {"pubkey-", DETECT_TOKEN, CLASS_HEX, 32, 32, 0},
    {"access-production-", DETECT_TOKEN, CLASS_NAME, 36, 36, NEEDS_DIGIT},
    {"access-sandbox-", DETECT_TOKEN, CLASS_NAME, 36, 36, NEEDS_DIGIT},
    {"webhook.office.com/webhookb2/", DETECT_TOKEN, CLASS_NAME, 36, 36, 0},
    {"ZXlK", DETECT_JWT, CLASS_ENTROPY, 60, 1000, 0}, /* one that is written in base64 again */
    {"EAACEdEose0cBA", DETECT_TOKEN, CLASS_ALNUM, 16, 400, 0},
};

static const char pem_begin[] = "-----BEGIN ", pem_dashes[] = "-----", jwt_begin[] = "eyJ",
                  url_mark[] = "://";

static bool starts(const struct detect_scan *s, size_t i, const char *text, size_t n)
{
    return s->text.n - i >= n && memcmp(s->text.p + i, text, n) == 0;
}

/* ---- tokens ---- */

static bool has_digit(const struct detect_scan *s, size_t at, size_t end)
{
    for (; at < end; at++)
        if (detect_is(s->text.p[at], CLASS_DIGIT))
            return true;
    return false;
}

/* "xxxx…", "XXXX-XXXX": a document's place for a token; and AWS's own "…EXAMPLE". */
static bool is_filler(struct slice value)
{
    uint32_t seen[8] = {0};
    unsigned different = 0;
    for (size_t i = 0; i < value.n; i++) {
        unsigned char c = (unsigned char)value.p[i];
        different += !(seen[c / 32] >> (c % 32) & 1);
        seen[c / 32] |= 1u << (c % 32);
    }
    return different < DIFFERENT_MIN || slice_ends(value, SLICE("EXAMPLE"));
}

/* Where the value of a name begins; 0: it has none. */
static size_t behind_name(const struct detect_scan *s, size_t i)
{
    size_t begin = i;
    bool equals = false;
    while (i < s->text.n && i - begin < BETWEEN_MAX && s->text.p[i] &&
           strchr(" \t\"'`:=>\\", s->text.p[i]))
        equals |= s->text.p[i++] != ' ';
    return equals || i == s->text.n ? i : 0;
}

static void token_at(struct detect_scan *s, size_t i, const struct shape *k, size_t prefix)
{
    size_t value = i + prefix, first = i;
    if (k->flags & BEHIND_NAME) {
        value = behind_name(s, value);
        first = value;
        if (value == 0)
            return;
    }
    size_t end = detect_run(s, value, k->alphabet);
    if (detect_cut(s, end) && end - value <= k->max) {
        detect_open(s, i);
        return;
    }
    while (end > value && s->text.p[end - 1] == '.') /* of the sentence */
        end--;
    if (end - value < k->min || end - value > k->max)
        return;
    if (end < s->text.n && detect_is(s->text.p[end], CLASS_WORD))
        return;
    if ((k->flags & NEEDS_DIGIT) && !has_digit(s, value, end))
        return;
    if (is_filler((struct slice){s->text.p + value, end - value}))
        return;
    detect_found_behind(s, k->what, i, first, end);
}

/* What was found last reaches beyond what is there: nothing behind it is decided. */
static void goes_on(struct detect_scan *s, size_t at, size_t end)
{
    if (s->n == 0 || s->match[s->n - 1].at != at)
        return;
    s->match[s->n - 1].goes_on = true;
    s->stops = true;
    s->stop = at;
    detect_open(s, end);
}

/* ---- JSON web tokens: two parts of base64url that are objects of JSON, and a signature ---- */

enum { JWT_PART_MIN = 10 };

static void jwt_at(struct detect_scan *s, size_t i)
{
    size_t end = detect_run(s, i, CLASS_DOTTED), dots = 0, part = i, second = 0;
    bool all = end < s->text.n || s->whole;
    if (!all && end - i < DETECT_OPEN_MAX) {
        detect_open(s, i);
        return;
    }
    for (size_t k = i; k < end && dots < 2; k++)
        if (s->text.p[k] == '.') {
            if (k - part < JWT_PART_MIN)
                return;
            part = k + 1;
            second = dots++ == 0 ? part : second;
        }
    bool cut = dots == 0 || end - second < sizeof jwt_begin - 1;
    if (!all && cut && end - i < 8 * DETECT_OPEN_MAX) {
        detect_open(s, i);
        return;
    }
    if (dots == 0 || !starts(s, second, jwt_begin, sizeof jwt_begin - 1))
        return;
    if (all && dots < 2)
        return;
    while (all && end > i && s->text.p[end - 1] == '.' && end - 1 >= part)
        end--;
    detect_found(s, DETECT_JWT, i, end);
    if (!all)
        goes_on(s, i, end);
}

/* ---- private keys ---- */

enum { LABEL_MAX = 64, BODY_LOOK = 320, BODY_RUN = 40 };

/* Where the label of a private key ends, behind its dashes; 0: it is no such label. */
static size_t label_end(const struct detect_scan *s, size_t at, bool *cut)
{
    size_t i = at;
    *cut = false;
    while (i < s->text.n && i - at < LABEL_MAX &&
           (detect_is(s->text.p[i], CLASS_UPDIGIT) || s->text.p[i] == ' '))
        i++;
    struct slice label = {s->text.p + at, i - at};
    *cut = detect_cut(s, i + sizeof pem_dashes - 1) && i - at < LABEL_MAX;
    if (!slice_ends(label, SLICE("PRIVATE KEY")) && !slice_ends(label, SLICE("PRIVATE KEY BLOCK")))
        return 0;
    return starts(s, i, pem_dashes, sizeof pem_dashes - 1) ? i + sizeof pem_dashes - 1 : 0;
}

/* Is there a line of a key behind the label, and not a text about keys? */
static bool has_key(const struct detect_scan *s, size_t at, bool *cut)
{
    size_t run = 0, i = at;
    for (; i < s->text.n && i - at < BODY_LOOK && detect_is(s->text.p[i], CLASS_PEM); i++) {
        run = detect_is(s->text.p[i], CLASS_BASE64) ? run + 1 : 0;
        if (run == BODY_RUN)
            return true;
    }
    *cut = detect_cut(s, i) && i - at < BODY_LOOK;
    return false;
}

static void pem_at(struct detect_scan *s, size_t i)
{
    bool cut;
    if (s->text.n - i < sizeof pem_begin - 1 || !starts(s, i, pem_begin, sizeof pem_begin - 1))
        return; /* its beginning at the end of a text: detect_tokens_tail */
    size_t body = label_end(s, i + sizeof pem_begin - 1, &cut);
    if (!cut && (body == 0 || !has_key(s, body, &cut)) && !cut)
        return;
    if (cut) {
        detect_open(s, i);
        return;
    }
    bool done;
    struct slice rest = {s->text.p + body, s->text.n - body};
    size_t end = body + detector_rest(DETECT_PRIVATE_KEY, rest, s->whole, &done);
    detect_found(s, DETECT_PRIVATE_KEY, i, end);
    if (!done)
        goes_on(s, i, end);
}

/* Of the lines of a key, from anywhere in them: up to the end's dashes. */
static size_t key_length(struct slice text, bool whole, bool *done)
{
    static const struct slice mark = SLICE_INIT("-----END");
    struct detect_scan s = {.text = text, .whole = whole};
    size_t end = detect_run(&s, 0, CLASS_PEM);
    ssize_t last = slice_find_slice((struct slice){text.p, end}, mark);
    *done = true;
    if (last >= 0) {
        size_t label = (size_t)last + mark.n;
        size_t look = end - label > LABEL_MAX ? LABEL_MAX : end - label;
        ssize_t close = slice_find_slice((struct slice){text.p + label, look}, SLICE("-----"));
        if (close >= 0)
            return label + (size_t)close + sizeof pem_dashes - 1;
        *done = !detect_cut(&s, end) || look == LABEL_MAX;
        return *done ? label : (size_t)last;
    }
    *done = !detect_cut(&s, end);
    return *done ? end : end - (end < mark.n ? end : mark.n);
}

size_t detector_rest(enum detector what, struct slice text, bool whole, bool *done)
{
    if (what == DETECT_PRIVATE_KEY)
        return key_length(text, whole, done);
    struct detect_scan s = {.text = text, .whole = whole};
    size_t end = detect_run(&s, 0, CLASS_DOTTED);
    *done = !detect_cut(&s, end);
    return end;
}

/* ---- passwords in URLs ---- */

enum { USER_MAX = 128, PASSWORD_MIN = 3 };

static void url_at(struct detect_scan *s, size_t i)
{
    size_t at = i + sizeof url_mark - 1, k = at, colon = 0;
    if (!detect_is(detect_before(s, i), CLASS_ALNUM))
        return;
    while (k < s->text.n && k - at < 2 * USER_MAX && (unsigned char)s->text.p[k] > ' ' &&
           strchr("@/?#\"'<>\\,;", s->text.p[k]) == NULL) {
        if (s->text.p[k] == ':' && colon == 0)
            colon = k;
        k++;
    }
    if (detect_cut(s, k) && k - at < 2 * USER_MAX) {
        detect_open(s, i);
        return;
    }
    if (k >= s->text.n || s->text.p[k] != '@' || colon == 0 || k - colon - 1 < PASSWORD_MIN)
        return;
    struct slice password = {s->text.p + colon + 1, k - colon - 1};
    size_t stars = 0;
    while (stars < password.n && password.p[stars] == '*')
        stars++;
    if (memchr("${[<", *password.p, 4) || stars == password.n)
        return; /* a place for one */
    detect_found_behind(s, DETECT_URL_PASSWORD, i, colon + 1, k);
}

/* ---- */

/* What has a beginning but no row in the table above; their numbers follow its rows'. */
enum { TRY_JWT = ARRAY_LEN(shapes), TRY_PRIVATE_KEY, TRY_URL, TRIES };
_Static_assert((size_t)TRIES <= (size_t)DETECT_TRIES, "detector_set has a place for each");

void detect_token_try(struct detect_scan *s, size_t i, unsigned which)
{
    if (which == TRY_PRIVATE_KEY)
        pem_at(s, i);
    else if (which == TRY_URL && starts(s, i, url_mark, sizeof url_mark - 1))
        url_at(s, i);
    if (which >= TRY_PRIVATE_KEY || detect_is(detect_before(s, i), CLASS_WORD))
        return;
    if (which == TRY_JWT) {
        if (starts(s, i, jwt_begin, sizeof jwt_begin - 1))
            jwt_at(s, i);
        return;
    }
    const struct shape *p = &shapes[which];
    size_t n = 0;
    while (p->prefix[n] && i + n < s->text.n && p->prefix[n] == s->text.p[i + n])
        n++;
    if (p->prefix[n] == 0)
        token_at(s, i, p, n);
}

const char *detect_token_prefix(unsigned which)
{
    return which == TRY_JWT           ? jwt_begin
           : which == TRY_PRIVATE_KEY ? pem_begin
           : which == TRY_URL         ? url_mark
                                      : shapes[which].prefix;
}

size_t detect_token_least(unsigned which)
{
    if (which >= TRY_JWT)
        return which == TRY_JWT ? 2 * JWT_PART_MIN : 0;
    const struct shape *k = &shapes[which];
    return strlen(k->prefix) + (k->flags & BEHIND_NAME ? 0 : k->min);
}

void detect_tokens_prefixes(uint32_t what, detect_prefix_fn add, void *arg)
{
    for (unsigned k = 0; k < TRY_JWT; k++)
        if (what & DETECT_BIT(shapes[k].what))
            add(arg, shapes[k].prefix, k);
    if (what & DETECT_BIT(DETECT_JWT))
        add(arg, jwt_begin, TRY_JWT);
    if (what & DETECT_BIT(DETECT_PRIVATE_KEY))
        add(arg, pem_begin, TRY_PRIVATE_KEY);
    if (what & DETECT_BIT(DETECT_URL_PASSWORD))
        add(arg, url_mark, TRY_URL);
}
