/* Notes that say whose they are: taken as they were said, for their kind and id, from hosts that
 * are known, and in no other way. */
#include "fleet_seal.h"
#include "note.h"
#include "tap_main.h"

#include <CUnit/CUnit.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct world {
    EVP_PKEY *keys[3];
    struct config_fleet_host hosts[3];
    struct fleet_seal *a, *b, *c; /* a knows b, b knows a and c, c knows all three */
};

static struct fleet_seal *made(struct world *w, size_t own, size_t from, size_t to)
{
    struct err err = {0};
    struct config_fleet f = {.hosts = w->hosts + from, .n_hosts = to - from};
    struct fleet_seal *s = fleet_seal_new(w->keys[own], &f, &err);
    CU_ASSERT_PTR_NOT_NULL_FATAL(s);
    return s;
}

static void open_world(struct world *w)
{
    static const char *const names[] = {"b", "a", "c"};
    for (size_t i = 0; i < 3; i++) {
        size_t n = FLEET_KEY;
        w->keys[i] = EVP_PKEY_Q_keygen(NULL, NULL, "ED25519");
        CU_ASSERT_PTR_NOT_NULL_FATAL(w->keys[i]);
        CU_ASSERT_EQUAL(EVP_PKEY_get_raw_public_key(w->keys[i], w->hosts[i].key, &n), 1);
        w->hosts[i].name = names[i];
    }
    w->b = made(w, 0, 1, 3);
    w->a = made(w, 1, 0, 1);
    w->c = made(w, 2, 0, 3);
}

static void close_world(struct world *w)
{
    fleet_seal_free(w->a);
    fleet_seal_free(w->b);
    fleet_seal_free(w->c);
    for (size_t i = 0; i < 3; i++)
        EVP_PKEY_free(w->keys[i]);
}

/* The host that said it; "?": nobody that is known. */
static const char *whose(const struct fleet_seal *s, const char *kind, const char *id,
                         struct slice text)
{
    const char *host = "?";
    json_t *v = fleet_seal_get(s, kind, id, text, &host);
    if (v == NULL)
        return "?";
    CU_ASSERT_STRING_EQUAL(json_string_value(json_object_get(v, "url")), "https://x/");
    json_decref(v);
    return host;
}

static void put(const struct fleet_seal *s, struct buf *text)
{
    json_t *v = json_pack("{s:s}", "url", "https://x/");
    buf_init(text, NOTE_BODY_MAX);
    CU_ASSERT_EQUAL(fleet_seal_put(s, "asked", "ap-1", v, text), 0);
    CU_ASSERT_TRUE(note_body_ok(buf_slice(text)));
    json_decref(v);
}

static void test_whose(void)
{
    struct world w;
    struct buf text;
    open_world(&w);
    put(w.b, &text);
    CU_ASSERT_STRING_EQUAL(whose(w.a, "asked", "ap-1", buf_slice(&text)), "b");
    CU_ASSERT_STRING_EQUAL(whose(w.b, "asked", "ap-1", buf_slice(&text)), ""); /* its own */
    CU_ASSERT_STRING_EQUAL(whose(w.c, "asked", "ap-1", buf_slice(&text)), "b");
    CU_ASSERT_STRING_EQUAL(whose(w.a, "answered", "ap-1", buf_slice(&text)), "?");
    CU_ASSERT_STRING_EQUAL(whose(w.a, "asked", "ap-2", buf_slice(&text)), "?");
    CU_ASSERT_STRING_EQUAL(whose(w.a, "aske", "d\nap-1", buf_slice(&text)), "?");
    buf_free(&text);
    put(w.c, &text);
    CU_ASSERT_STRING_EQUAL(whose(w.a, "asked", "ap-1", buf_slice(&text)),
                           "?"); /* it knows b alone */
    CU_ASSERT_STRING_EQUAL(whose(w.b, "asked", "ap-1", buf_slice(&text)), "c");
    CU_ASSERT_STRING_EQUAL(whose(w.c, "asked", "ap-1", buf_slice(&text)),
                           ""); /* in its own list, too */
    buf_free(&text);
    close_world(&w);
}

/* Each byte of it counts, and so does each that is missing or behind. */
static void test_whole(void)
{
    struct world w;
    struct buf text;
    char copy[1024];
    open_world(&w);
    put(w.b, &text);
    size_t n = buf_len(&text);
    CU_ASSERT_FATAL(n + 2 < sizeof copy);
    for (size_t i = 0; i < n; i++) {
        memcpy(copy, buf_data(&text), n);
        copy[i] = copy[i] == 'A' ? 'B' : 'A';
        CU_ASSERT_STRING_EQUAL(whose(w.a, "asked", "ap-1", (struct slice){copy, n}), "?");
        memcpy(copy, buf_data(&text), n);
        CU_ASSERT_STRING_EQUAL(whose(w.a, "asked", "ap-1", (struct slice){copy, i}), "?");
    }
    memcpy(copy, buf_data(&text), n);
    memcpy(copy + n, ".A", 2);
    CU_ASSERT_STRING_EQUAL(whose(w.a, "asked", "ap-1", (struct slice){copy, n + 1}), "?");
    CU_ASSERT_STRING_EQUAL(whose(w.a, "asked", "ap-1", (struct slice){copy, n + 2}), "?");
    buf_free(&text);
    close_world(&w);
}

static void test_long(void)
{
    struct world w;
    struct buf text;
    char *more = malloc(NOTE_BODY_MAX);
    open_world(&w);
    CU_ASSERT_PTR_NOT_NULL_FATAL(more);
    memset(more, 'x', NOTE_BODY_MAX - 1);
    more[NOTE_BODY_MAX - 1] = 0;
    json_t *v = json_pack("{s:s}", "url", more);
    buf_init(&text, NOTE_BODY_MAX);
    CU_ASSERT_EQUAL(fleet_seal_put(w.b, "asked", "ap-1", v, &text), -1);
    CU_ASSERT_EQUAL(buf_len(&text), 0);
    json_decref(v);
    buf_free(&text);
    free(more);
    close_world(&w);
}

void tap_suites(void)
{
    CU_pSuite s = CU_add_suite("fleet_seal", NULL, NULL);
    CU_add_test(s, "whose it is", test_whose);
    CU_add_test(s, "all of it", test_whole);
    CU_add_test(s, "too long", test_long);
}
