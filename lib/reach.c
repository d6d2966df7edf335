/* Resolves, connects with a time limit, and holds the other end's certificate against the host that
 * was asked for. */
#include "reach.h"

#include <errno.h>
#include <netdb.h>
#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

int reach_tcp(const struct authority *at, unsigned seconds, const char *who, struct err *err)
{
    struct addrinfo want = {.ai_socktype = SOCK_STREAM}, *list, *i;
    struct timeval limit = {.tv_sec = (time_t)seconds};
    char port[8];
    int fd = -1, why = 0;
    snprintf(port, sizeof port, "%u", at->port);
    int r = getaddrinfo(at->host, port, &want, &list);
    if (r != 0)
        return err_set(err, ERR_UNREADY, "%s: %s", at->host, gai_strerror(r));
    for (i = list; i && fd < 0; i = i->ai_next) {
        fd = socket(i->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (fd < 0)
            continue;
        setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
        setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
        if (connect(fd, i->ai_addr, i->ai_addrlen) == 0)
            break;
        why = errno;
        close(fd);
        fd = -1;
    }
    freeaddrinfo(list);
    if (fd < 0)
        err_set(err, ERR_UNREADY, "no %s answers at %s:%u: %s", who, at->host, (unsigned)at->port,
                strerror(why));
    return fd;
}

enum reach_tls reach_tls(SSL *ssl, int fd, const struct authority *at)
{
    SSL_set_verify(ssl, SSL_VERIFY_PEER, NULL);
    int ok = at->kind == HOST_NAME
                 ? SSL_set1_host(ssl, at->host) == 1 && SSL_set_tlsext_host_name(ssl, at->host) == 1
                 : X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), at->host) == 1;
    ERR_clear_error();
    if (ok && SSL_set_fd(ssl, fd) == 1 && SSL_connect(ssl) == 1)
        return REACH_TLS_GOOD;
    return SSL_get_verify_result(ssl) == X509_V_OK ? REACH_TLS_NONE : REACH_TLS_UNTRUSTED;
}
