/* Asks durward-init for each step, writes its text into the pipe, and goes on to the next one or,
 * when a step failed, ends the sandbox with the reason. */
#include "sandbox_steps.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "wire.h"

enum { FILE_MODE = 0600 };

static void ask(struct sandbox *s)
{
    const struct run_step *step = &s->plan.request.steps[s->step];
    struct msg m;
    msg_init(&m, W_INIT_FILE);
    msg_put_u32(&m, (uint32_t)s->step + 1);
    msg_put_u8(&m, (uint8_t)step->op);
    msg_put_str(&m, step->path);
    msg_put_u32(&m, FILE_MODE);
    msg_put_str(&m, "");
    if (ipc_send(s->init, &m) < 0)
        sandbox_end(s, EXIT_DURWARD_FAILED, "the sandbox's home could not be written");
}

static void next(struct sandbox *s)
{
    if (s->step < s->plan.request.n_steps)
        ask(s);
    else if (sandbox_exec(s) < 0)
        sandbox_end(s, EXIT_DURWARD_FAILED, "the command and its environment are too long");
}

void sandbox_steps_begin(struct sandbox *s)
{
    s->step = 0;
    next(s);
}

static bool is_current(const struct sandbox *s, uint32_t number)
{
    return s->state == SANDBOX_READY && s->step < s->plan.request.n_steps &&
           number == (uint32_t)s->step + 1;
}

/* The text fits into a pipe, so that one write takes all of it; what takes less is no pipe of our
 * init's. Whoever would read it may have ended already, since the file is there: his status says.
 */
static int pour(int fd, const char *text)
{
    struct stat st;
    size_t n = strlen(text);
    if (fstat(fd, &st) < 0 || !S_ISFIFO(st.st_mode) ||
        fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK) < 0)
        return -1;
    return n == 0 || write(fd, text, n) == (ssize_t)n || errno == EPIPE ? 0 : -1;
}

int sandbox_step_started(struct sandbox *s, uint32_t number, int fd)
{
    int bad = 0;
    if (!is_current(s, number)) {
        close(fd);
        return -1;
    }
    const struct run_step *step = &s->plan.request.steps[s->step];
    if (step->op != INSIDE_DELETE_TREE)
        bad = pour(fd, step->text);
    close(fd);
    if (bad)
        sandbox_end(s, EXIT_DURWARD_FAILED, "a file of the sandbox's home could not be written");
    return 0;
}

static bool is_done(const struct run_step *step, uint32_t status)
{
    return status == 0 || (step->op == INSIDE_WRITE_NEW && status == EEXIST) ||
           (step->op == INSIDE_DELETE_TREE && status == ENOENT);
}

int sandbox_step_ended(struct sandbox *s, uint32_t number, uint32_t status)
{
    char text[1200];
    if (!is_current(s, number))
        return -1;
    const struct run_step *step = &s->plan.request.steps[s->step];
    if (is_done(step, status)) {
        s->step++;
        next(s);
        return 0;
    }
    snprintf(text, sizeof text,
             "%.1000s inside cannot be %s: %s; 'durward home rm' removes a home that is spoilt",
             step->path, step->op == INSIDE_DELETE_TREE ? "removed" : "written",
             strerror((int)status));
    sandbox_end(s, EXIT_DURWARD_FAILED, text);
    return 0;
}
