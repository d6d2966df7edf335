/* Which sandbox, token or held request of a daemon a word on the command line means: its whole id,
 * its name, or the first letters of an id that no other has. */
#ifndef DURWARD_WHICH_H
#define DURWARD_WHICH_H

#include <jansson.h>

#include "args.h"
#include "err.h"

enum which_kind {
    WHICH_SANDBOX,
    WHICH_APPROVAL,
    WHICH_TOKEN,
    WHICH_POLICY,
    WHICH_SNAPSHOT,
    WHICH_PROPOSAL,
    WHICH_VOLUME,
    WHICH_SUPPRESSION,
    WHICH_TEMPLATE
};

enum { WHICH_ID_MAX = 64 };

/* All there are, as the API lists them; NULL with err. */
json_t *which_list(const char *socket, enum which_kind k, struct err *err);
/* All that a path and its query answer, page by page; `member` is the list's name in the answer. */
json_t *which_pages(const char *socket, const char *path, const char *member, struct err *err);
/* The id that the word stands for, fit for a path. -1 with err: it fits none, or several, which the
 * message lists. A whole id is not looked up. */
int which_one(const char *socket, enum which_kind k, const char *word, char id[WHICH_ID_MAX + 1],
              struct err *err);
/* The same, in a list of objects with "id" and perhaps "name". */
int which_of(const json_t *list, enum which_kind k, const char *word, char id[WHICH_ID_MAX + 1],
             struct err *err);
/* It has the form of a whole id of this kind. */
bool which_is_whole(enum which_kind k, const char *word);
/* Removes what each word that is left stands for; a word that stands for nothing is an error, and
 * the others are removed all the same. Returns the exit code. With --json what was removed is
 * listed. */
int which_remove(const struct args *a, enum which_kind k);
/* An answer to what was asked at this path says, by this code of its error, that nothing of that id
 * or name is there: the command that lists what is. NULL where it says something else. */
const char *which_lister(const char *path, const char *code);

#endif
