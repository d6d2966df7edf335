/* Clients in a sandbox (or right here), each asking for https://HOST/ in its own way. In a sandbox
 * of ours HOST is a name whose only rule is for another path: the gate mints a certificate for it,
 * answers 403 by itself and connects to nobody, so whoever gets that far trusts our CA. */
#define _GNU_SOURCE 1
#include "doctor.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "buf.h"
#include "out.h"

enum { SAID_MAX = 256 * 1024, ARGV_MAX = 80, SHOWN = 160 };

/* One line a client: NAME, ok | fail | absent, what it said. An answer of any status is one over
 * TLS that was verified. */
static const char script[] =
    "H=$1 D=$(mktemp -d) || exit 9\n"
    "export HOME=$D CARGO_HOME=$D/cargo GOTOOLCHAIN=local GO111MODULE=on GOFLAGS=-mod=mod \\\n"
    "    GOSUMDB=off GOPROXY=https://$H GOPATH=$D/go GOCACHE=$D/gocache DENO_DIR=$D/deno\n"
    "cd \"$D\" || exit 9\n"
    "say() { printf '%s\\t%s\\t%s\\n' \"$1\" \"$2\" \"$(printf %s \"$3\" | tr '\\n\\t' '  ')\"; }\n"
    "try() {\n"
    "    n=$1 p=$2; shift 2\n"
    "    command -v \"$1\" >/dev/null 2>&1 || { say \"$n\" absent ''; return; }\n"
    "    o=$(timeout 60 \"$@\" 2>&1 </dev/null)\n"
    "    if printf '%s\\n' \"$o\" | grep -Eq \"$p\"; then say \"$n\" ok ''; else say \"$n\" fail "
    "\"$o\"; fi\n"
    "}\n"
    "try system 'Verif(y return code: 0|ication: OK)' env -u SSL_CERT_FILE -u SSL_CERT_DIR \\\n"
    "    openssl s_client -connect \"$H:443\" -servername \"$H\" -verify_hostname \"$H\" \\\n"
    "    -verify_return_error\n"
    "try openssl 'Verif(y return code: 0|ication: OK)' openssl s_client -connect \"$H:443\" \\\n"
    "    -servername \"$H\" -verify_hostname \"$H\" -verify_return_error\n"
    "try curl '^[1-5][0-9][0-9]$' curl -sS -o /dev/null -w '%{http_code}' \"https://$H/\"\n"
    "try wget 'response\\.\\.\\. [1-5][0-9][0-9]|HTTP/[0-9.]+ [1-5]' wget -O /dev/null -t 1 -T 30 "
    "\\\n"
    "    \"https://$H/\"\n"
    "try git 'returned error: [0-9]|not found' git ls-remote \"https://$H/x.git\"\n"
    "try python '^HTTP [1-5]' python3 -c 'import sys, urllib.request as r, urllib.error as e\n"
    "try: print(\"HTTP\", r.urlopen(sys.argv[1], timeout=30).status)\n"
    "except e.HTTPError as x: print(\"HTTP\", x.code)' \"https://$H/\"\n"
    "if python3 -c 'import requests' 2>/dev/null; then\n"
    "    try requests '^HTTP [1-5]' python3 -c 'import sys, requests\n"
    "print(\"HTTP\", requests.get(sys.argv[1], timeout=30).status_code)' \"https://$H/\"\n"
    "else say requests absent ''; fi\n"
    "try node '^HTTP [1-5]' node -e 'require(\"https\").get(process.argv[1], r => { \n"
    "    console.log(\"HTTP\", r.statusCode); process.exit() }).on(\"error\", e => "
    "console.log(e.message))' \\\n"
    "    \"https://$H/\"\n"
    "try deno '^HTTP [1-5]' deno eval \"console.log('HTTP', (await "
    "fetch('https://$H/')).status)\"\n"
    "try go ': [1-5][0-9][0-9] |not found|unrecognized' go list -m -versions \"$H/x@latest\"\n"
    "if command -v javac >/dev/null 2>&1; then\n"
    "    printf '%s\\n' 'public class P { public static void main(String[] a) throws Exception {' "
    "\\\n"
    "        'var c = (java.net.HttpURLConnection) new java.net.URL(a[0]).openConnection();' \\\n"
    "        'System.out.println(\"HTTP \" + c.getResponseCode()); } }' >P.java\n"
    "    try java '^HTTP [1-5]' java P.java \"https://$H/\"\n"
    "else say java absent ''; fi\n"
    "try cargo 'status code: [0-9]|got [1-5][0-9][0-9]|unexpected http' cargo search \\\n"
    "    --index \"https://$H/x\" x\n"
    "try docker 'denied: |unsupported registry version|unauthorized|no such manifest|tatus:? "
    "[1-5]' \\\n"
    "    docker manifest inspect \"$H/x:1\"\n"
    "rm -rf \"$D\"\n";

