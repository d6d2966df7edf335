/* Where durward-init can give no descriptor out (COMMAND_RELAYED): a command's terminal is carried
 * by a process of its session, over a socket that came in. */
#ifndef DURWARD_TERMINAL_RELAY_H
#define DURWARD_TERMINAL_RELAY_H

/* In the command's process, once the terminal is that of its session: who is in front only a
 * process of the session may know. 0, or -1. It ends when the far end of the socket is closed. */
int terminal_relay(int master, int sock, int terminal);

#endif
