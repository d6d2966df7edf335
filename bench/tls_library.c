/* What a TLS library costs, by the functions that OpenSSL and those with its API have, in memory
 * and without a network: processor time of each side of a handshake, and of 1 KiB that is read and
 * answered, and what an idle connection keeps. bench/tls_libraries compiles it for two of them and
 * runs both in turn.
 *
 * usage: tls_library ROUNDS */
#include <malloc.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { KIB = 1024, IDLE = 1000, MESSAGES = 200, PIPE = 65536 };

struct pair {
    SSL *client, *server;
    double client_us, server_us;
};

struct sides {
    EVP_PKEY *key;
    X509 *leaf;
    SSL_CTX *client, *server;
};

static void need(int good, const char *why)
{
    if (good)
        return;
    fprintf(stderr, "tls_library: %s\n", why);
    ERR_print_errors_fp(stderr);
    exit(2);
}

static double cpu_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

/* A key of P-256 and the certificate that it signs for itself. */
static void make_leaf(struct sides *s)
{
    EVP_PKEY_CTX *of = EVP_PKEY_CTX_new_id(EVP_PKEY_EC, NULL);
    need(of && EVP_PKEY_keygen_init(of) == 1 &&
             EVP_PKEY_CTX_set_ec_paramgen_curve_nid(of, NID_X9_62_prime256v1) == 1 &&
             EVP_PKEY_keygen(of, &s->key) == 1,
         "no key");
    EVP_PKEY_CTX_free(of);
    X509 *x = s->leaf = X509_new();
    need(x != NULL, "out of memory");
    X509_set_version(x, 2);
    ASN1_INTEGER_set(X509_get_serialNumber(x), 1);
    X509_gmtime_adj(X509_getm_notBefore(x), 0);
    X509_gmtime_adj(X509_getm_notAfter(x), 3600);
    X509_NAME_add_entry_by_txt(X509_get_subject_name(x), "CN", MBSTRING_ASC,
                               (const unsigned char *)"origin.example", -1, -1, 0);
    X509_set_issuer_name(x, X509_get_subject_name(x));
    X509_set_pubkey(x, s->key);
    need(X509_sign(x, s->key, EVP_sha256()) > 0, "no certificate");
}

static void prepare(struct sides *s)
{
    make_leaf(s);
    s->client = SSL_CTX_new(TLS_client_method());
    s->server = SSL_CTX_new(TLS_server_method());
    need(s->client && s->server, "out of memory");
    need(SSL_CTX_use_certificate(s->server, s->leaf) == 1 &&
             SSL_CTX_use_PrivateKey(s->server, s->key) == 1,
         "no certificate");
    SSL_CTX_set_num_tickets(s->server, 0);
    SSL_CTX_set_session_cache_mode(s->server, SSL_SESS_CACHE_OFF);
    X509_STORE_add_cert(SSL_CTX_get_cert_store(s->client), s->leaf);
    SSL_CTX_set_verify(s->client, SSL_VERIFY_PEER, NULL);
    SSL_CTX *const both[] = {s->client, s->server};
    for (int i = 0; i < 2; i++) {
        SSL_CTX_set_min_proto_version(both[i], TLS1_3_VERSION);
        SSL_CTX_set_mode(both[i], SSL_MODE_RELEASE_BUFFERS);
        SSL_CTX_set1_groups_list(both[i], "X25519");
    }
}

static struct pair connected(const struct sides *s)
{
    struct pair p = {0};
    BIO *left, *right;
    int c = 0, v = 0;
    double at = cpu_us();
    p.server = SSL_new(s->server);
    p.server_us = cpu_us() - at;
    at = cpu_us();
    p.client = SSL_new(s->client);
    p.client_us = cpu_us() - at;
    need(p.server && p.client && BIO_new_bio_pair(&left, PIPE, &right, PIPE) == 1, "out of memory");
    SSL_set_bio(p.client, left, left);
    SSL_set_bio(p.server, right, right);
    SSL_set_connect_state(p.client);
    SSL_set_accept_state(p.server);
    for (int i = 0; i < 10 && !(c == 1 && v == 1); i++) {
        at = cpu_us();
        c = SSL_do_handshake(p.client);
        p.client_us += cpu_us() - at;
        at = cpu_us();
        v = SSL_do_handshake(p.server);
        p.server_us += cpu_us() - at;
    }
    need(c == 1 && v == 1, "no handshake");
    ERR_clear_error();
    return p;
}

static void freed(struct pair *p)
{
    SSL_free(p->client);
    SSL_free(p->server);
}

/* -> processor time of the server's side for 1 KiB that it reads and 1 KiB that it answers */
static double message(const struct pair *p)
{
    unsigned char got[KIB], said[KIB];
    memset(said, 'x', sizeof said);
    need(SSL_write(p->client, said, KIB) == KIB, "nothing was written");
    double at = cpu_us();
    int n = SSL_read(p->server, got, KIB), m = SSL_write(p->server, said, KIB);
    double spent = cpu_us() - at;
    need(n == KIB && m == KIB && SSL_read(p->client, got, KIB) == KIB, "nothing was read");
    return spent;
}

static int order(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static double median(double *of, size_t n)
{
    qsort(of, n, sizeof *of, order);
    return of[n / 2];
}

/* -> bytes that the server's side of an idle connection keeps, without its end of the pipe */
static double idle(const struct sides *s)
{
    static struct pair kept[IDLE];
    struct mallinfo2 before = mallinfo2();
    for (int i = 0; i < IDLE; i++)
        kept[i] = connected(s);
    struct mallinfo2 after = mallinfo2();
    for (int i = 0; i < IDLE; i++)
        SSL_free(kept[i].client);
    struct mallinfo2 servers = mallinfo2();
    for (int i = 0; i < IDLE; i++)
        SSL_free(kept[i].server);
    need(after.uordblks > before.uordblks, "no memory was counted");
    double of_servers =
        (double)(servers.uordblks + servers.hblkhd) - (double)(before.uordblks + before.hblkhd);
    return of_servers / IDLE - PIPE;
}

int main(int argc, char **argv)
{
    struct sides s = {0};
    size_t rounds = argc == 2 ? strtoul(argv[1], NULL, 10) : 0;
    need(rounds >= 10 && rounds <= 100000, "usage: tls_library ROUNDS, 10 to 100000");
    prepare(&s);
    double *client = calloc(rounds, sizeof *client), *server = calloc(rounds, sizeof *server);
    double records[MESSAGES];
    need(client && server, "out of memory");
    for (size_t i = 0; i < rounds; i++) {
        struct pair p = connected(&s);
        client[i] = p.client_us;
        server[i] = p.server_us;
        freed(&p);
    }
    struct pair p = connected(&s);
    for (size_t i = 0; i < MESSAGES; i++)
        records[i] = message(&p);
    freed(&p);
    printf("%s\n", OpenSSL_version(OPENSSL_VERSION));
    printf("%.1f %.1f %.2f %.0f\n", median(server, rounds), median(client, rounds),
           median(records, MESSAGES), idle(&s));
    free(client);
    free(server);
    SSL_CTX_free(s.client);
    SSL_CTX_free(s.server);
    X509_free(s.leaf);
    EVP_PKEY_free(s.key);
    return 0;
}
