/*
 * Fuzz target: nrg compare of a recording with itself and with one that differs a little, in all
 * its forms; both of them on either side, so that there are runs to compute with. What lies on
 * disk stays as it was.
 */
#include "fuzz_mutate.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const forms[][10] = {
        {"compare", "--force", "run.nrg", "other.nrg", "--", "run.nrg", "run.nrg", "other.nrg"},
        {"compare", "run.nrg", "run.nrg", "--", "other.nrg", "other.nrg", NULL},
        {"compare", "--force", "--json", "run.nrg", "other.nrg", "--", "other.nrg", "run.nrg"},
        {"compare", "--force", "--html=/dev/null", "--markdown=/dev/null", "run.nrg", "other.nrg",
         "--", "other.nrg", "run.nrg"},
        {"compare", "--self-check", "--json", "run.nrg", "other.nrg", "run.nrg", NULL},
        {"compare", "--force", "--by", "side", "run.nrg", "other.nrg", "run.nrg", NULL},
    };
    struct beside_before before;
    lay_recording(data, size);
    lay_other(data, size);
    note_recording(&before);
    run_nrg(forms[sum_input(data, size) % (sizeof forms / sizeof *forms)]);
    check_recording(&before);
    leave_recording();
    return 0;
}
