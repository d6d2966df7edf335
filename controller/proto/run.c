/* Writes W_RUN and reads it; the reader checks every path, name and variable, as any client may
 * have sent it. */
#include "run.h"

#include "sandbox_spec.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void run_request_init(struct run_request *r)
{
    memset(r, 0, sizeof *r);
    for (int i = 0; i < 3; i++)
        r->fds[i] = -1;
}

void run_request_done(struct run_request *r)
{
    strlist_done(&r->argv);
    strlist_done(&r->kept);
    strlist_done(&r->env);
    strlist_done(&r->volumes);
    for (size_t i = 0; i < r->n_binds; i++) {
        free(r->binds[i].source);
        free(r->binds[i].target);
    }
    for (size_t i = 0; i < r->n_steps; i++) {
        free(r->steps[i].path);
        free(r->steps[i].text);
    }
    for (int i = 0; i < 3; i++)
        if (r->fds[i] >= 0)
            close(r->fds[i]);
    run_request_init(r);
}

int run_request_step(struct run_request *r, enum inside_op op, const char *path, const char *text)
{
    if (r->n_steps >= RUN_STEPS_MAX)
        return -1;
    struct run_step s = {op, strdup(path), strdup(text)};
    if (s.path == NULL || s.text == NULL) {
        free(s.path);
        free(s.text);
        return -1;
    }
    r->steps[r->n_steps++] = s;
    return 0;
}

int run_request_bind(struct run_request *r, const char *source, const char *target, bool writable)
{
    if (r->n_binds >= RUN_BINDS_MAX)
        return -1;
    struct run_bind b = {strdup(source), strdup(target), writable, false};
    if (b.source == NULL || b.target == NULL) {
        free(b.source);
        free(b.target);
        return -1;
    }
    r->binds[r->n_binds++] = b;
    return 0;
}

uint8_t run_bind_mode(const struct run_request *r, size_t i)
{
    const struct run_bind *b = &r->binds[i];
    return (uint8_t)((b->writable ? SANDBOX_SPEC_BIND_WRITABLE : 0) |
                     (r->view && !b->home ? SANDBOX_SPEC_BIND_VIEW : 0) |
                     (b->home ? SANDBOX_SPEC_BIND_HOME : 0));
}

static void put_home(const struct run_request *r, struct msg *m)
{
    char seed[2 * RUN_SEED + 1] = "";
    for (size_t i = 0; r->seeded && i < RUN_SEED; i++)
        snprintf(seed + 2 * i, 3, "%02x", r->seed[i]);
    msg_put_str(m, seed);
    msg_put_u32(m, (uint32_t)r->n_steps);
    for (size_t i = 0; i < r->n_steps; i++) {
        msg_put_u8(m, (uint8_t)r->steps[i].op);
        msg_put_str(m, r->steps[i].path);
        msg_put_str(m, r->steps[i].text);
    }
}

void run_request_put(struct run_request *r, struct msg *m)
{
    msg_put_str(m, r->policy);
    strlist_put(&r->argv, m);
    strlist_put(&r->kept, m);
    strlist_put(&r->env, m);
    msg_put_str(m, r->cwd);
    msg_put_u32(m, (uint32_t)r->n_binds);
    for (size_t i = 0; i < r->n_binds; i++) {
        msg_put_str(m, r->binds[i].source);
        msg_put_str(m, r->binds[i].target);
        msg_put_u8(m, run_bind_mode(r, i));
    }
    msg_put_str(m, r->home);
    msg_put_str(m, r->user);
    msg_put_u32(m, r->uid);
    msg_put_u32(m, r->gid);
    put_home(r, m);
    msg_put_str(m, r->backend);
    msg_put_str(m, r->image);
    strlist_put(&r->volumes, m);
    msg_put_u8(m, r->ask);
    msg_put_u8(m, r->tty);
    msg_put_u32(m, r->rows);
    msg_put_u32(m, r->cols);
    for (int i = 0; i < 3 && !r->tty; i++) {
        msg_put_fd(m, r->fds[i]);
        r->fds[i] = -1;
    }
}

/* Absolute, and without "." or ".." that would make it mean something else than it says. */
static bool path_ok(const char *p)
{
    if (p[0] != '/')
        return false;
    for (const char *s = p; s; s = strchr(s + 1, '/')) {
        size_t n = strcspn(s + 1, "/");
        if ((n == 1 && s[1] == '.') || (n == 2 && s[1] == '.' && s[2] == '.'))
            return false;
    }
    return true;
}

static bool user_ok(const char *user)
{
    size_t n = strlen(user);
    return n > 0 && n <= 32 && strpbrk(user, ":/\n\r\t ") == NULL && user[0] != '-';
}

