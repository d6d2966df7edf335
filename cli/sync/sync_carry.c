/* One path that is due: looks at both sides, decides, carries. What is carried is noted first
 * (sync_table.h), read whole, and written only over what was looked at. */
#include <stdio.h>
#include <string.h>

#include "mask.h"
#include "sync_engine.h"
#include "sync_name.h"

enum {
    SOON_MS = 60,
    LATER_MS = 1000,
    BLOCKED_MS = 5000,
    SOON_TRIES = 20,   /* then it is read though it changes all the time */
    ONCE_TRIES = 60,   /* then --once gives it up */
    CONFLICTS_MAX = 99 /* of one file */
};

struct look {
    struct sync *e;
    struct sync_item *item;
    enum sync_direction direction;
    struct sync_side here, inside;
    int secret; /* sync_here_secret */
};

/* ---- which ---- */

enum sync_direction sync_direction_of(const struct sync *e, const char *path)
{
    bool in = sync_name_ignore_file(path) || (sync_name_git(path) && !e->wishes->git);
    return in ? SYNC_IN : e->wishes->direction;
}

bool sync_wanted(struct sync *e, const char *path, bool folder)
{
    if (!sync_name_ok(path) || sync_name_own(path) || sync_ignored(&e->ignore, path, folder))
        return false;
    if (sync_direction_of(e, path) == SYNC_IN && e->wishes->direction == SYNC_OUT)
        return false;
    return !folder || !sync_here_secret_folder(&e->here, path);
}

/* ---- what came of it ---- */

static void later(struct look *l)
{
    struct sync_item *item = l->item;
    if (l->e->wishes->once && item->tries >= ONCE_TRIES)
        sync_say(l->e, SYNC_SAID_FAILED, item, item->path, "message", "it changes all the time");
    else
        sync_due(l->e, item, item->tries++ < SOON_TRIES ? SOON_MS : LATER_MS);
}

static void take_end(struct look *l, enum sync_end r, const struct err *err)
{
    struct sync *e = l->e;
    switch (r) {
    case SYNC_DONE:
        break;
    case SYNC_MOVING:
        later(l);
        break;
    case SYNC_BLOCKED:
        sync_say(e, SYNC_SAID_FAILED, l->item, l->item->path, "message", err->text);
        if (!e->wishes->once || l->item->tries++ < 3)
            sync_due(e, l->item, e->wishes->once ? SOON_MS : BLOCKED_MS);
        break;
    case SYNC_GONE:
        e->gone = true;
        sync_due(e, l->item, LATER_MS);
        break;
    }
}

static void leave_out(struct look *l, const char *why)
{
    sync_say(l->e, SYNC_SAID_LEFT_OUT, l->item, l->item->path, "reason", why);
}

static int note(struct look *l, bool common)
{
    struct sync *e = l->e;
    if (!e->wishes->dry && sync_table_note(e->table, l->item, common, &e->err) < 0) {
        e->broken = true;
        return -1;
    }
    return 0;
}

static void keep_version(char to[FILE_VERSION_TEXT], const struct sync_side *s)
{
    snprintf(to, FILE_VERSION_TEXT, "%s", s->still ? s->version : "");
}

/* Both have these bytes now, of these versions; NULL: it is looked at again. */
static void set_common(struct look *l, const struct sync_side *bytes, const struct sync_side *here,
                       const struct sync_side *inside)
{
    struct sync_item *item = l->item;
    l->e->total += bytes->size - (item->common ? item->size : 0);
    memcpy(item->hash, bytes->hash, SYNC_HASH);
    item->size = bytes->size;
    item->exec = bytes->exec;
    item->diverged = false;
    item->here[0] = item->inside[0] = '\0';
    if (here)
        keep_version(item->here, here);
    if (inside)
        keep_version(item->inside, inside);
    if (note(l, true) < 0)
        return;
    if (!item->here[0] || !item->inside[0])
        sync_due(l->e, item, SOON_MS);
}

static void forget(struct look *l)
{
    l->e->total -= l->item->common ? l->item->size : 0;
    if (note(l, false) == 0 && !l->e->wishes->dry)
        sync_table_drop(l->e->table, l->item);
    l->item = NULL;
}

/* ---- reading ---- */

static void free_side(struct sync_side *s)
{
    if (s->loaded)
        buf_free(&s->data);
    s->loaded = false;
}

static enum sync_end load(struct look *l, bool inside, struct err *err)
{
    struct sync *e = l->e;
    struct sync_side *s = inside ? &l->inside : &l->here;
    if (s->loaded)
        return SYNC_DONE;
    if (!s->still && l->item->tries < SOON_TRIES)
        return SYNC_MOVING;
    return inside ? sync_inside_load(&e->inside, l->item->path, e->wishes->max_size, s, err)
                  : sync_here_load(&e->here, l->item->path, e->wishes->max_size, s, err);
}

