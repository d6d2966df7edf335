/* Which version of a file it is, by its inode, and changing a file only if it is still that
 * version. Whoever calls file_replace or file_remove ignores SIGIO: a lease tells of writers. */
#ifndef DURWARD_FILE_VERSION_H
#define DURWARD_FILE_VERSION_H

#include <sys/stat.h>

#include "compiler.h"

enum { FILE_VERSION_TEXT = 72, FILE_VERSION_STILL_MS = 40 };

struct file_version {
    uint64_t ino, size;
    int64_t modified, changed; /* ns since 1970: of its bytes; of its bytes or attributes */
};

struct file_version file_version_of(const struct stat *st);
bool file_version_same(const struct file_version *a, const struct file_version *b);
/* It changed long enough ago that another change would show: a clock has ticked since. */
bool file_version_still(const struct file_version *v);
/* Four numbers in hexadecimal, with dots between. */
void file_version_text(const struct file_version *v, char to[FILE_VERSION_TEXT]);
int file_version_read(const char *text, struct file_version *ret);

/* Puts `beside` in the place of `name`, both in dir, if `name` is a regular file of this version;
 * was NULL: if nothing has that name. 0, or an errno: ESTALE when it is another by now, ETXTBSY
 * when somebody has it open for writing. Then `name` is as it was and `beside` is gone, unless
 * changing back failed. */
int file_replace(int dir, const char *beside, const char *name, const struct file_version *was);
/* Removes it likewise; `aside`: a name that is free. */
int file_remove(int dir, const char *name, const char *aside, const struct file_version *was);

#endif
