/*
 * Fuzz target: nrg report --html, of one recording, of two that differ, and redacted. Whatever they
 * hold, no character of theirs ends the element that their data is in.
 */
#include "fuzz_mutate.h"

/* Every recording's data is an element of its own, which holds no '<'. */
static void check_page(void)
{
    static const char opens[] = "nrg-run\">";
    FILE *in = fopen("out.html", "r");
    char *page = NULL;
    size_t room = 0;
    ssize_t len = in ? getdelim(&page, &room, '\0', in) : -1;
    for (char *at = page; len > 0 && (at = strstr(at, opens)) != NULL; at++) {
        const char *end = strchr(at, '<');
        if (!end || strncmp(end, "</script>\n", 10))
            abort();
    }
    free(page);
    if (in)
        fclose(in);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const forms[][7] = {
        {"report", "run.nrg", "--html", "out.html", NULL},
        {"report", "--redact", "run.nrg", "--html", "out.html", NULL},
        {"report", "run.nrg", "other.nrg", "--html", "out.html", NULL},
    };
    struct beside_before before;
    lay_recording(data, size);
    lay_other(data, size);
    note_recording(&before);
    run_nrg(forms[sum_input(data, size) % 3]);
    check_recording(&before);
    check_page();
    leave_recording();
    return 0;
}
