/*
 * Memory of JSON documents. jansson answers a failed allocation by leaving a field, a row or a
 * branch out, and functions that build documents have dozens of such calls each: a document that
 * lacks something looks like one that is right. So jansson gets memory from here, and that it once
 * got none is remembered for the thread, as ferror() does for a stream: whoever writes a document
 * asks once, at its end.
 *
 * The flag is the one exception from "no state outside of structs", because jansson hands no
 * argument to its allocator. It is of its thread alone: a reader of meters that runs short in its
 * own thread does not spoil the report of the main one.
 */
#ifndef NRG_BASE_JSON_MEMORY_H
#define NRG_BASE_JSON_MEMORY_H

#include <jansson.h>
#include <stdbool.h>

/* Once, before any document is made. */
void nrg_json_watch_memory(void);

/* For builders that lack memory for a text of their own: as if jansson had lacked it. */
void nrg_json_ran_short(void);

/* True when every document that this thread made since then is whole. */
bool nrg_json_is_whole(void);

/* The document; NULL, with its reference given up, when it may lack something. */
json_t *nrg_json_whole(json_t *doc);

#endif
