/* The vault's process: its main, and the way to token endpoints that it cannot open by itself. */
#include "fetch.h"
#include "crypto_text.h"
#include "role_run.h"
#include "vault.h"

#include <event2/event.h>
#include <jansson.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

static void attach(void *self, int dialer_fd, uint32_t channel)
{
    dial_client_attach(((struct fetch_means *)self)->dial, dialer_fd, channel);
}

static int take_roots(void *self, int roots_fd, struct slice limits)
{
    struct fetch_means *m = self;
    struct err err = {0};
    bool whole = limits.n == sizeof m->limits;
    if (fetch_means_roots(m, roots_fd, limits, &err) < 0 && whole)
        proc_log("token endpoints cannot be verified: %s", err.text);
    return whole ? 0 : -1;
}

/* Answers of endpoints are parsed into memory that is cleared when it is given back. */
static void wiping_free(void *p)
{
    if (p)
        explicit_bzero(p, malloc_usable_size(p));
    free(p);
}

struct process {
    struct fetch_means means;
    struct token_fetcher fetcher;
    struct vault *vault;
};

static struct ipc *vault_open(void *self, struct event_base *base, int control_fd,
                              struct err *err UNUSED)
{
    struct process *r = self;
    json_set_alloc_funcs(malloc, wiping_free);
    r->fetcher = (struct token_fetcher){.self = &r->means,
                                        .start = fetch_start,
                                        .cancel = fetch_cancel,
                                        .attach = attach,
                                        .roots = take_roots};
    if (fetch_means_init(&r->means, base, "token", true) == 0)
        r->vault = vault_new(base, control_fd, true, &r->fetcher);
    return r->vault ? vault_control(r->vault) : NULL;
}

static int vault_leave(void *self, struct event_base *base)
{
    struct process *r = self;
    vault_free(r->vault);
    fetch_means_done(&r->means);
    event_base_free(base);
    return 0;
}

int vault_main(void);

int vault_main(void)
{
    static const struct role_life life = {.role = ROLE_VAULT,
                                          .first = crypto_text_later,
                                          .counts = true,
                                          .traces = true,
                                          .open = vault_open,
                                          .leave = vault_leave};
    static struct process process;
    return role_run(&life, &process);
}