/* What each reads its roots from, by the variable that a sandbox sets (ca/trust_env.c). */
static const struct {
    const char *name, *fix;
} remedies[] = {
    {"system", "into the system's store: cp durward-ca.pem /usr/local/share/ca-certificates/"
               "durward.crt && update-ca-certificates"},
    {"openssl", "leave SSL_CERT_FILE and SSL_CERT_DIR as the sandbox sets them"},
    {"curl", "leave CURL_CA_BUNDLE as it is set, and --cacert and ~/.curlrc out"},
    {"wget", "leave ca_certificate and ca_directory out of wgetrc: /etc/ssl/certs has the bundle"},
    {"git", "leave GIT_SSL_CAINFO as it is set; git config --unset-all http.sslCAInfo"},
    {"python", "leave SSL_CERT_FILE as it is set; a context of its own needs load_default_certs()"},
    {"requests", "leave REQUESTS_CA_BUNDLE as it is set; a session with verify=FILE goes past it"},
    {"node", "leave NODE_EXTRA_CA_CERTS as it is set (Node reads it once, at start)"},
    {"deno", "leave DENO_CERT as it is set"},
    {"go", "leave SSL_CERT_FILE as it is set (a Go built with fallback roots ignores it)"},
    {"java", "leave JAVA_TOOL_OPTIONS as it is set, or import the CA with keytool -importcert"},
    {"cargo", "leave CARGO_HTTP_CAINFO as it is set, and http.cainfo out of config.toml"},
    {"docker", "leave SSL_CERT_FILE as it is set; an engine elsewhere wants the CA in its certs.d"},
};

static const char *remedy(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(remedies); i++)
        if (strcmp(remedies[i].name, name) == 0)
            return remedies[i].fix;
    return NULL;
}

/* ---- what they said ---- */

struct refusal_counters {
    char absent[256];
    unsigned seen;
    bool against; /* a host that was named */
};

/* The name has none, so trust was not tried. */
static bool no_address(const char *said)
{
    static const char *const words[] = {
        "not resolve",     "unable to resolve",    "Name or service not known",
        "name resolution", "no such host",         "ENOTFOUND",
        "EAI_AGAIN",       "UnknownHostException",
    };
    for (size_t i = 0; i < ARRAY_LEN(words); i++)
        if (strstr(said, words[i]))
            return true;
    return false;
}

static void one_line(struct findings *f, char *line, struct refusal_counters *y)
{
    char *state = strchr(line, '\t'), *said = state ? strchr(state + 1, '\t') : NULL;
    if (said == NULL)
        return;
    *state++ = 0;
    *said++ = 0;
    if (remedy(line) == NULL) /* nobody but our script writes lines that count */
        return;
    y->seen++;
    size_t n = strlen(said), at = strlen(y->absent);
    const char *fix = y->against && no_address(said)
                          ? "HOST must be one that the policy allows; run this in a sandbox, or in "
                            "a client paired by 'durward env'"
                          : remedy(line);
    if (strcmp(state, "ok") == 0)
        findings_add(f, line, FINDING_OK, NULL, "verifies our certificates");
    else if (strcmp(state, "absent") == 0)
        snprintf(y->absent + at, sizeof y->absent - at, " %s", line);
    else
        findings_add(f, line, FINDING_FAIL, fix, "no answer over TLS: %s",
                     n > SHOWN ? said + n - SHOWN : said);
}

