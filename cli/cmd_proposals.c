/* durward proposals ls|show|accept|reject: what a sandbox, or somebody who read the log, would like
 * a policy to allow; and into the policy with it. */
#include "api_client.h"
#include "api_remote.h"
#include "commands.h"
#include "config.h"
#include "out.h"
#include "policy_edit.h"
#include "policy_query.h"
#include "which.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

struct accept_asked {
    const char *file;
    bool writes;
};
enum { CONFIG_TEXT_MAX = 8 << 20, CLEAN_MAX = 1100 };
enum { LS, SHOW, ACCEPT, REJECT };

static int run_ls(int argc, char **argv);
static int run_show(int argc, char **argv);
static int run_accept(int argc, char **argv);
static int run_reject(int argc, char **argv);

static const struct arg_option accept_options[] = {
    {0, "write", NULL, "put the rule into the configuration and have it read again",
     offsetof(struct accept_asked, writes)},
    {'c', "config", "FILE", "the configuration (default: the first that is found)",
     offsetof(struct accept_asked, file)},
    {0},
};

const struct command proposals_verbs[] = {
    [LS] = {"proposals ls", "[--json] [--socket PATH]", "List what was proposed.", NULL,
            "What was decided stays in the list for a while. The reason is the sandbox's own\n"
            "words, where a sandbox asked: it may say anything.\n"
            "Exit status 0, 1 when there is no daemon, 2 for a usage error.\n\n"
            "  durward proposals ls\n",
            run_ls},
    [SHOW] = {"proposals show", "[--json] [--socket PATH] ID",
              "Show a proposal and the rule it would become.", NULL,
              "Exit status 0, 1 when there is none of that id, 2 for a usage error.\n\n"
              "  durward proposals show pr-4xk2\n",
              run_show},
    [ACCEPT] =
        {"proposals accept", "[--write] [-c FILE] [--json] [--socket PATH] ID",
         "Accept a proposal; with --write put its rule into the policy.", accept_options,
         "Without --write the rule is printed, to be put into the policy by hand. With it, the\n"
         "rule becomes the first of its policy's list in FILE, in whose text nothing else\n"
         "changes; what comes of it is checked before it takes the file's place, and the daemon\n"
         "reads its configuration again.\n"
         "Exit status 0, 1 when it cannot be done, 2 for a usage error.\n\n"
         "  durward proposals accept --write pr-4xk2\n",
         run_accept},
    [REJECT] = {"proposals reject", "[--socket PATH] ID...", "Reject proposals.", NULL,
                "A sandbox that proposes the same again is told that it was rejected.\n"
                "Exit status 0, 1 when there is none of that id, 2 for a usage error.\n\n"
                "  durward proposals reject pr-4xk2\n",
                run_reject},
    {0},
};

/* ---- ls, show ---- */

static void print_list(const json_t *reply)
{
    static const char *const titles[] = {"ID",     "STATE",   "AGE",    "SANDBOX",
                                         "POLICY", "REQUEST", "REASON", NULL};
    const json_t *list = json_object_get(reply, "proposals");
    struct out_table *t;
    size_t i;
    json_t *o;
    if (json_array_size(list) == 0) {
        out_error("nothing was proposed");
        return;
    }
    t = out_table_new(titles);
    json_array_foreach((json_t *)(uintptr_t)list, i, o)
    {
        char age[32], request[CLEAN_MAX], clean[CLEAN_MAX];
        int64_t since = (int64_t)time(NULL) - json_integer_value(json_object_get(o, "created"));
        snprintf(request, sizeof request, "%s %s", out_member(o, "method"),
                 out_member(o, "target"));
        out_table_cell(t, out_member(o, "id"));
        out_table_cell(t, out_member(o, "state"));
        out_table_cell(t, out_span(since > 0 ? since : 0, age, sizeof age));
        out_table_cell(t, out_member(o, "sandbox"));
        out_table_cell(t, out_member(o, "policy"));
        out_harmless(request);
        out_table_cell(t, request);
        out_table_cell(t, out_clean(out_member(o, "reason"), clean, sizeof clean));
    }
    out_table_print(t);
}

