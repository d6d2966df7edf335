/* Profiles by name: the user's own, those of the machine, the built in ones. Never one of the
 * current directory, which an agent could have written. */
#ifndef DURWARD_PROFILE_FIND_H
#define DURWARD_PROFILE_FIND_H

#include "profile.h"

/* The file of a profile that is not built in, malloc'd; NULL: there is none. */
char *profile_find_file(const char *name);
bool profile_is_known(const char *name);
/* NULL with err, which names the nearest. *file (malloc'd): where it was read from; NULL: built in.
 */
struct profile *profile_load(const char *name, char **file, struct err *err);
/* Its text, malloc'd, and where from. */
char *profile_load_text(const char *name, char **file, struct err *err);
/* Each by name, once. */
void profile_each(void (*fn)(void *arg, const char *name), void *arg);

#endif
