/* The presets, profiles and formats of login files as they lie in rules/presets/, rules/profiles/
 * and rules/logins/, one file each, put into the program when it is built (rules/presets/embed). */
#ifndef DURWARD_BUILT_IN_H
#define DURWARD_BUILT_IN_H

#include <stddef.h>
#include <string.h>

struct built_in {
    const char *name, *text; /* YAML: rules/compile/preset.c, doc/durward-profile.5.md,
                              * rules/logins/README.md */
};

/* By name; the last has none. */
extern const struct built_in preset_files[], profile_files[], login_files[];

/* NULL past the end. */
static inline const char *built_in_name(const struct built_in *files, size_t i)
{
    size_t k = 0;
    while (k < i && files[k].name)
        k++;
    return files[k].name;
}

static inline const char *built_in_text(const struct built_in *files, const char *name)
{
    while (files->name && strcmp(files->name, name) != 0)
        files++;
    return files->text;
}

#endif
