/* Shared by the logger's own files only: logger.c (control, turns, stop), logger_start.c (the
 * directory at start), logger_channel.c (one writer), logger_keep.c (checkpoints and old files),
 * logger_share.c (what each sandbox may write), logger_notice.c (thresholds),
 * logger_fleet.c (the other hosts of a fleet). */
#ifndef DURWARD_LOGGER_INTERNAL_H
#define DURWARD_LOGGER_INTERNAL_H

#include "subscribers.h"
#include "counts.h"
#include "ipc.h"
#include "journal_file.h"
#include "log_file.h"
#include "open_request_terms.h"
#include "log_index.h"
#include "logger.h"
#include "open_ids.h"
#include "proc.h"
#include "shares.h"
#include "signing_key.h"
#include "thresholds.h"

#include <sys/queue.h>

enum {
    LOGGER_CREDIT = 1 << 20,  /* bytes a writer may be ahead of us */
    LOGGER_CHUNK = 64 * 1024, /* read from one journal in one go */
    LOGGER_TICK_MS = 100,
    LOGGER_RETRY_MS = 200,
    LOGGER_STOP_MS = 2000,       /* how long an ending logger waits for its writers to be gone */
    LOGGER_GRACE_MS = 3000,      /* the same where the file system cannot tell */
    LOGGER_CHANNELS_MAX = 16384, /* a sandbox has one, and one for each of its brokers */
};

enum channel_state {
    CHANNEL_WAITING = 1, /* has no journal yet: it could not be made */
    CHANNEL_OPEN,
    CHANNEL_CLOSING,  /* its writer's channel ended: copy the rest once nobody can add to it */
    CHANNEL_ABORTING, /* write the missing ends */
    CHANNEL_DRAINED,  /* all is queued: remove the journal once that is on disk */
};

/* A sandbox of a writer that serves several, which has used up its share. */
struct paced {
    TAILQ_ENTRY(paced) link;
    struct share *share;
    char sandbox[RENDER_NAME_MAX + 1];
};

struct channel {
    TAILQ_ENTRY(channel) link;
    TAILQ_ENTRY(channel) busy_link;
    bool busy; /* it is among the logger's busy ones */
    struct logger *logger;
    struct ipc *ipc; /* NULL: a leftover, or closing */
    uint32_t handle; /* the parent's number for it; 0 for a leftover */
    enum channel_state state;
    struct journal_file file;
    struct open_ids *ids;
    uint64_t granted;    /* bytes of records the writer was ever allowed */
    struct share *share; /* of the log; NULL: not looked for yet */
    TAILQ_HEAD(, paced) paced;
    size_t n_paced;
    bool slowed;      /* its writer holds what finds no credit */
    uint64_t said_ms; /* when the log last said that a share is used up; 0: never */
    uint64_t sync_upto, synced;
    uint64_t since_ms; /* closing since, monotonic */
    bool dirty;        /* look at it in the next turn; then it is busy, too */
    bool overrun;      /* it was seen to write more than it had credit for */
    bool more;         /* the last chunk was not the end */
    bool torn;         /* the writer asks to cut the torn end off */
    uint64_t torn_at;
    bool told; /* the parent heard that its journal could not be made */
};

TAILQ_HEAD(channel_list, channel);

struct logger_keep { /* as struct config_audit, which this layer may use but the role is not given
                      */
    uint64_t rotate_bytes, rotate_seconds, keep_bytes, keep_seconds;
    bool compress;
};

