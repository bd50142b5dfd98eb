/* See meter_line.h. */
#include "sensors/meter/line.h"

#include <string.h>

/* Garbage is handed on in pieces of this size: small enough to be noticed soon. */
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

static void end_line(struct nrg_meter_lines *l, int64_t sent_ns, nrg_meter_on_line *on_line,
                     void *arg, struct nrg_meter_out *out)
{
    if (l->bad) {
        refuse_piece(l, out, "bytes that are no text");
    } else if (l->len) {
        l->text[l->len] = '\0';
        const struct nrg_meter_line line = {
            .text = l->text,
            .len = l->len,
            .sent_ns = sent_ns < l->sent_ns ? sent_ns : l->sent_ns,
            .partial = !l->whole,
        };
        on_line(arg, &line, out);
    }
    l->len = l->spoilt = 0;
    l->bad = false;
    l->whole = true;
}

static void add_byte(struct nrg_meter_lines *l, uint8_t c, struct nrg_meter_out *out)
{
    if (!is_text(l, c)) {
        /* One noise byte in sixteen is no line any more. */
        l->bad |= !l->mends || ++l->spoilt > 1 + l->len / 16;
        c = l->mends ? (uint8_t)NRG_METER_SPOILT : c;
    }
    if (l->len == NRG_METER_LINE) {
        refuse_piece(l, out, "longer than any line of a meter");
        l->bad = true;
    }
    l->text[l->len++] = (char)c;
    if (l->bad && l->len >= PIECE)
        refuse_piece(l, out, "bytes that are no text");
}

void nrg_meter_lines_feed(struct nrg_meter_lines *l, const uint8_t *bytes, size_t n, int64_t end_ns,
                          int64_t byte_ns, nrg_meter_on_line *on_line, void *arg,
                          struct nrg_meter_out *out)
{
    for (size_t i = 0; i < n; i++) {
        /* When this byte began to be sent: it and all that followed it have arrived since. */
        int64_t sent_ns = end_ns - (int64_t)(n - i) * byte_ns;
        if (bytes[i] == '\n' || bytes[i] == '\r') {
            end_line(l, sent_ns - (int64_t)l->len * byte_ns, on_line, arg, out);
            continue;
        }
        if (!l->len)
            l->sent_ns = sent_ns;
        add_byte(l, bytes[i], out);
    }
}

void nrg_meter_lines_end(struct nrg_meter_lines *l, nrg_meter_on_line *on_line, void *arg,
                         struct nrg_meter_out *out)
{
    end_line(l, l->sent_ns, on_line, arg, out);
    nrg_meter_lines_reset(l);
}

void nrg_meter_lines_reset(struct nrg_meter_lines *l)
{
    l->len = l->spoilt = 0;
    l->bad = l->whole = false;
}

void nrg_meter_refuse(struct nrg_meter_out *out, const struct nrg_meter_line *line, const char *why,
                      bool harmless)
{
    if (out->refused)
        out->refused(out, line->text, line->len, why, harmless);
}
