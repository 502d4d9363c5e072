/* What rg_tune does with a table, without ranks. */
#ifndef RG_BENCH_TUNE_TOOLS_H
#define RG_BENCH_TUNE_TOOLS_H

/* Whether the word is one of: lint, explain, diff, merge,
 * export, plot. */
int tune_tool_known(const char *word);
/* argv[1] is the word. Returns the process's exit code. */
int tune_tool_main(int argc, char **argv);

#endif
