/* Kept layers of sandboxes: they survive their sandbox, are copied and removed, each with what
 * overlayfs notes in them. Real sandboxes on the host's /usr and on an image; run as root and as an
 * ordinary user. */
#define _GNU_SOURCE 1
#include "builder_fixture.h"

#include "image.h"
#include "layer_work.h"

#include <sys/file.h>

static uint32_t asked;

/* Its path below the state directory. */
static const char *below(const char *name)
{
    static char path[400];
    snprintf(path, sizeof path, "%s/%s", rig.state, name);
    return path;
}

/* A shell script outside; its status. */
static int on_host(const char *script)
{
    int status = -1;
    pid_t pid = fork();
    if (pid == 0) {
        execl("/bin/sh", "sh", "-c", script, NULL);
        _exit(127);
    }
    return waitpid(pid, &status, 0) == pid ? status : -1;
}

static bool ready(void)
{
    if (!usable)
        tap_skip("user namespaces are not available here");
    return usable;
}

/* What the builder answers to one W_LAYER or W_FREEZE. */
static enum layer_result take_layered(char *text, size_t size)
{
    struct msg m;
    uint32_t req = 0;
    enum layer_result r = LAYER_FAILED;
    if (!recv_type(rig.controller, &m, W_LAYERED))
        return LAYER_FAILED;
    CU_ASSERT_EQUAL(layer_answer(&m, &req, &r, text, size), 0);
    CU_ASSERT_EQUAL(req, asked);
    msg_done(&m);
    return r;
}

static void ask_layer(int controller, enum layer_op op, const char *from, const char *to)
{
    struct msg m;
    msg_init(&m, W_LAYER);
    msg_put_u32(&m, ++asked);
    msg_put_u8(&m, (uint8_t)op);
    msg_put_str(&m, from);
    msg_put_str(&m, to);
    send_msg(controller, &m);
}

static enum layer_result layer(enum layer_op op, const char *from, const char *to)
{
    char text[600];
    ask_layer(rig.controller, op, from, to);
    enum layer_result r = take_layered(text, sizeof text);
    if (r == LAYER_FAILED)
        printf("# %s\n", text);
    return r;
}

static bool start(const char *id)
{
    rig.sandbox_spec.root = SANDBOX_SPEC_KEPT;
    rig.sandbox_spec.limits.writable = true;
    build(id, NULL, NULL, 0);
    CU_ASSERT_TRUE(rig.ok);
    if (!rig.ok)
        printf("# %s\n", rig.text);
    return rig.ok;
}

static void expect(const char *script, const char *what)
{
    char out[OUT_MAX];
    sh(script, out);
    CU_ASSERT_STRING_EQUAL(out, what);
    if (strcmp(out, what) != 0)
        printf("# %s: %s\n", script, out);
}

static void test_start(void)
{
    make_directories();
    start_builder();
    build("sb-first", NULL, NULL, 0);
    usable = rig.ok;
    if (!rig.ok && strstr(rig.text, "user namespace")) {
        tap_skip("user namespaces are not available here");
        return;
    }
    CU_ASSERT_TRUE(rig.ok);
    CU_ASSERT_TRUE(listener(LISTENER_TCP4) >= 0);
    teardown("sb-first");
}

static const char changes[] =
    "set -e; mkdir -p /workspace/d /opt/d; echo one > /workspace/d/f; ln /workspace/d/f "
    "/workspace/l; "
    "ln -s nowhere /workspace/s; rm /etc/hostname; rm -r /etc/pki 2>/dev/null || true; mkdir -p "
    "/etc/pki; chmod 640 /etc/hosts; head -c 300000 /dev/zero > /opt/big";
static const char look[] =
    "cd /workspace; cat d/f; stat -c %h l; readlink s; ls /etc/hostname 2>/dev/null; ls -A "
    "/etc/pki; stat -c %a /etc/hosts; stat -c %s /opt/big";
static const char seen[] = "one\n2\nnowhere\n640\n300000\n";

static void test_kept(void)
{
    if (!ready() || !start("sb-kept"))
        return;
    expect(changes, "");
    expect(look, seen);
    teardown("sb-kept");
    if (!start("sb-kept"))
        return;
    expect(look, seen);
    CU_ASSERT_EQUAL(layer(LAYER_REMOVE, "sb-kept", ""), LAYER_FAILED);
    teardown("sb-kept");
}

