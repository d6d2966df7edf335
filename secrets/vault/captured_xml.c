/* A reply in XML, as AWS STS gives it. Expat reads it: no document type, no entities but the five,
 * UTF-8 alone. It is written by putting placeholders where the texts stand, and read again to see
 * that none is left (one that was written with escapes would be). */
#include "captured_internal.h"

#include <expat.h>
#include <stdio.h>
#include <string.h>

enum { DEPTH_MAX = CAPTURED_DEPTH_MAX, NAMES_MAX = 1024 };

struct reading {
    XML_Parser parser;
    const struct captured_search *search; /* NULL: the second reading, with */
    const struct captured_words *words;
    const char *why; /* what is wrong; NULL: nothing */
    unsigned depth, children[DEPTH_MAX + 1];
    char path[NAMES_MAX]; /* of the element at hand: names with dots between */
    size_t path_n, at[DEPTH_MAX + 1];
    struct buf text; /* directly in the element at hand, since its last child */
    struct buf part[CAPTURED_PARTS];
    unsigned parts[DEPTH_MAX + 1]; /* of an AWS key, seen in the element at that depth: a mask */
};

static void stop(struct reading *r, const char *why)
{
    if (r->why == NULL)
        r->why = why;
    XML_StopParser(r->parser, XML_FALSE);
}

/* The names are those of the path: a star is any name. */
static bool names(struct slice at, const char *path)
{
    for (;;) {
        size_t n = strcspn(path, ".");
        ssize_t dot = slice_find(at, '.');
        struct slice name = {at.p, dot < 0 ? at.n : (size_t)dot};
        if (!(n == 1 && path[0] == '*') && !slice_eq(name, (struct slice){path, n}))
            return false;
        if (path[n] == 0 || dot < 0)
            return path[n] == 0 && dot < 0;
        path += n + 1;
        at = (struct slice){at.p + dot + 1, at.n - (size_t)dot - 1};
    }
}

/* Of the element at hand. */
static struct slice name_of(const struct reading *r)
{
    size_t from = r->at[r->depth] + (r->depth > 1);
    return (struct slice){r->path + from, r->path_n - from};
}

static bool captured_at_hand(const struct reading *r)
{
    for (size_t i = 0; i < r->search->n; i++)
        if (names((struct slice){r->path, r->path_n}, r->search->fields[i].path))
            return true;
    return false;
}

static void refuse_missed(struct reading *r, struct slice name, struct slice value)
{
    if (captured_missed(r->search, name, value)) {
        captured_say_missed(r->search, name);
        stop(r, r->search->err->text);
    }
}

/* What the element held is known. */
static void take(struct reading *r)
{
    const struct captured_search *s = r->search;
    if (!captured_at_hand(r)) {
        refuse_missed(r, name_of(r), buf_slice(&r->text));
        for (size_t k = 1; k < CAPTURED_PARTS; k++)
            if (r->parts[r->depth] >> k & 1)
                refuse_missed(r, name_of(r), buf_slice(&r->part[k]));
        return;
    }
    for (size_t i = 0; i < s->n; i++) {
        struct captured_field *f = &s->fields[i];
        struct slice part[CAPTURED_PARTS];
        if (!names((struct slice){r->path, r->path_n}, f->path))
            continue;
        for (size_t k = 0; k < CAPTURED_PARTS; k++)
            part[k] =
                r->parts[r->depth] >> k & 1 ? buf_slice(&r->part[k]) : (struct slice){NULL, 0};
        struct slice text = buf_slice(&r->text);
        if (text.p == NULL)
            text.p = "";
        int bad =
            r->children[r->depth] ? captured_take_pair(s, f, part) : captured_take(s, f, text);
        if (bad)
            stop(r, s->err->text);
    }
}

static void keep_part(struct reading *r, const char *name)
{
    bool outer = false; /* there is room for the parts of one */
    for (unsigned d = 0; d + 1 < r->depth; d++)
        outer = outer || r->parts[d];
    for (size_t k = 0; k < CAPTURED_PARTS; k++) {
        if (strcmp(name, captured_parts[k]) != 0 || r->children[r->depth])
            continue;
        unsigned *parts = &r->parts[r->depth - 1], bit = 1u << k;
        if (*parts & bit || outer)
            stop(r, "it has a part of an AWS key twice");
        *parts |= bit;
        buf_clear(&r->part[k]);
        if (buf_append_slice(&r->part[k], buf_slice(&r->text)) < 0)
            stop(r, "it is too large");
    }
}

