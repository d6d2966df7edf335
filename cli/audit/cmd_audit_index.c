/* durward audit index: the indexes of closed files that have none. */
#include "audit_where.h"
#include "log_blocks.h"
#include "log_dir.h"
#include "log_index.h"
#include "out.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* All but the last file, which may still be written. */
static int index_files(int dirfd, size_t *made, struct err *err)
{
    struct log_dir files;
    int r = log_dir_list(dirfd, &files, err);
    if (r < 0)
        return -1;
    struct open_request_terms *begun = NULL; /* goes on from a file to the next one only */
    for (size_t i = 0; r == 0 && i + 1 < files.n; i++) {
        bool whole = log_index_exists(dirfd, files.name[i]), did = false;
        if (!whole)
            r = log_index_make(dirfd, files.name[i], err);
        if (r == 0 && !log_blocks_exists(dirfd, files.name[i])) {
            if (begun == NULL && (begun = open_request_terms_new()) == NULL)
                r = err_set(err, ERR_INTERNAL, "out of memory");
            int got = r == 0 ? log_blocks_make(dirfd, files.name[i], begun, err) : -1;
            did = got > 0;
            r = got < 0 ? -1 : 0;
        }
        if (!did) {
            open_request_terms_free(begun);
            begun = NULL;
        }
        *made += r == 0 && (!whole || did);
    }
    open_request_terms_free(begun);
    log_dir_done(&files);
    return r;
}

static int index_tree(const char *dir, size_t *made, struct err *err)
{
    struct log_dir runs;
    int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return err_sys(err, "cannot open the audit directory %s", dir);
    int r = index_files(fd, made, err);
    if (r == 0 && (r = log_dir_runs(fd, &runs, err)) == 0) {
        for (size_t i = 0; r == 0 && i < runs.n; i++) {
            int sub = openat(fd, runs.name[i], O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
            r = sub < 0 ? 0 : index_files(sub, made, err);
            if (sub >= 0)
                close(sub);
        }
        log_dir_done(&runs);
    }
    close(fd);
    return r;
}

int audit_run_index(int argc, char **argv)
{
    struct args a = {.cmd = args_verb(audit_verbs, "audit index"), .argc = argc, .argv = argv};
    struct audit_where w = {0};
    struct err err = {0};
    size_t made = 0;
    int code = args_into(&a, &w);
    if (code != ARGS_END)
        return code;
    char *dir = audit_where_dir(&a, &w, &code);
    if (dir == NULL)
        return code;
    int r = index_tree(dir, &made, &err);
    free(dir);
    if (r < 0)
        return out_fail(&err);
    if (a.json)
        return out_json(json_pack("{s:I}", "made", (json_int_t)made)) < 0 ? EXIT_NO : EXIT_OK;
    printf("%zu made\n", made);
    return out_flush() < 0 ? EXIT_NO : EXIT_OK;
}
