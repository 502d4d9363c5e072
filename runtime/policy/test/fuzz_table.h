/* One input of the table's fuzzer; aborts where a rule does not hold. */
#ifndef RG_POLICY_FUZZ_TABLE_H
#define RG_POLICY_FUZZ_TABLE_H

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

#endif
