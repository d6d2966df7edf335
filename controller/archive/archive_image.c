/* Unpacks an image, of files or of layers, and packs a directory that is to become one. */
#define _GNU_SOURCE 1
#include "archive_work.h"

#include <archive.h>
#include <archive_entry.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "oci.h"
#include "tree.h"
#include "unpack.h"

enum { REPORT_MS = 100, BLOCK = 65536 };

/* ---- unpacking ---- */

struct worker {
    struct archive_report said;
    struct timespec last;
};

static void say(struct worker *w)
{
    const struct archive_report said = w->said;
    if (write(ARCHIVE_SAY, &said, sizeof said) != sizeof said)
        _exit(ARCHIVED_NOT); /* nobody listens any more */
}

static void on_progress(void *arg, const struct unpack_count *done)
{
    struct worker *w = arg;
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    w->said.count = *done;
    if ((now.tv_sec - w->last.tv_sec) * 1000 + (now.tv_nsec - w->last.tv_nsec) / 1000000 <
        REPORT_MS)
        return;
    w->last = now;
    say(w);
}

static int apply_layers(struct unpack *u, int from, const struct oci_layers *l, struct err *err)
{
    for (unsigned i = 0; i < l->n; i++) {
        int fd = oci_open(from, l->path[i], err);
        int r = fd < 0 ? -1 : unpack_layer(u, fd, err);
        if (fd >= 0)
            close(fd);
        if (r < 0)
            return err_wrap(err, "layer %u of %u", i + 1, l->n);
    }
    return 0;
}

/* What came is either the files themselves or an image of layers that are unpacked in turn. */
static int lay_out(struct worker *w, const uint64_t budget[2], struct err *err)
{
    static struct oci_layers layers;
    const int root = ARCHIVE_FIRST, fresh = ARCHIVE_SECOND;
    struct unpack u = {.root = fresh,
                       .bytes_left = budget[0],
                       .entries_left = budget[1],
                       .progress = on_progress,
                       .arg = w};
    if (unpack_stream(&u, ARCHIVE_STREAM, err) < 0)
        return -1;
    w->said.count = u.done;
    if (u.done.entries == 0)
        return err_set(err, ERR_PARSE, "there is nothing in it");
    int r = oci_layers(fresh, &layers, err);
    if (r <= 0) {
        snprintf(w->said.kind, sizeof w->said.kind, "files");
        return r;
    }
    snprintf(w->said.kind, sizeof w->said.kind, "layers");
    u.root = root;
    u.done = (struct unpack_count){0};
    u.bytes_left = budget[0];
    u.entries_left = budget[1];
    if (apply_layers(&u, fresh, &layers, err) < 0)
        return -1;
    w->said.count = u.done;
    return tree_empty(fresh, err);
}

int archive_unpack_image(const uint64_t budget[2])
{
    struct worker w = {.said = {.ok = false}};
    w.said.ok = lay_out(&w, budget, &w.said.err) == 0;
    say(&w);
    return !w.said.ok                          ? ARCHIVED_NOT
           : strcmp(w.said.kind, "files") == 0 ? ARCHIVED_WELL
                                               : ARCHIVED_LAYERS;
}

/* ---- packing ---- */

static int pack_data(struct archive *out, const char *path, int at)
{
    char room[BLOCK];
    int fd = openat(at, path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    ssize_t n = fd < 0 ? -1 : 0;
    while (n >= 0 && (n = read(fd, room, sizeof room)) > 0)
        if (archive_write_data(out, room, (size_t)n) < 0)
            n = -1;
    if (fd >= 0)
        close(fd);
    return n < 0 ? -1 : 0;
}

static int pack_entry(struct archive *out, struct archive_entry *e,
                      struct archive_entry_linkresolver *links, int at)
{
    struct archive_entry *spare = NULL;
    const char *path = archive_entry_pathname(e);
    archive_entry_linkify(links, &e, &spare);
    if (e == NULL)
        return 0;
    if (archive_write_header(out, e) < ARCHIVE_WARN)
        return -1;
    if (archive_entry_filetype(e) != AE_IFREG || archive_entry_hardlink(e) ||
        archive_entry_size(e) <= 0)
        return 0;
    return pack_data(out, path, at);
}

int archive_pack_directory(int dir, int to)
{
    struct archive *in = archive_read_disk_new(), *out = archive_write_new();
    struct archive_entry_linkresolver *links = archive_entry_linkresolver_new();
    struct archive_entry *e = archive_entry_new();
    int r = -1, got = ARCHIVE_OK;
    if (in && out && links && e && fchdir(dir) == 0 &&
        archive_write_set_format_pax_restricted(out) == ARCHIVE_OK &&
        archive_write_open_fd(out, to) == ARCHIVE_OK &&
        archive_read_disk_set_symlink_physical(in) == ARCHIVE_OK &&
        archive_read_disk_set_behavior(in, ARCHIVE_READDISK_NO_XATTR | ARCHIVE_READDISK_NO_ACL |
                                               ARCHIVE_READDISK_NO_FFLAGS) == ARCHIVE_OK &&
        archive_read_disk_open(in, ".") == ARCHIVE_OK)
        r = 0;
    archive_entry_linkresolver_set_strategy(links, ARCHIVE_FORMAT_TAR_PAX_RESTRICTED);
    while (r == 0 && (got = archive_read_next_header2(in, e)) != ARCHIVE_EOF) {
        if (got < ARCHIVE_WARN) { /* what cannot be read cannot be had */
            fprintf(stderr, "durward: %s\n", archive_error_string(in));
            r = -1;
            break;
        }
        archive_read_disk_descend(in);
        r = pack_entry(out, e, links, dir);
    }
    if (r == 0)
        r = archive_write_close(out) == ARCHIVE_OK ? 0 : -1;
    archive_entry_free(e);
    archive_entry_linkresolver_free(links);
    archive_write_free(out);
    archive_read_free(in);
    return r;
}