static void read_lines(struct findings *f, struct buf *said, int status, bool against)
{
    struct refusal_counters y = {.against = against};
    char *at = (char *)buf_data(said);
    for (char *end; at && *at && (end = strchr(at, '\n')) != NULL; at = end + 1) {
        *end = 0;
        one_line(f, at, &y);
    }
    if (y.absent[0])
        findings_add(f, "clients", FINDING_NOTE, NULL, "not there, not tried:%s", y.absent);
    if (y.seen < ARRAY_LEN(remedies))
        findings_add(
            f, "sandbox", FINDING_FAIL,
            "durward run -- true says more; with an image, it needs sh, mktemp, grep and tr",
            "the clients could not all be tried: status %d %s", status, at && *at ? at : "");
}

/* ---- running it ---- */

/* Both kinds of its output, up to a bound. The exit status, -1 when it died. */
static int body_buffer(const char *const argv[], const char *input, struct buf *said)
{
    int in[2], out[2], status;
    if (pipe2(in, O_CLOEXEC) < 0 || pipe2(out, O_CLOEXEC) < 0)
        return -1;
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        dup2(in[0], STDIN_FILENO);
        dup2(out[1], STDOUT_FILENO);
        dup2(out[1], STDERR_FILENO);
        execvp(argv[0], (char *const *)argv);
        _exit(127);
    }
    close(in[0]);
    close(out[1]);
    ssize_t w = write(in[1], input, strlen(input)); /* well below what a pipe holds */
    close(in[1]);
    while (pid > 0 && w >= 0) {
        unsigned char *to = buf_reserve(said, 4096);
        ssize_t n = to ? read(out[0], to, 4096) : -1;
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            break;
        buf_commit(said, (size_t)n);
    }
    close(out[0]);
    if (pid < 0 || waitpid(pid, &status, 0) != pid || !WIFEXITED(status))
        return -1;
    return WEXITSTATUS(status);
}

static void try_all(struct findings *f, const char *const argv[], const char *input, bool against)
{
    struct buf said;
    buf_init(&said, SAID_MAX);
    int status = body_buffer(argv, input, &said);
    if (buf_append(&said, "", 1) < 0)
        findings_add(f, "sandbox", FINDING_FAIL, "fewer -e: one of them makes a client talkative",
                     "the clients said too much");
    else
        read_lines(f, &said, status, against);
    buf_free(&said);
}

/* The configuration of that sandbox: this user's CA and log, and a policy of its own. */
static char *configuration(const struct config *c)
{
    json_t *all = json_pack("{s:i, s:{s:{s:[{s:s}]}}}", "version", 1, "policies", "doctor", "rules",
                            "allow", DOCTOR_HOST "/never-asked-for");
    const char *dir = c ? config_ca_dir(c) : NULL, *cert = c ? config_ca_cert(c) : NULL;
    if (dir)
        json_object_set_new(all, "ca", json_pack("{s:s}", "dir", dir));
    else if (cert)
        json_object_set_new(all, "ca",
                            json_pack("{s:s, s:s}", "cert", cert, "key", config_ca_key(c)));
    if (c && config_audit_dir(c))
        json_object_set_new(all, "audit", json_pack("{s:s}", "dir", config_audit_dir(c)));
    if (c && config_controller_state(c))
        json_object_set_new(all, "controller",
                            json_pack("{s:s}", "state", config_controller_state(c)));
    char *text = all ? json_dumps(all, JSON_COMPACT) : NULL;
    json_decref(all);
    return text;
}

void doctor_clients(struct findings *f, const struct config *c, const struct strlist *more)
{
    const char *argv[ARGV_MAX] = {"/proc/self/exe", "run", "-c", "-", "--no-bind"};
    static const char *const tail[] = {"--", "sh", "-c", script, "doctor", DOCTOR_HOST, NULL};
    size_t n = 5;
    char *text = configuration(c);
    if (text == NULL || more->n + n + ARRAY_LEN(tail) > ARGV_MAX) {
        findings_add(f, "sandbox", FINDING_FAIL, "fewer -e", "too many options for a sandbox");
        free(text);
        return;
    }
    for (size_t i = 0; i < more->n; i++)
        argv[n++] = more->v[i];
    memcpy(argv + n, tail, sizeof tail);
    try_all(f, argv, text, false);
    free(text);
}

void doctor_here(struct findings *f, const char *host)
{
    const char *const argv[] = {"/bin/sh", "-c", script, "doctor", host, NULL};
    if (strspn(host, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-") !=
        strlen(host)) {
        findings_add(f, "against", FINDING_FAIL, "give a host name", "that is not a host name");
        return;
    }
    try_all(f, argv, "", true);
}
