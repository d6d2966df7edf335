/* The user's terminal in raw mode, and its way back on every exit: normal ones, fatal signals that
 * nobody catches, crashes of our own. One terminal a process. */
#ifndef DURWARD_TERMINAL_H
#define DURWARD_TERMINAL_H

#include "err.h"

/* fd: a terminal. Remembers its settings and makes it raw. Again after terminal_restore: raw again
 * with the settings remembered first. */
int terminal_raw(int fd, struct err *err);
/* Back to what it was; nothing when it never was raw. */
void terminal_restore(void);
bool terminal_is_raw(void);
/* Rows and columns, 24 by 80 where the terminal does not know. */
void terminal_size(int fd, uint32_t *rows, uint32_t *cols);

#endif
