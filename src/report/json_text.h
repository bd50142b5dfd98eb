/* Texts in JSON that is written by hand, because there may be tens of millions of them. */
#ifndef NRG_REPORT_JSON_TEXT_H
#define NRG_REPORT_JSON_TEXT_H

#include <stdio.h>

/* In quotes. The text is UTF-8, as names of a recording are. A stream that fails is the caller's.
 */
void nrg_json_put_text(FILE *out, const char *text);

#endif
