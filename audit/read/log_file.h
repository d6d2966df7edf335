/* The active audit file: lines are put into a bounded queue, chained, and flushed in whole lines.
 * What counts as written is what is on disk: after a short write the file is cut back to its last
 * whole line, and the queue keeps the rest for the next try. */
#ifndef DURWARD_LOG_FILE_H
#define DURWARD_LOG_FILE_H

#include "head.h"
#include "merkle.h"
#include "line_reader.h"
#include "render.h"

struct log_file;

/* Called for each line found at start. */
typedef void (*log_file_line_fn)(void *arg, const struct render_head *h);

/* Find where the chain stands: read the last file, and earlier ones back to the line after
 * `from_seq`, cut a torn last line off. head: the signed head, or NULL. When the log does not reach
 * its head, or differs from it, the chain goes on from the head (so that the gap stays visible to
 * `verify`) and *broken says so. */
struct log_file *log_file_open(int dirfd, const struct head *head, uint64_t from_seq,
                               log_file_line_fn fn, void *arg, bool *broken, struct err *err);
/* fn is given lines, newlines included, once they are in the file. */
void log_file_on_lines(struct log_file *f, void (*fn)(void *arg, struct slice lines), void *arg);
void log_file_free(struct log_file *f); /* what is not flushed is lost */
/* There is room for the lines of one more record (and an event about it). */
bool log_file_room(const struct log_file *f);
/* -1 when out of room or memory. */
int log_file_put(struct log_file *f, const struct record_view *v, const struct render_source *from,
                 uint64_t at, uint64_t received_ns) WUNUSED;
/* Everything that was put is in the file (not: on the platter). On -1 it stays queued. */
int log_file_flush(struct log_file *f, struct err *err);
int log_file_sync(struct log_file *f, struct err *err); /* fdatasync */
/* The line put last, while it is still queued. */
bool log_file_last(const struct log_file *f, char *to, size_t size);
/* The active file is over this size, or older (0: any age). */
bool log_file_due(const struct log_file *f, uint64_t bytes, uint64_t seconds, uint64_t now_ns);
/* Close the active file, synced; the next line begins a new one. closed: its name, "" when there
 * was nothing to close (or lines wait to be flushed first). */
int log_file_rotate(struct log_file *f, char closed[LOG_NAME_MAX], struct err *err);
size_t log_file_queued(const struct log_file *f); /* bytes */
bool log_file_pending(const struct log_file *f);
/* The file was removed under us: nothing reaches the log until a new one is begun. */
bool log_file_lost(struct log_file *f);
/* The lines since the last checkpoint, that line included: the first one's seq, their Merkle root,
 * and the last one put. false when nothing was put since, or SHA-256 failed. */
bool log_file_since(const struct log_file *f, uint64_t *first, unsigned char root[CHAIN_HASH],
                    struct chain *tip);
uint64_t log_file_seq(const struct log_file *f); /* of the last line put */
/* File, seq and hash of the last line in the file; false when there is none yet. */
bool log_file_tip(const struct log_file *f, struct head *ret);

#endif
