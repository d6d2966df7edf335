/* durward ca show|export|rotate: the certificate authority that sandboxes trust. */
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

static const struct arg_option show_options[] = {
    ARG_CONFIG,
    {0},
};

static const struct arg_option export_options[] = {
    ARG_CONFIG,
    {OPT_PEM, "pem", NULL, "in PEM (the default)"},
    {OPT_DER, "der", NULL, "in DER"},
    {0},
};

const struct command ca_verbs[] = {
    {"ca show", "[-c FILE] [--json]", "Show the certificate authority; makes it if there is none.",
     show_options,
     "During a rotation it tells both, with their times.\n"
     "Exit status 0, 1 when it cannot be read or made, 2 for a usage error.\n\n"
     "  durward ca show --json\n",
     run_show},
    {"ca export", "[-c FILE] [--pem|--der] [FILE]",
     "Write the certificate (never the key) to FILE or to standard output.", export_options,
     "For clients outside of a local sandbox that are to trust the proxy. During a rotation it is\n"
     "both certificates, in PEM only.\n"
     "Exit status 0, 1 when it cannot be read or written, 2 for a usage error.\n\n"
     "  durward ca export durward-ca.pem\n",
     run_export},
    {"ca rotate", "[-c FILE] [--overlap TIME|--now]",
     "Replace the certificate authority, with a time in which both are trusted.", ca_rotate_options,
     "During the overlap (7d unless given) the old one goes on signing while 'ca export', new and\n"
     "running sandboxes and new identities hold both. At its end the new one signs and the old\n"
     "key is destroyed. --now does without, or ends an overlap under way at once.\n"
     "Exit status 0, 1 when it is refused (a rotation is under way, the CA is files of your own),\n"
     "2 for a usage error.\n\n"
     "  durward ca rotate --overlap 14d\n",
     ca_rotate},
    {0},
};

static int open_cert(const char *file, struct ca_cert *ret)
{
    struct err err = {0};
    struct config *c;
    int r = settings_load_if_any(file, &c, &err);
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

static json_t *cert_json(X509 *x, const char *path)
{
    char sum[3 * 32], from[32], to[32], subject[512];
    fingerprint(x, sum);
    time_text(X509_get0_notBefore(x), from, sizeof from);
    time_text(X509_get0_notAfter(x), to, sizeof to);
    subject_text(x, subject, sizeof subject);
    return json_pack("{s:s, s:s, s:s, s:s, s:s}", "subject", subject, "fingerprint_sha256", sum,
                     "not_before", from, "not_after", to, "path", path);
}

static const char *field(const json_t *cert, const char *name)
{
    return json_string_value(json_object_get(cert, name));
}

static void print_cert(const json_t *cert)
{
    printf("subject      %s\nfingerprint  sha256 %s\nvalid        %s to %s\ncertificate  %s\n",
           field(cert, "subject"), field(cert, "fingerprint_sha256"), field(cert, "not_before"),
           field(cert, "not_after"), field(cert, "path"));
}

static void unix_text(int64_t at, char to[32])
{
    ASN1_TIME *t = ASN1_TIME_set(NULL, (time_t)at);
    time_text(t, to, 32);
    ASN1_TIME_free(t);
}

static int show(const struct ca_cert *ca, bool json)
{
    char since[32], until[32];
    json_t *j = cert_json(ca->cert, ca->path), *next = NULL;
    if (j && ca->next) {
        unix_text(ca->since, since);
        unix_text(ca->until, until);
        next = cert_json(ca->next, ca->next_path);
        json_object_set_new(j, "signs_until", json_string(until));
        json_object_set_new(next, "trusted_since", json_string(since));
        json_object_set_new(next, "signs_from", json_string(until));
        json_object_set_new(j, "next", next);
    }
    if (json || j == NULL)
        return out_json(j);
    print_cert(j);
    if (next) {
        printf("signs until  %s\n\nnext (trusted since %s, signs from %s)\n", until, since, until);
        print_cert(next);
    }
    json_decref(j);
    return out_flush();
}

int ca_show(const char *file, bool json)
{
    struct ca_cert ca = {0};
    int r = open_cert(file, &ca);
    if (r == 0)
        r = show(&ca, json);
    ca_cert_clear(&ca);
    return r < 0 ? EXIT_NO : EXIT_OK;
}

static int run_show(int argc, char **argv)
{
    struct args a = {.cmd = &ca_verbs[0], .argc = argc, .argv = argv};
    const char *file = NULL;
    int code = args_one(&a, &file, 0, 0, "");
    return code == ARGS_END ? ca_show(file, a.json) : code;
}

static int put_cert(FILE *f, const struct ca_cert *ca, bool der)
{
    if (der)
        return i2d_X509_fp(f, ca->cert) == 1 ? 0 : -1;
    return PEM_write_X509(f, ca->cert) == 1 && (!ca->next || PEM_write_X509(f, ca->next) == 1) ? 0
                                                                                               : -1;
}

static int export_to(const char *path, const struct ca_cert *x, bool der)
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
    if (r == 0 && der && ca.next) {
        out_error("a rotation is under way, and two certificates do not fit into DER: use --pem");
        r = -1;
    }
    if (r == 0)
        r = export_to(a.next < argc ? argv[a.next] : NULL, &ca, der);
    ca_cert_clear(&ca);
    return r < 0 ? EXIT_NO : EXIT_OK;
}

const struct command command_ca = {
    .name = "ca",
    .usage = "show|export|rotate [OPTION...]",
    .summary = "Show, export or replace the certificate authority.",
    .more = "Exit status 0 when it is done, 1 when it failed, 2 for a usage error.\n",
    .verbs = ca_verbs,
};