static void XMLCALL on_start(void *arg, const XML_Char *name, const XML_Char **attributes)
{
    struct reading *r = arg;
    if (r->depth == DEPTH_MAX || strchr(name, '.')) {
        stop(r, "it is nested too deeply, or has odd names");
        return;
    }
    if (r->words)
        for (size_t i = 0; attributes[i]; i++)
            if (captured_holds(r->words, slice_str(attributes[i])))
                stop(r, "it cannot be written with placeholders");
    if (r->words && captured_holds(r->words, slice_str(name)))
        stop(r, "it cannot be written with placeholders");
    if (r->words == NULL) {
        for (size_t i = 0; attributes[i] && attributes[i + 1]; i += 2)
            refuse_missed(r, slice_str(attributes[i]), slice_str(attributes[i + 1]));
        if (r->depth > 0) /* text before a child */
            refuse_missed(r, name_of(r), buf_slice(&r->text));
    }
    r->children[r->depth]++;
    r->depth++;
    r->children[r->depth] = r->parts[r->depth] = 0;
    r->at[r->depth] = r->path_n;
    buf_clear(&r->text);
    int n =
        snprintf(r->path + r->path_n, NAMES_MAX - r->path_n, "%s%s", r->depth > 1 ? "." : "", name);
    if (n < 0 || (size_t)n >= NAMES_MAX - r->path_n)
        stop(r, "it is nested too deeply, or has odd names");
    else
        r->path_n += (size_t)n;
}

static void XMLCALL on_end(void *arg, const XML_Char *name)
{
    struct reading *r = arg;
    if (r->words == NULL) {
        take(r);
        if (r->depth > 0)
            keep_part(r, name);
    }
    r->path_n = r->at[r->depth];
    buf_clear(&r->text);
    r->depth--;
}

static void XMLCALL on_text(void *arg, const XML_Char *s, int n)
{
    struct reading *r = arg;
    if (buf_append(&r->text, s, (size_t)n) < 0)
        stop(r, "it is too large");
    else if (r->words && captured_holds(r->words, buf_slice(&r->text)))
        stop(r, "it cannot be written with placeholders");
}

static void XMLCALL on_comment(void *arg, const XML_Char *s)
{
    struct reading *r = arg;
    if (r->words && captured_holds(r->words, slice_str(s)))
        stop(r, "it cannot be written with placeholders");
}

static void XMLCALL on_instruction(void *arg, const XML_Char *target UNUSED, const XML_Char *s)
{
    on_comment(arg, s);
}

static void XMLCALL on_type(void *arg, const XML_Char *name UNUSED, const XML_Char *system UNUSED,
                            const XML_Char *public UNUSED, int internal UNUSED)
{
    stop(arg, "it has a document type");
}

static void XMLCALL on_declaration(void *arg, const XML_Char *version UNUSED,
                                   const XML_Char *encoding, int alone UNUSED)
{
    if (encoding && !slice_ieq(slice_str(encoding), SLICE("utf-8")))
        stop(arg, "its encoding is not UTF-8");
}

/* words NULL: the first reading, which takes. */
static int read_all(struct slice body, const struct captured_search *s,
                    const struct captured_words *words)
{
    struct reading r = {.parser = XML_ParserCreate("UTF-8"), .search = s, .words = words};
    if (r.parser == NULL)
        return err_set(s->err, ERR_INTERNAL, "out of memory");
    buf_init_wiped(&r.text, CAPTURED_WRITTEN_MAX);
    for (size_t k = 0; k < CAPTURED_PARTS; k++)
        buf_init_wiped(&r.part[k], CAPTURED_WRITTEN_MAX);
    XML_SetUserData(r.parser, &r);
    XML_SetElementHandler(r.parser, on_start, on_end);
    XML_SetCharacterDataHandler(r.parser, on_text);
    XML_SetCommentHandler(r.parser, on_comment);
    XML_SetProcessingInstructionHandler(r.parser, on_instruction);
    XML_SetStartDoctypeDeclHandler(r.parser, on_type);
    XML_SetXmlDeclHandler(r.parser, on_declaration);
    bool good = XML_Parse(r.parser, body.p, (int)body.n, XML_TRUE) == XML_STATUS_OK;
    XML_ParserFree(r.parser);
    buf_free(&r.text);
    for (size_t k = 0; k < CAPTURED_PARTS; k++)
        buf_free(&r.part[k]);
    if (r.why && r.why != s->err->text)
        return err_set(s->err, ERR_PARSE, "%s", r.why);
    return r.why ? -1 : good ? 0 : err_set(s->err, ERR_PARSE, "it is not XML");
}

int captured_xml(struct slice body, const struct captured_search *s, struct buf *out)
{
    struct captured_words words;
    if (read_all(body, s, NULL) < 0)
        return -1;
    captured_words_of(s->fields, s->n, &words);
    for (size_t i = 0; i < words.n; i++)
        for (size_t k = 0; k < words.word[i].by.n; k++)
            if (strchr("<>&\"'", words.word[i].by.p[k]))
                return err_set(s->err, ERR_LIMIT, "it cannot be written with placeholders");
    if (captured_replace(&words, body, out) < 0)
        return err_set(s->err, ERR_LIMIT, "it cannot be written with placeholders");
    return words.n ? read_all(buf_slice(out), s, &words) : 0;
}
