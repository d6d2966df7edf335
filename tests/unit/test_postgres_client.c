/* The first packets of a client of PostgreSQL's: wishes for encryption, alone and with more behind
 * them, and what ends the client. Freed memory is overwritten (M_PERTURB): whoever reads a client
 * that is gone reads nonsense. */
#include "loop_bed.h"
#include "postgres_front.h"
#include "tap_main.h"

#include <malloc.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* Wishes for TLS and for GSSAPI, and a startup for the database `d` of the user `x`. */
#define TLS     "\0\0\0\x08\x04\xd2\x16\x2f"
#define GSS     "\0\0\0\x08\x04\xd2\x16\x30"
#define STARTUP "\0\0\0\x1b\0\3\0\0user\0x\0database\0d\0\0"
#define BYTES(s)         \
    {                    \
        s, sizeof(s) - 1 \
    }

static struct front front;
static struct postgres_front clients;

static void front_up(void)
{
    static const char json[] =
        "{\"policy\":\"p\",\"rules\":[{\"allow\":\"postgres://db.example.com/other\","
        "\"with\":{\"postgres_login\":\"k\"}}]}";
    struct err err = {.text = ""};
    front = (struct front){.base = base, .limits.head_seconds = 30, .name = "sb-x"};
    front.policy = policy_parse(json, sizeof json - 1, &err);
    front.journal = journal_new(base, false);
    CU_ASSERT_FATAL(front.policy != NULL && front.journal != NULL);
    clients = (struct postgres_front){.front = &front};
    LIST_INIT(&clients.clients);
}

static void front_down(void)
{
    CU_ASSERT_EQUAL(clients.n_clients, 0);
    policy_free(front.policy);
    journal_free(front.journal);
}

/* A client that sends this in one piece; *ret: what it is told until it waits or is gone. True: it
 * is still there. */
static bool told(struct slice said, char *ret, size_t size)
{
    struct authority at;
    int fds[2];
    ssize_t n;
    size_t have = 0;
    CU_ASSERT_FATAL(authority_parse(&at, SCHEME_POSTGRES, SLICE("db.example.com")) == 0);
    CU_ASSERT_FATAL(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds) == 0);
    CU_ASSERT_FATAL(write(fds[0], said.p, said.n) == (ssize_t)said.n);
    postgres_client_new(&clients, &at, fds[1]);
    for (int i = 0; i < 20; i++)
        event_base_loop(base, EVLOOP_NONBLOCK);
    bool here =
        !LIST_EMPTY(&clients.clients); /* n_clients counts who only waits for its end, too */
    while (have < size - 1 && (n = read(fds[0], ret + have, size - 1 - have)) > 0)
        have += (size_t)n;
    for (size_t i = 0; i < have; i++)
        if (ret[i] == 0)
            ret[i] = ' '; /* it is looked at as a text */
    ret[have] = 0;
    close(fds[0]);
    for (int i = 0; i < 20; i++)
        event_base_loop(base, EVLOOP_NONBLOCK);
    return here;
}

static void test_first_packets(void)
{
    static const struct {
        const char *name;
        struct slice said;
        const char *begins, *has; /* has: "": it is told no more */
        bool stays;
    } rows[] = {
        {"a wish for TLS", BYTES(TLS), "S", "", true},
        {"a wish for GSSAPI", BYTES(GSS), "N", "", true},
        {"a startup", BYTES(STARTUP), "E", "no_rule", false},
        {"a startup behind a wish that is refused", BYTES(GSS STARTUP), "N", "no_rule", false},
        {"a startup behind a wish for TLS", BYTES(TLS STARTUP), "S", "postgres_protocol", false},
        {"one byte behind a wish for TLS", BYTES(TLS "x"), "S", "postgres_protocol", false},
        {"a byte of TLS behind a wish for it", BYTES(TLS "\x16"), "S", "postgres_protocol", false},
        {"two wishes for TLS", BYTES(TLS TLS), "S", "postgres_protocol", false},
        {"wishes without end", BYTES(GSS GSS GSS), "", "", false},
        {"noise", BYTES("GET / HTTP/1.1\r\n\r\n"), "E", "postgres_protocol", false},
    };
    char said[2048];
    front_up();
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        bool stays = told(rows[i].said, said, sizeof said);
        bool good =
            stays == rows[i].stays && strncmp(said, rows[i].begins, strlen(rows[i].begins)) == 0 &&
            (rows[i].has[0] ? strstr(said, rows[i].has) != NULL : strstr(said, "durward") == NULL);
        if (!good)
            fprintf(stderr, "# %s: %s, %s\n", rows[i].name, stays ? "stays" : "gone", said);
        CU_ASSERT(good);
        CU_ASSERT_EQUAL(clients.n_clients, 0);
    }
    front_down();
}

void tap_suites(void)
{
    (void)mallopt(M_PERTURB, 0x100); /* freed memory becomes zeroes: the low byte */
    CU_pSuite s = CU_add_suite("postgres_client", setup, teardown);
    CU_add_test(s, "first packets", test_first_packets);
}
