/* A controller of a host in a fleet, with a registry of its own, whose fleet role, parent and
 * injector are socket ends held here. */
#ifndef DURWARD_TEST_FLEET_BED_H
#define DURWARD_TEST_FLEET_BED_H

#include "approvals.h"
#include "backlog.h"
#include "base64.h"
#include "config_fixture.h"
#include "controller_internal.h"
#include "fleet_notes.h"
#include "fleet_revocations.h"
#include "fleet_seal.h"
#include "journal.h"
#include "registry.h"
#include "sandbox_events.h"
#include "wire.h"

#include <CUnit/CUnit.h>
#include <event2/event.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { KNOWN = 3 };

static const char fleet_config[] = V "secrets:\n"
                                     "  p: { env: P }\n"
                                     "  l: { postgres_login: { user: fleet, password: p } }\n"
                                     "fleet: { postgres: 'postgres://db.example/fleet', login: l, "
                                     "revocations: 3s }\n"
                                     "policies: { coder: { rules: [ { allow: a.example } ] } }\n";

/* This program's clocks, which a test puts forward instead of waiting: those of libraries, too. */
static time_t ahead_s;

int clock_gettime(clockid_t id, struct timespec *t)
{
    if (syscall(SYS_clock_gettime, id, t) < 0)
        return -1;
    t->tv_sec += ahead_s;
    return 0;
}

time_t time(time_t *ret)
{
    struct timespec t = {0};
    clock_gettime(CLOCK_REALTIME, &t);
    if (ret)
        *ret = t.tv_sec;
    return t.tv_sec;
}

static inline void later(unsigned seconds)
{
    ahead_s += seconds;
}

struct world {
    struct controller c;
    char dir[64];
    int dirfd, role, parent; /* our ends */
};

/* A host that signs with this key, and names nobody. */
static inline struct fleet_seal *seal_of(EVP_PKEY *key)
{
    struct err err = {0};
    const struct config_fleet nobody = {0};
    return fleet_seal_new(key, &nobody, &err);
}

/* Its public half, as a configuration has it. */
static inline void key_text(EVP_PKEY *key, char text[64])
{
    unsigned char raw[FLEET_KEY];
    size_t n = sizeof raw;
    struct buf b;
    CU_ASSERT_EQUAL_FATAL(EVP_PKEY_get_raw_public_key(key, raw, &n), 1);
    buf_init(&b, 64);
    CU_ASSERT_EQUAL_FATAL(base64_append(&b, (struct slice){(const char *)raw, sizeof raw}), 0);
    snprintf(text, 64, "%.*s", (int)buf_len(&b), (const char *)buf_data(&b));
    buf_free(&b);
}

static inline void on_closed(struct ipc *ch UNUSED, const char *why UNUSED, void *arg UNUSED)
{
}

static inline int no_message(struct ipc *ch UNUSED, struct msg *m UNUSED, void *arg UNUSED)
{
    return -1;
}

static inline void turn(struct world *w)
{
    for (int i = 0; i < 4; i++)
        event_base_loop(w->c.base, EVLOOP_ONCE | EVLOOP_NONBLOCK);
}

static inline void attach(struct world *w)
{
    int fds[2];
    struct err err = {0};
    CU_ASSERT_EQUAL_FATAL(ipc_pair(fds, &err), 0);
    if (w->role >= 0)
        close(w->role);
    w->role = fds[0];
    fleet_notes_attach(w->c.fleet, fds[1]);
}

static inline void begin_notes(struct world *w)
{
    struct err err = {0};
    w->c.fleet = fleet_notes_new(&w->c, &err);
    CU_ASSERT_PTR_NOT_NULL_FATAL(w->c.fleet);
    w->c.revocations = fleet_revocations_new(&w->c);
    CU_ASSERT_PTR_NOT_NULL_FATAL(w->c.revocations);
    attach(w);
}

static inline void open_world(struct world *w)
{
    int fds[2];
    struct err err = {0};
    memset(w, 0, sizeof *w);
    w->role = -1;
    snprintf(w->dir, sizeof w->dir, "/tmp/durward-notes-XXXXXX");
    CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(w->dir));
    w->dirfd = open(w->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    LIST_INIT(&w->c.owner.list);
    LIST_INIT(&w->c.clients);
    TAILQ_INIT(&w->c.managed_sandboxes);
    w->c.base = event_base_new();
    w->c.sandbox_events = sandbox_events_new();
    w->c.journal = journal_new(w->c.base, false);
    w->c.backlog = backlog_new(w->c.base, w->c.journal);
    w->c.config = good(fleet_config);
    w->c.registry = registry_open(w->dirfd, &err);
    CU_ASSERT_PTR_NOT_NULL_FATAL(w->c.registry);
    CU_ASSERT_EQUAL_FATAL(ipc_pair(fds, &err), 0);
    w->parent = fds[0];
    w->c.owner.parent = ipc_new(w->c.base, fds[1], no_message, on_closed, NULL);
    memset(w->c.keys.token_public, 7, sizeof w->c.keys.token_public);
    begin_notes(w);
}

