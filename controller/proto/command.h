/* Commands inside a sandbox, started by durward-init: a session of their own, on three descriptors
 * handed in or on a terminal made here. */
#ifndef DURWARD_COMMAND_H
#define DURWARD_COMMAND_H

#include "compiler.h"
#include "ipc_msg.h"

enum { COMMAND_TEXT = 256, COMMAND_SCRIPT_FD = 9 };

/* Where a command's standard descriptors come from: W_INIT_EXEC's stdio. */
enum command_stdio {
    COMMAND_GIVEN = 0,    /* three in the message: pipes, regular files or /dev/null */
    COMMAND_TERMINAL = 1, /* made here */
    COMMAND_PIPES = 2,    /* made here; with the bits below */
    COMMAND_INPUT = 4,    /* a pipe for stdin too (else /dev/null) */
    COMMAND_SPLIT = 8,    /* stderr apart from stdout */
    COMMAND_STDIO_END = 16,
};

struct command {
    uint32_t number; /* the controller's name for it */
    pid_t pid;       /* also its session and first process group; 0: none runs */
    int master;      /* the terminal's outer side, or -1; owned */
    int outer[3];    /* for W_INIT_STARTED, n_outer of them; owned until given away */
    unsigned n_outer;
};

/* Why a command did not start, as env(1) has it: 125, 126 or 127. */
struct command_failure {
    uint32_t status;
    char text[COMMAND_TEXT];
};

/* Words of durward-init's command line: programs inside may make namespaces; so many open files
 * for each command, at most. */
#define COMMAND_NESTED "nested"
#define COMMAND_FILES  "files="
/* It runs under gVisor, and can give no descriptor out: the inner ends come with what is asked for,
 * after all other descriptors of the message, and W_INIT_STARTED has none. Of a terminal that is a
 * SOCK_SEQPACKET: packets in begin with a byte that says what follows, packets out are bytes. */
#define COMMAND_RELAYED "relayed"
/* The same in a microVM, whose kernel is one like the host's: it connects to ports as well, and the
 * connection's end comes with what asks for it. */
#define COMMAND_GUEST "guest"
enum {
    COMMAND_RELAYED_BYTES = 'b', /* input */
    COMMAND_RELAYED_SIZE = 's',  /* rows and columns, two unsigned short of this machine */
    COMMAND_RELAYED_MAX = 8192,  /* bytes of one packet */
};
/* It listens at SSH_AGENT_SOCKET, and carries what comes there to the gate. */
#define COMMAND_AGENT    "ssh-agent"
#define SSH_AGENT_SOCKET "/tmp/.durward-ssh-agent"

/* What commands may open: half of what this process may, and at most `most` (0: no more is said).
 * This process has the whole from then on. The kernel counts descriptors that lie unread in sockets
 * by uid, against the limit of whoever sends one: what commands leave there never stops us. 0, or
 * -1 with errno. */
int command_files(unsigned long most);

/* From here on (COMMAND_RELAYED). */
void command_relay(void);
void command_init(struct command *c);
/* m is a W_INIT_EXEC after its number. 0 started; 1 not started, *why says it; -1 the message is
 * malformed. */
int command_start(struct command *c, struct msg *m, struct command_failure *why);
/* To the command's process group; on a terminal to the one in the foreground. */
void command_signal(const struct command *c, int sig);
void command_winsize(const struct command *c, uint32_t rows, uint32_t cols);
/* Close what it holds and forget it (its processes are left alone). */
void command_reset(struct command *c);

#endif
