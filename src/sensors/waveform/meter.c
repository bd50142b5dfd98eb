/*
 * Raw samples of voltage and current as a meter: the decoder around waveform/engine.c.
 *
 * Time. The sampling clock is not ours. Samples come in blocks that sound cards, pipes and the
 * scheduler delay by varying times; they are never early. So the time of sample 0 is the smallest
 * "arrival minus samples so far", which is allowed to drift slowly upwards to follow a clock that
 * is slower than ours. When samples come much later than that, some were lost or the source
 * paused, and the estimate starts again. A file is read faster than it was sampled: there, time
 * follows the samples from the first read on.
 *
 * Power is the mean over a window, and the meter stamps it at the window's middle. The counter is
 * given for the same moment: its value at the end, less half of the window's energy. It never goes
 * back: where noise makes the power of an idle load negative, the counter waits until the sum is
 * positive again.
 */
#include <errno.h>
#include <math.h>
#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/parse.h"
#include "sensors/meter/decoders.h"
#include "sensors/waveform/internal.h"

#define FIELDS      (2 + 5 * NRG_WAVE_CURRENTS)
#define CREEP       2e-4               /* two clocks of 100 ppm each */
#define PAUSE_NS    (2 * NRG_NS_PER_S) /* later than this: samples are missing */
#define LARGEST     1e15               /* no ADC counts this far */
#define RATE_ROWS   256                /* of a CSV, to learn the rate from */
#define CSV_COLUMNS NRG_FRAME_CHANNELS

struct wave_meter {
    struct nrg_meter_lines lines; /* of a CSV */
    struct nrg_wave_keys keys;
    struct nrg_wave wave;
    bool ready, failed; /* the wave is set up; the stream can't be understood (reported once) */
    /* bytes */
    struct nrg_wav wav;
    struct nrg_sample_frame frame;
    uint8_t part[NRG_FRAME_BYTES];
    unsigned have;
    struct nrg_wave_column v, i[NRG_WAVE_CURRENTS], time; /* resolved */
    bool header_done;
    unsigned n_rows; /* rows that wait for the rate */
    double rows[RATE_ROWS][1 + NRG_WAVE_CURRENTS], first_s, last_s;
    /* time */
    double rate_hz;
    uint64_t samples; /* given to the wave since start_ns */
    double start_ns, last_end_ns;
    bool started;
    double counted_j[NRG_WAVE_CURRENTS];
};

static nrg_meter_on_line on_line;

/* A new writer begins with a header; columns that were found by name are looked for again. */
static void reset_waveform(void *state)
{
    struct wave_meter *m = state;
    nrg_wav_begin(&m->wav);
    nrg_meter_lines_reset(m);
    m->v = m->keys.v;
    memcpy(m->i, m->keys.i, sizeof m->i);
    m->time = m->keys.time;
    m->have = m->n_rows = 0;
    m->samples = 0;
    m->ready = m->started = m->header_done = m->failed = false;
}

static int init_waveform(void *state, struct nrg_uri *uri, struct nrg_meter_field *fields,
                         size_t *n_fields, struct nrg_error *err)
{
    struct wave_meter *m = state;
    m->lines.on_line = on_line;
    int rc = nrg_wave_keys_read(&m->keys, uri, err);
    if (rc)
        return rc;
    m->frame = m->keys.frame;
    reset_waveform(m);
    *n_fields = nrg_wave_fields(fields, m->keys.set.n_currents);
    return 0;
}

static void refuse_bytes(struct nrg_meter_out *out, const void *bytes, size_t n, const char *why)
{
    if (out->refused)
        out->refused(out, bytes, n, why, false);
}

/* Sets everything up once the rate is known. NULL, or what is wrong. */
static const char *begin_wave(struct wave_meter *m, double rate_hz)
{
    struct nrg_wave_settings set = m->keys.set;
    double energy_j[NRG_WAVE_CURRENTS]; /* counters go on after an interruption */
    memcpy(energy_j, m->wave.energy_j, sizeof energy_j);
    m->rate_hz = set.rate_hz = rate_hz;
    for (unsigned c = 0; c < set.n_currents; c++)
        set.delay[c] += m->keys.phase_deg[c] / 360 * rate_hz / m->keys.mains_hz;
    m->ready = nrg_wave_init(&m->wave, &set);
    m->failed = !m->ready;
    memcpy(m->wave.energy_j, energy_j, sizeof energy_j);
    if (m->ready)
        return NULL;
    return rate_hz >= 200 && rate_hz <= 1e8 ? "phase= or shift= is longer than this rate allows"
                                            : "a rate below 200 Hz or beyond 100 MHz";
}

