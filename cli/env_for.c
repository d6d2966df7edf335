/* Holds the table of hosted sandboxes with the lock that each offers, and prints that lock with the
 * proxy's host and port filled in. */
#include "env_for.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "compiler.h"

/* Of a lock's text: %H the host, %P the port, %N the host as a range of one address. */
struct env_for {
    const char *name, *title, *lock;
    enum env_format format; /* ENV_NO_FORMAT: for a shell */
};

#define INTERNAL                                                                                  \
    "a network that leads nowhere else (docker network create --internal NAME), whose gateway's " \
    "address the listener is at (now %H:%P)"

static const struct env_for all[] = {
    {"docker", "Docker: docker run --env-file FILE -v FROM:TO:ro", INTERNAL, ENV_DOCKER},
    {"compose", "Docker Compose", INTERNAL, ENV_COMPOSE},
    {"devcontainer", "a development container", INTERNAL, ENV_DEVCONTAINER},
    {"modal", "Modal", "Sandbox.create(..., outbound_cidr_allowlist=[\"%N\"])"},
    {"daytona", "Daytona",
     "create(CreateSandboxFromSnapshotParams(..., network_allow_list=\"%N\"))"},
    {"runloop", "Runloop", "a network policy of its own with %H:%P alone, no gateways, no mirrors"},
    {"langsmith", "LangSmith",
     "proxy_config={\"access_control\": {\"allow_list\": [\"%H:%P\"]}}, a port that is not 80 or "
     "443"},
    {"agentcore", "AgentCore",
     "a code interpreter in VPC mode, whose security group lets nothing out but %N, port %P"},
    {"vercel", "Vercel", "a network policy that allows no name and, as subnet, %N"},
    {"deno", "Deno", "allow_net=[\"%H:%P\"]"},
    {"e2b", "E2B", "network={\"deny_out\": [\"0.0.0.0/0\"], \"allow_out\": [\"%H\"]}"},
    {"sandbox0", "Sandbox0", "mode block-all, with one traffic rule: allow %N, port %P"},
    {"other", "another system", "whatever it has that lets nothing out but %H, port %P"},
};

const struct env_for *env_for_find(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(all); i++)
        if (strcmp(all[i].name, name) == 0)
            return &all[i];
    return NULL;
}

enum env_format env_for_format(const struct env_for *f)
{
    return f->format == ENV_NO_FORMAT ? ENV_SHELL : f->format;
}

struct place {
    char host[260], port[8];
};

/* Of SCHEME://[LOGIN@]HOST:PORT. */
static bool read_place(const char *proxy, struct place *p)
{
    const char *at = strrchr(proxy, '@'), *start = strstr(proxy, "://");
    const char *host = at ? at + 1 : start ? start + 3 : proxy;
    const char *colon = strrchr(host, ':');
    if (colon == NULL || colon == host || (size_t)(colon - host) >= sizeof p->host ||
        strlen(colon + 1) >= sizeof p->port)
        return false;
    snprintf(p->host, sizeof p->host, "%.*s", (int)(colon - host), host);
    snprintf(p->port, sizeof p->port, "%s", colon + 1);
    return true;
}

static void print_lock(FILE *out, const char *lock, const struct place *p)
{
    bool v6 = p->host[0] == '[';
    bool name = !v6 && p->host[strspn(p->host, "0123456789.")] != 0;
    for (const char *c = lock; *c; c++) {
        if (*c != '%') {
            fputc(*c, out);
            continue;
        }
        c++;
        if (*c == 'P')
            fputs(p->port, out);
        else if (*c == 'N' && v6)
            fprintf(out, "%.*s/128", (int)strlen(p->host) - 2, p->host + 1);
        else if (*c == 'N')
            fprintf(out, "%s%s", p->host, name ? "'s address/32" : "/32");
        else
            fputs(p->host, out);
    }
}

static bool is_local(const struct place *p)
{
    return strncmp(p->host, "127.", 4) == 0 || strcmp(p->host, "[::1]") == 0 ||
           strcmp(p->host, "localhost") == 0;
}

int env_for_print(const struct env_for *f, enum env_format format, const char *proxy,
                  const char *from, const char *to)
{
    struct place p;
    FILE *out =
        format == ENV_DEVCONTAINER || format == ENV_ACTIONS || format == ENV_JSON ? stderr : stdout;
    if (!read_place(proxy, &p))
        return 1;
    fprintf(out, "# For a sandbox of %s:\n", f->title);
    fprintf(out, "# - Bring all of %s to %s there: the variables name it.\n", from, to);
    fprintf(out, "# - Lock its network, so that the proxy is its only way out: ");
    print_lock(out, f->lock, &p);
    fputc('\n', out);
    if (strncmp(proxy, "https:", 6) == 0)
        fputs("# - wget and Python's urllib speak to no proxy in TLS: see doc/integrations.md.\n",
              out);
    return is_local(&p);
}
