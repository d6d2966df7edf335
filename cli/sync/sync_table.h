/* All paths that are known: what their last common version was, and what is to be looked at. The
 * common versions are kept in a file that is only ever added to, so that whoever is killed loses
 * nothing but its last line:
 *
 *   STATE/sync/ID-HASH     0600, flock of the command that works with it
 *
 * Before something is carried it is noted what and where to (`intent`): if the command is killed
 * then, the next one finds it there or not, and knows which it was. */
#ifndef DURWARD_SYNC_TABLE_H
#define DURWARD_SYNC_TABLE_H

#include "err.h"
#include "file_version.h"

enum { SYNC_HASH = 32 };

struct sync_item {
    char *path; /* owned */

    /* the last common version; `diverged`: a conflict, whose sides are as noted here */
    bool common, diverged, exec;
    unsigned char hash[SYNC_HASH];
    uint64_t size;
    char here[FILE_VERSION_TEXT], inside[FILE_VERSION_TEXT]; /* "": look at its bytes */

    bool intended, intended_here; /* an earlier command was about to write this, here or inside */
    unsigned char intent[SYNC_HASH];

    /* what a walk saw: nothing, what the last common version was, or something else */
    unsigned char walked_here, walked_inside;

    int64_t due; /* ms; 0: nothing is to be done */
    unsigned tries;
    unsigned char said; /* what was last said of it: enum sync_word */
    struct sync_item *next;
};

struct sync_table;

/* Opens and reads what is known of this pair; `keep` false: reads only. NULL with err. */
struct sync_table *sync_table_open(const char *sandbox, const char *here, const char *inside,
                                   bool keep, struct err *err);
void sync_table_free(struct sync_table *t);

struct sync_item *sync_table_find(const struct sync_table *t, const char *path);
/* NULL: there are too many, or memory is out. */
struct sync_item *sync_table_get(struct sync_table *t, const char *path);
void sync_table_drop(struct sync_table *t, struct sync_item *item); /* frees it */
/* Each of them; fn may drop the one it is given. */
void sync_table_each(struct sync_table *t, void (*fn)(void *arg, struct sync_item *item),
                     void *arg);
size_t sync_table_size(const struct sync_table *t);
size_t sync_table_common(const struct sync_table *t); /* those with a common version */
void sync_table_bound(struct sync_table *t, size_t max);

/* What is set in the item is the last common version from now on, or there is none. */
int sync_table_note(struct sync_table *t, struct sync_item *item, bool common, struct err *err);
int sync_table_intend(struct sync_table *t, struct sync_item *item, bool here,
                      const unsigned char hash[SYNC_HASH], struct err *err);
/* Is it the hash of anything that is known? */
bool sync_table_has_hash(struct sync_table *t, const unsigned char hash[SYNC_HASH]);

#endif