/* Updates the time of sample 0: `total` samples had arrived at end_ns. */
static void note_arrival(struct wave_meter *m, uint64_t total, int64_t end_ns)
{
    double now = (double)end_ns;
    double start_ns = now - (double)total * (1e9 / m->rate_hz);
    if (!m->started) {
        m->start_ns = m->keys.by_samples ? now : start_ns;
    } else if (!m->keys.by_samples) {
        m->start_ns += CREEP * (now - m->last_end_ns);
        if (start_ns < m->start_ns || start_ns > m->start_ns + (double)PAUSE_NS)
            m->start_ns = start_ns;
    }
    m->started = true;
    m->last_end_ns = now;
}

/* `last`: nothing follows, so the counter is given for the window's end, and stamped there. */
static void emit_reading(struct wave_meter *m, const struct nrg_wave_result *r, bool last,
                         struct nrg_meter_out *out)
{
    double values[FIELDS], duration_s = last ? 1e-9 : r->samples / m->rate_hz;
    double ended = ((double)m->samples - 1 - r->ago_samples) * (1e9 / m->rate_hz);
    size_t n = 0;
    values[n++] = r->v_rms;
    values[n++] = r->frequency_hz > 0 ? r->frequency_hz : NAN;
    for (unsigned c = 0; c < m->keys.set.n_currents; c++) {
        double power_w = r->current[c].power_w;
        double energy_j = r->current[c].energy_j - power_w * duration_s / 2;
        if (energy_j > m->counted_j[c])
            m->counted_j[c] = energy_j;
        values[n++] = power_w;
        values[n++] = m->counted_j[c];
        values[n++] = r->current[c].i_rms;
        values[n++] = r->current[c].apparent_va;
        values[n++] = r->current[c].apparent_va > 0 ? r->current[c].power_factor : NAN;
    }
    const struct nrg_meter_reading reading = {
        .sent_ns = (int64_t)(m->start_ns + ended),
        .average_ns = (int64_t)(duration_s * 1e9),
        .values = values,
        .n_values = n,
        .rssi_dbm = NAN,
    };
    out->reading(out, &reading);
}

static void finish_wave(struct wave_meter *m, struct nrg_meter_out *out)
{
    struct nrg_wave_result result;
    if (m->ready && nrg_wave_finish(&m->wave, &result))
        emit_reading(m, &result, true, out);
}

/* row: v, then the currents. */
static bool is_usable(const struct wave_meter *m, const double *row)
{
    bool good = true;
    for (unsigned c = 0; c <= m->keys.set.n_currents; c++)
        good &= fabs(row[c]) <= LARGEST;
    return good;
}

static void add_window_row(struct wave_meter *m, const double *row, struct nrg_meter_out *out)
{
    struct nrg_wave_result result;
    m->samples++;
    if (nrg_wave_feed(&m->wave, row[0], row + 1, &result))
        emit_reading(m, &result, false, out);
}

static void add_frame(struct wave_meter *m, const uint8_t *bytes, struct nrg_meter_out *out)
{
    double row[1 + NRG_WAVE_CURRENTS];
    const struct nrg_sample_frame *f = &m->frame;
    row[0] = nrg_sample_value(&f->of[m->v.index].type, bytes + f->of[m->v.index].offset);
    for (unsigned c = 0; c < m->keys.set.n_currents; c++) {
        unsigned k = m->i[c].index;
        row[1 + c] = nrg_sample_value(&f->of[k].type, bytes + f->of[k].offset);
    }
    if (is_usable(m, row)) {
        add_window_row(m, row, out);
        return;
    }
    m->samples++;
    finish_wave(m, out);
    refuse_bytes(out, bytes, f->bytes, "a sample that is not a number");
}

static void feed_frames(struct wave_meter *m, const uint8_t *bytes, size_t n, int64_t end_ns,
                        struct nrg_meter_out *out)
{
    size_t size = m->frame.bytes;
    note_arrival(m, m->samples + (m->have + n) / size, end_ns);
    while (n) {
        bool whole = !m->have && n >= size;
        size_t take = size - m->have < n ? size - m->have : n;
        if (whole)
            add_frame(m, bytes, out);
        else
            memcpy(m->part + m->have, bytes, take);
        m->have = whole ? 0 : m->have + (unsigned)take;
        bytes += take;
        n -= take;
        if (m->have == size) {
            m->have = 0;
            add_frame(m, m->part, out);
        }
    }
}

