/* A client's commands (RESP): an array of bulk strings, in their one plain form. Inline commands,
 * numbers with a sign or leading zeros, and empty arrays are refused: what two readers could read
 * differently is no command. Of a command one argument is held at a time; one that is longer than
 * RESP_HELD_MAX comes in pieces. */
#ifndef DURWARD_RESP_COMMAND_H
#define DURWARD_RESP_COMMAND_H

#include "buf.h"

enum {
    RESP_HELD_MAX = 64 * 1024,             /* bytes of an argument that is read whole */
    RESP_ARGUMENT_MAX = 512 * 1024 * 1024, /* Redis' own bounds */
    RESP_ARGUMENTS_MAX = 1 << 20,
};

enum resp_event {
    RESP_MORE = 0,
    RESP_BEGUN,    /* a command of r->n arguments */
    RESP_ARGUMENT, /* number r->i, whole: r->said */
    RESP_LONG,     /* number r->i, of r->length bytes: pieces of it follow, */
    RESP_PIECE,    /* r->said, */
    RESP_LONG_END, /* to its end */
    RESP_VIOLATION
};

struct resp_commands {
    struct buf bytes; /* an argument that comes in several reads */
    int at;           /* which part of the grammar is next */
    unsigned digits;
    size_t number;
    size_t n, i;
    size_t length;
    struct slice said; /* until the next call */
    const char *why;   /* of a violation */
};

void resp_commands_init(struct resp_commands *r);
void resp_commands_free(struct resp_commands *r);
/* Takes from in what it uses, up to the next event. After RESP_VIOLATION nothing more is read. */
enum resp_event resp_commands_read(struct resp_commands *r, struct slice *in);
/* With RESP_ARGUMENT and RESP_LONG_END: the command is over. */
bool resp_command_over(const struct resp_commands *r);

/* A command, or the parts of one. */
int resp_put_array(struct buf *out, size_t n);
int resp_put_length(struct buf *out, size_t n); /* of a bulk string, whose bytes follow */
int resp_put_bulk(struct buf *out, struct slice s);
/* What was read last, as it stands in a command. */
int resp_put_read(struct buf *out, const struct resp_commands *r, enum resp_event e);

#endif
