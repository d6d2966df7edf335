/* Writes accounts, names, git's settings and links to the bundles, copies or shows what a list
 * names of the host's /etc, and makes the few files that a container gets. */
#define _GNU_SOURCE 1
#include "etcfiles.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "buf.h"
#include "mounts.h"
#include "shown_login.h"
#include "network_program.h"
#include "oci_program.h"
#include "trust.h"

enum { TEXT_MAX = 256 * 1024, COPY_MAX = 4 << 20 };

#define TRUST_INSIDE "/etc/durward"

/* Copied from the host when they are there; links are copied as links. */
static const char *const copied[] = {
    "ld.so.cache",    "ld.so.conf", "localtime",   "timezone",       "os-release",
    "lsb-release",    "services",   "protocols",   "mime.types",     "inputrc",
    "bash.bashrc",    "profile",    "login.defs",  "shells",         "rpc",
    "ethertypes",     "magic",      "locale.conf", "locale.alias",   "host.conf",
    "debian_version", "gai.conf",   "magic.mime",  "redhat-release", "alpine-release",
    "ocamlfind.conf",
};

/* Where programs look for the bundle, beside /etc/ssl/certs. */
static const struct {
    const char *directory, *name, *to;
} bundles[] = {
    {"ssl", "cert.pem", "ca-certificates.crt"},
    {"ssl", "ca-bundle.pem", "ca-certificates.crt"},
    {"ssl/certs", "ca-certificates.crt", "ca-certificates.crt"},
    {"ssl/certs", "ca-bundle.crt", "ca-certificates.crt"},
    {"ssl/certs/java", "cacerts", "cacerts.p12"},
    {"pki/tls", "cert.pem", "ca-certificates.crt"},
    {"pki/tls/certs", "ca-bundle.crt", "ca-certificates.crt"},
    {"pki/ca-trust/extracted/pem", "tls-ca-bundle.pem", "ca-certificates.crt"},
    {"pki/java", "cacerts", "cacerts.p12"},
    {"ca-certificates/extracted", "tls-ca-bundle.pem", "ca-certificates.crt"},
};

/* every address answers on port 53; this one is of the synthetic range */
static const char resolv[] = "nameserver 198.18.0.1\n";

static int put(int etc, const char *name, const char *p, size_t n, struct err *err)
{
    int fd = openat(etc, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
    if (fd < 0)
        return err_sys(err, "/etc/%s", name);
    while (n > 0) {
        ssize_t w = write(fd, p, n);
        if (w < 0 && errno == EINTR)
            continue;
        if (w <= 0) {
            close(fd);
            return err_sys(err, "/etc/%s", name);
        }
        p += w;
        n -= (size_t)w;
    }
    close(fd);
    return 0;
}

static int put_buf(int etc, const char *name, struct buf *b, int failed, struct err *err)
{
    int r = failed ? err_set(err, ERR_LIMIT, "/etc/%s would be too large", name)
                   : put(etc, name, (const char *)buf_data(b), buf_len(b), err);
    buf_free(b);
    return r;
}

/* ---- written ---- */

/* A file of the image's /etc, if it is one; none of its links leads out of it. */
static int add_image_file(int image, const char *path, struct buf *b)
{
    struct open_how how = {
        .flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY,
        .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS,
    };
    struct stat st;
    int fd = image < 0 ? -1 : (int)syscall(SYS_openat2, image, path, &how, sizeof how);
    int bad = 0;
    if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size < TEXT_MAX / 2) {
        unsigned char *p = buf_reserve(b, (size_t)st.st_size + 1);
        ssize_t n = p ? read(fd, p, (size_t)st.st_size) : -1;
        bad = n < 0;
        if (n > 0) {
            buf_commit(b, (size_t)n);
            bad |= p[n - 1] == '\n' ? 0 : buf_append_str(b, "\n");
        }
    }
    if (fd >= 0)
        close(fd);
    return bad;
}