static void test_snapshot(void)
{
    if (!ready())
        return;
    CU_ASSERT_EQUAL(layer(LAYER_SNAPSHOT, "sb-kept", "snap"), LAYER_DONE);
    CU_ASSERT_EQUAL(layer(LAYER_SNAPSHOT, "sb-kept", "snap"), LAYER_EXISTS);
    CU_ASSERT_EQUAL(layer(LAYER_SNAPSHOT, "sb-none", "other"), LAYER_ABSENT);
    CU_ASSERT_EQUAL(layer(LAYER_RESTORE, "none", "sb-other"), LAYER_ABSENT);
    CU_ASSERT_EQUAL(layer(LAYER_RESTORE, "snap", "sb-back"), LAYER_DONE);
    CU_ASSERT_EQUAL(layer(LAYER_RESTORE, "snap", "sb-back"), LAYER_EXISTS);
    if (!start("sb-back"))
        return;
    expect(look, seen);
    expect("echo two > /workspace/d/f; rm /opt/big; cat /workspace/l", "two\n");
    /* of one that runs, and the source stays as it is */
    CU_ASSERT_EQUAL(layer(LAYER_FORK, "sb-back", "sb-fork"), LAYER_DONE);
    teardown("sb-back");
    if (!start("sb-fork"))
        return;
    expect("cat /workspace/l; ls /opt/big 2>/dev/null", "two\n");
    teardown("sb-fork");
    if (!start("sb-kept"))
        return;
    expect(look, seen);
    teardown("sb-kept");
}

static void test_image(void)
{
    static const char make[] =
        "set -e; cd %s; mkdir -p r/usr/bin r/usr/lib r/usr/lib64 r/etc r/workspace/old; for d in "
        "bin "
        "lib lib64; do ln -s usr/$d r/$d; done; for p in sh cat ls id mkdir rm ln chmod head stat "
        "readlink; do cp -L /usr/bin/$p r/usr/bin/; for l in $(ldd /usr/bin/$p | grep -o '/[^ "
        "]*'); "
        "do t=r/usr/${l#/usr}; mkdir -p ${t%%/*}; cp -L $l $t; done; done; echo h > r/etc/hosts";
    char script[2048], source[256];
    struct err err = {0};
    struct image image;
    if (!ready())
        return;
    snprintf(script, sizeof script, make, rig.dir);
    CU_ASSERT_EQUAL_FATAL(on_host(script), 0);
    snprintf(source, sizeof source, "%s/r", rig.dir);
    struct image_import how = {.name = "small",
                               .source = source,
                               .max_bytes = 1 << 30,
                               .max_entries = 10000,
                               .archive = archive_program()};
    CU_ASSERT_EQUAL(chmod(rig.state, 0700), 0);
    int r = image_import(rig.state, &how, &image, &err);
    CU_ASSERT_EQUAL(r, 0);
    if (r < 0) {
        printf("# %s\n", err.text);
        return;
    }
    snprintf(rig.sandbox_spec.image, sizeof rig.sandbox_spec.image, "small");
    if (!start("sb-image"))
        return;
    expect("id -u; ls /workspace", "0\nold\n");
    expect(changes, "");
    expect(look, seen);
    expect("rm -r /workspace/old && mkdir /workspace/old && ls -A /workspace/old", "");
    CU_ASSERT_EQUAL(image_remove(rig.state, "small", &err), -1);
    teardown("sb-image");
    CU_ASSERT_EQUAL(image_remove(rig.state, "small", &err), -1);
    CU_ASSERT_EQUAL(layer(LAYER_FORK, "sb-image", "sb-image2"), LAYER_DONE);
    if (!start("sb-image2"))
        return;
    expect(look, seen);
    expect("ls /usr/bin/cat; id -u", "/usr/bin/cat\n0\n");
    teardown("sb-image2");
    rig.sandbox_spec.image[0] = '\0';
    ask("sb-image2", NULL, NULL, 0); /* above something else than it was written above */
    take_built("sb-image2");
    CU_ASSERT_FALSE(rig.ok);
    CU_ASSERT_PTR_NOT_NULL(strstr(rig.text, "was made with the image 'small'"));
}

static void test_freeze(void)
{
    struct msg m;
    char text[600];
    if (!ready() || !start("sb-kept"))
        return;
    enum layer_result r = LAYER_DONE;
    for (uint8_t frozen = 2; frozen-- > 0 && r == LAYER_DONE;) {
        msg_init(&m, W_FREEZE);
        msg_put_u32(&m, ++asked);
        msg_put_str(&m, "sb-kept");
        msg_put_u8(&m, frozen);
        send_msg(rig.controller, &m);
        r = take_layered(text, sizeof text);
    }
    if (r == LAYER_DONE)
        expect("echo thawed", "thawed\n");
    else
        CU_ASSERT_PTR_NOT_NULL(strstr(text, "unsupported"));
    printf("# freezer: %s\n", r == LAYER_DONE ? "used" : text);
    teardown("sb-kept");
}

