/* A root in each of the forms that a sandbox's bundles need it in, made by OpenSSL once, at the
 * signer. */
#include "trust_root.h"

#include "ca_key.h"
#include "ipc_msg.h"
#include "slice.h"
#include "trust.h"
#include "trust_sandbox.h"
#include "trust_store.h"

enum { NAME_MAX_HASHED = 32 };

int trust_root_put(X509 *root, struct buf *to, struct err *err)
{
    struct buf pem, part;
    struct slice rest, one;
    char name[NAME_MAX_HASHED];
    struct msg m; /* borrowed for its encoding */
    buf_init(&pem, TRUST_ROOT_MAX);
    buf_init(&part, TRUST_ROOT_MAX);
    int r = ca_key_cert_pem(root, &pem, err);
    rest = buf_slice(&pem);
    if (r == 0 && trust_hashed_next(&rest, &one, name, sizeof name, err) != 1)
        r = -1;
    if (r == 0)
        r = trust_store_safe(buf_slice(&pem), 0, &part, err);
    if (r == 0) {
        msg_init(&m, 0);
        msg_put_slice(&m, buf_slice(&pem));
        msg_put_str(&m, name);
        msg_put_slice(&m, buf_slice(&part));
        if (buf_append(to, buf_data(&m.body), buf_len(&m.body)) < 0)
            r = err_set(err, ERR_LIMIT, "the certificate of a sandbox's CA is too large");
        msg_done(&m);
    }
    buf_free(&pem);
    buf_free(&part);
    return r;
}
