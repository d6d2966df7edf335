/* Runs a libFuzzer target once over every file of its corpus, with an ordinary compiler, and
 * prints TAP. Linked with each target when the tree is not configured for fuzzing. A finding shows
 * as a crash (or a sanitizer report): the file's name is printed before it is tried. */
#include "replay_cost.h"

#include <dirent.h>
#include <errno.h>
#include <libgen.h>
#include <stdint.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { FILE_MAX = 1 << 20 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Heap memory of exactly the input's size, so that a sanitizer sees a read past its end. */
static uint8_t *read_file(const char *path, size_t *n)
{
    FILE *f = fopen(path, "rb");
    if (f == NULL)
        return NULL;
    struct stat st;
    uint8_t *data = NULL;
    if (fstat(fileno(f), &st) == 0 && S_ISREG(st.st_mode) && st.st_size <= FILE_MAX) {
        *n = (size_t)st.st_size;
        data = malloc(*n ? *n : 1);
        if (data && fread(data, 1, *n, f) != *n) {
            free(data);
            data = NULL;
        }
    }
    fclose(f);
    return data;
}

static int visible(const struct dirent *e)
{
    return e->d_name[0] != '.';
}

static int replay(const char *dir, const char *name, int number)
{
    char path[4096];
    size_t n = 0;
    if (snprintf(path, sizeof path, "%s/%s", dir, name) >= (int)sizeof path)
        return -1;
    printf("# %s\n", name);
    fflush(stdout);
    uint8_t *data = read_file(path, &n);
    if (data == NULL) {
        printf("not ok %d - %s cannot be read: %s\n", number, name, strerror(errno));
        return -1;
    }
    LLVMFuzzerTestOneInput(data, n);
    free(data);
    printf("ok %d - %s (%zu bytes)\n", number, name, n);
    return 0;
}

/* What each file costs, one line each: name, bytes, nanoseconds of processor time, bytes of heap.
 */
static void cost(const char *dir, const char *name)
{
    char path[4096];
    size_t n = 0;
    struct replay_cost c;
    if (snprintf(path, sizeof path, "%s/%s", dir, name) >= (int)sizeof path)
        return;
    uint8_t *data = read_file(path, &n);
    if (data == NULL)
        return;
    replay_cost(data, n, &c);
    printf("%s %zu %llu %zu\n", name, n, (unsigned long long)c.ns, c.heap);
    free(data);
}

/* fuzz_NAME replays tests/corpus/NAME; another directory may be given; --cost DIR measures instead.
 */
int main(int argc, char **argv)
{
    char dir[4096];
    bool measured = argc > 2 && strcmp(argv[1], "--cost") == 0;
    const char *program = basename(argv[0]);
    const char *srcdir = getenv("srcdir");
    if (strncmp(program, "fuzz_", 5) == 0)
        program += 5;
    if (argc > 1)
        snprintf(dir, sizeof dir, "%s", argv[measured ? 2 : 1]);
    else
        snprintf(dir, sizeof dir, "%s/tests/corpus/%s", srcdir ? srcdir : ".", program);
    struct dirent **list;
    int n = scandir(dir, &list, visible, alphasort);
    if (n <= 0) {
        printf("Bail out! no corpus in %s\n", dir);
        return 1;
    }
    if (!measured)
        printf("1..%d\n", n);
    for (int i = 0; i < n; i++) {
        if (measured)
            cost(dir, list[i]->d_name);
        else
            replay(dir, list[i]->d_name, i + 1);
        free(list[i]);
    }
    free(list);
    return 0;
}