static int run_ls(int argc, char **argv)
{
    struct args a = {.cmd = &proposals_verbs[LS], .argc = argc, .argv = argv};
    int code = args_plain(&a, 0, 0, "");
    return code != ARGS_END ? code : api_print(&a, "GET", "/v1/proposals", NULL, print_list);
}

static void field(const char *name, const char *value)
{
    char clean[CLEAN_MAX];
    if (*value)
        printf("%-10s %s\n", name, out_clean(value, clean, sizeof clean));
}

static void print_rule_of(const char *name, const json_t *r)
{
    char text[CLEAN_MAX];
    if (r == NULL)
        return;
    snprintf(text, sizeof text, "%s (%s)", out_member(r, "rule"), out_member(r, "where"));
    field(name, text);
}

/* What it stands beside. A deny or ask rule among them is stronger than it. */
static void print_review(const json_t *o)
{
    const json_t *list = json_object_get(o, "overlaps");
    field("today", out_member(o, "before"));
    print_rule_of("decides", json_object_get(o, "decides"));
    field("with it", out_member(o, "after"));
    for (size_t i = 0; i < json_array_size(list); i++)
        print_rule_of("overlaps", json_array_get(list, i));
    if (json_is_true(json_object_get(o, "overlaps_more")))
        field("overlaps", "more rules of the policy");
    print_rule_of("lifts", json_object_get(o, "lifts"));
}

static void print_diff(const json_t *o)
{
    char line[CLEAN_MAX];
    for (const char *at = out_member(o, "diff"); *at;) {
        size_t n = strcspn(at, "\n");
        snprintf(line, sizeof line, "%.*s", (int)n, at);
        out_harmless(line);
        out_coloured(stdout, line[0] == '+' ? COLOUR_GREEN : COLOUR_DIM, line);
        printf("\n");
        at += n + (at[n] == '\n');
    }
}

static void print_one(const json_t *o)
{
    bool own = strcmp(out_member(o, "made_by"), "sandbox") == 0;
    field("id", out_member(o, "id"));
    field("state", out_member(o, "state"));
    field("made by", out_member(o, "made_by"));
    field("sandbox", out_member(o, "sandbox"));
    field("policy", out_member(o, "policy"));
    field("method", out_member(o, "method"));
    field("target", out_member(o, "target"));
    field(own ? "it says" : "reason", out_member(o, "reason"));
    field("decided by", out_member(o, "decided_by"));
    print_review(o);
    printf("\n");
    print_diff(o);
    if (strcmp(out_member(o, "after"), "deny") == 0)
        printf("\nA deny rule of the policy would refuse it all the same.\n");
    if (json_object_get(o, "lifts"))
        printf("\nThat rule's conditions would not hold for it: --write refuses.\n");
}

static int path_of(const struct args *a, const char *word, const char *verb, char *path,
                   size_t size, struct err *err)
{
    char id[WHICH_ID_MAX + 1];
    if (which_one(a->socket, WHICH_PROPOSAL, word, id, err) < 0)
        return -1;
    snprintf(path, size, "/v1/proposals/%s%s", id, verb);
    return 0;
}

static int run_show(int argc, char **argv)
{
    struct args a = {.cmd = &proposals_verbs[SHOW], .argc = argc, .argv = argv};
    char path[WHICH_ID_MAX + 40];
    struct err err = {0};
    int code = args_plain(&a, 1, 1, "which? 'durward proposals ls' lists them");
    if (code != ARGS_END)
        return code;
    if (path_of(&a, argv[a.next], "", path, sizeof path, &err) < 0)
        return out_fail(&err);
    return api_print(&a, "GET", path, NULL, print_one);
}

/* ---- accept ---- */

static int read_file(const char *path, struct buf *text, struct stat *st, struct err *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = -1;
    if (fd < 0 || fstat(fd, st) < 0 || !S_ISREG(st->st_mode)) {
        if (fd >= 0)
            close(fd);
        return err_sys(err, "cannot read %s", path);
    }
    for (;;) {
        unsigned char piece[16384];
        n = read(fd, piece, sizeof piece);
        if (n <= 0 || buf_append(text, piece, (size_t)n) < 0)
            break;
    }
    close(fd);
    return n == 0 ? 0 : err_set(err, ERR_LIMIT, "cannot read %s", path);
}

