/* What answers of language models say: the same however the bytes are cut, and never absurd. */
#include <stdlib.h>
#include <string.h>

#include "llm/proxy/scan.h"
#include "sensors/channel.h"

static void check_count(int64_t n)
{
    if (n != NRG_MISSING && (n < 0 || n > 1000000000))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data;
    for (int form = NRG_SCAN_JSON; form <= NRG_SCAN_EVENTS; form++) {
        struct nrg_llm_scan whole, cut;
        nrg_llm_scan_init(&whole, (enum nrg_scan_form)form);
        nrg_llm_scan_init(&cut, (enum nrg_scan_form)form);
        nrg_llm_scan_feed(&whole, text, size);
        for (size_t i = 0; i < size; i++)
            nrg_llm_scan_feed(&cut, text + i, 1);
        if (memcmp(&whole.seen, &cut.seen, sizeof whole.seen))
            abort();
        check_count(whole.seen.input);
        check_count(whole.seen.output);
        check_count(whole.seen.cached);
        check_count(whole.seen.reasoning);
    }
    return 0;
}