/* Those of the image, and who the command is, unless that is root, whom it has. */
static int write_accounts(int etc, int image, const struct plan *p, struct err *err)
{
    bool bash = image >= 0 ? faccessat(image, "bin/bash", F_OK, AT_SYMLINK_NOFOLLOW) == 0
                           : access("/bin/bash", X_OK) == 0;
    struct buf b;
    unsigned uid = plan_is_root(p) ? 0 : p->uid, gid = plan_is_root(p) ? 0 : p->gid;
    buf_init(&b, TEXT_MAX);
    int bad = add_image_file(image, "etc/passwd", &b);
    bool has = buf_len(&b) > 0;
    bool other = uid != 0 && strcmp(p->user, "root") != 0;
    bad |= other && !has ? buf_append_str(&b, "root:x:0:0:root:/root:/bin/sh\n") : 0;
    bad |= has && uid == 0 ? 0
                           : buf_printf(&b, "%s:x:%u:%u:%s:%s:%s\n", p->user, uid, gid, p->user,
                                        p->home, bash ? "/bin/bash" : "/bin/sh");
    bad |= has ? 0 : buf_append_str(&b, "nobody:x:65534:65534:nobody:/:/bin/false\n");
    if (put_buf(etc, "passwd", &b, bad, err) < 0)
        return -1;
    buf_init(&b, TEXT_MAX);
    bad = add_image_file(image, "etc/group", &b);
    has = buf_len(&b) > 0;
    other = gid != 0 && strcmp(p->user, "root") != 0;
    bad |= other && !has ? buf_append_str(&b, "root:x:0:\n") : 0;
    bad |= has && gid == 0 ? 0 : buf_printf(&b, "%s:x:%u:\n", p->user, gid);
    bad |= has ? 0 : buf_append_str(&b, "nogroup:x:65534:\n");
    return put_buf(etc, "group", &b, bad, err);
}

static int write_names(int etc, const struct plan *p, struct err *err)
{
    static const char nsswitch[] = "passwd: files\ngroup: files\nshadow: files\n"
                                   "hosts: files dns\nnetworks: files\nprotocols: files\n"
                                   "services: files\nethers: files\nrpc: files\n";
    struct buf b;
    buf_init(&b, TEXT_MAX);
    int bad = buf_printf(&b,
                         "127.0.0.1 localhost\n::1 localhost ip6-localhost ip6-loopback\n"
                         "127.0.1.1 %s\n",
                         p->hostname);
    if (put_buf(etc, "hosts", &b, bad, err) < 0)
        return -1;
    buf_init(&b, TEXT_MAX);
    bad = buf_printf(&b, "%s\n", p->hostname);
    if (put_buf(etc, "hostname", &b, bad, err) < 0)
        return -1;
    return put(etc, "nsswitch.conf", nsswitch, sizeof nsswitch - 1, err) < 0 ||
                   put(etc, "resolv.conf", resolv, sizeof resolv - 1, err) < 0
               ? -1
               : 0;
}

/* Remotes of hosts with a git rule go by https, whichever way they are written. Who owns a
 * repository is no boundary inside a sandbox with one user. */
static int write_gitconfig(int etc, const struct plan *p, struct err *err)
{
    struct buf b;
    buf_init(&b, TEXT_MAX);
    int bad = buf_append_str(&b, "[safe]\n\tdirectory = *\n");
    for (unsigned i = 0; i < p->ngithosts; i++) {
        const char *h = p->githosts[i];
        bad |= buf_printf(&b,
                          "[url \"https://%s/\"]\n\tinsteadOf = ssh://git@%s/\n"
                          "\tinsteadOf = ssh://git@%s:22/\n\tinsteadOf = git@%s:\n",
                          h, h, h, h);
    }
    if (p->signs) /* with the first key that the agent inside lists */
        bad |= buf_append_str(&b, "[gpg]\n\tformat = ssh\n"
                                  "[gpg \"ssh\"]\n\tdefaultKeyCommand = ssh-add -L\n");
    return put_buf(etc, "gitconfig", &b, bad, err);
}

/* What shows itself by a host key is a broker of ours, whatever name it was asked for. Libraries
 * that compare names byte by byte find those of the rules. */
static int write_known_hosts(int at, const char *name, const struct plan *p, struct err *err)
{
    struct buf b;
    buf_init(&b, TEXT_MAX);
    int bad = 0;
    for (int k = 0; k < HOST_KEY_KINDS; k++) {
        for (unsigned i = 0; i < p->nsshhosts; i++)
            bad |= buf_printf(&b, "%s %s\n", p->sshhosts[i], p->host_keys[k]);
        if (p->host_keys[k][0])
            bad |= buf_printf(&b, "* %s\n", p->host_keys[k]);
    }
    return put_buf(at, name, &b, bad, err);
}

static int write_ssh(int etc, const struct plan *p, struct err *err)
{
    int dir = mounts_place(etc, "ssh", true, err);
    int r = dir < 0 ? -1 : write_known_hosts(dir, "ssh_known_hosts", p, err);
    if (dir >= 0)
        close(dir);
    return r;
}

