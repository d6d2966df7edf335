/* Reads and writes the text under an SSH signature, in its one form. */
#include "sshsig.h"

#include "ssh_wire.h"

#include <string.h>

static const struct slice magic = SLICE_INIT("SSHSIG");

bool sshsig_space_ok(struct slice space)
{
    if (space.n == 0 || space.n > SSHSIG_NAMESPACE_MAX)
        return false;
    for (size_t i = 0; i < space.n; i++)
        if (!ascii_is_alnum(space.p[i]) && (space.p[i] == 0 || !strchr("_.-@+", space.p[i])))
            return false;
    return true;
}

static bool is_whole(const struct sshsig *g)
{
    return sshsig_space_ok(g->space) &&
           ((slice_eq_str(g->algorithm, "sha256") && g->hash.n == 32) ||
            (slice_eq_str(g->algorithm, "sha512") && g->hash.n == 64));
}

int sshsig_read(struct slice s, struct sshsig *ret)
{
    struct slice reserved;
    if (!slice_starts(s, magic))
        return -1;
    s = (struct slice){s.p + magic.n, s.n - magic.n};
    if (ssh_wire_string(&s, &ret->space) < 0 || ssh_wire_string(&s, &reserved) < 0 ||
        reserved.n != 0 || ssh_wire_string(&s, &ret->algorithm) < 0 ||
        ssh_wire_string(&s, &ret->hash) < 0 || s.n != 0)
        return -1;
    return is_whole(ret) ? 0 : -1;
}

int sshsig_put(const struct sshsig *g, struct buf *to)
{
    if (!is_whole(g))
        return -1;
    return buf_append_slice(to, magic) < 0 || ssh_wire_put_string(to, g->space) < 0 ||
                   ssh_wire_put_string(to, SLICE("")) < 0 ||
                   ssh_wire_put_string(to, g->algorithm) < 0
               ? -1
               : ssh_wire_put_string(to, g->hash);
}
