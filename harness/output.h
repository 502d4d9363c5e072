/*
 * What all programs hold to where they write: what is wrong is one line,
 * whatever is in a name; files are looked at before anything is measured; and
 * who could not write exits with RG_EXIT_ENVIRONMENT.
 */
#ifndef RG_HARNESS_OUTPUT_H
#define RG_HARNESS_OUTPUT_H

/*
 * One line on standard error, in one write: "program: ...", control characters
 * escaped.
 */
void rg_say(const char *program, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

enum rg_output_kind {
    RG_OUTPUT_STREAM, /* a pipe or a device will do */
    RG_OUTPUT_FILE,   /* a regular one */
    RG_OUTPUT_NEW     /* of which a new one takes the name */
};
/*
 * Whether a file of this name can be written, or made: null, or why not. It is
 * not touched.
 */
const char *rg_output_fault(const char *path, enum rg_output_kind kind);
/* Whether both name one file, there or yet to be made. Nulls name none. */
int rg_output_is_same(const char *a, const char *b);

/*
 * At the end of a program: writes what standard output still holds. Returns
 * `code`, or what is worse of it and RG_EXIT_ENVIRONMENT, with one line said,
 * when some of it could not be written.
 */
int rg_output_close(int code);

#endif