struct logger {
    struct event_base *base;
    struct ipc *control; /* NULL once it ended */
    int (*confine)(int dir, struct err *);
    struct event *turn, *retry, *tick, *second, *deadline;
    int base_dir, dir, journal_dir, lock;
    bool synced;
    struct signing_key *key;
    struct log_file *log;
    uint64_t signed_seq; /* the head on disk goes so far */
    uint32_t next_channel, reserved;
    uint32_t seen_channel; /* highest in the lines read at start */
    struct channel_list channels;
    struct channel_list busy;     /* all that a turn has to look at, the longest waiting first */
    size_t n_channels, n_drained; /* the latter among the former */
    bool clear;                   /* the journals of those that are drained, in the next turn */
    struct logger_keep keep;
    struct log_compress *log_compress; /* the closed file that is being compressed */
    struct event *log_compress_turn;
    struct event *thin_turn;
    char thinning[LOG_NAME_MAX];
    struct thin *thin;                /* the closed file that is being thinned; prune.h */
    char thinned[3][LOG_NAME_MAX];    /* by enum thin_depth: up to this one all are */
    struct open_request_terms *begun; /* requests without an end in the files compressed so far */
    uint64_t checkpoint_ms, prune_ms; /* when last, monotonic */
    int64_t clock_ms;      /* the wall clock less the time since boot; 0: not looked yet */
    char checkpoint[1024]; /* the last one's line, until it is handed on */
    struct counts counts;
    struct shares *shares;
    uint64_t may_use;   /* of each share, for the room that the disk has: shares.h */
    uint64_t free_seen; /* bytes, when all channels were looked at last, or more since */
    uint32_t ticks;
    struct subscribers *subscribers;
    struct log_index *index; /* of the active file; NULL: not of all of it, so none is written */
    struct thresholds *thresholds; /* NULL: none are set */
    struct logger_fleet *fleet;    /* NULL: this host is in none, or says nothing to it */
    bool anchored, rotate_asked;
    bool started, failing, head_failing, stopping, said_last, forced, finished, ok;
    unsigned char chunk[LOGGER_CHUNK];
};

/* logger.c */
uint64_t logger_ms(void); /* monotonic */
void logger_wake(struct logger *l);
void logger_warn(struct logger *l, const char *fmt, ...) PRINTF(2, 3);
/* A lifecycle line of our own, about ch if not NULL; request 0: none. */
void logger_event(struct logger *l, const struct channel *ch, const char *event, const char *detail,
                  uint64_t request);

/* Says it when the wall clock was put forward or back since the last look. */
void logger_clock(struct logger *l);
void logger_arm(struct event *e, unsigned ms);

/* logger_keep.c: checkpoints, rotation, compression, retention. */
int logger_keep_start(struct logger *l);
void logger_index(struct logger *l, struct slice lines); /* they are in the active file */
void logger_keep(struct logger *l);                      /* each second */
void logger_keep_last(struct logger *l);                 /* before the end */
void logger_keep_end(struct logger *l);

/* logger_notice.c: thresholds that were reached, into the log and to the parent. */
int logger_take_thresholds(struct logger *l, struct msg *m);
int logger_take_suppressions(struct logger *l, struct msg *m);
void logger_notice(struct logger *l);

/* logger_share.c: who may write how much. */
/* A line of that record was queued for the log. */
void channel_charge(struct channel *ch, const struct record_view *v, size_t line);
uint64_t channel_credit(struct channel *ch); /* what to grant now; 0: nothing */
void channel_share_done(struct channel *ch);
bool logger_tick(struct logger *l); /* each LOGGER_TICK_MS; false: a journal was removed */

/* logger_start.c: everything that W_INIT asks for. */
int logger_start(struct logger *l, struct msg *m, struct err *err);
uint32_t logger_number(struct logger *l, struct err *err); /* of a new journal; 0 with err */

/* logger_fleet.c: what this host and the others of its fleet say of their logs. */
int logger_fleet_take(struct logger *l, struct msg *m);
int logger_fleet_open(struct logger *l, struct err *err);            /* once the log is open */
int logger_fleet_attach(struct logger *l, int fd, uint32_t channel); /* the role; takes fd */
void logger_fleet_tick(struct logger *l);                            /* each second */
void logger_fleet_tell(const struct logger *l, struct ipc *to); /* what is known: W_FLEET_KNOWN */
void logger_fleet_free(struct logger *l);

/* logger_channel.c */
struct channel *channel_new(struct logger *l);
void channel_free(struct channel *ch); /* the journal stays on disk */
/* A new writer; takes fd. 0 or -1 (then the parent was told). */
int channel_accept(struct logger *l, enum role role, uint32_t handle, const char *sandbox,
                   const char *policy, int fd);
void channel_replay(struct channel *ch, const struct render_head *h); /* a line found at start */
void channel_close(struct channel *ch);                               /* no more from its writer */
void channel_wake(struct channel *ch); /* the next turn looks at it */
void channel_pump(struct channel *ch); /* copy into the queue what there is */
bool channel_wants_sync(const struct channel *ch);
/* The queue is on disk: credit, acknowledge, repair, remove; it is busy no longer if that was all.
 * May free the channel. */
void channel_settle(struct channel *ch, bool clear); /* clear: as in struct logger */

#endif
