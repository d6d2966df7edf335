/* What a credential begins with or looks like: schemes of Authorization, tokens of known issuers,
 * JWTs, private keys. */
#include "field_value.h"

#include <string.h>

enum { TOKEN_MIN = 20 }; /* shorter ones are words */

static const char *const schemes[] = {"bearer ", "basic ",   "token ",     "digest ",
                                      "apikey ", "api-key ", "negotiate ", "aws4-"};

/* What tokens of well-known issuers begin with. */
static const char *const beginnings[] = {
    "ghp_",   "gho_",   "ghu_",  "ghs_",     "ghr_",     "github_pat_", "glpat-",   "gldt-",
    "glrt-",  "glcbt-", "sk-",   "sk_live_", "sk_test_", "rk_live_",    "rk_test_", "xoxa-",
    "xoxb-",  "xoxp-",  "xoxr-", "xoxs-",    "xoxe",     "xapp-",       "AKIA",     "ASIA",
    "AIza",   "ya29.",  "hf_",   "npm_",     "pypi-",    "dop_v1_",     "hvs.",     "hvb.",
    "shpat_", "shpss_", "SG.",   "lin_api_", "ntn_",     "dapi",        "figd_",    "nvapi-",
    "gsk_",   "xai-",   "r8_",   "tskey-",   "sntrys_",  "sbp_",        "pul-",     "whsec_",
};

static bool is_text_of_token(struct slice v)
{
    for (size_t i = 0; i < v.n; i++)
        if (!ascii_is_alnum(v.p[i]) && !memchr("-._~+/=", v.p[i], 7))
            return false;
    return v.n >= TOKEN_MIN;
}

/* Three parts in base64url, the first one of a JSON object. */
static bool is_jwt(struct slice v)
{
    size_t dots = 0;
    for (size_t i = 0; i < v.n; i++)
        dots += v.p[i] == '.';
    return (dots == 2 || dots == 4) && slice_starts(v, SLICE("eyJ")) && is_text_of_token(v);
}

bool field_value_is_credential(struct slice value, bool jwt_may_be)
{
    struct slice v = slice_trim(value);
    for (size_t i = 0; i < ARRAY_LEN(schemes); i++)
        if (slice_istarts(v, slice_str(schemes[i])))
            return true;
    if (slice_find_slice(v, SLICE("-----BEGIN ")) >= 0 || (!jwt_may_be && is_jwt(v)))
        return true;
    for (size_t i = 0; i < ARRAY_LEN(beginnings); i++)
        if (slice_starts(v, slice_str(beginnings[i])) && is_text_of_token(v))
            return true;
    return false;
}
