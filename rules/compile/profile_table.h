/* The profiles as they lie in rules/profiles/, one file each, put into the program when it is
 * built. */
#ifndef DURWARD_PROFILE_TABLE_H
#define DURWARD_PROFILE_TABLE_H

#include <stddef.h>

struct profile_built_in {
    const char *name, *text; /* YAML: doc/durward-profile.5.md */
};
extern const struct profile_built_in profile_files[]; /* by name; the last has none */

#endif
