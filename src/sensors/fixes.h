/*
 * What a user can do about a sensor that can't be read: one table for all drivers and commands.
 * Each remedy has the condition under which it is true on the machine at hand, and those that hold
 * are given in the order of least harm: nrgd, then a permission for one's own group before one for
 * everybody, and file capabilities, which change how programs start, after both.
 *
 * Pure functions of the machine under the root; any thread.
 */
#ifndef NRG_SENSORS_FIXES_H
#define NRG_SENSORS_FIXES_H

#include "base/root.h"

enum nrg_problem {
    NRG_RAPL_ABSENT,      /* no powercap tree */
    NRG_RAPL_DENIED,      /* its files can't be read */
    NRG_PMU_ABSENT,       /* no perf PMU for energy */
    NRG_PERF_DENIED,      /* perf_event_open is refused */
    NRG_MSR_ABSENT,       /* no /dev/cpu/N/msr */
    NRG_MSR_DENIED,       /* it can't be opened */
    NRG_BMC_ABSENT,       /* no device for the management controller that is there */
    NRG_BMC_DENIED,       /* it can't be opened */
    NRG_CONNECTOR_DENIED, /* process events are refused */
    NRG_DAEMON_SILENT,    /* nrgd's socket is there, but nobody answers */
    NRG_DAEMON_COARSE,    /* nrgd gives the coarse view */
    NRG_DAEMON_LOGIN,     /* the same, to somebody who is in the group since he logged in */
    NRG_DAEMON_OTHER,     /* nrgd is of another release */
    NRG_SYS_ABSENT,       /* no /sys */
    NRG_PROC_ABSENT,      /* no /proc */
    NRG_CLOCK_SLOW,       /* reading the clock takes a system call or worse */
    NRG_GOVERNOR_ODD,     /* CPUs have different governors, or one that holds them down */
    NRG_DISK_SMALL,       /* no room for a recording in the current folder */
    NRG_DISK_CLOSED,      /* it can't be written */
};

#define NRG_FIX_BYTES     2048
#define NRG_DAEMON_SOCKET "/run/nrg/nrgd.sock"

/* Which of several remedies is taken first, whatever they are for. */
enum nrg_harm {
    NRG_HARM_SETTING,    /* nobody may do more: a module, a mount, a clock */
    NRG_HARM_DAEMON,     /* a group may ask nrgd */
    NRG_HARM_GROUP,      /* a group may read files */
    NRG_HARM_CAPABILITY, /* nrg may do more, and starts in another way */
    NRG_HARM_EVERYBODY,  /* all users of the machine may read it */
};

struct nrg_fix {
    const char *words;   /* when it is for, or all there is to say; NULL */
    const char *command; /* for a shell; NULL: there is no command that would do it */
    const char *remark;  /* NULL */
    bool tried;          /* by nrg's tests, in a namespace: it makes the sensor readable */
    enum nrg_harm harm;
};

/* The remedies, one per line; "" when there are none. Returns buf. */
const char *nrg_fixes(const struct nrg_root *root, enum nrg_problem problem,
                      char buf[NRG_FIX_BYTES]);

/* The same as structs; returns how many there are, of which the first `max` are in out. */
size_t nrg_fixes_list(const struct nrg_root *root, enum nrg_problem problem, struct nrg_fix *out,
                      size_t max);

/* One remedy as a line: "when:  command   (remark)". Returns its length, as snprintf does. */
size_t nrg_fix_line(const struct nrg_fix *fix, char *buf, size_t size);

/* The remedy of which `line`, of len bytes, is the text. False: it is of no row of the table. */
bool nrg_fix_find(const char *line, size_t len, struct nrg_fix *fix);

/* Its command as it is to be run on this machine; "" when there is none, and with -ENAMETOOLONG. */
int nrg_fix_command(const struct nrg_fix *fix, char *buf, size_t size);

/* For a file of any other sensor that can't be read; "" for a path that a shell would not take as
 * it stands. Returns buf. */
const char *nrg_fix_file(const char *path, char buf[NRG_FIX_BYTES]);

/* The command in a line of nrg_fix_file; NULL when it is none. */
const char *nrg_fix_file_command(const char *line);

#endif
