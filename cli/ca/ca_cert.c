/* Reads the CA's certificate and, during a rotation, the next one. Where there is no CA it starts a
 * signer of its own, has it make one, and waits until it has ended. */
#include "ca_cert.h"

#include "ca_files.h"
#include "ca_key.h"
#include "ipc.h"
#include "mint.h"
#include "proc.h"
#include "sandbox_ca.h"
#include "wire.h"

#include <errno.h>
#include <poll.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SIGNER_SECONDS = 20 };

static X509 *parse(struct slice pem, struct err *err)
{
    BIO *bio = BIO_new_mem_buf(pem.p, (int)pem.n);
    X509 *x = bio ? PEM_read_bio_X509(bio, NULL, NULL, NULL) : NULL;
    BIO_free(bio);
    ERR_clear_error();
    if (x == NULL)
        err_set(err, ERR_PARSE, "it holds no PEM certificate");
    return x;
}

static int read_cert(int fd, const char *path, X509 **ret, struct err *err)
{
    char text[CA_FILE_MAX];
    ssize_t n = pread(fd, text, sizeof text, 0);
    if (n < 0)
        return err_sys(err, "reading %s", path);
    *ret = parse((struct slice){text, (size_t)n}, err);
    return *ret ? 0 : err_wrap(err, "%s", path);
}

static int read_next(const struct ca_files *f, struct ca_cert *ret, struct err *err)
{
    if (f->next_fd < 0)
        return 0;
    ret->next_path = strdup(f->next_path);
    ret->since = f->since;
    ret->until = f->until;
    return ret->next_path ? read_cert(f->next_fd, f->next_path, &ret->next, err)
                          : err_set(err, ERR_INTERNAL, "out of memory");
}

/* The signer's W_READY or W_FAILED. */
static int wait_ready(int fd, struct ca_cert *ret, struct err *err)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    struct msg m;
    struct slice text;
    int n;
    do
        n = poll(&p, 1, SIGNER_SECONDS * 1000);
    while (n < 0 && errno == EINTR);
    if (n <= 0 || msg_recv(fd, &m) != 1)
        return err_set(err, ERR_UNREADY, "the signer ended without an answer");
    int r = -1;
    if (msg_get_slice(&m, CA_FILE_MAX, &text) < 0 || msg_end(&m) < 0)
        err_set(err, ERR_INTERNAL, "the signer's answer is malformed");
    else if (m.type != W_READY)
        err_set(err, ERR_UNREADY, "%.*s", SL(text));
    else
        r = (ret->cert = parse(text, err)) ? 0 : -1;
    msg_done(&m);
    return r;
}

/* Tell it to make the CA, and hear what became of it. */
static int instruct(int fd, int key_fd, int cert_fd, struct ca_cert *ret, struct err *err)
{
    struct msg m;
    int secret_fd =
        sandbox_ca_memfd(err); /* a signer wants one, though this one is asked for none */
    if (secret_fd < 0)
        return -1;
    msg_init(&m, W_INIT);
    msg_put_u8(&m, 1);
    msg_put_u32(&m, MINT_HOURS_MAX);
    msg_put_u32(&m, 1);
    msg_put_str(&m, "");
    msg_put_fd_dup(&m, key_fd);
    msg_put_fd_dup(&m, cert_fd);
    msg_put_fd(&m, secret_fd);
    int r =
        msg_send(fd, &m) == 0 ? wait_ready(fd, ret, err) : err_sys(err, "talking to the signer");
    msg_done(&m);
    ret->created = r == 0;
    return r;
}

/* A signer of our own, for as long as it takes. */
int ca_cert_make(int key_fd, int cert_fd, struct ca_cert *ret, struct err *err)
{
    int fds[2], status;
    pid_t pid;
    if (ipc_pair(fds, err) < 0)
        return -1;
    int r = proc_spawn_one(ROLE_SIGNER, fds[1], &pid, err);
    bool started = r == 0;
    close(fds[1]);
    if (started)
        r = instruct(fds[0], key_fd, cert_fd, ret, err);
    close(fds[0]); /* its end is the signer's end */
    while (started && waitpid(pid, &status, 0) < 0 && errno == EINTR)
        continue;
    return r < 0 ? err_wrap(err, "cannot make the CA") : 0;
}

int ca_cert_open(const struct config *c, struct ca_cert *ret, struct err *err)
{
    struct ca_files f;
    struct ca_cert got = {0};
    if (ca_files_open(c ? config_ca_dir(c) : NULL, c ? config_ca_cert(c) : NULL,
                      c ? config_ca_key(c) : NULL, &f, err) < 0)
        return -1;
    got.path = strdup(f.cert_path);
    int r = got.path == NULL ? err_set(err, ERR_INTERNAL, "out of memory")
            : f.create       ? ca_cert_make(f.key_fd, f.cert_fd, &got, err)
                             : read_cert(f.cert_fd, got.path, &got.cert, err);
    if (r == 0)
        r = read_next(&f, &got, err);
    ca_files_close(&f);
    if (r < 0) {
        ca_cert_clear(&got);
        return -1;
    }
    *ret = got;
    return 0;
}

void ca_cert_clear(struct ca_cert *c)
{
    X509_free(c->cert);
    X509_free(c->next);
    free(c->path);
    free(c->next_path);
    *c = (struct ca_cert){0};
}