static bool by_version(const struct look *l, const struct sync_side *s, const char *known)
{
    return l->item->common && *known && s->still && strcmp(known, s->version) == 0;
}

/* Bytes are looked at where versions do not say enough. */
static enum sync_end load_what_is_needed(struct look *l, struct err *err)
{
    bool here = l->here.kind == SYNC_KIND_FILE, inside = l->inside.kind == SYNC_KIND_FILE;
    bool both = here && inside, common = l->item->common || l->item->intended;
    enum sync_end r = SYNC_DONE;
    if (here && (both || common) && !by_version(l, &l->here, l->item->here))
        r = load(l, false, err);
    if (r == SYNC_DONE && inside && (both || common) && !by_version(l, &l->inside, l->item->inside))
        r = load(l, true, err);
    return r;
}

/* An earlier command was about to write something: if it is there, that was done. */
static void take_intent(struct look *l)
{
    struct sync_item *item = l->item;
    struct sync_side *to = item->intended_here ? &l->here : &l->inside;
    if (!item->intended)
        return;
    item->intended = false;
    if (to->kind != SYNC_KIND_FILE || !to->loaded || memcmp(to->hash, item->intent, SYNC_HASH) != 0)
        return;
    memcpy(item->hash, item->intent, SYNC_HASH);
    item->exec = to->exec;
    item->size = to->size;
    item->diverged = false;
    item->here[0] = item->inside[0] = '\0';
    (void)note(l, true);
}

static enum sync_side_state state_of(const struct look *l, const struct sync_side *s,
                                     const char *known)
{
    const struct sync_item *item = l->item;
    if (s->kind != SYNC_KIND_FILE)
        return SYNC_ABSENT;
    if (!item->common)
        return SYNC_CHANGED;
    if (by_version(l, s, known))
        return SYNC_SAME;
    bool same = s->loaded && !item->diverged && s->exec == item->exec &&
                memcmp(s->hash, item->hash, SYNC_HASH) == 0;
    return same ? SYNC_SAME : SYNC_CHANGED;
}

/* ---- carrying ---- */

static bool is_secret(struct look *l, const struct sync_side *s)
{
    bool key = l->secret == 2 && mask_is_key((const char *)buf_data(&s->data), buf_len(&s->data));
    if (key)
        leave_out(l, "it holds a private key");
    return key;
}

static bool over_folder(struct look *l, const struct sync_side *to)
{
    if (to->kind == SYNC_KIND_FOLDER)
        leave_out(l, "it is a file at one side and a directory at the other");
    return to->kind == SYNC_KIND_FOLDER;
}

static void send_in(struct look *l)
{
    struct sync *e = l->e;
    struct err err = {0};
    if (over_folder(l, &l->inside))
        return;
    enum sync_end r = load(l, false, &err);
    if (r == SYNC_DONE && is_secret(l, &l->here))
        return;
    if (r == SYNC_DONE && !e->wishes->dry) {
        if (sync_table_intend(e->table, l->item, false, l->here.hash, &e->err) < 0) {
            e->broken = true;
            return;
        }
        r = sync_inside_write(&e->inside, l->item->path, &l->inside, buf_slice(&l->here.data),
                              l->here.exec, &err);
    }
    if (r != SYNC_DONE) {
        take_end(l, r, &err);
        return;
    }
    sync_say(e, SYNC_SAID_SENT, l->item, l->item->path, NULL, NULL);
    if (!e->wishes->dry)
        set_common(l, &l->here, &l->here, NULL);
}

static bool has_room(struct look *l)
{
    uint64_t was = l->item->common ? l->item->size : 0;
    if (l->e->total - was + l->inside.size <= l->e->wishes->max_total)
        return true;
    leave_out(l, "all together would have more bytes than --max-total says");
    return false;
}

static void receive(struct look *l)
{
    struct sync *e = l->e;
    struct sync_side made = {0};
    struct err err = {0};
    if (over_folder(l, &l->here) || !has_room(l))
        return;
    enum sync_end r = load(l, true, &err);
    if (r == SYNC_DONE && is_secret(l, &l->inside))
        return;
    if (r == SYNC_DONE && !e->wishes->dry) {
        if (sync_table_intend(e->table, l->item, true, l->inside.hash, &e->err) < 0) {
            e->broken = true;
            return;
        }
        r = sync_here_write(&e->here, l->item->path, &l->here, buf_slice(&l->inside.data),
                            l->inside.exec, &made, &err);
    }
    if (r != SYNC_DONE) {
        take_end(l, r, &err);
        return;
    }
    sync_say(e, SYNC_SAID_RECEIVED, l->item, l->item->path, NULL, NULL);
    if (!e->wishes->dry)
        set_common(l, &l->inside, &made, &l->inside);
}