/* After the header: checks that our columns exist, and begins. NULL, or what is wrong. */
static const char *accept_wav(struct wave_meter *m)
{
    m->frame = m->wav.frame;
    m->failed = m->v.index >= m->frame.n;
    for (unsigned c = 0; c < m->keys.set.n_currents; c++)
        m->failed |= m->i[c].index >= m->frame.n;
    if (m->failed)
        return "the WAV has fewer channels than v= and i= name";
    return begin_wave(m, m->keys.set.rate_hz > 0 ? (double)m->keys.set.rate_hz : m->wav.rate_hz);
}

static void feed_wav(struct wave_meter *m, const uint8_t *bytes, size_t n, int64_t end_ns,
                     struct nrg_meter_out *out)
{
    const char *why = NULL;
    while (n && !m->failed) {
        size_t used = nrg_wav_feed(&m->wav, bytes, n), samples;
        if (m->wav.at == NRG_WAV_BAD) {
            why = m->wav.why;
            m->failed = true;
        } else if (m->wav.at == NRG_WAV_DATA && !m->ready) {
            why = accept_wav(m);
        }
        if (why) {
            refuse_bytes(out, m->wav.head, m->wav.unit, why);
            bytes += used;
            n -= used;
            break;
        }
        samples = nrg_wav_samples(&m->wav, n - used);
        if (samples)
            feed_frames(m, bytes + used, samples, end_ns, out);
        nrg_wav_took(&m->wav, samples);
        bytes += used + samples;
        n -= used + samples;
    }
    if (m->failed && n)
        refuse_bytes(out, bytes, n, "after a header that was not understood");
}

/* Cells of a line, separated by commas, semicolons or blanks, without quotes. */
static unsigned split_cells(const char *text, const char *cells[], size_t lens[])
{
    bool strict = strpbrk(text, ",;\t") != NULL;
    const char *marks = strict ? ",;\t" : " ";
    unsigned n = 0;
    for (const char *at = text; n < CSV_COLUMNS; at++) {
        if (!strict)
            at += strspn(at, marks);
        size_t len = strcspn(at, marks), skip = strspn(at, " \"");
        if (!strict && !len)
            break;
        skip = skip < len ? skip : len;
        cells[n] = at + skip;
        lens[n] = len - skip;
        while (lens[n] && strchr(" \"", cells[n][lens[n] - 1]))
            lens[n]--;
        n++;
        at += len;
        if (!*at)
            break;
    }
    return n;
}

/* True when the column is known, by its number or by this header. */
static bool resolve_column(struct nrg_wave_column *column, const char *cells[], const size_t lens[],
                           unsigned n)
{
    for (unsigned k = 0; *column->name && k < n; k++) {
        if (lens[k] == strlen(column->name) && !strncasecmp(cells[k], column->name, lens[k])) {
            column->index = k;
            *column->name = '\0';
        }
    }
    return !*column->name;
}

static bool wants_names(const struct wave_meter *m)
{
    bool some = *m->v.name || (m->keys.have_time && *m->time.name);
    for (unsigned c = 0; c < m->keys.set.n_currents; c++)
        some |= *m->i[c].name != '\0';
    return some;
}

static bool on_names(struct wave_meter *m, const char *cells[], const size_t lens[], unsigned n)
{
    bool all = resolve_column(&m->v, cells, lens, n);
    for (unsigned c = 0; c < m->keys.set.n_currents; c++)
        all &= resolve_column(&m->i[c], cells, lens, n);
    return (!m->keys.have_time || resolve_column(&m->time, cells, lens, n)) && all;
}

static bool read_cell(const char *cells[], const size_t lens[], unsigned n, unsigned index,
                      double *out)
{
    return index < n && !nrg_parse_double(cells[index], lens[index], out);
}

static bool read_row(const struct wave_meter *m, const char *cells[], const size_t lens[],
                     unsigned n, double *row, double *t_s)
{
    bool good = read_cell(cells, lens, n, m->v.index, &row[0]);
    for (unsigned c = 0; c < m->keys.set.n_currents; c++)
        good &= read_cell(cells, lens, n, m->i[c].index, &row[1 + c]);
    return good && (!m->keys.have_time || read_cell(cells, lens, n, m->time.index, t_s));
}

