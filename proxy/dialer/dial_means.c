/* What the dialer is told at its start, before it is confined. */
#include "bridge.h"
#include "dial.h"
#include "ipc_msg.h"
#include "origin.h"
#include "resolve.h"
#include "roots.h"
#include "secret_client.h"
#include "upstream_map.h"
#include "upstream_proxy.h"

int dial_means_get(struct dial_means *means, struct msg *m, struct err *err)
{
    uint32_t n, port;
    char host[HOST_TEXT_MAX + 1], address[ADDRESS_TEXT_MAX];
    (void)msg_get_u32(m, &n);
    for (uint32_t i = 0; i < n && !m->bad; i++) {
        (void)msg_get_str(m, host, sizeof host);
        (void)msg_get_u32(m, &port);
        (void)msg_get_str(m, address, sizeof address);
        if (!m->bad &&
            (port > 65535 || upstream_map_add(means->map, host, (uint16_t)port, address, err) < 0))
            return err_wrap(err, "dialer");
    }
    (void)msg_get_u32(m, &n);
    for (uint32_t i = 0; i < n && !m->bad; i++) {
        (void)msg_get_str(m, address, sizeof address);
        if (!m->bad && address_guard_add(means->guard, slice_str(address), err) < 0)
            return err_wrap(err, "dialer");
    }
    (void)msg_get_u32(m, &n);
    for (uint32_t i = 0; i < n && !m->bad; i++) {
        (void)msg_get_u32(m, &port);
        if (!m->bad && (port > 65535 || address_guard_port(means->guard, (uint16_t)port, err) < 0))
            return err_wrap(err, "dialer");
    }
    return upstream_proxy_get(m, &means->proxy, err);
}

int dial_means_proxy(struct dial_means *means, int roots_fd, struct err *err)
{
    struct upstream_proxy *p = means->proxy;
    if (p == NULL)
        return 0;
    means->secrets = secret_client_new(means->base);
    means->bridges = bridges_new(means->base);
    if (!means->secrets || !means->bridges)
        return err_set(err, ERR_INTERNAL, "out of memory");
    if (p->at.scheme != SCHEME_HTTPS)
        return 0;
    p->roots = roots_load(roots_fd, err);
    if (p->roots == NULL)
        return -1;
    p->tls = io_tls_client_ctx();
    if (p->tls)
        SSL_CTX_set1_cert_store(p->tls, roots_store(p->roots));
    return p->tls ? 0 : err_set(err, ERR_INTERNAL, "out of memory");
}

void dial_means_free(struct dial_means *means)
{
    bridges_free(means->bridges);
    secret_client_free(means->secrets);
    resolver_free(means->resolver);
    address_guard_free(means->guard);
    upstream_map_free(means->map);
    upstream_proxy_free(means->proxy);
}
