/* See meter/line.h. One pass over the bytes; only the line that is being received is stored. */
#include "sensors/meter/line.h"

#include <string.h>

/* Garbage is refused in pieces of this size: small enough to be noticed soon. */
#define PIECE 32

static bool is_text(const struct nrg_meter_lines *l, uint8_t c)
{
    return c == '\t' || (c >= 32 && c < 127) || (c >= 128 && l->any_byte);
}

static void refuse_piece(struct nrg_meter_lines *l, struct nrg_meter_out *out, const char *why)
{
    if (l->len && out->refused)
        out->refused(out, l->text, l->len, why, false);
    l->len = 0;
}

static void end_line(struct nrg_meter_lines *l, int64_t sent_ns, struct nrg_meter_out *out)
{
    if (l->bad) {
        refuse_piece(l, out, "bytes that are not text");
    } else if (l->len) {
        l->text[l->len] = '\0';
        const struct nrg_meter_line line = {
            .text = l->text,
            .len = l->len,
            .sent_ns = sent_ns < l->sent_ns ? sent_ns : l->sent_ns,
            .partial = !l->ended && !l->from_start,
        };
        l->on_line(l, &line, out);
    }
    l->len = l->spoilt = 0;
    l->bad = false;
    l->ended = true;
}

static void add_byte(struct nrg_meter_lines *l, uint8_t c, struct nrg_meter_out *out)
{
    if (!is_text(l, c)) {
        /* More than about one noise byte in sixteen: not a line any more. */
        l->bad |= !l->mends || ++l->spoilt > 1 + l->len / 16;
        c = l->mends ? (uint8_t)NRG_METER_SPOILT : c;
    }
    if (l->len == NRG_METER_LINE) {
        refuse_piece(l, out, "longer than any line of a meter");
        l->bad = true;
    }
    l->text[l->len++] = (char)c;
    if (l->bad && l->len >= PIECE)
        refuse_piece(l, out, "bytes that are not text");
}

void nrg_meter_lines_feed(void *state, const uint8_t *bytes, size_t n, int64_t end_ns,
                          int64_t byte_ns, struct nrg_meter_out *out)
{
    struct nrg_meter_lines *l = state;
    for (size_t i = 0; i < n; i++) {
        /* When this byte began to be sent: it and all that followed it have arrived since. */
        int64_t sent_ns = end_ns - (int64_t)(n - i) * byte_ns;
        if (bytes[i] == '\n' || bytes[i] == '\r') {
            end_line(l, sent_ns - (int64_t)l->len * byte_ns, out);
            continue;
        }
        if (!l->len)
            l->sent_ns = sent_ns;
        add_byte(l, bytes[i], out);
    }
}

void nrg_meter_lines_end(void *state, int64_t end_ns, struct nrg_meter_out *out)
{
    struct nrg_meter_lines *l = state;
    end_line(l, l->sent_ns, out);
    nrg_meter_lines_reset(l);
}

void nrg_meter_lines_reset(void *state)
{
    struct nrg_meter_lines *l = state;
    l->len = l->spoilt = 0;
    l->bad = l->ended = false;
}

void nrg_meter_refuse(struct nrg_meter_out *out, const struct nrg_meter_line *line, const char *why,
                      bool harmless)
{
    if (out->refused)
        out->refused(out, line->text, line->len, why, harmless);
}
