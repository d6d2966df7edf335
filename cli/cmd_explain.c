/* durward explain: what would the policy say to this request, and why? Decided here by the same
 * function as in the gate; no daemon is asked and nothing is sent. */
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "config.h"
#include "out.h"
#include "policy_query.h"
#include "settings.h"

static int cmd_explain(int argc, char **argv);

enum { OPT_POLICY = 256, OPT_PRESET };

static const struct arg_option options[] = {
    ARG_CONFIG,
    {OPT_POLICY, "policy", "NAME", "the policy, where there is more than one"},
    {OPT_PRESET, "preset", "NAME", "print a preset, as 'durward preset show' does"},
    {0},
};

const struct command command_explain = {
    "explain",
    "[-c FILE] [--policy NAME] METHOD URL [TEXT] | --preset NAME",
    "Say what a policy answers to a request, and why.",
    options,
    "The first word is allow, ask or deny; then the rule that decided, the credential's name and\n"
    "the reason. Example: durward explain GET https://api.github.com/repos/acme/site\n"
    "\n"
    "Of ssh:// METHOD is fetch, push, exec, shell, connect, sftp, or what is done to a file "
    "(read,\n"
    "write, list, ...), and TEXT the command, the target or the file; of postgres://, mysql://,\n"
    "redis://, smtp:// and imap:// it is connect, and TEXT the recipients (from:ADDRESS is the\n"
    "sender) or the folder. Example: durward explain exec ssh://ops@build.example.com uptime\n",
    cmd_explain,
};

/* What becomes of Range. Nothing is looked for where only keys that sign go. */
static const char *ranges_text(const struct rule *r, const char *names)
{
    if (!r->ranges && (r->n_captures || rule_read_again(r)))
        return "Range is left out";
    return r->ranges || !names ? "Range passes" : "one part is widened, searched and cut";
}

/* What else has to be right: asked of the body, or counted; and what may pass beyond it. */
static void print_more(const struct rule *r, const struct budget *whole, const char *names,
                       bool http)
{
    char text[600];
    if (r->ask)
        printf("  approval:   somebody has to allow each one: durward approve, or run --ask\n");
    if (r->inspection)
        printf("  body:       asked about: %s\n",
               inspection_text(r->inspection, text, sizeof text));
    if (r->outward)
        printf("  patterns:   %s\n", rule_outward_text(r, text, sizeof text));
    if (r->websocket)
        printf("  websocket:  it may become one\n");
    if (names)
        printf("  searched:   for %s, which this host gets\n", names);
    if (http && (names || r->credential) && !r->tunnel)
        printf("  ranges:     %s\n", ranges_text(r, names));
    if (r->budget)
        printf("  budget:     %s\n", budget_text(r->budget, text, sizeof text));
    if (whole)
        printf("  budget:     of the whole policy: %s\n", budget_text(whole, text, sizeof text));
}

static int print_answer(const struct answer *w, const struct policy_query *q,
                        const struct policy *p, const char *policy, bool json)
{
    char at[300];
    char kind[300], searched[600];
    const struct credential *c = w->rule ? w->rule->credential : NULL;
    const char *credential = c ? c->secret : NULL;
    authority_text(&q->authority, at, sizeof at);
    const char *names = policy_taint_text(p, &q->authority, searched, sizeof searched);
    if (json)
        return out_json(policy_query_json(p, q, w, policy)) < 0 ? EXIT_NO : EXIT_OK;
    out_coloured(stdout,
                 w->verdict == VERDICT_ALLOW ? COLOUR_GREEN
                 : w->verdict == VERDICT_ASK ? COLOUR_YELLOW
                                             : COLOUR_RED,
                 policy_query_verdict(w->verdict));
    printf(" %s\n", at);
    if (w->rule)
        printf("  rule:       %u of policy %s: %s\n", w->rule->index + 1, policy, w->rule->text);
    else
        printf("  rule:       none of policy %s\n", policy);
    if (w->rule && w->rule->tunnel)
        printf("  tunnel:     its TLS passes unread; nothing is known of paths and methods\n");
    if (w->verdict != VERDICT_DENY)
        printf("  credential: %s%s%s\n", credential ? credential : "none", c ? ", " : "",
               c ? credential_text(c, kind, sizeof kind) : "");
    const char *asked = policy_query_kubernetes(w, q, kind, sizeof kind);
    if (asked)
        printf("  kubernetes: %s\n", asked);
    for (size_t i = 0; w->rule && i < w->rule->n_captures; i++)
        printf("  captures:   %s of the reply, as %s\n", w->rule->captures[i].path,
               w->rule->captures[i].secret);
    if (policy_query_uncaptured(w, q))
        printf("  uncaptured: the reply may hold %s; without `capture` the sandbox gets it\n",
               policy_query_uncaptured(w, q));
    if (w->verdict != VERDICT_DENY && w->rule)
        print_more(w->rule, policy_budget(p), names, scheme_is_http(q->authority.scheme));
    printf("  why:        %s (%s)\n", w->why, w->code);
    return out_flush() < 0 ? EXIT_NO : EXIT_OK;
}

static int explain(const char *file, const char *policy, struct policy_query *q, bool json,
                   struct err *err)
{
    struct config *c = settings_load(file, err);
    if (c == NULL)
        return EXIT_NO;
    struct answer w;
    struct policy *p = NULL;
    int code = EXIT_NO;
    const char *name = settings_policy(c, policy, err);
    char *text = name ? config_policy_json(c, name) : NULL;
    if (text && (p = policy_parse(text, strlen(text), err)) != NULL) {
        policy_query_decide(p, q, &w);
        code = print_answer(&w, q, p, name, json);
    }
    policy_free(p);
    free(text);
    config_unref(c);
    return code;
}

static int cmd_explain(int argc, char **argv)
{
    struct args a = {.cmd = &command_explain, .argc = argc, .argv = argv};
    const char *file = NULL, *policy = NULL, *preset = NULL;
    struct policy_query q = {0};
    struct err err = {0};
    int id;
    while ((id = args_next(&a)) != ARGS_END) {
        if (id == ARGS_STOP)
            return a.exit_code;
        if (id == OPT_PRESET)
            preset = a.value;
        else if (id == 'c')
            file = a.value;
        else
            policy = a.value;
    }
    if (preset)
        return a.next < argc ? args_usage(a.cmd, "--preset stands alone")
                             : preset_print(preset, a.json);
    if (argc - a.next != 2 && argc - a.next != 3)
        return args_usage(a.cmd, "a method and a URL are needed");
    q.method = slice_str(argv[a.next]);
    q.text = slice_str(argc - a.next == 3 ? argv[a.next + 2] : "");
    if (policy_query_read(argv[a.next + 1], &q, &err) < 0)
        return args_usage(a.cmd, "%s", err.text);
    if (scheme_is_http(q.authority.scheme) &&
        argv[a.next][strspn(argv[a.next], "abcdefghijklmnopqrstuvwxyz")] == 0)
        out_error("note: methods are written in capitals; no client sends '%s'", argv[a.next]);
    int code = explain(file, policy, &q, a.json, &err);
    if (err.code != ERR_NONE)
        out_error("%s", err.text);
    return code;
}
