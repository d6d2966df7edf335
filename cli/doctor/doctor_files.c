/* Checks directories and their space, the CA's certificate, the clock, the ports or the daemon that
 * has them, and the sockets of container engines. */
#define _GNU_SOURCE 1
#include "doctor.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <openssl/pem.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/timex.h>
#include <sys/un.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include "api_client.h"
#include "backend_here.h"
#include "tcp_listen.h"
#include "paths.h"

enum { ENOUGH_MB = 512, SOON_DAYS = 30, DAY = 86400 };

/* ---- directories ---- */

static const char *kind_of(long type)
{
    switch ((unsigned long)type) {
    case NFS_SUPER_MAGIC:
        return "NFS";
    case 0x01021997UL: /* V9FS_MAGIC */
        return "9p";
    case 0xff534d42UL:
    case SMB_SUPER_MAGIC:
        return "SMB";
    case MSDOS_SUPER_MAGIC:
        return "FAT";
    default:
        return NULL;
    }
}

/* What is there of a path: the longest part of it that exists. */
static void existing(char *path)
{
    struct stat st;
    while (stat(path, &st) < 0 && strrchr(path, '/') && strrchr(path, '/') != path)
        *strrchr(path, '/') = 0;
}

static void directory(struct findings *f, const char *check, const char *given,
                      char *(*fallback)(struct err *))
{
    struct err err = {0};
    struct stat st;
    struct statfs fs;
    char *path = given ? strdup(given) : fallback(&err);
    if (path == NULL) {
        findings_add(f, check, FINDING_FAIL, "set HOME", "%s", err.text);
        return;
    }
    bool there = lstat(path, &st) == 0;
    if (there && paths_make_private(path, &err) < 0) {
        findings_add(f, check, FINDING_FAIL, "give it to this user, with mode 0700", "%s",
                     err.text);
        goto out;
    }
    existing(path);
    if (statfs(path, &fs) < 0 || access(path, geteuid() == 0 || there ? R_OK : W_OK) < 0) {
        findings_add(f, check, FINDING_FAIL, "let this user write there", "%s: %s", path,
                     strerror(errno));
        goto out;
    }
    const char *bad = kind_of((long)fs.f_type);
    unsigned long long mb = (unsigned long long)fs.f_bavail * (unsigned long long)fs.f_bsize >> 20;
    if (fs.f_flags & ST_RDONLY)
        findings_add(f, check, FINDING_FAIL, "mount it writable", "%s cannot be written", path);
    else if (bad)
        findings_add(f, check, FINDING_WARN, "put it on a local file system",
                     "%s is on %s: locks and modes may not hold there", path, bad);
    else if ((unsigned long)fs.f_type == OVERLAYFS_SUPER_MAGIC && strcmp(check, "state") == 0)
        findings_add(f, check, FINDING_WARN, "put controller.state onto a volume",
                     "%s is on an overlay: no sandbox can keep what it writes there", path);
    else if (mb < ENOUGH_MB)
        findings_add(f, check, FINDING_WARN, "make room: what cannot be recorded is refused",
                     "%s has %llu MB left", path, mb);
    else
        findings_add(f, check, FINDING_OK, NULL, "%s, %llu MB free", path, mb);
out:
    free(path);
}

/* ---- the CA and the clock ---- */

static X509 *read_cert(const struct config *c)
{
    struct err err = {0};
    const char *cert = c ? config_ca_cert(c) : NULL, *given = c ? config_ca_dir(c) : NULL;
    char *dir = given ? strdup(given) : paths_ca_dir(&err);
    char *path = cert ? strdup(cert) : dir ? paths_join(dir, "cert.pem") : NULL;
    FILE *file = path ? fopen(path, "re") : NULL;
    X509 *x = file ? PEM_read_X509(file, NULL, NULL, NULL) : NULL;
    if (file)
        fclose(file);
    free(path);
    free(dir);
    return x;
}

static void authority(struct findings *f, const struct config *c)
{
    X509 *x = read_cert(c);
    time_t now = time(NULL), soon = now + SOON_DAYS * DAY;
    if (x == NULL)
        findings_add(f, "ca", FINDING_NOTE, NULL,
                     "no certificate authority yet: the first start makes it");
    else if (X509_cmp_time(X509_get0_notBefore(x), &now) > 0)
        findings_add(f, "ca", FINDING_FAIL, "set the clock: timedatectl set-ntp true",
                     "the certificate authority is not valid yet: this clock is behind the one "
                     "that made it");
    else if (X509_cmp_time(X509_get0_notAfter(x), &now) < 0)
        findings_add(f, "ca", FINDING_FAIL, "durward ca rotate",
                     "the certificate authority has expired");
    else if (X509_cmp_time(X509_get0_notAfter(x), &soon) < 0)
        findings_add(f, "ca", FINDING_WARN, "durward ca rotate",
                     "the certificate authority expires within %d days", SOON_DAYS);
    else
        findings_add(f, "ca", FINDING_OK, NULL, "the certificate authority is valid");
    X509_free(x);
}

