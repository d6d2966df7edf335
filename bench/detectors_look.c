/* What the detectors of `redact` find, for bench/detectors: texts from stdin, each a line with its
 * length in bytes and then the text; a line to stdout for each, "github 2, email 1" or empty.
 *
 * usage: bench/detectors_look DETECTOR[,DETECTOR]...      "credentials,entropy" */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "detect_stream.h"

enum { TEXT_MAX = 64 << 20 };

static void die(const char *what)
{
    fprintf(stderr, "detectors_look: %s\n", what);
    exit(2);
}

static bool own(void *arg, struct slice text)
{
    (void)arg;
    (void)text;
    return false;
}

static uint32_t asked(const char *list)
{
    uint32_t what = 0;
    for (const char *p = list; *p;) {
        size_t n = strcspn(p, ",");
        uint32_t one = detectors_of((struct slice){p, n});
        if (one == 0)
            die("no such detector");
        what |= one;
        p += n + (p[n] == ',');
    }
    return what;
}

/* All of it, as a body in pieces of whatever size there is room for. */
static void look(uint32_t what, const char *text, size_t n)
{
    struct detect_rules rules = {.redact = what};
    struct detect_stream *s = detect_stream_new(&rules, DETECT_PLAIN, own, NULL);
    if (s == NULL)
        die("memory is out");
    for (size_t at = 0; at < n;) {
        size_t room = detect_stream_room(s), part = n - at < room ? n - at : room;
        detect_stream_take(s, text + at, part);
        at += part;
        detect_stream_went(s, detect_stream_ready(s).n);
    }
    detect_stream_end(s);
    detect_stream_went(s, detect_stream_ready(s).n);
    char found[DETECT_FOUND_MAX];
    puts(detect_found_text(detect_stream_counts(s), found));
    detect_stream_free(s);
}

int main(int argc, char **argv)
{
    if (argc != 2)
        die("usage: detectors_look DETECTOR[,DETECTOR]...");
    uint32_t what = asked(argv[1]);
    char head[32], *text = malloc(TEXT_MAX);
    if (text == NULL)
        die("memory is out");
    while (fgets(head, sizeof head, stdin)) {
        char *end;
        uintmax_t n = strtoumax(head, &end, 10);
        if (end == head || *end != '\n' || n > TEXT_MAX || fread(text, 1, n, stdin) != n)
            die("a text without its length before it");
        look(what, text, n);
    }
    free(text);
    return 0;
}
