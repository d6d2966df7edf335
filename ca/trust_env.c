/* Lists the variables by which runtimes and tools find their trusted certificates, with the form
 * that each wants, and fills them in (declared in trust.h). */
#include "trust.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum form {
    WHOLE, /* replaces what the client trusts: the bundle */
    EXTRA, /* added to what the client trusts: our CA alone */
    HASHED,
    JAVA,
    CURL,
};

/* AWS_CA_BUNDLE is none of them: AWS's libraries for Go stop at it where a program has an HTTP
 * client of its own, as rclone has. What they need they find by the others. */
static const struct {
    const char *name;
    enum form form;
} variables[] = {
    {"SSL_CERT_FILE", WHOLE}, /* OpenSSL, Go, Rust (rustls-native-certs), Ruby, uv */
    {"SSL_CERT_DIR", HASHED},
    {"REQUESTS_CA_BUNDLE", WHOLE}, /* Python requests, and all of botocore */
    {"CURL_CA_BUNDLE", CURL},
    {"NODE_EXTRA_CA_CERTS", EXTRA},
    {"GIT_SSL_CAINFO", WHOLE},
    {"GIT_PROXY_SSL_CAINFO", WHOLE}, /* a proxy in TLS; without it git has its built-in list */
    {"PIP_CERT", WHOLE},
    {"CARGO_HTTP_CAINFO", WHOLE},
    {"CARGO_HTTP_PROXY_CAINFO", WHOLE}, /* the same of cargo, from 1.89 */
    {"DENO_CERT", EXTRA},
    {"NIX_SSL_CERT_FILE", WHOLE},
    {"npm_config_cafile", WHOLE},
    {"YARN_HTTPS_CA_FILE_PATH", WHOLE},
    {"GRPC_DEFAULT_SSL_ROOTS_FILE_PATH", WHOLE},
    {"HTTPLIB2_CA_CERTS", WHOLE},
    {"CLOUDSDK_CORE_CUSTOM_CA_CERTS_FILE", WHOLE},
    {"BUNDLE_SSL_CA_CERT", WHOLE},   /* Ruby's bundler */
    {"PERL_LWP_SSL_CA_FILE", WHOLE}, /* libwww-perl */
    {"COMPOSER_CAFILE", WHOLE},      /* PHP's composer */
    {"HEX_CACERTS_PATH", WHOLE},     /* Elixir's hex */
    {"JULIA_SSL_CA_ROOTS_PATH", WHOLE},
    {"JAVA_TOOL_OPTIONS", JAVA},
};

/* The command curl verifies a proxy in TLS by the directory of certificates alone, and takes that
 * from SSL_CERT_DIR only where CURL_CA_BUNDLE is not set or empty: it is said empty then, because
 * whoever made the client's environment may have set it. */
static int format_curl(char *to, size_t size, const char *name, const char *dir, bool tls_proxy)
{
    return tls_proxy ? snprintf(to, size, "%s=", name)
                     : snprintf(to, size, "%s=%s/ca-certificates.crt", name, dir);
}

static int format(char *to, size_t size, size_t i, const char *dir, bool tls_proxy)
{
    const char *name = variables[i].name;
    switch (variables[i].form) {
    case CURL:
        return format_curl(to, size, name, dir, tls_proxy);
    case WHOLE:
        return snprintf(to, size, "%s=%s/ca-certificates.crt", name, dir);
    case EXTRA:
        return snprintf(to, size, "%s=%s/durward-ca.pem", name, dir);
    case HASHED:
        return snprintf(to, size, "%s=%s/certs", name, dir);
    case JAVA:
        return snprintf(to, size,
                        "%s=-Djavax.net.ssl.trustStore=%s/cacerts.p12 "
                        "-Djavax.net.ssl.trustStoreType=PKCS12 "
                        "-Djavax.net.ssl.trustStorePassword=changeit",
                        name, dir);
    }
    return -1;
}

char **trust_env(const char *dir, bool tls_proxy, struct err *err)
{
    if (dir[0] != '/' || strpbrk(dir, " \t\r\n") != NULL) {
        err_set(err, ERR_PARSE, "the trust directory must be an absolute path without white space");
        return NULL;
    }
    char **env = calloc(ARRAY_LEN(variables) + 1, sizeof *env);
    for (size_t i = 0; env && i < ARRAY_LEN(variables); i++) {
        int n = format(NULL, 0, i, dir, tls_proxy);
        char *one = n > 0 ? malloc((size_t)n + 1) : NULL;
        if (one == NULL) {
            trust_env_free(env);
            env = NULL;
        } else {
            format(one, (size_t)n + 1, i, dir, tls_proxy);
            env[i] = one;
        }
    }
    if (env == NULL)
        err_set(err, ERR_INTERNAL, "out of memory");
    return env;
}

void trust_env_free(char **env)
{
    for (size_t i = 0; env && env[i]; i++)
        free(env[i]);
    free(env);
}
