/* A command line that is put together. Words are the caller's, and live as long as it. */
#ifndef DURWARD_WORDS_H
#define DURWARD_WORDS_H

#include <stdbool.h>
#include <stddef.h>

enum { WORDS_MAX = 1024 };

/* Zeroes: nothing yet. */
struct words {
    const char *v[WORDS_MAX]; /* as execve takes them */
    unsigned n;
    bool full; /* a word had no place: it is not to be run, for what is left out may be a limit */
};

static inline void words_add(struct words *w, const char *word)
{
    if (w->n == WORDS_MAX - 1)
        w->full = true;
    else
        w->v[w->n++] = word;
    w->v[w->n] = NULL;
}

static inline void words_add_all(struct words *w, const char *const *words, size_t n)
{
    for (size_t i = 0; i < n; i++)
        words_add(w, words[i]);
}

#define WORDS_ADD(w, ...)                                     \
    do {                                                      \
        const char *const all_[] = {__VA_ARGS__};             \
        words_add_all((w), all_, sizeof all_ / sizeof *all_); \
    } while (0)

#endif
