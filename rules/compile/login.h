/* Login files of other programs: where each lies below a home, where in it the secrets are, what
 * they are for, and what a sandbox finds in its place. Data: the files of rules/logins/. Nothing
 * here reads a login file (secrets/parent/login_file.h does), and no value of a secret comes here.
 */
#ifndef DURWARD_LOGIN_H
#define DURWARD_LOGIN_H

#include <jansson.h>

#include "buf.h"
#include "err.h"

enum {
    LOGIN_ENTRIES_MAX = 64,     /* hosts or profiles of one file that are used */
    LOGIN_TEXT_MAX = 16 * 1024, /* of a file that is written inside: it fits into a pipe */
    LOGIN_VALUE_MAX = 300,      /* of what is no secret and is written inside */
    LOGIN_LOCK_SECONDS = 60     /* a lock that was not touched for so long is nobody's */
};

struct login_format;

const char *login_builtin(size_t i); /* in the order of the alphabet; NULL past the end */
/* NULL with err: there is none of this name. */
struct login_format *login_format_new(const char *name, struct err *err);
void login_format_free(struct login_format *f); /* NULL is fine */

const char *login_name(const struct login_format *f);
const char *login_about(const struct login_format *f);
/* Below the home; with a "*" it is a file for each server, in the user's state directory. */
const char *login_path(const struct login_format *f);
bool login_is_many(const struct login_format *f);
enum login_syntax {
    LOGIN_JSON,
    LOGIN_YAML,
    LOGIN_INI,
    LOGIN_NETRC,
    LOGIN_NPMRC,
    LOGIN_PIP, /* from here on: secrets/parent/login_shapes.h */
    LOGIN_CARGO,
    LOGIN_DOCKER,
    LOGIN_KUBE,
    LOGIN_AZURE,
    LOGIN_SYNTAXES
};
enum login_syntax login_syntax(const struct login_format *f);

/* A place in the tree of such a file: names of members, one after the other. "*" stands for each
 * member, "#claims" for the claims of the token that is there. */
typedef const json_t *login_place;                       /* array of strings; NULL: not there */
login_place login_entries(const struct login_format *f); /* NULL: the file is one entry, "" */
/* Below an entry. Of a session also "refresh" and "expires". */
login_place login_secret(const struct login_format *f, const char *part);
/* Of a part that is no secret; NULL: it has none of that name. */
login_place login_beside(const struct login_format *f, const char *part);
bool login_is_session(const struct login_format *f);
bool login_is_ms(const struct login_format *f);  /* its end is written in milliseconds */
bool login_is_jwt(const struct login_format *f); /* its end stands in the token itself */
/* The i-th lock of a session's file, NULL past the end: a name in its folder, or ".lock" for the
 * name of the folder with that behind it. Each is a directory. */
const char *login_lock(const struct login_format *f, size_t i);
/* Of a session: where the time of its last refresh is written, NULL: nowhere. */
login_place login_stamp(const struct login_format *f);
/* The entry that is used where none is named; NULL: all are; "=current": the file says which. */
const char *login_one(const struct login_format *f);
/* The variable that leads its program to another folder; NULL: the format has a lock of its own,
 * and the user's own file is refreshed. */
const char *login_own(const struct login_format *f);
/* Parts that an entry has to have, and those that it may have: fn for each. */
void login_each_part(const struct login_format *f,
                     void (*fn)(void *arg, const char *part, login_place at, bool secret,
                                bool needed),
                     void *arg);

/* A file that was looked at: { ENTRY: { PART: TEXT } }, where the text of a part that is a secret
 * is "". "lines" beside: text that goes along as it is. */
struct login_use {
    struct login_format *format; /* owned */
    char *file;                  /* owned; on the host, absolute */
    char *of;                    /* owned; whose it is, of a format with a file for each; or NULL */
    json_t *entries;             /* owned */
    char *lines;                 /* owned, NULL: none */
    bool refresh;                /* a session may be refreshed here */
};

/* What it adds to a configuration: members of `secrets`, items of `rules`. */
int login_expand(const struct login_use *u, json_t *secrets, json_t *rules,
                 struct err *err) WUNUSED;
/* Who it makes the sandbox to clouds, as `identity` of a policy: a new reference, or NULL. */
json_t *login_identity(const struct login_use *u);
/* The i-th file inside, by its path below the home: text with {{placeholder NAME}} and {{project}}
 * still in it. 1; 0: past the end; -1 with err. */
int login_file_inside(const struct login_use *u, size_t i, const char **path, struct buf *text,
                      struct err *err) WUNUSED;

#endif