static void test_replace(void)
{
    if (!ready())
        return;
    CU_ASSERT_EQUAL(layer(LAYER_CONFIRM, "sb-fork", "snap"), LAYER_ABSENT);
    CU_ASSERT_EQUAL(layer(LAYER_REPLACE, "none", "sb-fork"), LAYER_ABSENT);
    CU_ASSERT_EQUAL(layer(LAYER_REPLACE, "snap", "sb-fork"), LAYER_DONE);
    CU_ASSERT_EQUAL(layer(LAYER_CONFIRM, "sb-fork", "snap"), LAYER_DONE);
    CU_ASSERT_EQUAL(layer(LAYER_CONFIRM, "sb-fork", "sna"), LAYER_ABSENT);
    CU_ASSERT_EQUAL(layer(LAYER_CONFIRM, "sb-back", "snap"), LAYER_ABSENT); /* a copy to begin */
    CU_ASSERT_EQUAL(layer(LAYER_CONFIRM, "sb-nobody", "snap"), LAYER_ABSENT);
    CU_ASSERT_EQUAL(layer(LAYER_REPLACE, "snap", "sb-fork"), LAYER_DONE);
    CU_ASSERT_EQUAL(layer(LAYER_CONFIRM, "sb-fork", "snap"), LAYER_DONE);
    CU_ASSERT_EQUAL(layer(LAYER_UNMARK, "sb-fork", "snap"), LAYER_DONE);
    CU_ASSERT_EQUAL(layer(LAYER_CONFIRM, "sb-fork", "snap"), LAYER_ABSENT);
    CU_ASSERT_EQUAL(layer(LAYER_UNMARK, "sb-fork", "snap"), LAYER_DONE);
    CU_ASSERT_EQUAL(layer(LAYER_UNMARK, "sb-nobody", "snap"), LAYER_DONE);
    CU_ASSERT_EQUAL(layer(LAYER_REPLACE, "snap", "sb-fork"), LAYER_DONE);
    CU_ASSERT_EQUAL(layer(LAYER_CONFIRM, "sb-fork", "snap"), LAYER_DONE);
    if (!start("sb-fork"))
        return;
    expect(look, seen);
    teardown("sb-fork");
}

/* A builder that was killed has left a process in the last moment of its copying. */
static void test_copied_for_another(void)
{
    char fresh[32];
    if (!ready())
        return;
    int held[2] = {-1, -1};
    CU_ASSERT_EQUAL_FATAL(pipe2(held, O_CLOEXEC), 0);
    pid_t pid = fork();
    if (pid == 0) {
        char from[400];
        snprintf(fresh, sizeof fresh, "snapshots/.new-late-%d", (int)getpid());
        snprintf(from, sizeof from, "%s", below(fresh));
        int fd = mkdir(from, 0700) == 0 ? open(from, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
        if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) < 0 || write(held[1], "x", 1) != 1)
            _exit(1);
        usleep(200000);
        _exit(rename(from, below("snapshots/late")) == 0 ? 0 : 1);
    }
    CU_ASSERT_TRUE_FATAL(pid > 0);
    char c;
    CU_ASSERT_EQUAL(read(held[0], &c, 1), 1);
    CU_ASSERT_EQUAL(layer(LAYER_REMOVE_SNAPSHOT, "late", ""), LAYER_DONE);
    int status = -1;
    CU_ASSERT_EQUAL(waitpid(pid, &status, 0), pid);
    CU_ASSERT_EQUAL(status, 0);
    CU_ASSERT_EQUAL(access(below("snapshots/late"), F_OK), -1);
    close(held[0]);
    close(held[1]);
}

/* What a killed one left has a number in its name that somebody unrelated may have by now. */
static void test_number_of_another(void)
{
    char fresh[32];
    if (!ready())
        return;
    snprintf(fresh, sizeof fresh, "snapshots/.new-old-%d", (int)getpid());
    CU_ASSERT_EQUAL(mkdir(below(fresh), 0700), 0);
    CU_ASSERT_EQUAL(mkdir(below("snapshots/old"), 0700), 0);
    CU_ASSERT_EQUAL(layer(LAYER_REMOVE_SNAPSHOT, "old", ""), LAYER_DONE);
    CU_ASSERT_EQUAL(access(below("snapshots/old"), F_OK), -1);
    CU_ASSERT_EQUAL(rmdir(below(fresh)), 0);
}