static bool all_pairs(const struct strlist *l)
{
    for (size_t i = 0; i < l->n; i++)
        if (l->v[i][0] == '=' || strchr(l->v[i], '=') == NULL)
            return false;
    return true;
}

static int get_binds(struct run_request *r, struct msg *m)
{
    uint32_t n;
    uint8_t mode;
    char source[RUN_PATH_MAX], target[RUN_PATH_MAX];
    if (msg_get_u32(m, &n) < 0 || n > RUN_BINDS_MAX)
        return -1;
    for (uint32_t i = 0; i < n; i++)
        if (msg_get_str(m, source, sizeof source) < 0 ||
            msg_get_str(m, target, sizeof target) < 0 || msg_get_u8(m, &mode) < 0 ||
            mode > SANDBOX_SPEC_BIND_ALL || !path_ok(source) || !path_ok(target) ||
            run_request_bind(r, source, target, mode & SANDBOX_SPEC_BIND_WRITABLE) < 0)
            return -1;
        else {
            r->view = r->view || mode & SANDBOX_SPEC_BIND_VIEW;
            r->binds[i].home = mode & SANDBOX_SPEC_BIND_HOME;
        }
    return 0;
}

static int get_seed(struct run_request *r, struct msg *m)
{
    char seed[2 * RUN_SEED + 1];
    unsigned byte;
    if (msg_get_str(m, seed, sizeof seed) < 0)
        return -1;
    r->seeded = seed[0] != 0;
    if (r->seeded && strspn(seed, "0123456789abcdef") != 2 * RUN_SEED)
        return -1;
    for (size_t i = 0; r->seeded && i < RUN_SEED; i++) {
        if (sscanf(seed + 2 * i, "%2x", &byte) != 1)
            return -1;
        r->seed[i] = (unsigned char)byte;
    }
    return 0;
}

static int get_steps(struct run_request *r, struct msg *m)
{
    uint32_t n;
    uint8_t op;
    char path[RUN_PATH_MAX], text[RUN_TEXT_MAX];
    if (msg_get_u32(m, &n) < 0 || n > RUN_STEPS_MAX)
        return -1;
    while (n-- > 0)
        if (msg_get_u8(m, &op) < 0 ||
            (op != INSIDE_WRITE && op != INSIDE_WRITE_NEW && op != INSIDE_DELETE_TREE) ||
            msg_get_str(m, path, sizeof path) < 0 || !path_ok(path) ||
            msg_get_str(m, text, sizeof text) < 0 ||
            run_request_step(r, (enum inside_op)op, path, text) < 0)
            return -1;
    return 0;
}

static int get_terminal(struct run_request *r, struct msg *m)
{
    uint8_t tty, ask;
    if (msg_get_u8(m, &ask) < 0 || ask > 1 || msg_get_u8(m, &tty) < 0 || tty > 1 ||
        msg_get_u32(m, &r->rows) < 0 || msg_get_u32(m, &r->cols) < 0 || r->rows > UINT16_MAX ||
        r->cols > UINT16_MAX)
        return -1;
    r->ask = ask;
    r->tty = tty;
    for (int i = 0; i < 3 && !r->tty; i++)
        if (msg_get_fd(m, &r->fds[i]) < 0)
            return -1;
    return 0;
}

int run_request_get(struct run_request *r, struct msg *m)
{
    run_request_init(r);
    if (msg_get_str(m, r->policy, sizeof r->policy) < 0 || strlist_get(&r->argv, m) < 0 ||
        strlist_get(&r->kept, m) < 0 || strlist_get(&r->env, m) < 0 ||
        msg_get_str(m, r->cwd, sizeof r->cwd) < 0 || get_binds(r, m) < 0 ||
        msg_get_str(m, r->home, sizeof r->home) < 0 ||
        msg_get_str(m, r->user, sizeof r->user) < 0 || msg_get_u32(m, &r->uid) < 0 ||
        msg_get_u32(m, &r->gid) < 0 || get_seed(r, m) < 0 || get_steps(r, m) < 0 ||
        msg_get_str(m, r->backend, sizeof r->backend) < 0 ||
        msg_get_str(m, r->image, sizeof r->image) < 0 || strlist_get(&r->volumes, m) < 0 ||
        get_terminal(r, m) < 0 || msg_end(m) < 0)
        return -1;
    bool ok = r->argv.n > 0 && path_ok(r->cwd) && path_ok(r->home) && user_ok(r->user) &&
              all_pairs(&r->kept) && all_pairs(&r->env);
    return ok ? 0 : -1;
}
