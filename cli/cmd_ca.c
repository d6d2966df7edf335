/* durward ca show|export: the certificate authority that sandboxes trust. */
#include "ca_cert.h"
#include "commands.h"
#include "out.h"
#include "settings.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/asn1.h>
#include <openssl/pem.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { OPT_PEM = 256, OPT_DER };

static int run_show(int argc, char **argv);
static int run_export(int argc, char **argv);
static int run_rotate(int argc, char **argv);

static const struct arg_option show_options[] = {
    {'c', "config", "FILE", "the configuration (default: the first that exists)"},
    {0},
};

static const struct arg_option export_options[] = {
    {'c', "config", "FILE", "the configuration (default: the first that exists)"},
    {OPT_PEM, "pem", NULL, "in PEM (the default)"},
    {OPT_DER, "der", NULL, "in DER"},
    {0},
};

static const struct arg_option no_options[] = {{0}};

const struct command ca_verbs[] = {
    {"ca show", "[-c FILE] [--json]", "Show the certificate authority; makes it if there is none.",
     show_options, NULL, run_show},
    {"ca export", "[-c FILE] [--pem|--der] [FILE]",
     "Write the certificate (never the key) to FILE or to standard output.", export_options,
     "For clients outside of a local sandbox that are to trust the proxy.\n", run_export},
    {"ca rotate", "", "Replace the certificate authority.", no_options, NULL, run_rotate},
    {0},
};

/* The configuration where there is one; a missing one is no error unless -c names it. */
static int load_config(const char *file, struct config **ret, struct err *err)
{
    char *found = file ? NULL : config_find(NULL);
    *ret = NULL;
    if (file == NULL && found == NULL)
        return 0;
    free(found);
    *ret = settings_load(file, err);
    return *ret ? 0 : -1;
}

static int open_cert(const char *file, struct ca_cert *ret)
{
    struct err err = {0};
    struct config *c;
    int r = load_config(file, &c, &err);
    if (r == 0)
        r = ca_cert_open(c, ret, &err);
    config_unref(c);
    if (r < 0)
        out_error("%s", err.text);
    else if (ret->created)
        fprintf(stderr, "durward: made a certificate authority: %s\n", ret->path);
    return r;
}

static void fingerprint(X509 *x, char to[3 * 32])
{
    unsigned char sum[EVP_MAX_MD_SIZE];
    unsigned n = 0;
    to[0] = 0;
    if (X509_digest(x, EVP_sha256(), sum, &n) != 1 || n != 32)
        return;
    for (size_t i = 0; i < n; i++)
        snprintf(to + 3 * i, i + 1 < n ? 4 : 3, i + 1 < n ? "%02X:" : "%02X", sum[i]);
}

/* "2026-11-21T08:00:00Z" */
static void time_text(const ASN1_TIME *t, char *to, size_t size)
{
    struct tm tm;
    if (ASN1_TIME_to_tm(t, &tm) != 1 || strftime(to, size, "%Y-%m-%dT%H:%M:%SZ", &tm) == 0)
        snprintf(to, size, "unknown");
}

static void subject_text(X509 *x, char *to, size_t size)
{
    BIO *bio = BIO_new(BIO_s_mem());
    char *p = NULL, text[512];
    long n = 0;
    if (bio && X509_NAME_print_ex(bio, X509_get_subject_name(x), 0, XN_FLAG_RFC2253) >= 0)
        n = BIO_get_mem_data(bio, &p);
    snprintf(text, sizeof text, "%.*s", (int)n, p ? p : "");
    out_clean(text, to, size);
    BIO_free(bio);
}

static int show(const struct ca_cert *ca, bool json)
{
    char sum[3 * 32], from[32], to[32], subject[512];
    fingerprint(ca->cert, sum);
    time_text(X509_get0_notBefore(ca->cert), from, sizeof from);
    time_text(X509_get0_notAfter(ca->cert), to, sizeof to);
    subject_text(ca->cert, subject, sizeof subject);
    if (json)
        return out_json(json_pack("{s:s, s:s, s:s, s:s, s:s}", "subject", subject,
                                  "fingerprint_sha256", sum, "not_before", from, "not_after", to,
                                  "path", ca->path));
    printf("subject      %s\nfingerprint  sha256 %s\nvalid        %s to %s\ncertificate  %s\n",
           subject, sum, from, to, ca->path);
    return out_flush();
}

