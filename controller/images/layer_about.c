/* The first member of a snapshot's archive (layer_archive.h), written and read by hand, so that
 * whoever needs to know what an archive is needs no libarchive. */
#include "layer_archive.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* How much of n bytes there is before the end. */
static size_t read_up_to(int fd, unsigned char *p, size_t n)
{
    size_t at = 0;
    while (at < n) {
        ssize_t got = read(fd, p + at, n - at);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            break;
        at += (size_t)got;
    }
    return at;
}

/* Octal digits, then a space or NUL. -1: something else. */
static long octal(const unsigned char *p, size_t n)
{
    long v = 0;
    size_t i = 0;
    for (; i < n && p[i] >= '0' && p[i] <= '7'; i++)
        v = v * 8 + (p[i] - '0');
    return i == 0 || i == n || i > 12 || (p[i] != ' ' && p[i] != '\0') ? -1 : v;
}

static bool sum_is_right(const unsigned char block[LAYER_BLOCK])
{
    enum { SUM = 148, SUM_END = 156 };
    long sum = 0;
    for (size_t i = 0; i < LAYER_BLOCK; i++)
        sum += i >= SUM && i < SUM_END ? ' ' : block[i];
    return octal(block + SUM, SUM_END - SUM) == sum;
}

int layer_read_about(int fd, char *about, struct err *err)
{
    static const char name[] = LAYER_FIRST;
    enum { SIZE = 124, SIZE_LENGTH = 12, TYPE = 156 };
    unsigned char block[LAYER_BLOCK];
    size_t n = read_up_to(fd, block, sizeof block);
    if (n < sizeof name || memcmp(block, name, sizeof name) != 0)
        return err_set(err, ERR_PARSE, "that is not the archive of a snapshot");
    if (n < sizeof block)
        return err_set(err, ERR_PARSE, "the archive is cut");
    long size = octal(block + SIZE, SIZE_LENGTH);
    if (block[TYPE] != '0' || !sum_is_right(block))
        return err_set(err, ERR_PARSE, "that is not the archive of a snapshot");
    if (size <= 0 || size > LAYER_ABOUT_MAX)
        return err_set(err, ERR_PARSE, "the snapshot's description is malformed");
    if (read_up_to(fd, block, sizeof block) < sizeof block)
        return err_set(err, ERR_PARSE, "the archive is cut");
    memcpy(about, block, (size_t)size);
    about[size] = '\0';
    return strlen(about) == (size_t)size
               ? 0
               : err_set(err, ERR_PARSE, "the snapshot's description is malformed");
}

/* Plain ustar, to be read without libarchive, whose own begin with what that alone should read. */
int layer_write_about(int fd, const char *about, struct err *err)
{
    enum { SUM = 148, SUM_LENGTH = 8 };
    unsigned char blocks[2 * LAYER_BLOCK] = {0};
    unsigned sum = 0;
    size_t n = strlen(about);
    if (n > LAYER_ABOUT_MAX)
        return err_set(err, ERR_LIMIT, "the snapshot's description is too long");
    /* name, mode, uid, gid, size, time, checksum, type; link, magic, version */
    snprintf((char *)blocks, LAYER_BLOCK, "%s", LAYER_FIRST);
    snprintf((char *)blocks + 100, 48, "%07o%c%07o%c%07o%c%011zo", 0644, 0, 0, 0, 0, 0, n);
    snprintf((char *)blocks + 136, 12, "%011o", 0);
    memset(blocks + SUM, ' ', SUM_LENGTH);
    blocks[156] = '0';
    memcpy(blocks + 257, "ustar\00000", 8);
    for (size_t i = 0; i < LAYER_BLOCK; i++)
        sum += blocks[i];
    snprintf((char *)blocks + SUM, SUM_LENGTH, "%06o", sum);
    memcpy(blocks + LAYER_BLOCK, about, n);
    for (size_t at = 0; at < sizeof blocks;) {
        ssize_t w = write(fd, blocks + at, sizeof blocks - at);
        if (w < 0 && errno != EINTR)
            return err_sys(err, "the archive cannot be written");
        at += w > 0 ? (size_t)w : 0;
    }
    return 0;
}