/* ---- from the host ---- */

static int copy_link(int etc, int host_etc, const char *name, struct err *err)
{
    char to[PATH_MAX];
    ssize_t n = readlinkat(host_etc, name, to, sizeof to - 1);
    if (n < 0)
        return err_sys(err, "/etc/%s", name);
    to[n] = '\0';
    return symlinkat(to, etc, name) < 0 ? err_sys(err, "/etc/%s", name) : 0;
}

static int copy_data(int from, int etc, const char *name, size_t size, struct err *err)
{
    struct buf b;
    int r = -1;
    buf_init(&b, COPY_MAX);
    unsigned char *p = buf_reserve(&b, size + 1);
    ssize_t n = p ? read(from, p, size) : 0;
    if (n < 0)
        err_sys(err, "/etc/%s", name);
    else
        r = put(etc, name, (const char *)p, (size_t)n, err);
    buf_free(&b);
    return r;
}

static int copy(int etc, int host_etc, const char *name, struct err *err)
{
    struct stat st;
    int from = openat(host_etc, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    if (from < 0 && errno == ELOOP)
        return copy_link(etc, host_etc, name, err);
    if (from < 0)
        return 0; /* not there, or not for us to read */
    int r = 0;
    if (fstat(from, &st) == 0 && S_ISREG(st.st_mode) && st.st_size < COPY_MAX)
        r = copy_data(from, etc, name, (size_t)st.st_size, err);
    close(from);
    return r;
}

/* ---- trust ---- */

static int link_trust(int at, const char *name, const char *prefix, const char *to, struct err *err)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/%s%s", TRUST_INSIDE, prefix, to);
    if (symlinkat(path, at, name) < 0 && errno != EEXIST)
        return err_sys(err, "cannot link %s", name);
    return 0;
}

static int link_bundles(int etc, int trust, struct err *err)
{
    for (size_t i = 0; i < ARRAY_LEN(bundles); i++) {
        if (faccessat(trust, bundles[i].to, F_OK, 0) < 0)
            continue;
        int at = mounts_place(etc, bundles[i].directory, true, err);
        int r = at < 0 ? -1 : link_trust(at, bundles[i].name, "", bundles[i].to, err);
        if (at >= 0)
            close(at);
        if (r < 0)
            return -1;
    }
    return 0;
}

/* For containers inside: by this podman and buildah give them networks by a backend of ours, and
 * run them by the runtime that adds what we say of trust. A mapped port is bound by that backend,
 * so that podman reserves none, and health is checked by that runtime, not by systemd. A
 * configuration that the image has stands beside it. */
static int write_containers(int etc, int image, struct err *err)
{
    static const char conf[] = "# Written by Durward.\n"
                               "[containers]\n"
                               "netns = \"bridge\"\n"
                               "cgroups = \"disabled\"\n"
                               "default_sysctls = []\n"
                               "keyring = false\n"
                               "host_containers_internal_ip = \"" NETWORK_HOST_INSIDE "\"\n"
                               "[engine]\n"
                               "cgroup_manager = \"cgroupfs\"\n"
                               "events_logger = \"file\"\n"
                               "enable_port_reservation = false\n"
                               "env = [\"DISABLE_HC_SYSTEMD=true\"]\n"
                               "helper_binaries_dir = [\"/run/durward\", "
                               "\"/usr/local/libexec/podman\", \"/usr/local/lib/podman\", "
                               "\"/usr/libexec/podman\", \"/usr/lib/podman\"]\n"
                               "runtime = \"" OCI_INSIDE "\"\n"
                               "[network]\n"
                               "network_backend = \"netavark\"\n";
    /* what each distribution ships, for programs of the host's /usr: any image is accepted */
    static const char policy[] = "{ \"default\": [ { \"type\": \"insecureAcceptAnything\" } ] }\n";
    int dir = mounts_place(etc, "containers/containers.conf.d", true, err);
    int r = dir < 0 ? -1 : put(dir, "durward.conf", conf, sizeof conf - 1, err);
    if (r == 0 && image < 0)
        r = put(etc, "containers/policy.json", policy, sizeof policy - 1, err);
    if (dir >= 0)
        close(dir);
    return r;
}

