/* Archives of whoever made an image: names that lead out of the tree, links in the way, whiteouts,
 * budgets, what is left out. */
#include <CUnit/CUnit.h>
#include <archive.h>
#include <archive_entry.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "compiler.h"
#include "tap_main.h"
#include "unpack.h"

void suite_unpack(void);

struct member {
    const char *path;
    mode_t type; /* AE_IF…; 0: a hard link to `text` */
    mode_t mode;
    const char *text; /* a file's content, a link's target */
};

#define DIR(p)      ((struct member){p, AE_IFDIR, 0755, NULL})
#define FILE_(p, t) ((struct member){p, AE_IFREG, 0644, t})
#define LINK(p, t)  ((struct member){p, AE_IFLNK, 0777, t})
#define HARD(p, t)  ((struct member){p, 0, 0644, t})

static char where[64], root_path[80];
static int top, root;

static int remove_one(const char *path, const struct stat *st UNUSED, int type UNUSED,
                      struct FTW *f UNUSED)
{
    return remove(path);
}

/* A fresh tree, and beside it what nobody may reach. */
static void fresh(void)
{
    if (root >= 0)
        close(root);
    nftw(root_path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    CU_ASSERT_EQUAL(mkdir(root_path, 0700), 0);
    root = open(root_path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    int fd = openat(top, "outside/x", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    CU_ASSERT_FATAL(root >= 0 && fd >= 0);
    CU_ASSERT_EQUAL(write(fd, "host", 4), 4);
    close(fd);
}

static int setup(void)
{
    snprintf(where, sizeof where, "/tmp/durward-unpack-XXXXXX");
    if (mkdtemp(where) == NULL)
        return -1;
    snprintf(root_path, sizeof root_path, "%s/root", where);
    top = open(where, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    root = -1;
    return top >= 0 && mkdirat(top, "outside", 0700) == 0 ? 0 : -1;
}

static int teardown(void)
{
    close(root);
    close(top);
    return nftw(where, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static int archive_of(const struct member *m, size_t n)
{
    int fd = memfd_create("archive", MFD_CLOEXEC);
    struct archive *a = archive_write_new();
    archive_write_set_format_pax_restricted(a);
    archive_write_set_bytes_in_last_block(a, 1);
    CU_ASSERT_EQUAL_FATAL(archive_write_open_fd(a, fd), ARCHIVE_OK);
    for (size_t i = 0; i < n; i++) {
        struct archive_entry *e = archive_entry_new();
        archive_entry_set_pathname(e, m[i].path);
        archive_entry_set_filetype(e, m[i].type ? m[i].type : AE_IFREG);
        archive_entry_set_perm(e, m[i].mode);
        if (m[i].type == 0)
            archive_entry_set_hardlink(e, m[i].text);
        if (m[i].type == AE_IFLNK)
            archive_entry_set_symlink(e, m[i].text);
        size_t size = m[i].type == AE_IFREG ? strlen(m[i].text) : 0;
        archive_entry_set_size(e, (la_int64_t)size);
        CU_ASSERT(archive_write_header(a, e) >= ARCHIVE_WARN);
        if (size)
            CU_ASSERT_EQUAL(archive_write_data(a, m[i].text, size), (la_ssize_t)size);
        archive_entry_free(e);
    }
    CU_ASSERT_EQUAL(archive_write_free(a), ARCHIVE_OK);
    CU_ASSERT_EQUAL(lseek(fd, 0, SEEK_SET), 0);
    return fd;
}

static struct unpack job(void)
{
    return (struct unpack){.root = root, .bytes_left = 1 << 20, .entries_left = 1000};
}

static int lay_out(const struct member *m, size_t n, bool layer, struct err *err)
{
    struct unpack u = job();
    int fd = archive_of(m, n);
    int r = layer ? unpack_layer(&u, fd, err) : unpack_stream(&u, fd, err);
    close(fd);
    return r;
}

#define STREAM(err, ...)                          \
    lay_out((const struct member[]){__VA_ARGS__}, \
            sizeof((const struct member[]){__VA_ARGS__}) / sizeof(struct member), false, err)
#define LAYER(err, ...)                           \
    lay_out((const struct member[]){__VA_ARGS__}, \
            sizeof((const struct member[]){__VA_ARGS__}) / sizeof(struct member), true, err)

/* Does the file below the root hold this text? NULL: nothing is there. */
static bool holds(const char *path, const char *text)
{
    char got[64] = "";
    int fd = openat(root, path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, got, sizeof got - 1);
    if (fd >= 0)
        close(fd);
    if (text == NULL)
        return faccessat(root, path, F_OK, AT_SYMLINK_NOFOLLOW) < 0;
    return n >= 0 && strcmp(got, text) == 0;
}

static bool untouched(void)
{
    char got[8] = "";
    int fd = openat(top, "outside/x", O_RDONLY | O_CLOEXEC);
    bool same = fd >= 0 && read(fd, got, sizeof got) == 4 && strcmp(got, "host") == 0;
    if (fd >= 0)
        close(fd);
    struct stat st;
    return same && fstatat(top, "outside", &st, 0) == 0 && st.st_nlink == 2 &&
           faccessat(top, "outside/y", F_OK, AT_SYMLINK_NOFOLLOW) < 0;
}

static void test_plain(void)
{
    static const struct member all[] = {
        {"./", AE_IFDIR, 0777, NULL},    {"d/", AE_IFDIR, 01750, NULL},
        {"d/f", AE_IFREG, 0640, "text"}, {"d/g", AE_IFREG, 06755, "set"},
        {"/abs/e", AE_IFREG, 0644, ""},  {"l", AE_IFLNK, 0777, "/etc/passwd"},
        {"d/h", 0, 0644, "d/f"},         {"p", AE_IFIFO, 0644, NULL},
        {"c", AE_IFCHR, 0644, NULL},     {"deep/er/still", AE_IFREG, 0600, "z"}};
    struct err err = {0};
    struct stat st, other;
    char to[32] = "";
    fresh();
    struct unpack u = job();
    int fd = archive_of(all, ARRAY_LEN(all));
    if (unpack_stream(&u, fd, &err) < 0)
        printf("# %s\n", err.text);
    close(fd);
    CU_ASSERT_EQUAL(err.code, ERR_NONE);
    CU_ASSERT(u.done.special == 2 && u.done.set_id == 1 && u.done.entries == ARRAY_LEN(all) &&
              u.done.bytes == 8);
    CU_ASSERT(holds("d/f", "text") && holds("d/h", "text") && holds("abs/e", "") &&
              holds("deep/er/still", "z") && holds("p", NULL) && holds("c", NULL));
    CU_ASSERT(fstatat(root, "d/g", &st, 0) == 0 && (st.st_mode & 07777) == 0755);
    CU_ASSERT(fstatat(root, "d", &st, 0) == 0 && (st.st_mode & 07777) == 01750);
    CU_ASSERT(fstatat(root, "d/f", &st, 0) == 0 && fstatat(root, "d/h", &other, 0) == 0 &&
              st.st_ino == other.st_ino);
    CU_ASSERT(readlinkat(root, "l", to, sizeof to - 1) == 11 && strcmp(to, "/etc/passwd") == 0);
    CU_ASSERT(fstat(root, &st) == 0 && (st.st_mode & 0777) == 0700); /* the root stays ours */
}

/* Each of these ends with an error, and nothing outside is made, changed or removed. */
static void test_outside(void)
{
    static const struct {
        struct member m[3];
        const char *says;
    } rows[] = {
        {{FILE_("../outside/y", "bad")}, ".."},
        {{FILE_("a/../../outside/y", "bad")}, ".."},
        {{FILE_("..", "bad")}, ".."},
        {{FILE_(".", "bad")}, "root is not a directory"},
        {{LINK("l", "../outside"), FILE_("l/y", "bad")}, "l"},
        {{LINK("l", "../outside"), DIR("l/y")}, "l"},
        {{LINK("l", "../outside"), HARD("h", "l/x")}, "hard link"},
        {{LINK("l", "../outside/x"), HARD("h", "l")}, "hard link"},
        {{HARD("h", "../outside/x")}, "hard link"},
        {{HARD("h", "none")}, "hard link"},
        {{DIR("d"), HARD("h", "d")}, "hard link"},
        {{HARD("h", "h")}, "hard link"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct err err = {0};
        size_t n = 0;
        while (n < 3 && rows[i].m[n].path)
            n++;
        fresh();
        int r = lay_out(rows[i].m, n, i & 1, &err);
        if (r == 0 || strstr(err.text, rows[i].says) == NULL)
            printf("# row %zu: %d %s\n", i, r, err.text);
        CU_ASSERT_EQUAL(r, -1);
        CU_ASSERT_PTR_NOT_NULL(strstr(err.text, rows[i].says));
        CU_ASSERT_TRUE(untouched());
        CU_ASSERT_TRUE(holds("h", NULL));
    }
}

/* A later member takes the place of an earlier one, whatever either is. */
static void test_replaced(void)
{
    struct err err = {0};
    fresh();
    CU_ASSERT_EQUAL(STREAM(&err, DIR("a"), FILE_("a/b", "1"), FILE_("a", "file")), 0);
    CU_ASSERT(holds("a", "file"));
    CU_ASSERT_EQUAL(STREAM(&err, DIR("a"), FILE_("a/c", "2")), 0);
    CU_ASSERT(holds("a/c", "2"));
    CU_ASSERT_EQUAL(STREAM(&err, DIR("a"), FILE_("a/d", "3")), 0); /* a directory stays */
    CU_ASSERT(holds("a/c", "2") && holds("a/d", "3"));
    CU_ASSERT_EQUAL(STREAM(&err, LINK("l", "../outside/x"), FILE_("l", "ours")), 0);
    CU_ASSERT(holds("l", "ours") && untouched());
    CU_ASSERT_EQUAL(STREAM(&err, LINK("m", "../outside"), DIR("m"), FILE_("m/y", "ours")), 0);
    CU_ASSERT(holds("m/y", "ours") && untouched());
    CU_ASSERT_EQUAL(STREAM(&err, LINK("a", "l")), 0);
    CU_ASSERT(holds("a/c", NULL));
    CU_ASSERT_EQUAL(STREAM(&err, FILE_("f", "1"), HARD("g", "f"), HARD("g", "f"), HARD("f", "g")),
                    0);
    CU_ASSERT(holds("f", "1") && holds("g", "1"));
}

static void test_whiteouts(void)
{
    struct err err = {0};
    fresh();
    CU_ASSERT_EQUAL(LAYER(&err, FILE_("a/b", "1"), FILE_("a/c", "2"), FILE_("d/e/f", "3"),
                          FILE_("k", "4"), LINK("l", "../outside")),
                    0);
    CU_ASSERT_EQUAL(LAYER(&err, FILE_("a/.wh.b", ""), FILE_(".wh.k", ""), FILE_(".wh.none", ""),
                          FILE_("l/.wh.x", ""), FILE_("l/.wh..wh..opq", ""), FILE_("no/.wh.x", "")),
                    0);
    CU_ASSERT(holds("a/b", NULL) && holds("a/c", "2") && holds("k", NULL) && untouched());
    CU_ASSERT(holds("a/.wh.b", NULL) && holds("no", NULL));
    /* it hides what lay below, not what comes with it, whichever stands first */
    CU_ASSERT_EQUAL(LAYER(&err, FILE_("d/new", "5"), FILE_("d/.wh..wh..opq", ""), FILE_("a/c", "6"),
                          FILE_("a/.wh.c", "")),
                    0);
    CU_ASSERT(holds("d/e", NULL) && holds("d/new", "5") && holds("a/c", "6"));
    static const char *const bad[] = {".wh.", ".wh..", ".wh...", "a/.wh.."};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        CU_ASSERT_EQUAL(LAYER(&err, FILE_(bad[i], "")), -1);
        CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "hides nothing"));
        CU_ASSERT(holds("a/c", "6") && untouched());
    }
    CU_ASSERT_EQUAL(STREAM(&err, FILE_(".wh.a", "text")), 0); /* no layer: a name like any */
    CU_ASSERT(holds(".wh.a", "text") && holds("a/c", "6"));
}

static void test_budgets(void)
{
    static const struct member three[] = {FILE_("a", "0123456789"), FILE_("b", "0123456789"),
                                          FILE_("c", "0123456789")};
    for (int by_bytes = 0; by_bytes < 2; by_bytes++) {
        struct err err = {0};
        fresh();
        struct unpack u = job();
        if (by_bytes)
            u.bytes_left = 29;
        else
            u.entries_left = 2;
        int fd = archive_of(three, 3);
        CU_ASSERT_EQUAL(unpack_stream(&u, fd, &err), -1);
        CU_ASSERT_EQUAL(err.code, ERR_LIMIT);
        CU_ASSERT(holds("b", "0123456789") && !holds("c", "0123456789"));
        close(fd);
        u = job();
        u.bytes_left = 30;
        u.entries_left = 3;
        fd = archive_of(three, 3);
        CU_ASSERT_EQUAL(unpack_stream(&u, fd, &err), 0);
        CU_ASSERT(holds("c", "0123456789"));
        close(fd);
    }
}

/* Bytes that are no archive, and one that is cut off anywhere. */
static void test_broken(void)
{
    static const struct member all[] = {FILE_("a", "0123456789"), FILE_("b", "0123456789")};
    struct err err = {0};
    struct unpack u = job();
    int fd = memfd_create("none", MFD_CLOEXEC), pipes[2];
    fresh();
    u.root = root;
    for (int i = 0; i < 300; i++)
        CU_ASSERT_EQUAL(write(fd, "no archive", 10), 10);
    lseek(fd, 0, SEEK_SET);
    CU_ASSERT_EQUAL(unpack_stream(&u, fd, &err), -1);
    close(fd);
    for (off_t cut = 100; cut < 1600; cut += 100) {
        fresh();
        u = job();
        fd = archive_of(all, 2);
        CU_ASSERT_EQUAL(ftruncate(fd, cut), 0);
        int r = unpack_stream(&u, fd, &err);
        CU_ASSERT(r == -1 || holds("a", "0123456789")); /* a whole member before the cut, or none */
        CU_ASSERT(r == -1 || cut >= 1024);
        close(fd);
    }
    CU_ASSERT_EQUAL(pipe(pipes), 0); /* a layer is read twice */
    close(pipes[1]);
    CU_ASSERT_EQUAL(unpack_layer(&u, pipes[0], &err), -1);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "cannot rewind"));
    close(pipes[0]);
}

void suite_unpack(void)
{
    CU_pSuite s = CU_add_suite("unpack", setup, teardown);
    CU_add_test(s, "what is taken and what is left out", test_plain);
    CU_add_test(s, "names and links that lead out", test_outside);
    CU_add_test(s, "members in each other's place", test_replaced);
    CU_add_test(s, "whiteouts of layers", test_whiteouts);
    CU_add_test(s, "budgets", test_budgets);
    CU_add_test(s, "what is no archive", test_broken);
}

void tap_suites(void)
{
    suite_unpack();
}
