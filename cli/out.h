/* What commands print: messages on stderr, tables and JSON on stdout, colours where they are
 * welcome (a terminal, no NO_COLOR, TERM other than "dumb"). */
#ifndef DURWARD_OUT_H
#define DURWARD_OUT_H

#include <jansson.h>
#include <stdio.h>

#include "compiler.h"
#include "err.h"

enum colour { COLOUR_NONE = 0, COLOUR_RED, COLOUR_GREEN, COLOUR_YELLOW, COLOUR_DIM };

bool out_colours(FILE *f);
/* The text in this colour, or plain where colours are off. */
void out_coloured(FILE *f, enum colour c, const char *text);
/* "durward: MESSAGE" on stderr. */
void out_error(const char *fmt, ...) PRINTF(1, 2);
/* The same of what is good to know and no error; nothing once out_be_quiet was called. */
void out_note(const char *fmt, ...) PRINTF(1, 2);
void out_be_quiet(void);
bool out_is_quiet(void);
/* What a terminal would obey becomes '?'; names in a message may be a sandbox's. */
void out_harmless(char *text);
/* The same of an error; -> EXIT_NO. */
int out_fail(const struct err *err);
/* The text of a member of an object, borrowed; "" where it has none. */
const char *out_member(const json_t *o, const char *key);
/* Text that came from outside: anything but printable ASCII becomes '?', so that it cannot drive
 * the terminal. At most size - 1 bytes go into buf; returns buf. */
char *out_clean(const char *text, char *buf, size_t size);
/* One line of JSON (indented on a terminal) on stdout; takes the reference. 0, or -1 when stdout
 * cannot take it (reported). */
int out_json(json_t *v);
/* Push stdout out; 0, or -1 when it failed (reported), e.g. on a full disk. */
int out_flush(void);

/* Write a file: a new one, unless it may be there already; then FILE.new takes its place once that
 * is on disk. One that cannot be written whole is taken away again, and what was there stays. errno
 * EEXIST: it is there. */
int out_file(const char *file, int mode, bool replace, const void *p, size_t n, struct err *err);

/* How far long work has come, in a line on stderr that each call replaces: on a terminal only, a
 * few times a second, and not in the first half second. Zero it first. */
struct out_progress {
    int64_t begun, shown; /* ms; 0: not yet */
};
void out_progress(struct out_progress *p, const char *fmt, ...) PRINTF(2, 3);
void out_progress_end(struct out_progress *p); /* takes the line away */

/* "4s", "3m", "5h", "2d": a time in its largest unit. */
const char *out_span(int64_t seconds, char *to, size_t size);

struct out_table;
/* Column titles, ended by NULL. Cells are added row by row; NULL is an empty cell. */
struct out_table *out_table_new(const char *const *titles);
void out_table_cell(struct out_table *t, const char *text);
void out_table_number(struct out_table *t, int64_t n);
void out_table_print(struct out_table *t); /* and frees it; one without rows is not begun */

/* What an `ls` prints: the list as JSON, or a table with the cells of `row` for each of it; `none`,
 * on stderr, where it is empty. Takes the reference. The exit code. */
int out_list(json_t *all, bool json, const char *const *titles, const char *none,
             void (*row)(struct out_table *t, const json_t *o));

#endif
