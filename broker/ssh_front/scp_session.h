/* The protocol that scp had before it used SFTP, as a server speaks it (`scp -f PATH` gives, `scp
 * -t PATH` takes), turned into SFTP: what comes of it is a client's packets, which go the way of
 * any client's, and nothing but those. No server is asked to run scp. */
#ifndef DURWARD_SCP_SESSION_H
#define DURWARD_SCP_SESSION_H

#include "sftp_packet.h"
#include "ssh_facts.h"

enum {
    SCP_FOLDERS_MAX = 24,
    SCP_CLIENT_MAX = 64 << 10,
    SCP_OUT_MAX = 128 << 10, /* that waits for the client: no more is asked for */
};

struct scp_command {
    bool gives;   /* -f: the client gets; else it puts */
    bool folders; /* -r */
    bool times;   /* -p */
    bool into;    /* -d: the path is a folder */
    bool has_stars;
    size_t name; /* where the path's last name begins, */
    char path[SSH_TEXT_MAX + 1];
};

struct scp_session;

/* 0, or -1: it is no such command, or has what only a shell could read. */
int scp_command_read(struct slice line, struct scp_command *ret);
/* Of one with stars: is it a name that its last one means? */
bool scp_command_matches(const struct scp_command *c, struct slice name);

/* What it reads and writes; each is the caller's. */
struct scp_io {
    struct buf *client, *replies; /* that came, and is drained */
    struct buf *out, *requests;   /* for the client; for the server */
    bool eof;                     /* the client says no more */
};

struct scp_session *scp_session_new(const struct scp_command *c);
/* As far as it can be taken now. True: it is over. */
bool scp_session_run(struct scp_session *s, const struct scp_io *io);
uint32_t scp_session_status(const struct scp_session *s); /* as scp's */
void scp_session_free(struct scp_session *s);

#endif
