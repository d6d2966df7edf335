/* What TLS costs the server's side in processor time, in memory, without a network: a handshake
 * without a ticket, with one, and resumed by one; and reading a leaf, as OpenSSL does it and as
 * ca/leaf_reader.c does. In turn, medians and quartiles.
 *
 * usage: bench/handshake [ROUNDS] */
#include "io.h"
#include "leaf_reader.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { ROUNDS = 1000, ROUNDS_MAX = 100000, LINES = 5 };
enum what { NO_TICKET, TICKET, RESUMED, READ_PLAIN, READ_KNOWN };

static const char *const words[LINES] = {"handshake, no ticket", "handshake, one ticket",
                                         "handshake, resumed, one ticket", "a leaf read by OpenSSL",
                                         "a leaf read by leaf_reader"};

struct bench {
    EVP_PKEY *key;
    X509 *leaf;
    struct slice der;
    struct leaf_reader *reader;
    SSL_CTX *client, *without, *with;
    SSL_SESSION *kept;
};

static void need(bool good, const char *why)
{
    if (good)
        return;
    fprintf(stderr, "bench/handshake: %s\n", why);
    exit(2);
}

static double cpu_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static int on_session(SSL *ssl, SSL_SESSION *session)
{
    struct bench *b = SSL_get_app_data(ssl);
    SSL_SESSION_free(b->kept);
    b->kept = session;
    return 1;
}

static void prepare(struct bench *b)
{
    unsigned char *der = NULL;
    b->key = EVP_EC_gen("P-256");
    X509 *x = b->leaf = X509_new();
    need(b->key && x, "out of memory");
    X509_set_version(x, X509_VERSION_3);
    ASN1_INTEGER_set(X509_get_serialNumber(x), 1);
    X509_gmtime_adj(X509_getm_notBefore(x), 0);
    X509_gmtime_adj(X509_getm_notAfter(x), 3600);
    X509_NAME_add_entry_by_txt(X509_get_subject_name(x), "CN", MBSTRING_ASC,
                               (const unsigned char *)"origin.example", -1, -1, 0);
    X509_set_issuer_name(x, X509_get_subject_name(x));
    X509_set_pubkey(x, b->key);
    need(X509_sign(x, b->key, EVP_sha256()) > 0, "no certificate");
    int n = i2d_X509(x, &der);
    need(n > 0, "no certificate");
    b->der = (struct slice){(char *)der, (size_t)n};
    b->reader = leaf_reader_new(b->key);
    b->client = SSL_CTX_new(TLS_client_method());
    b->without = io_tls_server_ctx(false);
    b->with = io_tls_server_ctx(true);
    need(b->reader && b->client && b->without && b->with, "out of memory");
    SSL_CTX *const servers[] = {b->without, b->with};
    for (size_t i = 0; i < ARRAY_LEN(servers); i++)
        need(SSL_CTX_use_cert_and_key(servers[i], x, b->key, NULL, 1) == 1, "no certificate");
    SSL_CTX_set_num_tickets(b->with, 1);
    SSL_CTX_set_session_id_context(b->with, (const unsigned char *)"b", 1);
    SSL_CTX_set_session_cache_mode(b->client, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
    SSL_CTX_sess_set_new_cb(b->client, on_session);
}

/* -> the server's share, with what making and freeing its state takes */
static double handshake(struct bench *b, enum what what)
{
    BIO *left, *right;
    char byte;
    int c = 0, s = 0;
    double at = cpu_us();
    SSL *server = SSL_new(what == NO_TICKET ? b->without : b->with);
    double spent = cpu_us() - at;
    SSL *client = SSL_new(b->client);
    need(server && client && BIO_new_bio_pair(&left, 65536, &right, 65536) == 1, "out of memory");
    SSL_set_app_data(client, b);
    SSL_set_bio(client, left, left);
    SSL_set_bio(server, right, right);
    SSL_set_connect_state(client);
    SSL_set_accept_state(server);
    if (what == RESUMED)
        need(b->kept && SSL_set_session(client, b->kept) == 1, "no session");
    for (int i = 0; i < 10 && !(c == 1 && s == 1); i++) {
        c = SSL_do_handshake(client);
        at = cpu_us();
        s = SSL_do_handshake(server);
        spent += cpu_us() - at;
    }
    need(c == 1 && s == 1 && SSL_session_reused(server) == (what == RESUMED), "no handshake");
    SSL_read(client, &byte, 1); /* takes the ticket */
    SSL_set_shutdown(client, SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN);
    at = cpu_us();
    SSL_free(server);
    spent += cpu_us() - at;
    SSL_free(client);
    ERR_clear_error();
    return spent;
}

static double reading(struct bench *b, enum what what)
{
    const unsigned char *p = (const unsigned char *)b->der.p;
    double at = cpu_us();
    X509 *x = what == READ_KNOWN ? leaf_reader_read(b->reader, b->der)
                                 : d2i_X509(NULL, &p, (long)b->der.n);
    double spent = cpu_us() - at;
    need(x != NULL, "no certificate");
    X509_free(x);
    return spent;
}

static int order(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

int main(int argc, char **argv)
{
    struct bench b = {0};
    uint64_t rounds = ROUNDS;
    if (argc > 2 ||
        (argc == 2 && (slice_u64(slice_str(argv[1]), ROUNDS_MAX, &rounds) < 0 || rounds < 4)))
        need(false, "usage: bench/handshake [ROUNDS], 4 to 100000");
    prepare(&b);
    double *took[LINES];
    for (size_t i = 0; i < LINES; i++)
        need((took[i] = calloc(rounds, sizeof *took[i])) != NULL, "out of memory");
    for (size_t r = 0; r < rounds; r++)
        for (size_t i = 0; i < LINES; i++)
            took[i][r] = i < READ_PLAIN ? handshake(&b, (enum what)i) : reading(&b, (enum what)i);
    for (size_t i = 0; i < LINES; i++) {
        qsort(took[i], rounds, sizeof *took[i], order);
        printf("%-32s %7.1f us [%.1f-%.1f]\n", words[i], took[i][rounds / 2], took[i][rounds / 4],
               took[i][rounds - 1 - rounds / 4]);
        free(took[i]);
    }
    OPENSSL_free((void *)(uintptr_t)b.der.p);
    leaf_reader_free(b.reader);
    SSL_SESSION_free(b.kept);
    SSL_CTX_free(b.client);
    SSL_CTX_free(b.without);
    SSL_CTX_free(b.with);
    X509_free(b.leaf);
    EVP_PKEY_free(b.key);
    return 0;
}
