/*
 * See stats.h. Quantiles are solved for by bisection on erfc, which keeps its digits in the tails,
 * and Student's t is expanded around them: it is asked for with fractions of a degree of freedom
 * and any confidence, where tables end.
 */
#include "base/stats.h"

#include <math.h>
#include <stdlib.h>

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static int compare_i64(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

void nrg_sort(double *values, size_t n)
{
    if (n)
        qsort(values, n, sizeof *values, compare_doubles);
}

void nrg_sort_i64(int64_t *values, size_t n)
{
    if (n)
        qsort(values, n, sizeof *values, compare_i64);
}

double nrg_median(double *values, size_t n)
{
    nrg_sort(values, n);
    return n ? (values[(n - 1) / 2] + values[n / 2]) / 2 : NAN;
}

/* Up to `at`, values are not more than the one there; from there on, not less (Hoare). */
static void select_value(double *values, size_t n, size_t at)
{
    for (size_t low = 0, high = n - 1; low < high;) {
        double pivot = values[low + (high - low) / 2];
        size_t i = low, j = high;
        for (;; i++, j--) {
            while (values[i] < pivot)
                i++;
            while (values[j] > pivot)
                j--;
            if (i >= j)
                break;
            double other = values[i];
            values[i] = values[j];
            values[j] = other;
        }
        if (at <= j)
            high = j;
        else
            low = j + 1;
    }
}

double nrg_median_of_many(double *values, size_t n)
{
    if (!n)
        return NAN;
    select_value(values, n, n / 2);
    double upper = values[n / 2], lower = upper;
    if (n % 2 == 0)
        lower = values[0];
    for (size_t i = 1; n % 2 == 0 && i < n / 2; i++)
        lower = fmax(lower, values[i]);
    return (lower + upper) / 2;
}

int64_t nrg_median_i64(int64_t *values, size_t n)
{
    nrg_sort_i64(values, n);
    return values[n / 2];
}

struct nrg_spread nrg_spread_of(const double *values, size_t n)
{
    struct nrg_spread spread = {.n = n, .mean = NAN, .sd = NAN, .low = NAN, .high = NAN};
    double sum = 0, squares = 0;
    for (size_t i = 0; i < n; i++)
        sum += values[i];
    if (n)
        spread.mean = sum / (double)n;
    for (size_t i = 0; i < n; i++)
        squares += (values[i] - spread.mean) * (values[i] - spread.mean);
    if (n > 1) {
        spread.sd = sqrt(squares / (double)(n - 1));
        double half = nrg_student_half95(n - 1) * spread.sd / sqrt((double)n);
        spread.low = spread.mean - half;
        spread.high = spread.mean + half;
    }
    return spread;
}

double nrg_normal_half(double confidence)
{
    double low = 0, high = 40, tail = (1 - confidence) / 2;
    for (int i = 0; i < 80; i++) {
        double z = (low + high) / 2;
        *(erfc(z / sqrt(2)) / 2 > tail ? &low : &high) = z;
    }
    return low;
}

/* Fisher's expansion of Student's quantile around the normal one, z: t / z to the third order. */
static double expand_student(double z, double freedom, double fourth)
{
    double z2 = z * z, f = freedom;
    double a = (z2 + 1) / 4, b = ((5 * z2 + 16) * z2 + 3) / 96,
           c = (((3 * z2 + 19) * z2 + 17) * z2 - 15) / 384;
    return 1 + (a + (b + (c + fourth / f) / f) / f) / f;
}

/*
 * Part of Euler's beta integral up to x, as the continued fraction that converges fast for
 * x < (a + 1) / (a + b + 2), evaluated from its front (Lentz).
 */
static double beta_fraction(double x, double a, double b)
{
    double c = 1, d = 1 / (1 - (a + b) * x / (a + 1)), f = d;
    for (int i = 1; i < 300; i++) {
        double even = i * (b - i) * x / ((a + 2 * i - 1) * (a + 2 * i));
        double odd = -(a + i) * (a + b + i) * x / ((a + 2 * i) * (a + 2 * i + 1));
        d = 1 / (1 + even * d);
        c = 1 + even / c;
        f *= c * d;
        d = 1 / (1 + odd * d);
        c = 1 + odd / c;
        f *= c * d;
        if (fabs(c * d - 1) < 1e-15)
            break;
    }
    return f;
}

static double beta_part(double x, double a, double b)
{
    int sign; /* lgamma writes a global: another thread may call it, too */
    double scale = lgamma_r(a + b, &sign) - lgamma_r(a, &sign) - lgamma_r(b, &sign);
    double front = exp(scale + a * log(x) + b * log1p(-x));
    return x < (a + 1) / (a + b + 2) ? front * beta_fraction(x, a, b) / a
                                     : 1 - front * beta_fraction(1 - x, b, a) / b;
}

double nrg_student_tails(double t, double freedom)
{
    freedom = fmax(freedom, 1);
    double x = freedom / (freedom + t * t);
    if (isnan(t))
        return NAN;
    if (isinf(freedom))
        return erfc(fabs(t) / sqrt(2));
    return x <= 0 ? 0 : x >= 1 ? 1 : beta_part(x, freedom / 2, 0.5);
}

double nrg_student_half(double confidence, double freedom)
{
    double z = nrg_normal_half(confidence), z2 = z * z, low = 0, high = 1;
    double fourth = ((((79 * z2 + 776) * z2 + 1482) * z2 - 1920) * z2 - 945) / 92160;
    if (freedom >= 6) /* the expansion is off by 2e-4 there, less beyond */
        return z * expand_student(z, freedom, fourth);
    while (nrg_student_tails(high, freedom) > 1 - confidence && high < 1e300)
        high *= 4;
    for (int i = 0; i < 60; i++) {
        double t = (low + high) / 2;
        *(nrg_student_tails(t, freedom) > 1 - confidence ? &low : &high) = t;
    }
    return low;
}

/* Probability of a chi squared below x: the incomplete gamma function as a power series. */
static double chi_squared_below(double x, double freedom)
{
    double half = x / 2, shape = freedom / 2, term = 1 / shape, sum = term;
    for (int n = 1; n < 1000 && term > 1e-15 * sum; n++) {
        term *= half / (shape + n);
        sum += term;
    }
    return sum * exp(shape * log(half) - half) / tgamma(shape);
}

/* Wilson and Hilferty: their cube root is nearly normal where there are many degrees of freedom. */
static double chi_squared_of_many(double probability, double freedom)
{
    double tail = fabs(2 * probability - 1), part = 2 / (9 * freedom);
    double z = copysign(nrg_normal_half(tail), probability - 0.5);
    double root = fmax(0, 1 - part + z * sqrt(part));
    return freedom * root * root * root;
}

double nrg_chi_squared(double probability, double freedom)
{
    double low = 0, high = 1;
    if (freedom >= 60)
        return chi_squared_of_many(probability, freedom);
    while (chi_squared_below(high, freedom) < probability && high < 1000)
        high *= 2;
    for (int i = 0; i < 100; i++) {
        double x = (low + high) / 2;
        *(chi_squared_below(x, freedom) < probability ? &low : &high) = x;
    }
    return high;
}

double nrg_student_half95(size_t freedom)
{
    static const double table[] = {12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306,
                                   2.262,  2.228, 2.201, 2.179, 2.160, 2.145, 2.131, 2.120,
                                   2.110,  2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064,
                                   2.060,  2.056, 2.052, 2.048, 2.045, 2.042};
    size_t n = sizeof table / sizeof *table;
    return freedom < 1    ? INFINITY
           : freedom <= n ? table[freedom - 1]
                          : 1.96 + 2.4 / (double)freedom;
}