static bool no_folder_here(void *arg, const char *folder)
{
    struct sync *e = arg;
    struct sync_side s;
    struct err err = {0};
    return sync_here_look(&e->here, folder, &s, &err) == SYNC_DONE && s.kind != SYNC_KIND_FOLDER;
}

static bool no_folder_inside(void *arg, const char *folder)
{
    struct sync *e = arg;
    struct sync_side s;
    struct err err = {0};
    return sync_inside_look(&e->inside, folder, &s, &err) == SYNC_DONE &&
           s.kind != SYNC_KIND_FOLDER;
}

static void delete_at(struct look *l, bool inside)
{
    struct sync *e = l->e;
    struct err err = {0};
    enum sync_end r = SYNC_DONE;
    if (!e->wishes->dry)
        r = inside ? sync_inside_remove(&e->inside, l->item->path, &l->inside, &err)
                   : sync_here_remove(&e->here, l->item->path, &l->here, &err);
    if (r != SYNC_DONE) {
        take_end(l, r, &err);
        return;
    }
    sync_say(e, inside ? SYNC_SAID_DELETED_INSIDE : SYNC_SAID_DELETED_HERE, l->item, l->item->path,
             NULL, NULL);
    if (e->wishes->dry)
        return;
    if (inside)
        sync_inside_prune(&e->inside, l->item->path, no_folder_here, e);
    else
        sync_here_prune(&e->here, l->item->path, no_folder_inside, e);
    forget(l);
}

/* ---- conflicts ---- */

/* Writes the sandbox's version beside; one that has the same bytes already is taken. */
static enum sync_end keep_beside(struct look *l, char name[SYNC_PATH], bool *fresh, struct err *err)
{
    struct sync *e = l->e;
    struct sync_side there, made;
    for (int i = 1; i <= CONFLICTS_MAX; i++) {
        if (snprintf(name, SYNC_PATH, "%.4000s.conflict-%s-%d", l->item->path, e->inside.id, i) >=
            SYNC_PATH)
            break;
        enum sync_end r = sync_here_look(&e->here, name, &there, err);
        if (r != SYNC_DONE)
            return r;
        if (there.kind == SYNC_KIND_NONE) {
            e->total += l->inside.size;
            *fresh = true;
            return sync_here_write(&e->here, name, &there, buf_slice(&l->inside.data), false, &made,
                                   err);
        }
        bool same = there.kind == SYNC_KIND_FILE && there.size == buf_len(&l->inside.data) &&
                    sync_here_load(&e->here, name, e->wishes->max_size, &there, err) == SYNC_DONE &&
                    memcmp(there.hash, l->inside.hash, SYNC_HASH) == 0;
        free_side(&there);
        if (same)
            return SYNC_DONE;
    }
    err_set(err, ERR_LIMIT, "there are too many versions of it already: remove some");
    return SYNC_BLOCKED;
}

/* Both are as they are now; that is said once. */
static void set_diverged(struct look *l)
{
    struct sync_item *item = l->item;
    memcpy(item->hash, l->here.hash, SYNC_HASH);
    l->e->total += l->here.size - (item->common ? item->size : 0);
    item->size = l->here.size;
    item->exec = l->here.exec;
    item->diverged = true;
    keep_version(item->here, &l->here);
    keep_version(item->inside, &l->inside);
    (void)note(l, true);
}

static void conflict(struct look *l)
{
    struct sync *e = l->e;
    char name[SYNC_PATH];
    bool fresh = e->wishes->dry;
    struct err err = {0};
    enum sync_end r = load(l, false, &err);
    if (r == SYNC_DONE)
        r = load(l, true, &err);
    if (r == SYNC_DONE && (is_secret(l, &l->here) || is_secret(l, &l->inside)))
        return;
    if (l->direction == SYNC_IN) {
        if (r == SYNC_DONE)
            sync_say(e, SYNC_SAID_CONFLICT, l->item, l->item->path, "reason",
                     "changed on both sides: each keeps its own");
        else
            take_end(l, r, &err);
        if (r == SYNC_DONE && !e->wishes->dry)
            set_diverged(l);
        return;
    }
    if (r == SYNC_DONE && !has_room(l))
        return;
    if (r == SYNC_DONE && !e->wishes->dry)
        r = keep_beside(l, name, &fresh, &err);
    if (r != SYNC_DONE) {
        take_end(l, r, &err);
        return;
    }
    if (fresh)
        sync_say(e, SYNC_SAID_CONFLICT, l->item, l->item->path, e->wishes->dry ? NULL : "kept_as",
                 name);
    if (!e->wishes->dry && l->direction == SYNC_OUT)
        set_diverged(l);
    else if (!e->wishes->dry)
        send_in(l);
}