static int run_show(int argc, char **argv)
{
    struct args a = {.cmd = &ca_verbs[0], .argc = argc, .argv = argv};
    const char *file = NULL;
    struct ca_cert ca = {0};
    int id;
    while ((id = args_next(&a)) >= 0)
        file = a.value;
    if (id == ARGS_STOP)
        return a.exit_code;
    if (a.next < argc)
        return args_usage(a.cmd, "unexpected argument %s", argv[a.next]);
    int r = open_cert(file, &ca);
    if (r == 0)
        r = show(&ca, a.json);
    ca_cert_clear(&ca);
    return r < 0 ? EXIT_NO : EXIT_OK;
}

static int put_cert(FILE *f, X509 *x, bool der)
{
    return (der ? i2d_X509_fp(f, x) : PEM_write_X509(f, x)) == 1 ? 0 : -1;
}

static int export_to(const char *path, X509 *x, bool der)
{
    if (path == NULL || strcmp(path, "-") == 0) {
        if (put_cert(stdout, x, der) == 0)
            return out_flush();
        out_error("cannot write the certificate to standard output");
        return -1;
    }
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    FILE *f = fd < 0 ? NULL : fdopen(fd, "w");
    int r = f ? put_cert(f, x, der) : -1;
    if (f == NULL && fd >= 0)
        close(fd);
    if (f && fclose(f) != 0)
        r = -1;
    if (r < 0)
        out_error("cannot write %s: %s", path, strerror(errno));
    return r;
}

static int run_export(int argc, char **argv)
{
    struct args a = {.cmd = &ca_verbs[1], .argc = argc, .argv = argv};
    const char *file = NULL;
    bool der = false, pem = false;
    struct ca_cert ca = {0};
    int id;
    while ((id = args_next(&a)) >= 0) {
        if (id == 'c')
            file = a.value;
        der = der || id == OPT_DER;
        pem = pem || id == OPT_PEM;
    }
    if (id == ARGS_STOP)
        return a.exit_code;
    if (der && pem)
        return args_usage(a.cmd, "either --pem or --der");
    if (a.next + 1 < argc)
        return args_usage(a.cmd, "unexpected argument %s", argv[a.next + 1]);
    if (a.json)
        return args_usage(a.cmd, "a certificate is not JSON; see 'durward ca show --json'");
    int r = open_cert(file, &ca);
    if (r == 0)
        r = export_to(a.next < argc ? argv[a.next] : NULL, ca.cert, der);
    ca_cert_clear(&ca);
    return r < 0 ? EXIT_NO : EXIT_OK;
}

static int run_rotate(int argc, char **argv)
{
    struct args a = {.cmd = &ca_verbs[2], .argc = argc, .argv = argv};
    if (args_next(&a) == ARGS_STOP)
        return a.exit_code;
    out_error("'ca rotate' is not built yet (planned); until then end every sandbox, stop the "
              "daemon, and remove the certificate that 'durward ca show' names and the key beside "
              "it: the next start makes new ones");
    return EXIT_USAGE;
}

int cmd_ca(int argc, char **argv)
{
    static const struct command self = {
        "ca",
        "show|export [OPTION...]",
        "Show or export the certificate authority.",
        no_options,
        "'durward ca show --help' and 'durward ca export --help' tell more.\n",
        cmd_ca};
    struct args a = {.cmd = &self, .argc = argc, .argv = argv, .in_order = true};
    for (size_t i = 0; argc > 1 && ca_verbs[i].name; i++)
        if (strcmp(argv[1], strchr(ca_verbs[i].name, ' ') + 1) == 0)
            return ca_verbs[i].run(argc - 1, argv + 1);
    if (args_next(&a) == ARGS_STOP)
        return a.exit_code;
    if (a.next == argc)
        return args_usage(&self, "show or export?");
    return args_usage(&self, "there is no 'ca %s'", argv[a.next]);
}
