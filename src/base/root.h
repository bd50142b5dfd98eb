/*
 * Root-relative file reading. Every /sys, /proc and /dev path of nrg goes through a root
 * directory, so that a captured tree of another machine is a test and a container's view can be
 * inspected from outside. Paths are written absolute ("/sys/class/powercap"); symbolic links
 * that point to absolute places stay inside the root. One exception: a tree whose /proc, /sys or
 * /dev is itself a link to the real one says on purpose that this part is this machine's.
 *
 * A struct nrg_root is immutable after open and may be shared by threads.
 */
#ifndef NRG_BASE_ROOT_H
#define NRG_BASE_ROOT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

struct stat;

/* What /proc/PID/ns/pid links to in the initial pid namespace: fixed in the kernel's ABI. */
#define NRG_INITIAL_PID_NAMESPACE "pid:[4026531836]"

struct nrg_root {
    int fd;        /* O_PATH of the directory, -1: the real root */
    unsigned live; /* bit per NRG_PART_*: that part is this machine's */
    int lowest_fd; /* descriptors are to have this number or a higher one; 0: any */
    char path[256];
};

enum { NRG_PART_PROC = 1, NRG_PART_SYS = 2, NRG_PART_DEV = 4, NRG_PART_ALL = 7 };

/* NULL, "" and "/" are the real root. */
int nrg_root_init(struct nrg_root *root, const char *path, struct nrg_error *err);
void nrg_root_release(struct nrg_root *root);

/* True for the machine that we run on: syscalls about it (perf, clocks, netlink) make sense. */
bool nrg_root_is_live(const struct nrg_root *root);

/* The same of one part (NRG_PART_*) alone. */
bool nrg_root_part_is_live(const struct nrg_root *root, unsigned part);

/* True when these parts (NRG_PART_*) show one machine: all of the tree, or all of this machine.
 * Else what the one says (of the processor) is not true of the other. */
bool nrg_root_is_one_machine(const struct nrg_root *root, unsigned parts);

/* Takes those of `parts` (NRG_PART_*) that the tree lacks from this machine. */
void nrg_root_complete(struct nrg_root *root, unsigned parts);

/*
 * In a program that is measured from inside, descriptors have high numbers: where it closes those
 * that it does not know, its next files get the low ones, and ours are then closed instead of its
 * files. Lift gives a descriptor such a number (the same one if that fails or is not wanted).
 */
void nrg_root_stay_high(struct nrg_root *root);
bool nrg_root_is_inside(const struct nrg_root *root); /* in such a program */
int nrg_root_lift(const struct nrg_root *root, int fd);

/* A close-on-exec descriptor, or -errno. */
int nrg_root_open(const struct nrg_root *root, const char *path, int flags);

/*
 * Reads a small file whole and terminates it. Returns its length or -errno;
 * -EFBIG when it does not fit into size-1 bytes (what fits is in buf).
 */
ssize_t nrg_root_read(const struct nrg_root *root, const char *path, char *buf, size_t size);
/* The same for the head of a file that may be longer. */
ssize_t nrg_root_read_head(const struct nrg_root *root, const char *path, char *buf, size_t size);
int nrg_root_read_i64(const struct nrg_root *root, const char *path, int64_t *out);
/* First line as clean text for people (see nrg_copy_clean). 0 or -errno; empty is -ENODATA. */
int nrg_root_read_label(const struct nrg_root *root, const char *path, char *buf, size_t size);
/* Any size up to `limit`; caller frees *text. Returns length or -errno. */
ssize_t nrg_root_read_all(const struct nrg_root *root, const char *path, size_t limit, char **text);
bool nrg_root_exists(const struct nrg_root *root, const char *path);
/* stat(2): 0 or -errno. */
int nrg_root_stat(const struct nrg_root *root, const char *path, struct stat *out);
/* access(2) with the effective ids: 0 or -errno. */
int nrg_root_access(const struct nrg_root *root, const char *path, int mode);
/* Symbolic link's target text. */
ssize_t nrg_root_readlink(const struct nrg_root *root, const char *path, char *buf, size_t size);

/* Sorted names of a directory without . and .., "hwmon2" before "hwmon10". */
struct nrg_names {
    char **items;
    size_t n, cap;
};
int nrg_root_list(const struct nrg_root *root, const char *path, struct nrg_names *out);
void nrg_names_release(struct nrg_names *names);

/* pread of an open small file from its start: one system call. Length or -errno, terminated. */
ssize_t nrg_pread_text(int fd, char *buf, size_t size);
/* The same for a file that holds one number. */
int nrg_pread_i64(int fd, int64_t *out);

#endif
