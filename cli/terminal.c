/* Makes the terminal raw with termios and restores it from atexit and from handlers of fatal
 * signals, which is why its state is static. */
#include "terminal.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

/* One terminal a process is what atexit and signal handlers can know of. */
static struct {
    int fd;
    struct termios was;
    bool known;
    volatile sig_atomic_t raw;
} term = {.fd = -1};

void terminal_restore(void)
{
    if (term.raw) {
        tcsetattr(term.fd, TCSADRAIN, &term.was);
        term.raw = 0;
    }
}

bool terminal_is_raw(void)
{
    return term.raw;
}

/* tcsetattr is async-signal-safe; the signal then does what it always did (SA_RESETHAND). */
static void on_fatal(int sig)
{
    if (term.raw)
        tcsetattr(term.fd, TCSANOW, &term.was);
    raise(sig);
}

static void guard_exits(void)
{
    static const int fatal[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGALRM, SIGXCPU};
    struct sigaction sa = {.sa_handler = on_fatal, .sa_flags = (int)(SA_RESETHAND | SA_NODEFER)};
    for (size_t i = 0; i < ARRAY_LEN(fatal); i++)
        sigaction(fatal[i], &sa, NULL);
    atexit(terminal_restore);
}

int terminal_raw(int fd, struct err *err)
{
    struct termios raw;
    if (!term.known) {
        if (tcgetattr(fd, &term.was) < 0)
            return err_sys(err, "the terminal");
        term.fd = fd;
        term.known = true;
        guard_exits();
    }
    raw = term.was;
    cfmakeraw(&raw);
    term.raw = 1; /* before, so that a signal in between restores */
    if (tcsetattr(fd, TCSADRAIN, &raw) < 0) {
        term.raw = 0;
        return err_sys(err, "the terminal");
    }
    return 0;
}

void terminal_size(int fd, uint32_t *rows, uint32_t *cols)
{
    struct winsize w;
    bool ok = ioctl(fd, TIOCGWINSZ, &w) == 0 && w.ws_row && w.ws_col;
    *rows = ok ? w.ws_row : 24;
    *cols = ok ? w.ws_col : 80;
}
