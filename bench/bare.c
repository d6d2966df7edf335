/* What processes cost that do next to nothing with the libraries that roles use: the floor below
 * which no role gets while it is a process of its own and OpenSSL is linked as the distribution has
 * it. So many are started by exec, each with addresses of its own, and stand still; then their
 * memory is read (as bench/cold_start reads the roles') and their processor time.
 *
 *   linked   a program with libevent, libcrypto and libssl, of which it calls nothing
 *   hash     the same, and one SHA-256 by EVP
 *   key      and a P-256 key, with which a certificate could be signed
 *   tls      and an SSL_CTX
 *
 * usage: bench/bare [PROCESSES] */
#define _GNU_SOURCE 1
#include <event2/event.h>
#include <fcntl.h>
#include <openssl/ssl.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PROCESSES = 8, PROCESSES_MAX = 64, KINDS = 4 };
enum kind { LINKED, HASH, KEY, TLS };

static const char *const words[KINDS] = {"linked", "hash", "key", "tls"};

static void need(bool good, const char *why)
{
    if (good)
        return;
    perror(why);
    exit(2);
}

/* A process of that kind: says that it is ready, and stands until its input ends. */
static int stand(enum kind kind)
{
    unsigned char sum[EVP_MAX_MD_SIZE];
    unsigned n;
    char c = 0;
    need(event_base_new() != NULL, "event_base_new");
    if (kind >= HASH)
        need(EVP_Digest("", 0, sum, &n, EVP_sha256(), NULL) == 1, "SHA-256");
    if (kind >= KEY)
        need(EVP_EC_gen("P-256") != NULL, "P-256");
    if (kind >= TLS)
        need(SSL_CTX_new(TLS_method()) != NULL, "SSL_CTX_new");
    need(write(1, &c, 1) == 1, "write");
    while (read(0, &c, 1) > 0) {
    }
    return 0;
}

static long pss_kib(pid_t pid)
{
    char path[64], line[256];
    long kib = -1;
    snprintf(path, sizeof path, "/proc/%ld/smaps_rollup", (long)pid);
    FILE *f = fopen(path, "re");
    need(f != NULL, path);
    while (fgets(line, sizeof line, f))
        if (sscanf(line, "Pss: %ld", &kib) == 1)
            break;
    fclose(f);
    return kib;
}

static pid_t start(const char *self, const char *kind, int in, int out)
{
    pid_t pid;
    char *argv[] = {strdup(self), strdup(kind), NULL}, *env[] = {NULL};
    posix_spawn_file_actions_t fds;
    posix_spawn_file_actions_init(&fds);
    posix_spawn_file_actions_adddup2(&fds, in, 0);
    posix_spawn_file_actions_adddup2(&fds, out, 1);
    need(posix_spawn(&pid, self, &fds, NULL, argv, env) == 0, self);
    posix_spawn_file_actions_destroy(&fds);
    free(argv[0]);
    free(argv[1]);
    return pid;
}

static void measure(const char *self, const char *kind, int n)
{
    int hold[2], said[2];
    pid_t pids[PROCESSES_MAX];
    long kib = 0;
    double ms = 0;
    need(pipe2(hold, O_CLOEXEC) == 0 && pipe2(said, O_CLOEXEC) == 0, "pipe");
    for (int i = 0; i < n; i++)
        pids[i] = start(self, kind, hold[0], said[1]);
    for (int i = 0; i < n; i++) {
        char c;
        need(read(said[0], &c, 1) == 1, "a process did not get ready");
    }
    for (int i = 0; i < n; i++)
        kib += pss_kib(pids[i]);
    close(hold[1]);
    for (int i = 0; i < n; i++) {
        struct rusage r;
        need(wait4(pids[i], NULL, 0, &r) == pids[i], "wait4");
        ms += (double)(r.ru_utime.tv_sec + r.ru_stime.tv_sec) * 1e3 +
              (double)(r.ru_utime.tv_usec + r.ru_stime.tv_usec) / 1e3;
    }
    close(hold[0]);
    close(said[0]);
    close(said[1]);
    printf("%-8s %d processes: %6ld KiB (PSS), %5ld each; CPU %5.1f ms, %4.1f each\n", kind, n, kib,
           kib / n, ms, ms / n);
}

int main(int argc, char **argv)
{
    char self[4096];
    for (int k = 0; argc == 2 && k < KINDS; k++)
        if (strcmp(argv[1], words[k]) == 0)
            return stand((enum kind)k);
    int n = argc > 1 ? atoi(argv[1]) : PROCESSES;
    ssize_t at = readlink("/proc/self/exe", self, sizeof self - 1);
    if (n < 1 || n > PROCESSES_MAX || argc > 2 || at < 0) {
        fprintf(stderr, "usage: bench/bare [PROCESSES, 1 to %d]\n", PROCESSES_MAX);
        return 2;
    }
    self[at] = 0;
    for (int k = 0; k < KINDS; k++)
        measure(self, words[k], n);
    return 0;
}