static inline void end_notes(struct world *w)
{
    fleet_revocations_free(w->c.revocations);
    fleet_notes_free(w->c.fleet);
}

static inline void close_world(struct world *w)
{
    static const char *const files[] = {"registry.db", "registry.db-journal", "registry.db-wal"};
    end_notes(w);
    ipc_free(w->c.owner.parent);
    registry_close(w->c.registry);
    sandbox_events_free(w->c.sandbox_events);
    backlog_free(w->c.backlog);
    journal_free(w->c.journal);
    config_unref(w->c.config);
    event_base_free(w->c.base);
    close(w->role);
    close(w->parent);
    for (size_t i = 0; i < ARRAY_LEN(files); i++)
        unlinkat(w->dirfd, files[i], 0);
    close(w->dirfd);
    CU_ASSERT_EQUAL(rmdir(w->dir), 0);
}

/* ---- what is said ---- */

static inline void say(struct world *w, struct msg *m)
{
    CU_ASSERT_EQUAL(msg_send(w->role, m), 0);
    msg_done(m);
    turn(w);
}

static inline void say_up(struct world *w)
{
    struct msg m;
    msg_init(&m, W_NOTES_UP);
    say(w, &m);
}

static inline void say_note(struct world *w, uint64_t place, const char *kind, const char *id,
                            const char *body)
{
    struct msg m;
    msg_init(&m, W_NOTE);
    msg_put_u64(&m, place);
    msg_put_str(&m, kind);
    msg_put_str(&m, id);
    msg_put_str(&m, body);
    say(w, &m);
}

static inline void say_read(struct world *w, uint32_t number, uint8_t more)
{
    struct msg m;
    msg_init(&m, W_NOTES_READ);
    msg_put_u32(&m, number);
    msg_put_u8(&m, more);
    say(w, &m);
}

static inline void say_kept(struct world *w, uint32_t number, uint8_t mine)
{
    struct msg m;
    msg_init(&m, W_NOTE_KEPT);
    msg_put_u32(&m, number);
    msg_put_u8(&m, mine);
    say(w, &m);
}

/* ---- what is heard ---- */

/* The next of that type; false: there is none. Others are passed over. */
static inline bool heard(struct world *w, int fd, uint16_t type, struct msg *m)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    turn(w);
    while (poll(&p, 1, 0) > 0 && msg_recv(fd, m) == 1) {
        if (m->type == type)
            return true;
        msg_done(m);
    }
    return false;
}

/* The number of a question, and what it is after. */
static inline uint32_t hear_ask(struct world *w, uint64_t *after)
{
    struct msg m;
    uint32_t number = 0;
    *after = UINT64_MAX;
    if (!heard(w, w->role, W_NOTES_ASK, &m))
        return 0;
    CU_ASSERT(msg_get_u32(&m, &number) == 0 && msg_get_u64(&m, after) == 0 && msg_end(&m) == 0);
    msg_done(&m);
    return number;
}

static char heard_body[128]; /* of the last that was heard */

static inline uint32_t hear_put(struct world *w, char id[NOTE_ID_MAX + 1])
{
    struct msg m;
    uint32_t number = 0;
    char kind[NOTE_KIND_MAX + 1];
    id[0] = 0;
    if (!heard(w, w->role, W_NOTE_PUT, &m))
        return 0;
    CU_ASSERT(msg_get_u32(&m, &number) == 0 && msg_get_str(&m, kind, sizeof kind) == 0 &&
              msg_get_str(&m, id, NOTE_ID_MAX + 1) == 0 &&
              msg_get_str(&m, heard_body, sizeof heard_body) == 0);
    msg_done(&m);
    return number;
}

static inline uint64_t hear_until(struct world *w)
{
    struct msg m;
    uint64_t us = 0;
    if (!heard(w, w->parent, W_REVOKED_UNTIL, &m))
        return 0;
    CU_ASSERT(msg_get_u64(&m, &us) == 0 && msg_end(&m) == 0);
    msg_done(&m);
    return us;
}

/* Whose token the parent is told to refuse; "": nobody's. */
static inline const char *hear_revoked(struct world *w, char id[NOTE_ID_MAX + 1])
{
    struct msg m;
    uint64_t floor, expires;
    uint32_t n = 0;
    id[0] = 0;
    if (!heard(w, w->parent, W_REVOKED, &m))
        return id;
    CU_ASSERT(msg_get_u64(&m, &floor) == 0 && msg_get_u32(&m, &n) == 0 && n == 1 &&
              msg_get_str(&m, id, NOTE_ID_MAX + 1) == 0 && msg_get_u64(&m, &expires) == 0);
    CU_ASSERT(floor == 0 && expires <= (uint64_t)time(NULL) + 3661);
    msg_done(&m);
    return id;
}

static inline bool ended(struct world *w)
{
    char byte;
    turn(w);
    return recv(w->role, &byte, 1, MSG_DONTWAIT | MSG_PEEK) == 0;
}

static inline uint64_t now_us(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_BOOTTIME, &ts);
    return (uint64_t)ts.tv_sec * 1000000 + (uint64_t)ts.tv_nsec / 1000;
}

#endif
