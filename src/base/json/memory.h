/*
 * Memory of JSON documents. jansson answers a failed allocation by leaving a field, a row or a
 * branch out, and functions that build documents have dozens of such calls each: a document that
 * lacks something looks like one that is right. So jansson gets its memory from here, where it is
 * remembered if there was none (nrg_memory_lacked in mem.h), and whoever writes a document asks
 * once whether it is whole.
 */
#ifndef NRG_BASE_JSON_MEMORY_H
#define NRG_BASE_JSON_MEMORY_H

#include <jansson.h>

/* Once, before any document is made. */
void nrg_json_watch_memory(void);

/* For texts that json_dumps() made. */
void nrg_json_free(void *memory);

/* The document; NULL, with its reference given up, when it may lack something. */
json_t *nrg_json_whole(json_t *doc);

#endif
