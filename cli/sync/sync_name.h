/* Which paths are carried at all, and which ways. Names come from a sandbox: a path that is carried
 * leads nowhere but below the directory, and can be printed. */
#ifndef DURWARD_SYNC_NAME_H
#define DURWARD_SYNC_NAME_H

#include "compiler.h"

enum { SYNC_PATH = 4096, SYNC_NAME = 255, SYNC_DEPTH = 64 };

#define SYNC_IGNORE_FILE ".durwardignore"

/* "a/b": UTF-8, no component that leads elsewhere, no byte that a terminal obeys, none that shows
 * text in another order than it has. */
bool sync_name_ok(const char *path);
/* A file of ours: one that is being written, or the other side's version of a conflict. */
bool sync_name_own(const char *path);
/* Only carried into the sandbox, unless the user says otherwise: what git on the host runs or
 * obeys. A repository is known by .git, or by its HEAD. */
bool sync_name_git(const char *path);
/* Never carried out: it says what goes in. */
bool sync_name_ignore_file(const char *path);

#endif
