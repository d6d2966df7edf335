/* durward explain: what would the policy say to this request, and why? Decided here by the same
 * function as in the gate; no daemon is asked and nothing is sent. */
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "config.h"
#include "new_secret.h"
#include "out.h"
#include "question.h"
#include "settings.h"
#include "yaml_tree.h"

static int cmd_explain(int argc, char **argv);

enum { OPT_POLICY = 256, OPT_PRESET };

static const struct arg_option options[] = {
    {'c', "config", "FILE", "the configuration (default: $DURWARD_CONFIG, then the user's)"},
    {OPT_POLICY, "policy", "NAME", "the policy, where there is more than one"},
    {OPT_PRESET, "preset", "NAME", "print a preset: github, openai or anthropic"},
    {0},
};

const struct command command_explain = {
    "explain",
    "[-c FILE] [--policy NAME] METHOD URL | --preset NAME",
    "Say what a policy answers to a request, and why.",
    options,
    "The first word is allow, ask or deny; then the rule that decided, the credential's name and\n"
    "the reason. Example: durward explain GET https://api.github.com/repos/acme/site\n",
    cmd_explain,
};

static json_t *captures(const struct rule *rule)
{
    json_t *all = json_object();
    for (size_t i = 0; rule && i < rule->n_captures; i++)
        json_object_set_new(all, rule->captures[i].path, json_string(rule->captures[i].secret));
    return all;
}

/* A secret that the origin makes and that no capture takes: the sandbox would have it. */
static const char *uncaptured(const struct rule *rule, const struct question *q)
{
    if (rule == NULL || rule->tunnel || rule->n_captures > 0)
        return NULL;
    return new_secret_in(q->method, slice_str(q->authority.host), q->path);
}

/* What else has to be right: asked of the body, or counted; and what may pass beyond it. */
static void print_more(const struct rule *r, const struct budget *whole)
{
    char text[600];
    if (r->ask)
        printf("  approval:   somebody has to allow each one: durward approve, or run --ask\n");
    if (r->inspection)
        printf("  body:       asked about: %s\n",
               inspection_text(r->inspection, text, sizeof text));
    if (r->websocket)
        printf("  websocket:  it may become one\n");
    if (r->credential && !r->tunnel)
        printf("  ranges:     %s\n", r->ranges ? "Range passes" : "Range is left out");
    if (r->budget)
        printf("  budget:     %s\n", budget_text(r->budget, text, sizeof text));
    if (whole)
        printf("  budget:     of the whole policy: %s\n", budget_text(whole, text, sizeof text));
}

static void put_more(json_t *v, const struct rule *r, const struct budget *whole)
{
    char text[600];
    if (r->inspection)
        json_object_set_new(v, "body",
                            json_string(inspection_text(r->inspection, text, sizeof text)));
    if (r->websocket)
        json_object_set_new(v, "websocket", json_true());
    if (r->credential && !r->tunnel)
        json_object_set_new(v, "ranges", json_boolean(r->ranges));
    if (r->budget)
        json_object_set_new(v, "budget", json_string(budget_text(r->budget, text, sizeof text)));
    if (whole)
        json_object_set_new(v, "policy_budget", json_string(budget_text(whole, text, sizeof text)));
}

static int print_answer(const struct answer *w, const struct question *q, const struct policy *p,
                        const char *policy, bool json)
{
    char at[300];
    char kind[300];
    const struct credential *c = w->rule ? w->rule->credential : NULL;
    const char *credential = c ? c->secret : NULL;
    authority_text(&q->authority, at, sizeof at);
    if (json) {
        json_t *v = json_pack("{s:s, s:s, s:s, s:s?, s:s?, s:s?, s:o, s:s, s:s}", "decision",
                              question_verdict(w->verdict), "code", w->code, "policy", policy,
                              "rule", w->rule ? w->rule->text : NULL, "credential", credential,
                              "as", c ? credential_text(c, kind, sizeof kind) : NULL, "captures",
                              captures(w->rule), "authority", at, "why", w->why);
        if (w->verdict != VERDICT_DENY && w->rule)
            put_more(v, w->rule, policy_budget(p));
        if (w->verdict != VERDICT_DENY && uncaptured(w->rule, q))
            json_object_set_new(v, "uncaptured", json_string(uncaptured(w->rule, q)));
        return out_json(v) < 0 ? EXIT_NO : EXIT_OK;
    }
    out_coloured(stdout,
                 w->verdict == VERDICT_ALLOW ? COLOUR_GREEN
                 : w->verdict == VERDICT_ASK ? COLOUR_YELLOW
                                             : COLOUR_RED,
                 question_verdict(w->verdict));
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
    for (size_t i = 0; w->rule && i < w->rule->n_captures; i++)
        printf("  captures:   %s of the reply, as %s\n", w->rule->captures[i].path,
               w->rule->captures[i].secret);
    if (w->verdict != VERDICT_DENY && uncaptured(w->rule, q))
        printf("  uncaptured: the reply may hold %s; without `capture` the sandbox gets it\n",
               uncaptured(w->rule, q));
    if (w->verdict != VERDICT_DENY && w->rule)
        print_more(w->rule, policy_budget(p));
    printf("  why:        %s (%s)\n", w->why, w->code);
    return out_flush() < 0 ? EXIT_NO : EXIT_OK;
}

static int print_preset(const char *name, bool json)
{
    const char *text = preset_text(name);
    if (text == NULL) {
        out_error("there is no preset '%s'; there are github, openai and anthropic", name);
        return EXIT_NO;
    }
    if (json) {
        struct err err = {0};
        json_t *tree, *lines;
        if (yaml_tree_parse(slice_str(text), name, &tree, &lines, &err) < 0) {
            out_error("%s", err.text);
            return EXIT_NO;
        }
        json_decref(lines);
        return out_json(json_pack("{s:s, s:o}", "preset", name, "stands_for", tree)) < 0 ? EXIT_NO
                                                                                         : EXIT_OK;
    }
    fputs(text, stdout);
    return out_flush() < 0 ? EXIT_NO : EXIT_OK;
}

static int explain(const char *file, const char *policy, struct question *q, bool json,
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
        question_decide(p, q, &w);
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
    struct question q = {0};
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
                             : print_preset(preset, a.json);
    if (argc - a.next != 2)
        return args_usage(a.cmd, "a method and a URL are needed");
    q.method = slice_str(argv[a.next]);
    if (question_url(argv[a.next + 1], &q, &err) < 0)
        return args_usage(a.cmd, "%s", err.text);
    int code = explain(file, policy, &q, a.json, &err);
    if (err.code != ERR_NONE)
        out_error("%s", err.text);
    return code;
}
