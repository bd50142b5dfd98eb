/*
 * A second process of nrg beside the measured command. It is in nrg's process group, blocks every
 * signal, and does what nrg can't do by itself:
 *
 * A signal to the whole group reaches the command directly, and nrg must not pass it on again.
 * Nothing in what nrg is told tells it from one that was sent to nrg alone; but a signal to the
 * group is pending here, too.
 *
 * When the command stops, nrg stops like any job of a shell. Somebody may continue the command
 * alone: the witness sees that and continues nrg, which could not notice it.
 *
 * And it keeps open the memory for spans, where programs that closed it can find it.
 *
 * Ends with nrg, however that ends. State: one per program, as signal handlers need it.
 */
#ifndef NRG_CLI_RUN_WITNESS_H
#define NRG_CLI_RUN_WITNESS_H

#include <stdbool.h>
#include <sys/types.h>

/* `argv` is the end of the program's own arguments: the witness is called otherwise in ps.
 * `kept_fd` may be -1. Without a process left to be had there is no witness, and signals to the
 * group arrive twice. */
void nrg_witness_start(char *const *argv, int kept_fd);
void nrg_witness_end(void);
/* 0: there is none. */
pid_t nrg_witness_pid(void);

/*
 * Whose /proc/PID/fd other processes of the user can open. nrg's they can't when its file has
 * capabilities; the witness holds nothing but the one descriptor, so that it may be opened.
 */
pid_t nrg_witness_or_self(void);

/* True when the signal that nrg got went to the group. For signal handlers. */
bool nrg_witness_saw(int signal);

/* Before nrg stops: continues nrg once the command is no longer stopped. */
void nrg_witness_watch(pid_t command);

#endif
