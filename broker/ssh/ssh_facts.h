/* What a front says to its back of one request, and what else both ends of the SSH broker know: how
 * git's commands are written, and their packets beside bytes. */
#ifndef DURWARD_SSH_FACTS_H
#define DURWARD_SSH_FACTS_H

#include "authority.h"
#include "buf.h"
#include "record.h"
#include "ssh_rule.h"

enum { SSH_TERM_MAX = 64, SSH_FACTS_MAX = 2048, SSH_GIT_PROTOCOLS = 3, SSH_LINE_MAX = 5000 };

struct ssh_facts {
    char user[SSH_USER_MAX + 1];
    enum ssh_verb verb;
    char text[SSH_TEXT_MAX + 1]; /* struct ssh_asked */
    uint8_t git_protocol;        /* 0: not said; else `version=` and one less */
    char term[SSH_TERM_MAX + 1]; /* "": without a terminal */
    uint32_t columns, rows;
};

/* Appends. 0 or -1. */
int ssh_facts_put(const struct ssh_facts *f, struct buf *to) WUNUSED;
/* The whole of it, every field within its bounds. 0 or -1. */
int ssh_facts_get(struct slice s, struct ssh_facts *ret) WUNUSED;
struct ssh_asked ssh_facts_asked(const struct ssh_facts *f);

/* What a client asked the server to run: verb and text. git's commands are those for a repository,
 * written as git writes them; `relative`: its path began neither with "/" nor "~/", and *text has
 * "/" in front of it. -1: it is too long, or holds what no command does. */
int ssh_command_read(struct slice command, struct ssh_facts *ret, bool *relative);
/* The same as the server is asked: made anew from verb and text. Appends. 0 or -1. */
int ssh_command_write(const struct ssh_facts *f, struct buf *to) WUNUSED;

/* Fields of a record that say what was asked: who, what. */
void ssh_facts_record(const struct ssh_facts *f, struct record *r);

/* BROKER_STATUS: how the command ended. BROKER_EVENT: the window has another size. */
struct ssh_status {
    bool signalled;
    uint32_t status; /* unless signalled */
    char signal[16]; /* "TERM" */
};
int ssh_status_put(const struct ssh_status *s, struct buf *to) WUNUSED;
int ssh_status_get(struct slice s, struct ssh_status *ret) WUNUSED;
int ssh_window_put(uint32_t columns, uint32_t rows, struct buf *to) WUNUSED;
int ssh_window_get(struct slice s, uint32_t *columns, uint32_t *rows) WUNUSED;

#endif
