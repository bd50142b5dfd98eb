/*
 * Fuzz target: JSON from a stream. What jansson accepts must be accepted and mean the same: the
 * tokens are written out again and compared. In the tolerant modes nothing may go wrong.
 */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/json/stream.h"
#include "base/mem.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void add_text(struct nrg_str *out, const struct nrg_json_stream *s)
{
    json_t *text = json_stringn(s->text, s->len);
    char *quoted = text ? json_dumps(text, JSON_ENCODE_ANY) : NULL;
    nrg_str_add(out, quoted ? quoted : "\"\"", quoted ? strlen(quoted) : 2);
    free(quoted);
    json_decref(text);
}

/* Tokens as JSON again; 0, or -errno. *same: nothing was lost on the way. */
static int walk(const uint8_t *data, size_t size, unsigned flags, struct nrg_str *out, bool *same)
{
    static const char *const plain[] = {"", "{", "},",    "[",      "],",   "",
                                        "", "",  "true,", "false,", "null,"};
    struct nrg_json_stream s;
    struct nrg_error err = {0};
    FILE *in = fmemopen((void *)(uintptr_t)data, size, "r");
    int token = -1;
    if (in && !nrg_json_init(&s, in, "fuzz", flags)) {
        while ((token = nrg_json_next(&s, &err)) > 0) {
            if (out && (token == NRG_JSON_OBJECT_END || token == NRG_JSON_ARRAY_END) && out->len &&
                out->text[out->len - 1] == ',')
                out->text[--out->len] = '\0';
            if (out && (token == NRG_JSON_KEY || token == NRG_JSON_STRING)) {
                add_text(out, &s);
                nrg_str_add(out, token == NRG_JSON_KEY ? ":" : ",", 1);
            } else if (out) {
                const char *text = token == NRG_JSON_NUMBER ? s.text : plain[token];
                nrg_str_add(out, text, strlen(text));
                nrg_str_add(out, ",", token == NRG_JSON_NUMBER);
            }
            *same &= !s.cut;
            if (nrg_json_position(&s) > size)
                abort();
        }
        if (token < 0 && !err.what[0])
            abort();
        nrg_json_release(&s);
    }
    if (in)
        fclose(in);
    return token;
}

static unsigned depth(const uint8_t *data, size_t size)
{
    unsigned open = 0;
    for (size_t i = 0; i < size; i++)
        open += data[i] == '[' || data[i] == '{';
    return open;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct nrg_str out = {0};
    bool same = true, ignored = true;
    if (!size)
        return 0;
    walk(data, size, NRG_JSON_RAW_TEXTS | NRG_JSON_MAY_BE_CUT, NULL, &ignored);
    walk(data, size, NRG_JSON_MAY_BE_CUT, NULL, &ignored);
    int rc = walk(data, size, 0, &out, &same);
    json_t *truth = json_loadb((const char *)data, size, JSON_DECODE_ANY, NULL);
    /* jansson takes a NUL for the end */
    if (truth && rc < 0 && depth(data, size) <= NRG_JSON_DEPTH && !memchr(data, 0, size))
        abort();
    if (truth && !rc && same) {
        size_t len = out.len && out.text[out.len - 1] == ',' ? out.len - 1 : out.len;
        json_t *again = json_loadb(out.text, len, JSON_DECODE_ANY, NULL);
        if (!json_equal(truth, again))
            abort();
        json_decref(again);
    }
    json_decref(truth);
    nrg_str_release(&out);
    return 0;
}
