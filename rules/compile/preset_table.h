/* The presets as they lie in rules/presets/, one file each, put into the program when it is built.
 */
#ifndef DURWARD_PRESET_TABLE_H
#define DURWARD_PRESET_TABLE_H

#include <stddef.h>

struct preset_file {
    const char *name,
        *text; /* YAML: kind, hosts, under, rules, one_host (rules/compile/preset.c) */
};
extern const struct preset_file preset_files[]; /* by name; the last has none */

#endif
