/* Shared by view.c (the mount and its process), view_judge.c (what may be shown),
 * view_read.c and view_change.c (the operations). */
#ifndef DURWARD_VIEW_INTERNAL_H
#define DURWARD_VIEW_INTERNAL_H

#define FUSE_USE_VERSION 31
#include <fuse.h>
#include <limits.h>
#include <sys/stat.h>

#include "compiler.h"
#include "mask.h"
#include "view_own.h"

enum { VIEW_PATH = 2 * PATH_MAX };

struct view {
    int root;           /* what is shown */
    const char *source; /* its host path */
    size_t nsource;
    uid_t uid;
    gid_t gid;
    struct owns owns;
    struct bound *bound; /* of a volume; NULL: a bound directory, whose files are judged */
};

/* An open file, at fuse_file_info.fh. */
struct opened {
    int fd;
    bool masked; /* it was, when it was opened: it is empty */
};

static inline struct view *view_of(void)
{
    return fuse_get_context()->private_data;
}

/* Where a path ends: its directory, opened without following a link or leaving the root. */
struct place {
    int dir;
    char name[NAME_MAX + 1];
};
int place_open(const struct view *v, const char *path, struct place *ret); /* 0, or -errno */
void place_close(const struct view *v, struct place *p);
int view_open_at(const struct view *v, const char *path, int flags); /* fd, or -errno */

/* ---- view_judge.c ---- */

/* By the name alone; path as FUSE gives it. */
enum mask_verdict judge_name(const struct view *v, const char *path, bool directory);
/* Does it lie in a directory that is masked as a whole and is not the sandbox's own? */
bool judge_closed(struct view *v, const char *path);
enum judged { JUDGED_SHOWN, JUDGED_OWN, JUDGED_MASKED };
/* What may be shown of an open file (not one of O_PATH): by whose it is, the name that it has now
 * and its content. */
enum judged judge_open(struct view *v, int fd);
/* Does a link beside it, with a credential's name, lead to it? */
bool judge_linked(struct view *v, int fd);
/* The same for what is not open. A directory is masked by its own name, or when it names (.aws,
 * .ssh) what lies in it. */
enum judged judge_at(struct view *v, const char *path, const struct stat *st);
/* And if its path were `as`. */
enum judged judge_as(struct view *v, const char *path, const char *as, const struct stat *st);
/* May what is at `from` get the name `to`? What has a credential's name is one file with this one
 * name, so that nothing else shows what the host writes to it. 0, or -errno. */
int judge_naming(struct view *v, const char *from, const char *to, const struct stat *st);
/* May a link to target have the name `to`? Through it the host would write elsewhere. */
int judge_linking(const struct view *v, const char *target, const char *to);

/* ---- operations ---- */

int view_getattr(const char *path, struct stat *st, struct fuse_file_info *fi);
int view_open(const char *path, struct fuse_file_info *fi);
void view_add_reads(struct fuse_operations *ops);   /* view_read.c */
void view_add_changes(struct fuse_operations *ops); /* view_change.c */
/* view_bound.c: around those that are in ops already. */
void view_add_bound(struct fuse_operations *ops);

#endif