static void flush_rows(struct wave_meter *m, struct nrg_meter_out *out)
{
    for (unsigned k = 0; m->ready && k < m->n_rows; k++)
        add_window_row(m, m->rows[k], out);
    m->n_rows = 0;
}

/* Keeps rows until there are enough to know the rate. */
static const char *learn_rate(struct wave_meter *m, const double *row, double t_s, bool last)
{
    if (row && m->n_rows < RATE_ROWS) {
        memcpy(m->rows[m->n_rows], row, sizeof m->rows[0]);
        m->first_s = m->n_rows ? m->first_s : t_s;
        m->last_s = t_s;
        m->n_rows++;
    }
    if (m->n_rows < (last ? 2 : RATE_ROWS))
        return NULL;
    if (m->last_s > m->first_s)
        return begin_wave(m, (m->n_rows - 1) / (m->last_s - m->first_s));
    m->failed = true;
    return "the column of seconds does not grow";
}

static void on_line(void *arg, const struct nrg_meter_line *line, struct nrg_meter_out *out)
{
    struct wave_meter *m = arg;
    const char *cells[CSV_COLUMNS], *why = NULL;
    size_t lens[CSV_COLUMNS];
    double row[1 + NRG_WAVE_CURRENTS], t_s = 0;
    if (m->failed || *line->text == '#')
        return;
    unsigned n = split_cells(line->text, cells, lens);
    bool numbers = read_row(m, cells, lens, n, row, &t_s) && is_usable(m, row);
    if (!m->header_done && (wants_names(m) || !numbers)) {
        m->header_done = on_names(m, cells, lens, n);
        m->failed = !m->header_done;
        nrg_meter_refuse(out, line, m->failed ? "no column of such a name" : "the names of columns",
                         !m->failed);
        return;
    }
    m->header_done = true;
    if (!numbers || (line->partial && !m->keys.by_samples)) {
        nrg_meter_refuse(out, line, numbers ? "may have lost its beginning" : "no numbers",
                         numbers);
        return;
    }
    if (!m->ready)
        why = m->keys.set.rate_hz > 0 ? begin_wave(m, (double)m->keys.set.rate_hz)
                                      : learn_rate(m, row, t_s, false);
    if (why)
        nrg_meter_refuse(out, line, why, false);
    if (!m->ready)
        return;
    note_arrival(m, m->samples + (m->n_rows ? m->n_rows : 1), line->sent_ns);
    if (m->n_rows)
        flush_rows(m, out);
    else
        add_window_row(m, row, out);
}

static void feed_waveform(void *state, const uint8_t *bytes, size_t n, int64_t end_ns,
                          int64_t byte_ns, struct nrg_meter_out *out)
{
    struct wave_meter *m = state;
    const char *why = NULL;
    if (m->keys.source == NRG_WAVE_CSV) {
        nrg_meter_lines_feed(m, bytes, n, end_ns, byte_ns, out);
    } else if (m->keys.source == NRG_WAVE_WAV) {
        feed_wav(m, bytes, n, end_ns, out);
    } else {
        if (!m->ready && !m->failed)
            why = begin_wave(m, (double)m->keys.set.rate_hz);
        if (m->failed)
            refuse_bytes(out, bytes, n, why ? why : "not understood");
        else
            feed_frames(m, bytes, n, end_ns, out);
    }
}

static void end_waveform(void *state, int64_t end_ns, struct nrg_meter_out *out)
{
    struct wave_meter *m = state;
    if (m->keys.source == NRG_WAVE_CSV) {
        nrg_meter_lines_end(m, end_ns, out);
        if (!m->ready && !m->failed && m->n_rows)
            learn_rate(m, NULL, 0, true);
        if (m->ready && m->n_rows)
            note_arrival(m, m->n_rows, end_ns);
        flush_rows(m, out);
    }
    finish_wave(m, out);
}

/* Only a file can be over when nothing comes: live samples may just be late. */
static void pause_file(void *state, struct nrg_meter_out *out)
{
    struct wave_meter *m = state;
    if (m->keys.by_samples)
        finish_wave(m, out);
}

const struct nrg_meter_decoder nrg_decoder_waveform = {
    .state_size = sizeof(struct wave_meter),
    .init = init_waveform,
    .feed = feed_waveform,
    .reset = reset_waveform,
    .end = end_waveform,
    .pause = pause_file,
};
