/* Another nrg as a child process: commands that measure several times run `nrg run` each time. */
#ifndef NRG_CLI_AGAIN_H
#define NRG_CLI_AGAIN_H

/*
 * Runs this program with these arguments (argv[0] is "nrg") and waits. `log`: file that its stdout
 * and stderr go to, together; NULL: ours. A request to stop (stop.h) reaches it. Returns its exit
 * code as a shell shows it, or -errno.
 */
int nrg_again(const char *const *argv, const char *log);

#endif
