/*
 * The two messages of DCMI's "Get Power Reading" (DCMI 1.5, 6.6.1) as bytes: what a machine's
 * management controller (BMC) is asked, and what its answer means. No device here (driver.c), so
 * that the bytes can be tested without one.
 *
 * An answer is foreign data: short, long, of another command or with a refusal in it. What is no
 * reading is an error, never 0 W. Pure functions; any thread.
 */
#ifndef NRG_SENSORS_DCMI_MESSAGE_H
#define NRG_SENSORS_DCMI_MESSAGE_H

#include <stddef.h>
#include <stdint.h>

#define NRG_DCMI_NETFN        0x2c /* group extension; an answer has the next number */
#define NRG_DCMI_POWER        0x02 /* Get Power Reading */
#define NRG_DCMI_REQUEST_LEN  4
#define NRG_DCMI_ANSWER_BYTES 64 /* room for an answer that is longer than it should be */

struct nrg_dcmi_power {
    int64_t current_w, minimum_w, maximum_w, average_w;
    int64_t time_s;    /* the controller's own clock, since 1970 */
    int64_t period_ms; /* of the statistics: minimum, maximum and average */
};

/* Mode 1: system power statistics. */
void nrg_dcmi_encode(uint8_t out[NRG_DCMI_REQUEST_LEN]);

/*
 * The data of an answer, which begin with the completion code. 0; -EPROTO: no answer to this
 * question; -ENODATA: the controller does not measure now, or has no figure; for a completion code
 * what nrg_dcmi_code_error says.
 */
int nrg_dcmi_decode(const uint8_t *data, size_t n, struct nrg_dcmi_power *out);

/* -ENOTSUP: no such command or mode; -EBUSY, -ETIMEDOUT: ask again; -EACCES; else -EIO. 0 for 0. */
int nrg_dcmi_code_error(uint8_t code);

/* The period of updates in ns, where the period of the statistics may be taken for it; else 0. */
int64_t nrg_dcmi_update_ns(const struct nrg_dcmi_power *power);

#endif