static bool being_made(const char *name)
{
    char script[500];
    snprintf(script, sizeof script, "ls -A %s | grep -q '^.new-%s-'", below("snapshots"), name);
    return on_host(script) == 0;
}

/* What the one before has still asked for, and its end, may be seen after what the next one asks.
 */
static void test_controller_after_controller(void)
{
    if (!ready())
        return;
    kill(rig.builder, SIGSTOP);
    ask_layer(rig.controller, LAYER_SNAPSHOT, "sb-kept", "orphan");
    int next = next_controller();
    ask_layer(next, LAYER_REMOVE_SNAPSHOT, "orphan", "");
    kill(rig.builder, SIGCONT);
    int former = rig.controller;
    char text[600];
    rig.controller = next;
    CU_ASSERT_EQUAL(take_layered(text, sizeof text), LAYER_DONE);
    for (int i = 0; being_made("orphan") && i < 1000; i++)
        usleep(10000);
    CU_ASSERT_EQUAL(access(below("snapshots/orphan"), F_OK), -1);
    close(former);
}

static void test_remove(void)
{
    static const char *const ids[] = {"sb-kept",  "sb-back",   "sb-fork",
                                      "sb-image", "sb-image2", "sb-none"};
    struct err err = {0};
    if (!ready())
        return;
    for (size_t i = 0; i < ARRAY_LEN(ids); i++)
        CU_ASSERT_EQUAL(layer(LAYER_REMOVE, ids[i], ""), LAYER_DONE);
    CU_ASSERT_EQUAL(layer(LAYER_REMOVE_SNAPSHOT, "snap", ""), LAYER_DONE);
    CU_ASSERT_EQUAL(image_remove(rig.state, "small", &err), 0);
    /* nothing is left but the empty directories: soon, as files go after their name */
    static const char *const folders[] = {"sandboxes", "snapshots", "images"};
    for (size_t i = 0; i < ARRAY_LEN(folders); i++) {
        int r = -1;
        for (int tries = 0; r < 0 && tries < 1000; tries++) {
            r = rmdir(below(folders[i]));
            if (r < 0)
                usleep(10000);
        }
        CU_ASSERT_EQUAL(r, 0);
    }
}

static void test_bad_messages(void)
{
    struct msg m;
    if (!ready())
        return;
    msg_init(&m, W_LAYER);
    msg_put_u32(&m, 1);
    msg_put_u8(&m, LAYER_SNAPSHOT);
    msg_put_str(&m, "../../etc");
    msg_put_str(&m, "x");
    send_msg(rig.controller, &m);
    CU_ASSERT_EQUAL(msg_recv(rig.controller, &m), 0); /* that channel ends */
}

static void test_end(void)
{
    char command[512];
    close(rig.controller);
    close(rig.parent);
    waitpid(rig.builder, NULL, 0);
    /* overlayfs' work directories have no rights at all, which stops their owner but root */
    snprintf(command, sizeof command,
             "find %s -type d ! -perm -700 -exec chmod 700 {} \\; && rm -rf %s", rig.dir, rig.dir);
    CU_ASSERT_EQUAL(on_host(command), 0);
}

/* The API binds nothing, so that whoever has taken a controller over cannot have it done. */
static void test_no_binds(void)
{
    if (!ready())
        return;
    make_directories();
    rig.bindless = true;
    start_builder();
    ask("sb-bound", rig.project, rig.project, 0);
    take_built("sb-bound");
    CU_ASSERT_FALSE(rig.ok);
    CU_ASSERT_PTR_NOT_NULL(strstr(rig.text, "nothing is bound"));
    build("sb-bare", NULL, NULL, 0);
    CU_ASSERT_TRUE(rig.ok);
    teardown("sb-bare");
    test_end();
}

void tap_suites(void)
{
    CU_pSuite s = CU_add_suite("layers", NULL, NULL);
    CU_add_test(s, "a builder", test_start);
    CU_add_test(s, "a layer outlives its sandbox", test_kept);
    CU_add_test(s, "snapshot, restore and fork", test_snapshot);
    CU_add_test(s, "above an image", test_image);
    CU_add_test(s, "freeze and thaw", test_freeze);
    CU_add_test(s, "replaced, and so confirmed", test_replace);
    CU_add_test(s, "a copier that outlives its builder", test_copied_for_another);
    CU_add_test(s, "a number that another has by now", test_number_of_another);
    CU_add_test(s, "one controller after the other", test_controller_after_controller);
    CU_add_test(s, "remove", test_remove);
    CU_add_test(s, "names that lead elsewhere", test_bad_messages);
    CU_add_test(s, "the end", test_end);
    CU_add_test(s, "a daemon's builder binds nothing", test_no_binds);
}
