/* Text that is fitted to columns: what goes first, what is wrapped, and what stays as it is. */
#include "support/cmocka.h"

#include <stdlib.h>
#include <string.h>

#include "report/fit.h"

static void expect(const char *text, struct nrg_fit fit, const char *wanted)
{
    char *made;
    size_t len;
    FILE *out = open_memstream(&made, &len);
    assert_non_null(out);
    assert_int_equal(nrg_fit_print(out, text, strlen(text), &fit), 0);
    fclose(out);
    assert_string_equal(made, wanted);
    free(made);
}

#define TABLE                                                                                      \
    "NAME         JOULES       WATTS   SOURCE\n"                                                   \
    "one           1.5 J       2.0 W   a meter\n"                                                  \
    "\033[1mtwo\033[0m          22.5 J       2.5 W   another meter of mine\n"

static void tables_lose_blanks(void **state)
{
    (void)state;
    expect(TABLE, (struct nrg_fit){.width = 80}, TABLE);
    expect(TABLE, (struct nrg_fit){.width = 48, .wrap = true},
           "NAME  JOULES  WATTS  SOURCE\n"
           "one    1.5 J  2.0 W  a meter\n"
           "\033[1mtwo\033[0m   22.5 J  2.5 W  another meter of mine\n");
    /* Then the last cell is wrapped, below itself; in a pipe it is not. */
    expect(TABLE, (struct nrg_fit){.width = 36, .wrap = true},
           "NAME JOULES WATTS SOURCE\n"
           "one   1.5 J 2.0 W a meter\n"
           "\033[1mtwo\033[0m  22.5 J 2.5 W another meter of\n"
           "                  mine\n");
    expect(TABLE, (struct nrg_fit){.width = 36},
           "NAME JOULES WATTS SOURCE\n"
           "one   1.5 J 2.0 W a meter\n"
           "\033[1mtwo\033[0m  22.5 J 2.5 W another meter of mine\n");
}

static void bars_go_before_texts(void **state)
{
    (void)state;
    expect("NAME  CLASS                      N  SHARE\n"
           "a     AdaptiveAveragePool2d      1  ██████████ 100.0 %\n"
           "b     ReLU                       2  █            8.0 %\n",
           (struct nrg_fit){.width = 44, .wrap = true, .unicode = true},
           "NAME  CLASS                  N  SHARE\n"
           "a     AdaptiveAveragePool2d  1  100.0 %\n"
           "b     ReLU                   2    8.0 %\n");
    expect("NAME  CLASS                      N  SHARE\n"
           "a     AdaptiveAveragePool2d      1  ██████████ 100.0 %\n"
           "b     ReLU                       2  █            8.0 %\n",
           (struct nrg_fit){.width = 32, .wrap = true, .unicode = true},
           "NAME CLASS             N SHARE\n"
           "a    AdaptiveAverageP… 1 100.0 %\n"
           "b    ReLU              2   8.0 %\n");
}

static void sentences_are_wrapped(void **state)
{
    (void)state;
    expect("  idle power: not known, so all counts as active\n\nshort\n",
           (struct nrg_fit){.width = 30, .wrap = true},
           "  idle power: not known, so\n    all counts as active\n\nshort\n");
    expect("averylongwordthatcannotbebrokenanywhere /at/all\n",
           (struct nrg_fit){.width = 20, .wrap = true},
           "averylongwordthatcannotbebrokenanywhere\n  /at/all\n");
    expect("no end of line", (struct nrg_fit){.width = 80}, "no end of line\n");
}

static void micro_is_a_unit_only(void **state)
{
    const struct nrg_fit fit = {.unicode = true};
    (void)state;
    expect("a   5.0 uJ   ± 12.5 uJ   1.0 uJ .. 3.0 uJ   7 us\n", fit,
           "a   5.0 µJ   ± 12.5 µJ   1.0 µJ .. 3.0 µJ   7 µs\n");
    /* both ends, as PER and reports of servers show them */
    expect("n of a   5.0 uJ   1.0 uJ … 3.0 uJ   7 us\n", fit,
           "n of a   5.0 µJ   1.0 µJ … 3.0 µJ   7 µs\n");
    expect("sh -c echo 5 us uJ 3 uJ; use 4 usual\n", fit, "sh -c echo 5 us uJ 3 uJ; use 4 usual\n");
    expect("a   5.0 uJ\n", (struct nrg_fit){0}, "a   5.0 uJ\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tables_lose_blanks),
        cmocka_unit_test(bars_go_before_texts),
        cmocka_unit_test(sentences_are_wrapped),
        cmocka_unit_test(micro_is_a_unit_only),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