int etcfiles_write_variables(int dir, struct err *err)
{
    char **env = trust_env(TRUST_INSIDE, false, err);
    struct buf b;
    if (env == NULL)
        return -1;
    buf_init(&b, TEXT_MAX);
    int bad = 0;
    for (char **e = env; *e && bad == 0; e++)
        bad = buf_printf(&b, "%s\n", *e) < 0;
    trust_env_free(env);
    return put_buf(dir, OCI_VARIABLES, &b, bad, err);
}

int etcfiles_write_ports(int dir, const uint16_t *ports, unsigned n, struct err *err)
{
    struct buf b;
    int bad = 0;
    buf_init(&b, TEXT_MAX);
    for (unsigned i = 0; i < n && bad == 0; i++)
        bad = buf_printf(&b, "%u\n", ports[i]) < 0;
    return put_buf(dir, NETWORK_PORTS, &b, bad, err);
}

/* /etc/ssl/certs holds a link for each certificate of trust/certs. */
static int link_certs(int etc, int trust, struct err *err)
{
    int fd = openat(trust, "certs", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    if (d == NULL) {
        if (fd >= 0)
            close(fd);
        return 0;
    }
    int at = mounts_place(etc, "ssl/certs", true, err);
    int r = at < 0 ? -1 : 0;
    for (struct dirent *e; r == 0 && (e = readdir(d)) != NULL;)
        if (e->d_name[0] != '.')
            r = link_trust(at, e->d_name, "certs/", e->d_name, err);
    closedir(d);
    if (at >= 0)
        close(at);
    return r;
}

static int trust_files(int etc, int host_etc, int trust, struct err *err)
{
    if (link_bundles(etc, trust, err) < 0 || link_certs(etc, trust, err) < 0)
        return -1;
    int ssl = mounts_place(etc, "ssl", true, err);
    int host = host_etc < 0 ? -1 : openat(host_etc, "ssl", O_PATH | O_DIRECTORY | O_CLOEXEC);
    int r = ssl < 0 ? -1 : 0;
    if (r == 0 && host >= 0)
        r = copy(ssl, host, "openssl.cnf", err);
    if (ssl >= 0)
        close(ssl);
    if (host >= 0)
        close(host);
    return r;
}

/* It has a list of authorities of its own, which no variable replaces; by this it takes OpenSSL's.
 */
static int write_downloader(int etc, struct err *err)
{
    static const char conf[] = "--compat-options no-certifi\n";
    return put(etc, "yt-dlp.conf", conf, sizeof conf - 1, err);
}

/* A shell's start file, say, in which an administrator has exported a token, stays on the host. */
static int copy_all(int etc, int host_etc, struct buf *notes, struct err *err)
{
    for (size_t i = 0; i < ARRAY_LEN(copied); i++) {
        if (host_etc >= 0 && shown_login_at(host_etc, copied[i]))
            (void)!buf_printf(notes, "masked: /etc/%s\n", copied[i]);
        else if (copy(etc, host_etc, copied[i], err) < 0)
            return -1;
    }
    return 0;
}

int etcfiles_write(int etc, int host_etc, int image, int trust, const struct plan *plan,
                   struct buf *notes, struct err *err)
{
    if (write_accounts(etc, image, plan, err) < 0 || write_names(etc, plan, err) < 0 ||
        write_gitconfig(etc, plan, err) < 0 || write_ssh(etc, plan, err) < 0)
        return -1;
    if (image < 0 && write_downloader(etc, err) < 0)
        return -1;
    if (image < 0 && copy_all(etc, host_etc, notes, err) < 0)
        return -1;
    if (plan->sandbox_spec.limits.nested && write_containers(etc, image, err) < 0)
        return -1;
    if (symlinkat("/proc/self/mounts", etc, "mtab") < 0)
        return err_sys(err, "/etc/mtab");
    return trust_files(etc, image < 0 ? host_etc : -1, trust, err);
}

/* ---- of an engine's container ---- */

int etcfiles_write_few(int dir, const struct plan *plan, struct err *err)
{
    return write_gitconfig(dir, plan, err) < 0 ||
                   write_known_hosts(dir, "ssh_known_hosts", plan, err) < 0
               ? -1
               : put(dir, "resolv.conf", resolv, sizeof resolv - 1, err);
}

const char *etcfiles_bundle(size_t i, const char **name)
{
    static char path[64];
    if (i >= ARRAY_LEN(bundles))
        return NULL;
    snprintf(path, sizeof path, "/etc/%s/%s", bundles[i].directory, bundles[i].name);
    *name = bundles[i].to;
    return path;
}
