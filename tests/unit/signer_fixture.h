/* A signer and its channels, for tests that are its parent and its gates. */
#ifndef DURWARD_SIGNER_FIXTURE_H
#define DURWARD_SIGNER_FIXTURE_H

#include "ca_files.h"
#include "ca_key.h"
#include "ipc.h"
#include "mint_names.h"
#include "mint_policy.h"
#include "pem.h"
#include "proc.h"
#include "sandbox_ca.h"
#include "signer.h"
#include "tap_main.h"
#include "wire.h"

#include <event2/event.h>
#include <fcntl.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char dir[] = "/tmp/durward-test-signer-XXXXXX";
static char ca_dir[sizeof dir + 8];
static struct event_base *base;
static int secret_fd = -1; /* as the parent keeps it for every signer */
static unsigned rate = 1000;
static const char *api = "";

static int setup(void)
{
    base = event_base_new();
    secret_fd = sandbox_ca_memfd(NULL);
    if (base == NULL || mkdtemp(dir) == NULL || secret_fd < 0)
        return -1;
    snprintf(ca_dir, sizeof ca_dir, "%s/ca", dir);
    return 0;
}

static EVP_PKEY *leaf_key; /* what leaves are asked for */
static unsigned char *leaf_spki;

static int teardown(void)
{
    static const char *const names[] = {"/ca/key.pem", "/ca/cert.pem", "/ca", ""};
    char path[128];
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        snprintf(path, sizeof path, "%s%s", dir, names[i]);
        remove(path);
    }
    event_base_free(base);
    close(secret_fd);
    OPENSSL_free(leaf_spki);
    EVP_PKEY_free(leaf_key);
    return 0;
}

static void on_readable(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    *(short *)arg = what;
}

/* Run the signer's loop until a message is here, 2 s at most. 1, 0 at the end, -1 on time-out. */
static int receive(int fd, struct msg *m)
{
    struct timeval tv = {2, 0};
    short what = 0;
    struct event *ev = event_new(base, fd, EV_READ, on_readable, &what);
    event_add(ev, &tv);
    while (what == 0)
        event_base_loop(base, EVLOOP_ONCE);
    event_free(ev);
    return what & EV_READ ? msg_recv(fd, m) : -1;
}

struct started {
    struct signer *signer;
    int control;
};

static struct started start(void)
{
    int fds[2];
    CU_ASSERT_EQUAL_FATAL(ipc_pair(fds, NULL), 0);
    struct started s = {.signer = signer_new(base, fds[0], false), .control = fds[1]};
    CU_ASSERT_PTR_NOT_NULL_FATAL(s.signer);
    return s;
}

static void stop(struct started s)
{
    signer_free(s.signer);
    close(s.control);
}

static void send_init(struct started s, const struct ca_files *f, bool create, uint32_t hours)
{
    struct msg m;
    msg_init(&m, W_INIT);
    msg_put_u8(&m, create);
    msg_put_u32(&m, hours);
    msg_put_u32(&m, rate);
    msg_put_str(&m, api);
    msg_put_fd_dup(&m, f->key_fd);
    msg_put_fd_dup(&m, f->cert_fd);
    msg_put_fd_dup(&m, secret_fd);
    CU_ASSERT_EQUAL(msg_send(s.control, &m), 0);
    msg_done(&m);
}

/* Start a signer on the CA in ca_dir, made if need be. */
static struct started start_ready(bool *created, char *pem, size_t size)
{
    struct ca_files f;
    struct err err = {0};
    struct msg m;
    struct started s = start();
    int r = ca_files_open(ca_dir, NULL, NULL, &f, &err);
    if (r < 0)
        fprintf(stderr, "# %s\n", err.text);
    CU_ASSERT_EQUAL_FATAL(r, 0);
    *created = f.create;
    send_init(s, &f, f.create, MINT_HOURS_MAX);
    CU_ASSERT_EQUAL_FATAL(receive(s.control, &m), 1);
    CU_ASSERT_EQUAL(m.type, W_READY);
    CU_ASSERT_EQUAL(msg_get_str(&m, pem, size), 0);
    CU_ASSERT_EQUAL(msg_end(&m), 0);
    msg_done(&m);
    ca_files_close(&f);
    return s;
}

/* A channel as the parent makes it; own: a name of its own, or NULL. */
static int channel_of(struct started s, uint32_t number, uint8_t kind, const char *sandbox,
                      const char *policy, uint8_t scope, const char *own)
{
    int fds[2];
    struct msg m, extra;
    CU_ASSERT_EQUAL_FATAL(ipc_pair(fds, NULL), 0);
    msg_init(&extra, 0);
    msg_put_u8(&extra, scope);
    msg_put_u32(&extra, own != NULL);
    if (own)
        msg_put_str(&extra, own);
    msg_init(&m, W_PEER);
    msg_put_u8(&m, kind);
    msg_put_u32(&m, number);
    msg_put_str(&m, sandbox);
    msg_put_str(&m, policy);
    msg_put_u32(&m, 1);
    msg_put_u32(&m, 0); /* wire */
    msg_put_bytes(&m, buf_data(&extra.body), buf_len(&extra.body));
    msg_put_fd(&m, fds[0]);
    msg_done(&extra);
    CU_ASSERT_EQUAL(msg_send(s.control, &m), 0);
    msg_done(&m);
    event_base_loop(base, EVLOOP_NONBLOCK);
    return fds[1];
}

static int gate_channel(struct started s, uint32_t number)
{
    return channel_of(s, number, ROLE_GATE, "sb-one", "", MINT_SANDBOX, NULL);
}

static void ask(int ch, uint32_t req, const char *host, struct slice spki)
{
    struct msg m;
    msg_init(&m, W_MINT);
    msg_put_u32(&m, req);
    msg_put_str(&m, host);
    msg_put_slice(&m, spki);
    CU_ASSERT_EQUAL(msg_send(ch, &m), 0);
    msg_done(&m);
}

static X509 *to_cert(struct slice der)
{
    const unsigned char *at = (const unsigned char *)der.p;
    return d2i_X509(NULL, &at, (long)der.n);
}

static struct slice spki_of(void)
{
    if (leaf_key == NULL)
        leaf_key = EVP_EC_gen("P-256");
    int n = leaf_spki ? MINT_SPKI_LEN : i2d_PUBKEY(leaf_key, &leaf_spki);
    return (struct slice){(char *)leaf_spki, (size_t)n};
}

#endif
