/* Reads a command of the configuration: a list of words, which no shell sees. */
#include "config_tree.h"

#include <string.h>

enum { WORDS_MAX = 64 };

int config_read_command(struct config *c, const struct node *n, enum config_program program,
                        const char *const **ret, struct err *err)
{
    size_t count;
    if (node_is_array(n, err) < 0)
        return node_fail(n, err, "'command' is a list: [program, argument, ...]; no shell runs it");
    if (node_strings(n, &count, err) < 0)
        return -1;
    if (count > WORDS_MAX)
        return node_fail(n, err, "'command' has more than %d words", WORDS_MAX);
    const char **argv = arena_zalloc(c->arena, count + 1, sizeof *argv);
    for (size_t i = 0; i < count; i++) {
        struct node item = node_item(n, i);
        const char *word;
        if ((i == 0 ? node_string(&item, &word, err) : node_text(&item, &word, err)) < 0)
            return -1;
        bool file =
            program == CONFIG_PROGRAM_FILE || (program == CONFIG_PROGRAM_PATH && strchr(word, '/'));
        if (i == 0 && file && config_file(c, &item, &word, err) < 0)
            return -1;
        argv[i] = arena_str(c->arena, word);
    }
    *ret = argv;
    return 0;
}
