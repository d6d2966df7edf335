/* Asking a stream for its usage, and taking out what that adds: bodies that are asked, and those
 * that are left alone; events whole and cut at each byte, whatever ends their lines. */
#include "llm_usage.h"
#include "tap_main.h"

#include <stdio.h>
#include <string.h>

#define ASKS "\"stream_options\":{\"include_usage\":true},"

/* after NULL: it is left as it is. */
static void asks(const char *before, const char *after)
{
    struct buf out;
    int r = llm_usage_ask(slice_str(before), &out);
    CU_ASSERT_EQUAL(r, after ? 0 : -1);
    if (r < 0)
        return;
    if (!slice_eq_str(buf_slice(&out), after ? after : ""))
        printf("# %s: %.*s\n", before, (int)buf_len(&out), (const char *)buf_data(&out));
    CU_ASSERT_TRUE(slice_eq_str(buf_slice(&out), after ? after : ""));
    buf_free(&out);
}

static void test_ask(void)
{
    asks("{\"stream\":true}", "{" ASKS "\"stream\":true}");
    asks(" { \"a\":{\"stream_options\":1} } ", " {" ASKS " \"a\":{\"stream_options\":1} } ");
    asks("{\"stream_options\":null,\"n\":1}",
         "{\"stream_options\":{\"include_usage\":true},\"n\":1}");
    asks("{\"n\":1,\"stream_options\": { } }",
         "{\"n\":1,\"stream_options\": {\"include_usage\":true} }");
    asks("{\"stream_options\":{\"x\":[1,{}]}}",
         "{\"stream_options\":{\"include_usage\":true,\"x\":[1,{}]}}");
    asks("{\"stream_options\":{\"x\":1,\"include_usage\": false}}",
         "{\"stream_options\":{\"x\":1,\"include_usage\": true}}");
    asks("{\"stream_options\":{\"include_usage\":null}}",
         "{\"stream_options\":{\"include_usage\":true}}");
}

/* It is asked already, or some reader may see another key than we do. */
static void test_left(void)
{
    asks("{\"stream_options\":{\"include_usage\":true}}", NULL);
    asks("{\"stream_options\":{\"include_usage\":1}}", NULL);
    asks("{\"stream_options\":[]}", NULL);
    asks("{\"stream_options\":\"x\"}", NULL);
    asks("{\"Stream_options\":{}}", NULL);
    asks("{\"stream_option\\u0073\":{}}", NULL);
    asks("{\"\\u0061\":1}", NULL);
    asks("{\"stream_options\":{\"Include_Usage\":false}}", NULL);
    asks("{\"stream_options\":{\"include_usag\\u0065\":false}}", NULL);
    asks("{\"stream_options\":{},\"stream_options\":{}}", NULL);
    asks("{}", NULL);
    asks("[]", NULL);
}

/* What goes on of a stream, in such pieces; the rest of it when it ends. */
static void pass(struct slice in, size_t piece, struct buf *to)
{
    struct slice out;
    struct llm_usage_cut *c = llm_usage_cut_new();
    buf_init(to, 1 << 20);
    while (in.n > 0) {
        size_t n = piece < in.n ? piece : in.n, held = llm_usage_cut_held(c);
        CU_ASSERT_EQUAL(llm_usage_cut_feed(c, (struct slice){in.p, n}, &out), 0);
        CU_ASSERT_TRUE(out.n <= held + n);
        CU_ASSERT_EQUAL(buf_append_slice(to, out), 0);
        in = (struct slice){in.p + n, in.n - n};
    }
    CU_ASSERT_EQUAL(buf_append_slice(to, llm_usage_cut_end(c)), 0);
    llm_usage_cut_free(c);
}

