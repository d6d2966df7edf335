/* Whose the other end of a connection over loopback is: any user of this machine may make one. */
#ifndef DURWARD_LOGIN_PEER_H
#define DURWARD_LOGIN_PEER_H

#include <stdbool.h>
#include <sys/types.h>

/* The user whose process made it and has it open; false: nobody can tell. */
bool login_peer_uid(int fd, uid_t *uid);
/* It is ours, or root's, who could do all that we do. */
bool login_peer_ours(int fd);

#endif
