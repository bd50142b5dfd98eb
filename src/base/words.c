/* See words.h. */
#include "base/words.h"

#include <string.h>

#define FAR 3 /* more than two typing errors make another word */

static unsigned least_of(unsigned a, unsigned b, unsigned c)
{
    unsigned ab = a < b ? a : b;
    return ab < c ? ab : c;
}

/* Typing errors between two words: letters added, left out, changed, or two swapped. 99 for words
 * longer than 31 bytes. */
static unsigned distance_of(const char *a, const char *b)
{
    unsigned rows[3][32]; /* the current row of the table and the two above it */
    size_t len_a = strlen(a), len_b = strlen(b);
    if (len_a > 31 || len_b > 31)
        return 99;
    for (unsigned j = 0; j <= len_b; j++)
        rows[0][j] = j;
    for (unsigned i = 1; i <= len_a; i++) {
        unsigned *row = rows[i % 3], *above = rows[(i - 1) % 3], *before = rows[(i + 1) % 3];
        row[0] = i;
        for (unsigned j = 1; j <= len_b; j++) {
            row[j] = least_of(above[j] + 1, row[j - 1] + 1, above[j - 1] + (a[i - 1] != b[j - 1]));
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                row[j] = least_of(row[j], before[j - 2] + 1, row[j]);
        }
    }
    return rows[len_a % 3][len_b];
}

void nrg_guess_offer(struct nrg_guess *guess, const char *word)
{
    unsigned distance = distance_of(guess->typed, word);
    size_t len = strlen(guess->typed);
    /* Of a short word, two errors leave too little. */
    unsigned far = len < 5 ? FAR - 1 : FAR;
    /* The beginning of a longer word. */
    if (len > 1 && !strncmp(guess->typed, word, len))
        distance = 1;
    if (distance >= far || (guess->best && distance >= guess->distance))
        return;
    guess->best = word;
    guess->distance = distance;
}
