/* durward ca rotate: a new CA beside the old one. The key is made by a signer of its own, as ever;
 * a daemon that runs is told to look. */
#include "api_client.h"
#include "ca_cert.h"
#include "ca_files.h"
#include "commands.h"
#include "out.h"
#include "rotation.h"
#include "settings.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { OPT_OVERLAP = 256, OPT_NOW };

const struct arg_option ca_rotate_options[] = {
    ARG_CONFIG,
    {OPT_OVERLAP, "overlap", "TIME", "trust both so long before the new one signs: 90s, 12h, 14d"},
    {OPT_NOW, "now", NULL, "the new one signs at once: clients without it fail from now on"},
    {0},
};

/* The last steps of a rotation take place under the lock, here or in whoever looks next. */
static int finish(int dir, struct rotation *r, bool now, struct err *err)
{
    if (rotation_commit(dir, r, err) < 0)
        return -1;
    return now ? rotation_settle(dir, time(NULL), err) : 0;
}

static int begin(int dir, struct rotation *r, bool now, struct err *err)
{
    int key_fd, cert_fd;
    struct ca_cert made = {0};
    if (rotation_open_next(dir, &key_fd, &cert_fd, err) < 0)
        return -1;
    int done = ca_cert_make(key_fd, cert_fd, &made, err);
    close(key_fd);
    close(cert_fd);
    ca_cert_clear(&made);
    return done < 0 ? -1 : finish(dir, r, now, err);
}

/* overlap: seconds; 0 for --now. Under the lock throughout. */
static int rotate(const char *where, unsigned overlap, struct err *err)
{
    struct rotation r;
    int dir = ca_files_lock(where, err);
    if (dir < 0)
        return -1;
    int under_way = rotation_read(dir, &r, err), done = under_way;
    int64_t now = time(NULL);
    if (under_way == 1 && overlap) {
        done = err_set(err, ERR_DENIED,
                       "a rotation is under way ('durward ca show' tells until when); 'durward ca "
                       "rotate --now' ends its overlap at once");
    } else if (under_way == 1) {
        r.until = now > r.since ? now : r.since;
        r.since = r.until;
        done = finish(dir, &r, true, err);
    } else if (under_way == 0) {
        r = (struct rotation){now, now + overlap};
        done = begin(dir, &r, overlap == 0, err);
    }
    close(dir);
    return done;
}

/* Whose CA is it, and is there one? */
static int check(const struct config *c, struct err *err)
{
    struct ca_files f;
    if (c && config_ca_cert(c))
        return err_set(err, ERR_DENIED,
                       "the CA is your own (ca.cert, ca.key): let clients trust the new one beside "
                       "it (upload both to them), then replace both files and restart the daemon");
    if (ca_files_open(c ? config_ca_dir(c) : NULL, NULL, NULL, &f, err) < 0)
        return -1;
    bool none = f.create;
    ca_files_close(&f);
    return none ? err_set(err, ERR_DENIED,
                          "there is no CA yet: the first start, or 'durward ca show', makes one")
                : 0;
}

/* A daemon looks once a minute by itself; asked, it does so at once. */
static void tell_daemon(const struct args *a, const struct config *c)
{
    struct err err = {0};
    json_t *reply = NULL;
    const char *socket = a->socket ? a->socket : c ? config_controller_socket(c) : NULL;
    if (api_call(socket, "POST", "/v1/reload", NULL, &reply, &err) == 0)
        json_decref(reply);
    else if (err.code != ERR_UNREADY)
        fprintf(stderr, "durward: the daemon will see it within a minute (%s)\n", err.text);
}

static int rotate_and_show(struct args *a, const char *file, unsigned overlap)
{
    struct err err = {0};
    struct config *c = NULL;
    int r = settings_load_if_any(file, &c, &err);
    if (r == 0)
        r = check(c, &err);
    if (r == 0)
        r = rotate(c ? config_ca_dir(c) : NULL, overlap, &err);
    if (r == 0)
        tell_daemon(a, c);
    config_unref(c);
    if (r < 0) {
        out_error("%s", err.text);
        return EXIT_NO;
    }
    return ca_show(file, a->json);
}

int ca_rotate(int argc, char **argv)
{
    struct args a = {.cmd = &ca_verbs[2], .argc = argc, .argv = argv};
    const char *file = NULL;
    unsigned overlap = ROTATION_OVERLAP_DEFAULT;
    bool given = false, now = false;
    int id;
    while ((id = args_next(&a)) >= 0) {
        if (id == 'c')
            file = a.value;
        now = now || id == OPT_NOW;
        given = given || id == OPT_OVERLAP;
        if (id == OPT_OVERLAP && args_duration(a.value, ROTATION_OVERLAP_MAX, &overlap) < 0)
            return args_usage(a.cmd, "--overlap takes a time of at most 90 days, like 7d or 12h");
    }
    if (id == ARGS_STOP)
        return a.exit_code;
    if (now && given)
        return args_usage(a.cmd, "either --overlap or --now");
    if (a.next < argc)
        return args_usage(a.cmd, "unexpected argument %s", argv[a.next]);
    return rotate_and_show(&a, file, now ? 0 : overlap);
}
