/* cmocka wants its prerequisites in order; this is the one place that knows. */
#ifndef NRG_TESTS_CMOCKA_H
#define NRG_TESTS_CMOCKA_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#endif
