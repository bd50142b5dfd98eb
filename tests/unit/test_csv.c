/* csv: cells, quotes, line ends and line numbers, and what is refused. */
#include "support/cmocka.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/csv.h"

static void expect(const struct nrg_csv *csv, size_t at, const char *text)
{
    assert_true(at < csv->n);
    assert_int_equal(csv->cells[at].len, strlen(text));
    assert_memory_equal(csv->cells[at].text, text, strlen(text));
}

static void reads_cells_and_quotes(void **state)
{
    char text[] = "\xef\xbb\xbf"
                  "a,b ,c\r\n"
                  "1,\"x, \"\"y\"\"\nz\",\r\n"
                  "\n  \n"
                  "\"\",2,3";
    struct nrg_csv csv;
    (void)state;
    nrg_csv_init(&csv, text, sizeof text - 1, "t");
    assert_int_equal(nrg_csv_next(&csv, NULL), 1);
    assert_int_equal(csv.n, 3);
    assert_int_equal(nrg_csv_find(&csv, "b"), 1);
    assert_int_equal(nrg_csv_find(&csv, "d"), -1);
    expect(&csv, 0, "a");
    assert_int_equal(nrg_csv_next(&csv, NULL), 1);
    assert_int_equal(csv.line, 2);
    expect(&csv, 1, "x, \"y\"\nz");
    expect(&csv, 2, "");
    assert_int_equal(nrg_csv_next(&csv, NULL), 1);
    assert_int_equal(csv.line, 6); /* the quoted line end and the blank lines count */
    expect(&csv, 0, "");
    expect(&csv, 2, "3");
    assert_int_equal(nrg_csv_next(&csv, NULL), 0);
    nrg_csv_release(&csv);
}

static void refuse(const char *bad, const char *what)
{
    char text[64];
    struct nrg_csv csv;
    struct nrg_error err = {0};
    strcpy(text, bad);
    nrg_csv_init(&csv, text, strlen(text), "t");
    assert_int_equal(nrg_csv_next(&csv, &err), -EBADMSG);
    assert_non_null(strstr(err.what, what));
    assert_int_equal(err.offset, 1);
    nrg_csv_release(&csv);
}

static void refuses_broken_quotes(void **state)
{
    (void)state;
    refuse("a,\"b", "not closed");
    refuse("\"a\"b,c", "follows");
}

static void reads_numbers(void **state)
{
    double value;
    (void)state;
    assert_int_equal(nrg_cell_number((struct nrg_cell){" 1.5e3 ", 7}, &value), 0);
    assert_true(value == 1500);
    assert_int_equal(nrg_cell_number((struct nrg_cell){"", 0}, &value), 0);
    assert_true(isnan(value));
    assert_int_equal(nrg_cell_number((struct nrg_cell){"NaN", 3}, &value), 0);
    assert_true(isnan(value));
    assert_int_not_equal(nrg_cell_number((struct nrg_cell){"12x", 3}, &value), 0);
    assert_int_not_equal(nrg_cell_number((struct nrg_cell){"inf", 3}, &value), 0);
}

/* Formulas of spreadsheets become texts and come back as they were; numbers stay numbers. */
static void writes_no_formulas(void **state)
{
    static const char *const texts[] = {"=1+1", "+a", "-b", "@c", "'=d", "''=e", "'f", "\tg"};
    static const char *const cells[] = {"'=1+1", "'+a",   "'-b", "'@c",
                                        "''=d",  "'''=e", ",'f", "'\tg"};
    char *text = NULL;
    size_t size = 0, n = sizeof texts / sizeof *texts;
    struct nrg_csv csv;
    (void)state;
    FILE *out = open_memstream(&text, &size);
    assert_non_null(out);
    for (size_t i = 0; i < n; i++) {
        nrg_csv_cell(out, texts[i]);
        fputc(i + 1 < n ? ',' : '\n', out);
    }
    nrg_csv_cell(out, "-1.5e3");
    fclose(out);
    assert_non_null(strstr(text, "\n-1.5e3"));
    for (size_t i = 0; i < n; i++)
        assert_non_null(strstr(text, cells[i]));
    nrg_csv_init(&csv, text, size, "t");
    assert_int_equal(nrg_csv_next(&csv, NULL), 1);
    for (size_t i = 0; i < n; i++)
        expect(&csv, i, texts[i]);
    nrg_csv_release(&csv);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_cells_and_quotes),
        cmocka_unit_test(refuses_broken_quotes),
        cmocka_unit_test(reads_numbers),
        cmocka_unit_test(writes_no_formulas),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
