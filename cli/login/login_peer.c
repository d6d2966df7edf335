/* Looks the other end up in the kernel's tables of TCP sockets, which say each one's user. */
#include "login_peer.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "slice.h"

/* A table may be read while it changes, and miss a line. */
enum { LOOKS = 3, STATE_FIELD = 3, UID_FIELD = 7 };

/* A socket that its program has closed is uid 0's there, whoever made it. */
#define ESTABLISHED "01"

/* The next word of a line; n 0: there is none. */
static struct slice next_word(struct slice *line)
{
    struct slice s = slice_trim(*line);
    size_t n = 0;
    while (n < s.n && s.p[n] != ' ')
        n++;
    *line = (struct slice){s.p + n, s.n - n};
    return (struct slice){s.p, n};
}

/* "SL: LOCAL REMOTE STATE QUEUES TIMER RETRANSMITS UID ...": it is the one of these ends. */
static bool read_line(struct slice line, const char *local, const char *remote, uid_t *uid)
{
    struct slice words[UID_FIELD + 1];
    uint64_t n;
    for (size_t i = 0; i <= UID_FIELD; i++)
        words[i] = next_word(&line);
    if (!slice_eq_str(words[1], local) || !slice_eq_str(words[2], remote) ||
        !slice_eq_str(words[STATE_FIELD], ESTABLISHED) ||
        slice_u64(words[UID_FIELD], UINT32_MAX, &n) < 0)
        return false;
    *uid = (uid_t)n;
    return true;
}

static bool look(const char *table, const char *local, const char *remote, uid_t *uid)
{
    FILE *f = fopen(table, "re");
    char *line = NULL;
    size_t size = 0;
    ssize_t n;
    bool found = false;
    while (f && !found && (n = getline(&line, &size, f)) > 0)
        found =
            read_line((struct slice){line, (size_t)n - (line[n - 1] == '\n')}, local, remote, uid);
    free(line);
    if (f)
        fclose(f);
    return found;
}

bool login_peer_uid(int fd, uid_t *uid)
{
    /* The far end, as it writes itself: of IPv4, or of IPv6 with an address of IPv4 in it. */
    static const char *const tables[] = {"/proc/net/tcp", "/proc/net/tcp6"};
    static const char *const prefixes[] = {"", "0000000000000000FFFF0000"};
    struct sockaddr_in far, near;
    socklen_t len = sizeof far;
    char local[64], remote[64];
    if (getpeername(fd, (struct sockaddr *)&far, &len) < 0 || far.sin_family != AF_INET)
        return false;
    len = sizeof near;
    if (getsockname(fd, (struct sockaddr *)&near, &len) < 0 || near.sin_family != AF_INET)
        return false;
    for (size_t i = 0; i < LOOKS * ARRAY_LEN(tables); i++) {
        size_t k = i % ARRAY_LEN(tables);
        snprintf(local, sizeof local, "%s%08X:%04X", prefixes[k], far.sin_addr.s_addr,
                 ntohs(far.sin_port));
        snprintf(remote, sizeof remote, "%s%08X:%04X", prefixes[k], near.sin_addr.s_addr,
                 ntohs(near.sin_port));
        if (look(tables[k], local, remote, uid))
            return true;
    }
    return false;
}

bool login_peer_ours(int fd)
{
    uid_t uid;
    return login_peer_uid(fd, &uid) && (uid == 0 || uid == geteuid());
}
