/* W_RUN, CLI → controller: make a sandbox, run one command in it, take it down.
 *
 * Fields of the message, in order:
 *   policy:str
 *   argv n × str, env n × str ("K=V", what the user passed with -e and the kept variables)
 *   cwd:str                       inside
 *   n × bind: source:str, target:str, writable:u8
 *   home:str user:str uid:u32 gid:u32
 *   tty:u8 rows:u32 cols:u32
 *   3 fds when not tty: stdin, stdout, stderr
 * Answers: W_RUN_STARTED, then W_RUN_EXIT; W_RUN_SIGNAL and W_RUN_WINSIZE may be sent between.
 * The channel's end kills the sandbox. */
#ifndef DURWARD_RUN_H
#define DURWARD_RUN_H

enum { /* exit codes of our own, DESIGN §4 */
    EXIT_DURWARD_FAILED = 125,
    EXIT_NOT_EXECUTABLE = 126,
    EXIT_NOT_FOUND = 127,
};

#endif
