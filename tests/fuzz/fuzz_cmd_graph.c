/*
 * Fuzz target: nrg graph with --params. Input: the length of the graph's file as four bytes, that
 * file, the file of parameters.
 */
#include "fuzz_command.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 4)
        return 0;
    size_t left = size - 4, len = read_u32(data);
    len = len < left ? len : left;
    enter_folder();
    write_file("model", data + 4, len);
    write_file("params", data + 4 + len, left - len);
    run_nrg((const char *const[]){"graph", "model", "--params", "params", "--json", NULL});
    run_nrg((const char *const[]){"graph", "model", "--params", "params", NULL});
    return 0;
}
