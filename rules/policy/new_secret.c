/* Holds a table of methods, hosts and paths whose replies usually bring a secret, and finds the
 * first row that fits a request. */
#include "new_secret.h"

/* Each as long as it is given: the host begins, the path begins and ends so. Paths are compared
 * without regard to case: this only warns. */
static const struct place {
    const char *what, *method, *host, *begins, *ends;
} places[] = {
    {"a GitHub installation token", "POST", "", "/app/installations/", "/access_tokens"},
    {"a token of a GitHub runner", "POST", "", "", "/registration-token"},
    {"a token of a GitHub runner", "POST", "", "", "/remove-token"},
    {"a header of git-lfs with a credential", "POST", "", "", "/info/lfs/objects/batch"},
    {"AWS session keys", "", "sts.", "", ""},
    {"a registry's password", "", "api.ecr.", "", ""},
    {"a Google token", "", "iamcredentials.googleapis.com", "", ""},
    {"a Google token", "", "", "", ":generateaccesstoken"},
    {"a device code", "POST", "", "", "/device/code"},
    {"a device code", "POST", "", "", "/devicecode"},
    {"a device code", "POST", "", "", "/device_authorization"},
    {"a registry's token", "GET", "", "", "/token"},
    {"an OAuth token", "POST", "", "", "/token"},
    {"an OAuth token", "POST", "", "", "/access_token"},
    {"a token", "POST", "", "", "/access_tokens"},
    {"a token", "POST", "", "", "/personal_access_tokens"},
    {"a token", "POST", "", "", "/tokens"},
    {"a Vault token", "", "", "/v1/auth/", "/login"},
    {"a Vault token", "POST", "", "/v1/auth/token/create", ""},
    {"an API key", "POST", "", "", "/api_keys"},
    {"an API key", "POST", "", "", "/api-keys"},
    {"an API key", "POST", "", "", "/api/keys"},
    {"a session's secret", "POST", "", "", "/login"},
    {"a session's secret", "POST", "", "", "/sessions"},
};

static bool ends(struct slice s, struct slice tail)
{
    return s.n >= tail.n && slice_ieq((struct slice){s.p + s.n - tail.n, tail.n}, tail);
}

const char *new_secret_in(struct slice method, struct slice host, struct slice path)
{
    if (path.n > 1 && path.p[path.n - 1] == '/')
        path.n--;
    for (size_t i = 0; i < ARRAY_LEN(places); i++) {
        const struct place *p = &places[i];
        if ((p->method[0] == 0 || slice_eq_str(method, p->method)) &&
            slice_istarts(host, slice_str(p->host)) && slice_istarts(path, slice_str(p->begins)) &&
            ends(path, slice_str(p->ends)))
            return p->what;
    }
    return NULL;
}