/* ---- one path ---- */

/* Versions that say all are noted, so that nobody reads the bytes again. */
static void refresh(struct look *l)
{
    struct sync_item *item = l->item;
    if (!item->common || item->diverged || l->here.kind != SYNC_KIND_FILE ||
        l->inside.kind != SYNC_KIND_FILE)
        return;
    bool here = l->here.still && strcmp(item->here, l->here.version) != 0 &&
                state_of(l, &l->here, item->here) == SYNC_SAME;
    bool inside = l->inside.still && strcmp(item->inside, l->inside.version) != 0 &&
                  state_of(l, &l->inside, item->inside) == SYNC_SAME;
    if (here)
        keep_version(item->here, &l->here);
    if (inside)
        keep_version(item->inside, &l->inside);
    if (here || inside)
        (void)note(l, true);
}

static void act(struct look *l)
{
    const struct sync_item *item = l->item;
    enum sync_side_state here = state_of(l, &l->here, item->here);
    enum sync_side_state inside = state_of(l, &l->inside, item->inside);
    bool equal =
        l->here.loaded && l->inside.loaded && memcmp(l->here.hash, l->inside.hash, SYNC_HASH) == 0;
    enum sync_common common = !item->common    ? SYNC_NONE
                              : item->diverged ? SYNC_DIVERGED
                                               : SYNC_COMMON;
    switch (sync_decide(l->direction, common, here, inside, equal)) {
    case SYNC_NOTHING:
        if (inside == SYNC_CHANGED && l->direction == SYNC_IN && sync_name_git(item->path) &&
            !l->e->git_said) {
            l->e->git_said = true;
            sync_say(l->e, SYNC_SAID_LEFT_OUT, NULL, item->path, "reason",
                     "git's own files are not carried out, nor others like it: --git-metadata "
                     "carries them");
        }
        refresh(l);
        break;
    case SYNC_SEND:
        send_in(l);
        break;
    case SYNC_RECEIVE:
        receive(l);
        break;
    case SYNC_DELETE_INSIDE:
        delete_at(l, true);
        break;
    case SYNC_DELETE_HERE:
        delete_at(l, false);
        break;
    case SYNC_NOTE:
        set_common(l, &l->here, &l->here, &l->inside);
        break;
    case SYNC_FORGET:
        forget(l);
        break;
    case SYNC_CONFLICT:
        conflict(l);
        break;
    }
}

static bool may_be_carried(struct look *l)
{
    const struct sync_side *sides[] = {&l->here, &l->inside};
    for (size_t i = 0; i < ARRAY_LEN(sides); i++)
        if (sides[i]->kind == SYNC_KIND_OTHER) {
            leave_out(l, i ? "a link, a device or a socket inside" : "a link or no file here");
            return false;
        } else if (sides[i]->kind == SYNC_KIND_FILE && sides[i]->size > l->e->wishes->max_size) {
            leave_out(l, "it is larger than --max-size says");
            return false;
        }
    return true;
}

void sync_examine(struct sync *e, struct sync_item *item)
{
    struct look l = {.e = e, .item = item, .direction = sync_direction_of(e, item->path)};
    struct err err = {0};
    if (!sync_wanted(e, item->path, false) ||
        (l.secret = sync_here_secret(&e->here, item->path)) == 1) {
        if (l.secret == 1)
            leave_out(&l, "its name is one that credentials have");
        if (item->common)
            forget(&l);
        return;
    }
    enum sync_end r = sync_here_look(&e->here, item->path, &l.here, &err);
    if (r == SYNC_DONE)
        r = sync_inside_look(&e->inside, item->path, &l.inside, &err);
    if (r == SYNC_DONE && !may_be_carried(&l))
        return;
    if (r == SYNC_DONE)
        r = load_what_is_needed(&l, &err);
    if (r == SYNC_DONE) {
        take_intent(&l);
        act(&l);
    } else {
        take_end(&l, r, &err);
    }
    free_side(&l.here);
    free_side(&l.inside);
    if (l.item && !l.item->common && l.item->due == 0 && l.here.kind == SYNC_KIND_NONE &&
        l.inside.kind == SYNC_KIND_NONE)
        sync_table_drop(e->table, l.item); /* it came and went */
}
