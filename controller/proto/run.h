/* W_RUN, CLI → controller: make a sandbox, run one command in it, take it down.
 *
 * Fields of the message, in order:
 *   policy:str
 *   argv n × str                  at least one
 *   kept n × str                  "K=V": what is kept of the caller's environment (PATH, TERM, …)
 *   env n × str                   "K=V": the user's -e, which win over everything
 *   cwd:str                       inside
 *   n × bind: source:str, target:str, mode:u8 (SANDBOX_SPEC_BIND_*)
 *   home:str user:str uid:u32 gid:u32
 *   seed:str                      "", or 32 hex digits: of a home that has placeholders already
 *   n × step: op:u8 (INSIDE_WRITE, _WRITE_NEW or _DELETE_TREE), path:str, text:str
 *                                 done inside, in order, before the command starts. Text may hold
 *                                 {{placeholder NAME}} and {{placeholder NAME last N}}
 *   backend:str image:str         "": the policy's; without an image the host's /usr
 *   volumes n × str               NAME:/path[:ro]
 *   ask:u8                        its user decides on requests that an `ask` rule holds
 *   tty:u8 rows:u32 cols:u32
 *   3 fds when not tty: stdin, stdout, stderr
 * Answers, in order:
 *   W_RUN_STARTED sandbox:str, tty:u8, masked:str (files hidden from the sandbox, one a line), and
 *                 the pty master if tty
 *   W_RUN_EXIT    status:u32, text:str, denials (controller/proto/denials.h), sandbox:str
 * W_RUN_SIGNAL and W_RUN_WINSIZE may be sent between. One W_RUN a channel; the channel's end kills
 * the sandbox. */
#ifndef DURWARD_RUN_H
#define DURWARD_RUN_H

#include "inside.h"
#include "strlist.h"

enum { /* exit codes of our own */
       EXIT_DURWARD_FAILED = 125,
       EXIT_NOT_EXECUTABLE = 126,
       EXIT_NOT_FOUND = 127,
};

enum { RUN_PATH_MAX = 4096, RUN_NAME_MAX = 256, RUN_WORD_MAX = 16, RUN_BINDS_MAX = 64 };

enum { RUN_STEPS_MAX = 80, RUN_TEXT_MAX = 32 * 1024, RUN_SEED = 16 };

struct run_bind {
    char *source, *target; /* absolute, canonical; owned */
    bool writable;
    bool home; /* SANDBOX_SPEC_BIND_HOME */
};

struct run_step {
    enum inside_op op;
    char *path, *text; /* owned */
};

struct run_request {
    char policy[RUN_NAME_MAX];
    struct strlist argv, kept, env;
    char cwd[RUN_PATH_MAX];
    struct run_bind binds[RUN_BINDS_MAX];
    size_t n_binds;
    bool view; /* their files are judged whenever they are opened (view.h) */
    char home[RUN_PATH_MAX];
    char user[RUN_NAME_MAX];
    uint32_t uid, gid;
    bool seeded; /* its placeholders are made from this */
    unsigned char seed[RUN_SEED];
    struct run_step steps[RUN_STEPS_MAX];
    size_t n_steps;
    uid_t outside; /* not of the message: who gets our pipes; 0: they stay as they are */
    char backend[RUN_WORD_MAX], image[RUN_NAME_MAX];
    struct strlist volumes;
    bool ask;
    bool tty;
    uint32_t rows, cols;
    int fds[3]; /* owned; -1 where there is none (tty, or passed on) */
};

void run_request_init(struct run_request *r);
void run_request_done(struct run_request *r);
/* Adds a bind; both are copied. -1 when there are too many. */
int run_request_bind(struct run_request *r, const char *source, const char *target,
                     bool writable) WUNUSED;
/* Adds a step; both texts are copied. -1 when there are too many. */
int run_request_step(struct run_request *r, enum inside_op op, const char *path,
                     const char *text) WUNUSED;
/* The mode of a bind as messages have it. */
uint8_t run_bind_mode(const struct run_request *r, size_t i);
/* Writing side; the descriptors move into the message. */
void run_request_put(struct run_request *r, struct msg *m);
/* Reading side: checks bounds, that paths are absolute and names are names. */
int run_request_get(struct run_request *r, struct msg *m) WUNUSED;

#endif