static void passes(const char *in, const char *want)
{
    struct buf got;
    for (size_t piece = 1; piece <= strlen(in); piece++) {
        pass(slice_str(in), piece, &got);
        if (!slice_eq_str(buf_slice(&got), want))
            printf("# %s, %zu at a time: %.*s\n", in, piece, (int)buf_len(&got),
                   (const char *)buf_data(&got));
        CU_ASSERT_TRUE(slice_eq_str(buf_slice(&got), want));
        buf_free(&got);
    }
}

static void test_added(void)
{
    passes("data: {\"choices\":[1],\"usage\":null}\n\ndata: "
           "{\"choices\":[],\"usage\":{\"a\":1}}\n\ndata: [DONE]\n\n",
           "data: {\"choices\":[1]}\n\ndata: [DONE]\n\n");
    passes("data:{\"usage\":null , \"choices\":[1]}\r\n\r\ndata:{\"usage\":{} ,\"choices\":[ "
           "]}\r\n\r\nid: 1\r\n\r\n",
           "data:{ \"choices\":[1]}\r\n\r\nid: 1\r\n\r\n");
    passes("event: x\rdata: {\"usage\":null}\r\rid: 2\rdata: {\"choices\":[],\"usage\":{}}\r\r: "
           "on\r\r",
           "event: x\rdata: {}\r\r: on\r\r");
    passes("data: {\"choices\":[{\"usage\":null}],\"usage\" : null}\n\n",
           "data: {\"choices\":[{\"usage\":null}]}\n\n");
}

/* Events that other servers send, and what is none. */
static void test_kept(void)
{
    static const char *const kept[] = {
        "data: {\"choices\":[1],\"usage\":{\"a\":1}}\n\n",
        "data: {\"choices\":[],\"x\":1}\n\n",
        "data: {\"usage\":{}}\n\n",
        "data: {\"choices\":{},\"usage\":{}}\n\n",
        "data: {\"choices\":[],\"usage\":3}\n\n",
        "data: {\"choices\":[],\"usage\":{}\n\n",
        "data: {\"choices\":[],\"usage\":{}}}\n\n",
        "data: {\"choices\":[],\ndata: \"usage\":{}}\n\n",
        "data: [{\"choices\":[],\"usage\":{}}]\n\n",
        "date: {\"choices\":[],\"usage\":{}}\n\n",
        "\n\n\r\n\r\r: ping\n\ndata\n\ndata:\n\n",
        "data: {\"choices\":[],\"usage\":{}}\n", /* no event, since it does not end */
        "data: {\"choices\":[],\"usage\":{}}",
    };
    for (size_t i = 0; i < ARRAY_LEN(kept); i++)
        passes(kept[i], kept[i]);
}

/* Nothing that was added is so long; what comes behind it is read again. */
static void test_long(void)
{
    static char in[3 * LLM_USAGE_EVENT];
    struct buf got;
    const char added[] = "data: {\"choices\":[],\"usage\":{}}\n\n",
               *const open = "data: {\"choices\":[],\"usage\":{},\"x\":\"";
    size_t n = (size_t)snprintf(in, sizeof in, "%s", open);
    memset(in + n, 'x', LLM_USAGE_EVENT);
    n += LLM_USAGE_EVENT;
    n += (size_t)snprintf(in + n, sizeof in - n, "\"}\n\n");
    snprintf(in + n, sizeof in - n, "%s", added);
    for (size_t piece = 1; piece < 3 * LLM_USAGE_EVENT; piece = piece * 3 + 1) {
        pass(slice_str(in), piece, &got);
        CU_ASSERT_EQUAL(buf_len(&got), n);
        CU_ASSERT_EQUAL(memcmp(buf_data(&got), in, n), 0);
        buf_free(&got);
    }
}

void tap_suites(void)
{
    CU_pSuite s = CU_add_suite("usage that is asked for", NULL, NULL);
    CU_add_test(s, "bodies that are asked", test_ask);
    CU_add_test(s, "bodies that are left alone", test_left);
    CU_add_test(s, "what that adds goes", test_added);
    CU_add_test(s, "what others send stays", test_kept);
    CU_add_test(s, "a long event", test_long);
}