static int write_all(int fd, struct slice text)
{
    while (text.n > 0) {
        ssize_t n = write(fd, text.p, text.n);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return -1;
        text.p += n;
        text.n -= (size_t)n;
    }
    return 0;
}

/* A name in it is on disk. */
static int sync_directory(const char *path)
{
    char parent[PATH_MAX];
    snprintf(parent, sizeof parent, "%s", path);
    int fd = open(dirname(parent), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int r = fd < 0 ? -1 : fsync(fd);
    if (fd >= 0)
        close(fd);
    return r;
}

/* Beside the file, then in its place: whoever reads it has the old text or the new one, and after a
 * crash of the machine as well. */
static int replace_file(const char *path, struct slice text, const struct stat *st, struct err *err)
{
    char temporary[PATH_MAX];
    if (snprintf(temporary, sizeof temporary, "%s.XXXXXX", path) >= (int)sizeof temporary)
        return err_set(err, ERR_LIMIT, "the path of the configuration is too long");
    int fd = mkstemp(temporary);
    if (fd < 0)
        return err_sys(err, "cannot write beside %s", path);
    bool good = write_all(fd, text) == 0 && fchmod(fd, st->st_mode & 07777) == 0 &&
                ((st->st_uid == geteuid() && st->st_gid == getegid()) ||
                 fchown(fd, st->st_uid, st->st_gid) == 0) &&
                fsync(fd) == 0;
    close(fd);
    if (good && rename(temporary, path) == 0)
        return sync_directory(path) == 0
                   ? 0
                   : err_sys(err, "%s is written, but perhaps not on disk", path);
    err_sys(err, "cannot write %s", path);
    unlink(temporary);
    return -1;
}

/* A request that the proposal is about: each '*' of its pattern is some name. */
static void example(const char *target, char *to, size_t size)
{
    size_t n = 0;
    for (; *target && n + 1 < size; target++)
        if (*target != '*')
            to[n++] = *target;
        else if (target[1] != '*')
            to[n++] = 'x';
    to[n] = 0;
}

/* The new text is a configuration; its policy does with the request what was reviewed, and lifts
 * nothing that another rule of it asks. */
static int check_text(struct slice text, const char *path, const json_t *o, struct err *err)
{
    const char *policy = out_member(o, "policy");
    struct policy_query q = {.method = slice_str(out_member(o, "method"))};
    struct answer w = {.verdict = VERDICT_DENY};
    char url[CLEAN_MAX];
    struct config *c = config_parse(text, path, err);
    if (c == NULL)
        return -1;
    const struct policy *p = config_policy(c, policy);
    const struct rule *lifted = p ? policy_first_steps(p) : NULL;
    example(out_member(o, "target"), url, sizeof url);
    if (p && policy_query_url(url, &q, err) == 0)
        policy_query_decide(p, &q, &w);
    int r = 0;
    if (lifted)
        r = err_set(err, ERR_PARSE,
                    "the rule would go before '%.200s' (%.300s) and lift what that one asks",
                    lifted->text, policy_rule_where(p, lifted->index));
    else if (strcmp(policy_query_verdict(w.verdict), out_member(o, "after")) != 0)
        r = err_set(err, ERR_PARSE,
                    "with the rule policy %.64s of %s does not do what was reviewed", policy, path);
    config_unref(c);
    return r;
}

static int write_rule(const char *path, const json_t *o, struct err *err)
{
    struct buf old, new;
    struct stat st;
    char resolved[PATH_MAX];
    if (realpath(path, resolved) == NULL)
        return err_sys(err, "cannot read %s", path);
    buf_init(&old, CONFIG_TEXT_MAX);
    buf_init(&new, CONFIG_TEXT_MAX);
    int r = read_file(resolved, &old, &st, err);
    if (r == 0)
        r = policy_edit_add(buf_slice(&old), out_member(o, "policy"), out_member(o, "target"),
                            out_member(o, "method"), &new, err);
    if (r == 0)
        r = check_text(buf_slice(&new), resolved, o, err);
    if (r == 0)
        r = replace_file(resolved, buf_slice(&new), &st, err);
    buf_free(&old);
    buf_free(&new);
    return r;
}

/* The file first: what is said to be accepted is then so. */
static int write_and_reload(const struct args *a, const char *file, const json_t *o)
{
    struct err err = {0};
    json_t *reply = NULL;
    if (remote_is(a->socket))
        return args_usage(a->cmd, "--write is for the host of the daemon's configuration");
    char *found = file ? strdup(file) : config_find(&err);
    if (found == NULL || write_rule(found, o, &err) < 0) {
        free(found);
        return out_fail(&err);
    }
    printf("written to %s\n", found);
    free(found);
    if (api_call(a->socket, "POST", "/v1/reload", NULL, &reply, &err) < 0)
        return out_fail(&err);
    json_decref(reply);
    printf("the daemon has read it\n");
    return EXIT_OK;
}

static void print_rule(const json_t *o)
{
    char clean[CLEAN_MAX];
    printf("# policies.%s.rules\n", out_clean(out_member(o, "policy"), clean, sizeof clean));
    printf("- allow: \"%s\"\n", out_clean(out_member(o, "target"), clean, sizeof clean));
    printf("  methods: [%s]\n", out_clean(out_member(o, "method"), clean, sizeof clean));
}

static int run_accept(int argc, char **argv)
{
    struct args a = {.cmd = &proposals_verbs[ACCEPT], .argc = argc, .argv = argv};
    struct accept_asked asked = {0};
    char path[WHICH_ID_MAX + 40];
    struct err err = {0};
    json_t *o = NULL, *done = NULL;
    int code = args_into(&a, &asked);
    if (code != ARGS_END)
        return code;
    if (a.next + 1 != argc)
        return args_usage(a.cmd, "which? 'durward proposals ls' lists them");
    if (path_of(&a, argv[a.next], "", path, sizeof path, &err) < 0 ||
        api_call(a.socket, "GET", path, NULL, &o, &err) < 0)
        return out_fail(&err);
    code = asked.writes ? write_and_reload(&a, asked.file, o) : EXIT_OK;
    json_decref(o);
    if (code != EXIT_OK)
        return code;
    snprintf(path + strlen(path), sizeof path - strlen(path), "/accept");
    if (api_call(a.socket, "POST", path, NULL, &done, &err) < 0)
        return out_fail(&err);
    if (a.json)
        return out_json(done) < 0 ? EXIT_NO : EXIT_OK;
    if (!asked.writes)
        print_rule(done);
    json_decref(done);
    return out_flush() < 0 ? EXIT_NO : EXIT_OK;
}

static int run_reject(int argc, char **argv)
{
    struct args a = {.cmd = &proposals_verbs[REJECT], .argc = argc, .argv = argv};
    int code = args_plain(&a, 1, INT_MAX, "which? 'durward proposals ls' lists them");
    if (code != ARGS_END)
        return code;
    code = EXIT_OK;
    for (int i = a.next; i < argc; i++) {
        struct err err = {0};
        json_t *reply = NULL;
        char path[WHICH_ID_MAX + 40];
        if (path_of(&a, argv[i], "/reject", path, sizeof path, &err) < 0 ||
            api_call(a.socket, "POST", path, NULL, &reply, &err) < 0) {
            code = out_fail(&err);
            continue;
        }
        printf("%s: rejected\n", out_member(reply, "id"));
        json_decref(reply);
    }
    return code;
}

const struct command command_proposals = {
    .name = "proposals",
    .usage = "ls|show|accept|reject [OPTION...]",
    .summary = "Read what was proposed to be allowed, and put it into a policy.",
    .more = "Inside a sandbox http://durward.internal/proposals takes a request that the policy "
            "should\n"
            "allow; the console makes one of a refused record. None of them changes anything by "
            "itself.\n",
    .verbs = proposals_verbs,
};
