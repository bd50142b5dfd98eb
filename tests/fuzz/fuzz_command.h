/*
 * Fuzz targets of whole commands: the input is a recording as it lies on disk, with its log and its
 * journal, and the command is run as a user would run it, in this process.
 *
 * Bytes flipped in a database mostly break the database. The mutator therefore edits it through
 * SQLite: values of rows, rows, tables, and the coded columns of chunks. Hostile values come first.
 *
 * Input: an SQLite file; or "NRGW", the lengths of file and log as four bytes each (little
 * endian), then file, log and journal.
 */
#ifndef NRG_TESTS_FUZZ_COMMAND_H
#define NRG_TESTS_FUZZ_COMMAND_H

#include <fcntl.h>
#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "record/store/column.h"
#include "sensors/channel.h"

int nrg_main(int argc, char **argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed);

#define HEAD_SIZE 12

struct parts {
    const uint8_t *file, *log, *journal;
    size_t file_len, log_len, journal_len;
};

static inline uint32_t read_u32(const uint8_t *p)
{
    return p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static inline struct parts split_input(const uint8_t *data, size_t size)
{
    struct parts p = {.file = data, .file_len = size};
    if (size < HEAD_SIZE || memcmp(data, "NRGW", 4))
        return p;
    size_t left = size - HEAD_SIZE, file = read_u32(data + 4), log = read_u32(data + 8);
    p.file = data + HEAD_SIZE;
    p.file_len = file < left ? file : left;
    p.log = p.file + p.file_len;
    p.log_len = log < left - p.file_len ? log : left - p.file_len;
    p.journal = p.log + p.log_len;
    p.journal_len = left - p.file_len - p.log_len;
    return p;
}

static inline void write_file(const char *path, const uint8_t *bytes, size_t len)
{
    int fd = open(path, O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0600);
    if (fd < 0 || write(fd, bytes, len) != (ssize_t)len)
        abort();
    close(fd);
}

static inline void leave_recording(void)
{
    static const char *const names[] = {"run.nrg",     "run.nrg-wal", "run.nrg-journal",
                                        "run.nrg-shm", "out.nrg",     "other.nrg",
                                        "out.html",    "layers.json", "model",
                                        "params",      "config.json", "model.safetensors"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        unlink(names[i]);
}

static inline void remove_folder(void)
{
    char folder[64];
    leave_recording();
    unlink("profile.json");
    if (getcwd(folder, sizeof folder))
        rmdir(folder);
}

/* A folder of this process, which becomes the working directory. */
static inline void enter_folder(void)
{
    static char folder[64];
    if (folder[0])
        return;
    snprintf(folder, sizeof folder, "%s/nrg-fuzz-%d",
             access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm", getpid());
    if ((mkdir(folder, 0700) && access(folder, W_OK)) || chdir(folder))
        abort();
    setenv("XDG_CONFIG_HOME", folder, 1);
    setenv("TMPDIR", folder, 1);
    atexit(remove_folder);
}

/* run.nrg and what is beside it, in the working directory. */
static inline void lay_recording(const uint8_t *data, size_t size)
{
    enter_folder();
    leave_recording();
    struct parts p = split_input(data, size);
    write_file("run.nrg", p.file, p.file_len);
    if (p.log_len)
        write_file("run.nrg-wal", p.log, p.log_len);
    if (p.journal_len)
        write_file("run.nrg-journal", p.journal, p.journal_len);
}

/* What a reader must leave as it was. */
struct beside_before {
    struct stat st[3];
    int missing[3];
};

static inline void note_recording(struct beside_before *b)
{
    static const char *const names[] = {"run.nrg", "run.nrg-wal", "run.nrg-journal"};
    for (size_t i = 0; i < 3; i++)
        b->missing[i] = lstat(names[i], &b->st[i]) ? 1 : 0;
}

static inline void check_recording(const struct beside_before *b)
{
    struct beside_before now;
    note_recording(&now);
    for (size_t i = 0; i < 3; i++)
        if (now.missing[i] != b->missing[i] ||
            (!now.missing[i] &&
             (now.st[i].st_ino != b->st[i].st_ino || now.st[i].st_size != b->st[i].st_size ||
              now.st[i].st_mtim.tv_nsec != b->st[i].st_mtim.tv_nsec)))
            abort();
    if (!access("run.nrg-shm", F_OK))
        abort();
}

/* Picks one of a target's forms by the input. */
static inline unsigned sum_input(const uint8_t *data, size_t size)
{
    unsigned sum = 0;
    for (size_t i = 0; i < size; i += 97)
        sum += data[i];
    return sum;
}

/* argv without the program; NULL ends it. */
static inline void run_nrg(const char *const *words)
{
    char *argv[16] = {(char *)"nrg"};
    int argc = 1;
    for (; words[argc - 1]; argc++)
        argv[argc] = (char *)words[argc - 1];
    nrg_main(argc, argv);
    fflush(stdout);
}

static inline void run_on_recording(const uint8_t *data, size_t size, const char *const *words)
{
    struct beside_before before;
    lay_recording(data, size);
    note_recording(&before);
    run_nrg(words);
    check_recording(&before);
    leave_recording();
}

#endif
