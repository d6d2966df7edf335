/* A client's commands (RESP): an array of bulk strings, in their one plain form. Inline commands,
 * numbers with a sign or leading zeros, and empty arrays are refused: what two readers could read
 * differently is no command. A command is read whole. */
#ifndef DURWARD_RESP_COMMAND_H
#define DURWARD_RESP_COMMAND_H

#include "buf.h"

enum {
    RESP_COMMAND_MAX = 1 << 20, /* bytes of a command's arguments */
    RESP_ARGUMENTS_MAX = 16384,
};

enum resp_event { RESP_MORE = 0, RESP_COMMAND, RESP_VIOLATION };

struct resp_commands {
    struct buf bytes; /* the arguments, one behind the other */
    struct buf ends;  /* size_t each: where they end there */
    int at;           /* which part of the grammar is next */
    unsigned digits;
    size_t number;
    size_t left;     /* arguments that are to come */
    size_t n;        /* of the command that was read */
    const char *why; /* of a violation */
};

void resp_commands_init(struct resp_commands *r);
void resp_commands_free(struct resp_commands *r);
/* Takes from in what it uses. After RESP_COMMAND resp_argument(0 .. r->n - 1) are its own until the
 * next call. After RESP_VIOLATION nothing more is read. */
enum resp_event resp_commands_read(struct resp_commands *r, struct slice *in);
struct slice resp_argument(const struct resp_commands *r, size_t i);

/* A command, or the parts of one. */
int resp_put_array(struct buf *out, size_t n);
int resp_put_bulk(struct buf *out, struct slice s);

#endif
