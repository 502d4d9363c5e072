#include "bench/tune_stats.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Twice a mean rank is an integer, so sums of ranks are counted in halves. */
enum { SUMS = TUNE_EXACT_MAX * (TUNE_EXACT_MAX + 1) + 1 };

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

double tune_median(const double *us, int n)
{
    double *sorted = n > 0 ? malloc((size_t)n * sizeof *sorted) : NULL;
    double median;

    if (!sorted)
        return NAN;
    memcpy(sorted, us, (size_t)n * sizeof *sorted);
    qsort(sorted, (size_t)n, sizeof *sorted, compare);
    median = n % 2 ? sorted[n / 2] : (sorted[n / 2 - 1] + sorted[n / 2]) / 2;
    free(sorted);
    return median;
}

double tune_noise(const double *us, int n)
{
    double low = INFINITY, high = -INFINITY;

    for (int i = 0; i < n; i++) {
        low = fmin(low, us[i]);
        high = fmax(high, us[i]);
    }
    return n < 2 ? NAN : (high - low) / tune_median(us, n);
}

/* ---- ranks -------------------------------------------------------------- */

/* Twice the rank of value among x and y together, ties sharing the mean. */
static int twice_rank(double value, const double *x, int nx, const double *y,
                      int ny)
{
    int below = 0, equal = 0;

    for (int i = 0; i < nx; i++) {
        below += x[i] < value;
        equal += x[i] == value;
    }
    for (int i = 0; i < ny; i++) {
        below += y[i] < value;
        equal += y[i] == value;
    }
    return 2 * below + equal + 1;
}

static int twice_rank_sum(const double *x, int nx, const double *y, int ny)
{
    int sum = 0;

    for (int i = 0; i < nx; i++)
        sum += twice_rank(x[i], x, nx, y, ny);
    return sum;
}

/*
 * ways[k][s]: in how many ways k of the samples so far have rank sum s / 2.
 * The share of splits that leave x a sum of at most `sum`.
 */
static double exact_p(const double *x, int nx, const double *y, int ny, int sum)
{
    double(*ways)[SUMS] = calloc((size_t)nx + 1, sizeof *ways);
    double all = 0, low = 0;

    if (!ways)
        return 1;
    ways[0][0] = 1;
    for (int i = 0; i < nx + ny; i++) {
        const int r = twice_rank(i < nx ? x[i] : y[i - nx], x, nx, y, ny);

        for (int k = nx; k > 0; k--)
            for (int s = SUMS - 1; s >= r; s--)
                ways[k][s] += ways[k - 1][s - r];
    }
    for (int s = 0; s < SUMS; s++) {
        all += ways[nx][s];
        low += s <= sum ? ways[nx][s] : 0;
    }
    free(ways);
    return low / all;
}

/* Sum of t^3 - t over groups of t equal samples. */
static double tie_term(const double *x, int nx, const double *y, int ny)
{
    double term = 0;

    for (int i = 0; i < nx + ny; i++) {
        const double value = i < nx ? x[i] : y[i - nx];
        double equal = 0;

        for (int k = 0; k < nx + ny; k++)
            equal += (k < nx ? x[k] : y[k - nx]) == value;
        term += equal * equal - 1; /* each of t members adds a t-th part */
    }
    return term;
}

static double normal_p(const double *x, int nx, const double *y, int ny,
                       int sum)
{
    const double n = nx + ny;
    const double mean = nx * (n + 1) / 2;
    const double variance =
        (double)nx * ny / 12 * (n + 1 - tie_term(x, nx, y, ny) / (n * (n - 1)));

    if (variance <= 0)
        return 1;
    return erfc(-(sum / 2.0 - mean + 0.5) / sqrt(2 * variance)) / 2;
}

double tune_rank_p(const double *x, int nx, const double *y, int ny)
{
    int sum;

    if (nx < 1 || ny < 1)
        return 1;
    sum = twice_rank_sum(x, nx, y, ny);
    return nx + ny <= TUNE_EXACT_MAX ? exact_p(x, nx, y, ny, sum)
                                     : normal_p(x, nx, y, ny, sum);
}

int tune_faster(const double *x, int nx, const double *y, int ny)
{
    const double rounding = 1e-12; /* of 1/20 in binary */

    return nx > 0 && ny > 0 &&
           tune_median(x, nx) <= (1 - TUNE_EFFECT) * tune_median(y, ny) &&
           tune_rank_p(x, nx, y, ny) <= TUNE_ALPHA + rounding;
}
