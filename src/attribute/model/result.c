/* See result.h. */
#include "attribute/model/result.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "attribute/regress/interval.h"
#include "base/mem.h"
#include "base/stats.h"

/* Of every energy, what the model's own shape may be off by: ATTRIBUTION.md, "Intervals". */
#define STRUCTURAL 0.0025

/* Power of a class, as a sum of columns. */
static void power_of(const struct nrg_model_fit *fit, const struct nrg_facts *f, size_t c,
                     double *l, double value)
{
    l[fit->first[NRG_BLOCK_CLASSES] + c] = value;
    if (c < f->spans)
        l[fit->first[NRG_BLOCK_COMMON]] = value;
}

/* Covariance of two sums of at most two columns each. */
static double covariance(const struct nrg_model_fit *fit, const struct nrg_facts *f, size_t a,
                         size_t b)
{
    size_t common = fit->first[NRG_BLOCK_COMMON];
    double sum = fit->covariance[nrg_packed(a, b)];
    if (a < f->spans)
        sum += fit->covariance[nrg_packed(common, b)];
    if (b < f->spans)
        sum += fit->covariance[nrg_packed(common, a)];
    if (a < f->spans && b < f->spans)
        sum += fit->covariance[nrg_packed(common, common)];
    return sum;
}

static int make_room(const struct nrg_facts *f, bool idle, struct nrg_regress_result *r)
{
    size_t n = f->n_classes;
    r->classes = nrg_calloc(n + 1, sizeof *r->classes);
    r->covariance = nrg_calloc(n * n + 1, sizeof *r->covariance);
    r->idle_covariance = idle ? nrg_calloc(n + 1, sizeof *r->idle_covariance) : NULL;
    return r->classes && r->covariance && (!idle || r->idle_covariance) ? 0 : -ENOMEM;
}

static void set_class(const struct nrg_model_fit *fit, const struct nrg_facts *f, size_t c,
                      double *l, double confidence, struct nrg_regress_result *r)
{
    struct nrg_regress_class *class_ = &r->classes[c];
    power_of(fit, f, c, l, 1);
    double power_w = nrg_model_fit_mean(fit, l), variance = nrg_model_fit_variance(fit, l);
    power_of(fit, f, c, l, 0);
    class_->time_s = f->classes[c].work_s;
    class_->group = c;
    class_->free_w = class_->power_w = power_w;
    if (c < f->spans)
        class_->power_w = class_->free_w = fmax(power_w, 0);
    double half = hypot(r->t * sqrt(variance), STRUCTURAL * power_w);
    struct nrg_power_interval i =
        nrg_power_interval_make(confidence, class_->power_w, power_w, half, 0);
    class_->low_w = i.low;
    class_->high_w = i.high;
    class_->unresolved = class_->high_w - class_->low_w > class_->power_w;
    r->covariance[c * f->n_classes + c] = variance;
}

static void set_covariance(const struct nrg_model_fit *fit, const struct nrg_facts *f,
                           struct nrg_regress_result *r)
{
    size_t n = f->n_classes;
    for (size_t a = 0; a < n; a++) {
        for (size_t b = 0; b < n; b++) {
            if (a == b || !(f->classes[a].work_s > 0) || !(f->classes[b].work_s > 0))
                continue;
            double va = covariance(fit, f, a, a), vb = covariance(fit, f, b, b);
            double more = sqrt(r->covariance[a * n + a] / va * (r->covariance[b * n + b] / vb));
            r->covariance[a * n + b] = covariance(fit, f, a, b) * more;
        }
    }
}

static void set_idle(const struct nrg_model_fit *fit, const struct nrg_facts *f,
                     struct nrg_regress_result *r)
{
    size_t p = fit->first[NRG_BLOCK_IDLE];
    double off_w = fit->mean[p], variance = fit->covariance[nrg_packed(p, p)];
    r->idle_w = r->idle_low_w = r->idle_high_w = NAN;
    if (!isnan(f->idle_w)) {
        r->idle_off_w = r->beside_w = r->beside_idle_w = off_w;
        r->beside_half_w = r->t * sqrt(variance);
        return;
    }
    r->idle_fitted = true;
    r->idle_w = fmax(off_w, 0);
    r->idle_variance = variance;
    r->idle_low_w = fmax(off_w - r->t * sqrt(variance), 0);
    r->idle_high_w = off_w + r->t * sqrt(variance);
    for (size_t c = 0; c < f->n_classes; c++)
        r->idle_covariance[c] = fit->covariance[nrg_packed(p, c)];
}

int nrg_model_fit_result(const struct nrg_model_fit *fit, const struct nrg_facts *f,
                         double confidence, struct nrg_regress_result *r)
{
    double *l = nrg_calloc(fit->k + 1, sizeof *l);
    *r = (struct nrg_regress_result){.t = nrg_normal_half(confidence), .left_over = STRUCTURAL};
    int rc = l ? make_room(f, isnan(f->idle_w), r) : -ENOMEM;
    for (size_t c = 0; !rc && c < f->n_classes; c++) {
        r->classes[c] =
            (struct nrg_regress_class){.power_w = NAN, .low_w = NAN, .high_w = NAN, .group = c};
        if (f->classes[c].work_s > 0 || (c == f->others_class && f->classes[c].work_s != 0))
            set_class(fit, f, c, l, confidence, r);
    }
    free(l);
    if (rc) {
        nrg_regress_result_release(r);
        return rc;
    }
    set_covariance(fit, f, r);
    set_idle(fit, f, r);
    r->intervals = fit->rows;
    r->residual = fit->residual;
    r->lag_s = f->is_gauge ? fit->sensor.delay_s + fit->sensor.width_s / 2 : 0;
    snprintf(r->lag_source, sizeof r->lag_source, f->is_gauge ? "fitted" : "none");
    return 0;
}