static void clocks(struct findings *f)
{
    struct timex t = {0};
    int state = adjtimex(&t);
    if (time(NULL) < 1767225600) /* 2026 */
        findings_add(f, "clock", FINDING_FAIL, "set the clock: timedatectl set-ntp true",
                     "the clock is before 2026: certificates and tokens will not be valid");
    else if (state < 0 || state == TIME_ERROR || (t.status & STA_UNSYNC))
        findings_add(f, "clock", FINDING_NOTE, "timedatectl set-ntp true",
                     "nobody keeps this clock; certificates and tokens depend on it");
    else
        findings_add(f, "clock", FINDING_OK, NULL, "the clock is kept in step");
}

/* ---- ports and the daemon ---- */

static void port(struct findings *f, const char *address)
{
    struct err err = {0};
    if (address == NULL)
        return;
    int fd = tcp_listen(address, &err);
    int why = errno;
    if (fd >= 0)
        findings_add(f, "port", FINDING_OK, NULL, "%s is free", address);
    else
        findings_add(f, "port", FINDING_FAIL,
                     why == EACCES ? "take a port above 1023, or CAP_NET_BIND_SERVICE"
                                   : "end what listens there (ss -ltnp), or change `listen`",
                     "%s", err.text);
    if (fd >= 0)
        close(fd);
}

/* While the daemon runs its own ports are taken by it. */
static void daemon_or_ports(struct findings *f, const struct config *c, const char *socket)
{
    struct err err = {0};
    json_t *reply = NULL;
    size_t n = 0;
    const char *at = socket ? socket : c ? config_controller_socket(c) : NULL;
    if (api_call(at, "GET", "/v1/status", NULL, &reply, &err) == 0) {
        findings_add(f, "daemon", FINDING_OK, NULL, "a daemon answers");
        json_decref(reply);
        return;
    }
    findings_add(f, "daemon", FINDING_NOTE, NULL, "no daemon (`run` needs none): %s", err.text);
    const struct config_listen *l = c ? config_listens(c, &n) : NULL;
    for (size_t i = 0; i < n; i++)
        port(f, l[i].address);
    if (c) {
        port(f, config_metrics(c));
        port(f, config_console(c));
        port(f, config_api(c) ? config_api(c)->address : NULL);
    }
}

/* ---- engines ---- */

static int reaches(const char *path)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    snprintf(a.sun_path, sizeof a.sun_path, "%s", path);
    int r = fd < 0 ? -1 : connect(fd, (struct sockaddr *)&a, sizeof a), saved = errno;
    if (fd >= 0)
        close(fd);
    errno = saved;
    return r;
}

static void absent(void *arg, const char *policy, enum config_backend b, const char *why)
{
    findings_add(arg, config_backend_name(b), FINDING_FAIL,
                 b == BACKEND_GVISOR ? "apt-get install runsc"
                                     : "apt-get install qemu-system-x86 qemu-system-common "
                                       "linux-image-cloud-amd64",
                 "policy %s: %s", policy, why);
}

static void engines(struct findings *f, const struct config *c)
{
    if (c)
        backends_absent(c, absent, f);
    for (size_t i = 0; c && i < config_policies(c); i++) {
        const char *name = config_policy_name(c, i);
        const struct config_sandbox *s = config_policy_sandbox(c, name);
        if (s->backend != BACKEND_DOCKER)
            continue;
        if (reaches(s->docker.socket) == 0)
            findings_add(f, "docker", FINDING_OK, NULL, "policy %s: %s answers", name,
                         s->docker.socket);
        else
            findings_add(f, "docker", FINDING_FAIL,
                         "start the engine (systemctl start docker), or let this user reach its "
                         "socket",
                         "policy %s: %s: %s", name, s->docker.socket, strerror(errno));
    }
}

void doctor_files(struct findings *f, const struct config *c, const char *socket)
{
    directory(f, "state", c ? config_controller_state(c) : NULL, paths_state_dir);
    directory(f, "audit", c ? config_audit_dir(c) : NULL, paths_audit_dir);
    directory(f, "cache", NULL, paths_cache_dir);
    authority(f, c);
    clocks(f);
    daemon_or_ports(f, c, socket);
    engines(f, c);
}
