/* Checkpoints of the audit log to where they are kept beside it. The logger can neither run a
 * program nor open a socket, so it hands each line to the parent. */
#include "notice_queue.h"

#include "store_command.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { SYSLOG_AUTHPRIV_NOTICE = 10 * 8 + 5 };

/* RFC 3164, as syslog(3) writes it to the local daemon. */
int parent_syslog(const char *path, const char *what, const char *line, struct err *err)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    char text[NOTICE_QUEUE_TEXT_MAX + 128], timestamp[32];
    time_t now = time(NULL);
    struct tm tm;
    snprintf(to.sun_path, sizeof to.sun_path, "%s", path);
    strftime(timestamp, sizeof timestamp, "%b %e %H:%M:%S", localtime_r(&now, &tm));
    int n = snprintf(text, sizeof text, "<%d>%s durward[%d]: %s %s", SYSLOG_AUTHPRIV_NOTICE,
                     timestamp, (int)getpid(), what, line);
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    ssize_t sent =
        fd < 0 ? -1 : sendto(fd, text, (size_t)n, MSG_NOSIGNAL, (struct sockaddr *)&to, sizeof to);
    if (sent != n)
        err_sys(err, "syslog (%s)", path);
    if (fd >= 0)
        close(fd);
    return sent == n ? 0 : -1;
}

bool parent_anchor_reaped(struct parent *p, pid_t pid, int status)
{
    if (pid != p->anchor_pid)
        return false;
    p->anchor_pid = 0;
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        proc_log("audit anchor: the command failed (wait status %d)", status);
    return true;
}

/* A run's checkpoint has the name of its log before it: a daemon's log has the same key, and may
 * have the same anchor. What goes by https stays one JSON object, with the name in it
 * (verify_anchor.c takes it out again). */
int parent_anchor(struct parent *p, struct msg *m)
{
    char line[1024], named[sizeof line + sizeof p->run_id + sizeof "run- "],
        object[sizeof named + sizeof "{\"log\":\"\","];
    struct err err = {0};
    const struct config_audit *a = config_audit(p->config);
    if (msg_get_str(m, line, sizeof line) < 0 || msg_end(m) < 0)
        return -1;
    bool of_run = p->mode == PARENT_RUN && line[0] == '{';
    if (of_run) {
        snprintf(named, sizeof named, "run-%s %s", p->run_id, line);
        snprintf(object, sizeof object, "{\"log\":\"run-%s\",%s", p->run_id, line + 1);
    } else {
        snprintf(named, sizeof named, "%s", line);
        snprintf(object, sizeof object, "%s", line);
    }
    if (a->anchor_syslog && parent_syslog(a->anchor_syslog, "checkpoint", named, &err) < 0)
        proc_log("audit anchor: %s", err.text);
    if (a->anchor_command && store_command_tell(a->anchor_command, named, &p->anchor_pid, &err) < 0)
        proc_log("audit anchor: %s", err.text);
    if (config_exporter_url(p->config, EXPORTER_ANCHOR))
        notice_queue_add(p, SINK_ANCHOR, "", object);
    return 0;
}
