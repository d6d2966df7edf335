/* Lines and frames out, frames in. */
#include "exec_frames.h"

#include "api_asked.h"

#include <stdlib.h>
#include <string.h>

enum { INPUT_HIGH = 1 << 20 };
enum { FRAME_INPUT = 0, FRAME_SIGNAL, FRAME_SIZE }; /* from the client */

void exec_frame_put(struct evbuffer *out, enum exec_frame type, const void *p, size_t n)
{
    const unsigned char head[EXEC_FRAME_HEAD] = {(unsigned char)type, (unsigned char)(n >> 24),
                                                 (unsigned char)(n >> 16), (unsigned char)(n >> 8),
                                                 (unsigned char)n};
    evbuffer_add(out, head, sizeof head);
    evbuffer_add(out, p, n);
}

void exec_put(struct evbuffer *out, bool frames, enum exec_frame type, json_t *v)
{
    char *text = v ? json_dumps(v, JSON_COMPACT | JSON_PRESERVE_ORDER) : NULL;
    json_decref(v);
    if (text && frames)
        exec_frame_put(out, type, text, strlen(text));
    else if (text)
        evbuffer_add_printf(out, "%zx\r\n%s\n\r\n", strlen(text) + 1, text);
    free(text);
}

void exec_put_output(struct evbuffer *out, bool frames, enum exec_frame type, const void *p,
                     size_t n)
{
    if (frames)
        exec_frame_put(out, type, p, n);
    else
        exec_put(out, false, type,
                 json_pack("{s:s, s:o}", "type", type == EXEC_OUT ? "stdout" : "stderr", "data",
                           asked_encode((struct slice){p, n}, true)));
}

void exec_put_end(struct evbuffer *out, bool frames)
{
    if (!frames)
        evbuffer_add_printf(out, "0\r\n\r\n");
}

void exec_put_kept(struct evbuffer *out, bool frames, struct evbuffer *kept)
{
    size_t left = evbuffer_get_length(kept);
    const unsigned char *p = left ? evbuffer_pullup(kept, -1) : NULL;
    while (p && left >= EXEC_FRAME_HEAD) {
        size_t n = exec_frame_size(p);
        exec_put_output(out, frames, (enum exec_frame)p[0], p + EXEC_FRAME_HEAD, n);
        p += EXEC_FRAME_HEAD + n;
        left -= EXEC_FRAME_HEAD + n;
    }
}

json_t *exec_started_json(const struct execution *e)
{
    return json_pack("{s:s, s:s}", "type", "started", "id", execution_id(e));
}

json_t *exec_exit_json(const struct execution *e)
{
    return json_pack("{s:s, s:I, s:b, s:b, s:s, s:I}", "type", "exit", "exit_code",
                     (json_int_t)execution_status(e), "timed_out", execution_timed_out(e),
                     "truncated", execution_truncated(e), "message", execution_text(e),
                     "duration_ms", (json_int_t)execution_ms(e));
}

/* One frame. -1: nonsense. */
static int take(struct execution *e, unsigned char type, const unsigned char *p, size_t n)
{
    switch (type) {
    case FRAME_INPUT:
        if (e)
            (void)execution_input(e, p, n); /* who reads no more loses it, as in a pipe */
        return 0;
    case FRAME_SIGNAL:
        if (n != 1 || p[0] == 0 || p[0] > 64)
            return -1;
        if (e)
            execution_signal(e, p[0]);
        return 0;
    case FRAME_SIZE:
        if (n != 4)
            return -1;
        if (e)
            execution_winsize(e, (unsigned)(p[0] << 8 | p[1]), (unsigned)(p[2] << 8 | p[3]));
        return 0;
    default:
        return -1;
    }
}

int exec_frames_take(struct evbuffer *in, struct execution *e)
{
    unsigned char head[EXEC_FRAME_HEAD];
    while (evbuffer_copyout(in, head, sizeof head) == sizeof head) {
        size_t n = exec_frame_size(head);
        if (n <= EXEC_FRAME_MAX && evbuffer_get_length(in) < sizeof head + n)
            return 0;
        evbuffer_drain(in, sizeof head);
        if (n > EXEC_FRAME_MAX ||
            take(e, head[0], n ? evbuffer_pullup(in, (ssize_t)n) : head, n) < 0)
            return -1;
        evbuffer_drain(in, n);
        if (e && execution_input_waiting(e) > INPUT_HIGH)
            return 1;
    }
    return 0;
}
