/* The vault's process: its main, and the way to token endpoints that it cannot open by itself. */
#include "fetch.h"
#include "meter.h"
#include "proc.h"
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

int vault_main(void);

int vault_main(void)
{
    static struct fetch_means means;
    struct err err = {0};
    if (proc_enter(ROLE_VAULT, &err) < 0) {
        proc_log("%s", err.text);
        return 1;
    }
    json_set_alloc_funcs(malloc, wiping_free);
    struct token_fetcher fetcher = {.self = &means,
                                    .start = fetch_start,
                                    .cancel = fetch_cancel,
                                    .attach = attach,
                                    .roots = take_roots};
    struct event_base *base = event_base_new();
    bool ready = base && fetch_means_init(&means, base, "token", true) == 0;
    struct vault *v = ready ? vault_new(base, PROC_CONTROL_FD, true, &fetcher) : NULL;
    if (v)
        trace_report(vault_control(v));
    if (v && meter_report(base, vault_control(v)) == 0)
        event_base_dispatch(base);
    meter_report_end();
    vault_free(v);
    fetch_means_done(&means);
    if (base)
        event_base_free(base);
    return v ? 0 : 1;
}
