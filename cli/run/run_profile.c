/* Turns a profile into what a request holds anyhow: words of the command, a bind, steps that write
 * files. */
#include "run_profile.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "buf.h"

#include "profile_find.h"
#include "run_files.h"
#include "run_program.h"

/* The first word names a profile where nothing says that it is a command: no "--" before it, no
 * slash in it. */
static const char *named(struct run_options *o)
{
    if (o->profile || o->plain || o->argc == 0 || strchr(o->argv[0], '/') ||
        !profile_is_known(o->argv[0]))
        return o->profile;
    o->argc--;
    o->own_command = true;
    return *o->argv++;
}

int run_profile_load(struct run_options *o, struct run_profile *ret, struct err *err)
{
    const char *name = named(o);
    const char *word = o->inside == PROFILE_KEPT ? "login-kept" : "login-inside";
    *ret = (struct run_profile){0};
    if (name == NULL)
        return o->telemetry || o->inside ? err_set(err, ERR_PARSE, "--%s goes with a profile",
                                                   o->telemetry ? "telemetry" : word)
                                         : 0;
    o->own_command = o->own_command || o->argc == 0;
    ret->profile = profile_load(name, &ret->file, err);
    if (ret->profile && o->inside && !profile_inside(ret->profile))
        return err_set(err, ERR_PARSE,
                       "--%s: the profile '%s' does not say how its program logs in", word,
                       profile_name(ret->profile));
    ret->inside = o->inside;
    ret->begins = o->inside == PROFILE_LOGIN;
    return ret->profile ? 0 : -1;
}

int run_profile_program(const struct run_options *o, const struct run_profile *p,
                        struct run_request *r, struct err *err)
{
    const char *word = p->profile ? profile_word(p->profile, 0) : NULL;
    char path[PATH_MAX];
    if (word == NULL || !o->own_command)
        return 0;
    snprintf(path, sizeof path, "%s", word);
    if (r->image[0] == 0 && run_program_bind(word, r, path, err) < 0)
        return -1;
    int bad = strlist_add(&r->argv, path);
    for (size_t i = 1; !bad && (word = profile_word(p->profile, i)) != NULL; i++)
        bad = strlist_add(&r->argv, word);
    return bad ? err_set(err, ERR_LIMIT, "the command line is too long (80 KiB at most)") : 0;
}

/* ---- files ---- */

/* A placeholder of a secret that this run has not: the file is for another provider. */
static bool names_absent(const struct config *c, const char *policy, const char *text)
{
    size_t n;
    const char *const *used = config_policy_secrets(c, policy, &n);
    for (const char *at = text; (at = strstr(at, "{{placeholder ")) != NULL; at++) {
        const char *name = at + strlen("{{placeholder ");
        size_t len = strcspn(name, " }");
        bool there = false;
        for (size_t i = 0; i < n; i++)
            there = there || (strlen(used[i]) == len && memcmp(used[i], name, len) == 0);
        if (!there)
            return true;
    }
    return false;
}

static int add_file(const struct config *c, const struct run_profile *p, struct run_request *r,
                    const char *path, const char *text, struct err *err)
{
    struct buf filled;
    if (names_absent(c, r->policy, text))
        return 0;
    buf_init(&filled, RUN_TEXT_MAX);
    int bad = run_files_servers(c, r->policy, text, &filled) < 0
                  ? err_set(err, ERR_LIMIT, "%s: the files of the home are too long", path)
                  : run_files_add(r, p->home.renewed ? INSIDE_WRITE : INSIDE_WRITE_NEW, path,
                                  (const char *)buf_data(&filled), err);
    buf_free(&filled);
    return bad;
}

static int add_files(const struct config *c, const struct run_profile *p, struct run_request *r,
                     struct err *err)
{
    const char *path, *text;
    char whole[RUN_PATH_MAX];
    for (size_t i = 0; (path = profile_forgotten(p->profile, i)) != NULL; i++)
        if (snprintf(whole, sizeof whole, "%s/%s", r->home, path) >= (int)sizeof whole ||
            (!run_files_meet_bind(r, whole, true) &&
             run_request_step(r, INSIDE_DELETE_TREE, whole, "") < 0))
            return err_set(err, ERR_LIMIT, "%s: the path is too long", path);
    for (size_t i = 0; profile_file(p->profile, i, &path, &text); i++)
        if (add_file(c, p, r, path, text, err) < 0)
            return -1;
    for (size_t i = 0; p->inside && profile_inside_file(p->profile, i, &path, &text); i++)
        if (add_file(c, p, r, path, text, err) < 0)
            return -1;
    return 0;
}

/* ---- the home ---- */

static int add_home(const struct run_options *o, const struct config *c, struct run_profile *p,
                    struct run_request *r, struct err *err)
{
    char name[RUN_NAME_MAX], kind[RUN_NAME_MAX];
    const char *word = r->backend[0]
                           ? r->backend
                           : config_backend_name(config_policy_sandbox(c, r->policy)->backend);
    if (!config_backend_lays_out(config_backend_named(word)))
        return err_set(err, ERR_DENIED,
                       "the backend %s cannot keep a home; take --backend bwrap, or run the "
                       "command without a profile and --home",
                       word);
    if (o->home)
        snprintf(name, sizeof name, "%s", o->home);
    else { /* what a program keeps with a key does not fit a login */
        snprintf(kind, sizeof kind, "%s%s", profile_name(p->profile),
                 p->inside      ? "-inside"
                 : p->logged_in ? "-login"
                                : "");
        home_name_for(kind, r->cwd, name, sizeof name);
    }
    if (home_open(c, name, &p->home, err) < 0)
        return -1;
    if (p->begins && home_used(&p->home))
        return err_set(err, ERR_DENIED,
                       "--login-inside begins with an empty home, and something lies in '%s': "
                       "'durward home rm %s' removes it, --home NAME takes another one",
                       name, name);
    for (size_t i = 0; i < r->n_binds; i++)
        if (strcmp(r->binds[i].target, r->home) == 0)
            return err_set(err, ERR_DENIED, "a bind and the kept home have the same place: %s",
                           r->home);
    if (run_request_bind(r, p->home.files, r->home, true) < 0)
        return err_set(err, ERR_LIMIT, "too many binds");
    r->binds[r->n_binds - 1].home = true;
    r->seeded = true;
    memcpy(r->seed, p->home.seed, sizeof r->seed);
    return 0;
}

int run_profile_home(const struct run_options *o, const struct config *c, struct run_profile *p,
                     struct run_request *r, struct err *err)
{
    if (p->profile == NULL && o->home == NULL)
        return 0;
    if (add_home(o, c, p, r, err) < 0)
        return -1;
    if (p->profile && add_files(c, p, r, err) < 0)
        return -1;
    if (p->begins) /* the project named the home, and is not there */
        memcpy(r->cwd, r->home, sizeof r->cwd);
    return 0;
}

void run_profile_done(struct run_profile *p)
{
    profile_free(p->profile);
    free(p->file);
    home_close(&p->home);
    *p = (struct run_profile){0};
}
