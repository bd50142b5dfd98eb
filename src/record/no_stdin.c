/*
 * For the recorder with its libraries inside (-Dprefer_static=true). Debian's libjansson.a is made
 * for programs, not for shared objects: it can't name libc's `stdin`, which it asks for only to
 * call that stream by its name in messages. The linker (--wrap=stdin) gives it this one, which no
 * stream equals.
 */
#include <stdio.h>

extern FILE *__wrap_stdin;
FILE *__wrap_stdin;
