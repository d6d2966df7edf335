/* Keeps the issuers in a list, makes that of a sandbox when it is first asked for, and forgets it
 * with its last channel. At most 64 wait for their first channel. */
#include "signing.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { IDLE_MAX = 64 };

void signing_clear(struct signing *g)
{
    mint_issuer_clear(&g->issuer);
    OPENSSL_free(g->der);
    g->der = NULL;
}

int signing_encode(struct signing *g, struct err *err)
{
    int n = i2d_X509(g->issuer.cert, &g->der);
    if (n <= 0)
        return err_set(err, ERR_INTERNAL, "the CA certificate cannot be encoded");
    g->len = (size_t)n;
    return 0;
}

void signings_init(struct signings *all)
{
    TAILQ_INIT(&all->list);
}

static void forget(struct signings *all, struct signing *g)
{
    TAILQ_REMOVE(&all->list, g, link);
    signing_clear(g);
    free(g);
}

void signings_clear(struct signings *all)
{
    while (!TAILQ_EMPTY(&all->list))
        forget(all, TAILQ_FIRST(&all->list));
    OPENSSL_cleanse(all->secret, sizeof all->secret);
}

/* Room for one more that no channel has. */
static void count_idle(struct signings *all)
{
    struct signing *g;
    if (++all->idle <= IDLE_MAX)
        return;
    TAILQ_FOREACH(g, &all->list, link)
    if (g->channels == 0)
        break;
    if (g)
        forget(all, g);
    all->idle--;
}

static int make(const struct signings *all, struct signing *g, const char *sandbox, struct err *err)
{
    memcpy(g->sandbox, sandbox, strlen(sandbox) + 1);
    return sandbox_ca_make(all->secret, sandbox, time(NULL), &g->issuer, err) < 0
               ? -1
               : signing_encode(g, err);
}

struct signing *signing_of(struct signings *all, const char *sandbox, struct err *err)
{
    struct signing *g;
    TAILQ_FOREACH(g, &all->list, link)
    if (strcmp(g->sandbox, sandbox) == 0)
        return g;
    if (sandbox[0] == 0 || strlen(sandbox) >= sizeof g->sandbox) {
        err_set(err, ERR_PARSE, "no sandbox has such a name");
        return NULL;
    }
    g = calloc(1, sizeof *g);
    if (g == NULL) {
        err_set(err, ERR_INTERNAL, "out of memory");
        return NULL;
    }
    if (make(all, g, sandbox, err) < 0) {
        signing_clear(g);
        free(g);
        return NULL;
    }
    count_idle(all);
    TAILQ_INSERT_TAIL(&all->list, g, link);
    return g;
}

void signing_hold(struct signings *all, struct signing *g)
{
    if (g->sandbox[0] && g->channels == 0)
        all->idle--;
    g->channels++;
}

void signing_drop(struct signings *all, struct signing *g)
{
    if (--g->channels == 0 && g->sandbox[0])
        forget(all, g);
}
