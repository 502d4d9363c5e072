/* The fuzzer's corpus, and mutations of it from a fixed seed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "runtime/policy/test/fuzz_table.h"

enum { ROUNDS = 4000, ROOM = 4096 };

static const char *const corpus[] = {"small.rgp",   "typed.rgp", "gap.rgp",
                                     "wide.rgp",    "cut.rgp",   "zero.rgp",
                                     "version.rgp", NULL};

struct input {
    uint8_t data[ROOM];
    size_t bytes;
};

static void load(const char *name, struct input *input_out)
{
    const char *source = getenv("RG_SOURCE_DIR");
    char path[1024];
    FILE *file;

    snprintf(path, sizeof path, "%s/runtime/policy/test/corpus/%s",
             source ? source : ".", name);
    file = fopen(path, "rb");
    if (!file)
        fail_msg("%s cannot be opened", path);
    input_out->bytes = fread(input_out->data, 1, ROOM, file);
    fclose(file);
    assert_true(input_out->bytes > 0 && input_out->bytes < ROOM);
}

static uint64_t draw(uint64_t *state, uint64_t below)
{
    *state = *state * 6364136223846793005ull + 1442695040888963407ull;
    return (*state >> 33) % below;
}

static void move_tail(struct input *input, size_t from, size_t to)
{
    const size_t tail = input->bytes - from;

    if (to + tail > ROOM)
        return;
    memmove(input->data + to, input->data + from, tail);
    input->bytes = to + tail;
}

/* Changes, drops, doubles or takes from another input. */
static void mutate(struct input *input, const struct input *other,
                   uint64_t *state)
{
    static const char likely[] = "0123456789-. \t\n#abcdefinrgu";
    const size_t at = draw(state, input->bytes);
    const size_t length =
        1 + draw(state, input->bytes - at < 64 ? input->bytes - at : 64);
    const size_t from = draw(state, other->bytes);

    switch (draw(state, 5)) {
    case 0:
        input->data[at] = (uint8_t)draw(state, 256);
        break;
    case 1:
        input->data[at] = (uint8_t)likely[draw(state, sizeof likely - 1)];
        break;
    case 2:
        if (input->bytes > length)
            move_tail(input, at + length, at);
        break;
    case 3:
        move_tail(input, at, at + length);
        break;
    default:
        for (size_t i = 0; i < length && from + i < other->bytes; i++)
            input->data[at + i] = other->data[from + i];
    }
}

static void the_corpus_holds(void **state)
{
    static struct input input;

    (void)state;
    for (int i = 0; corpus[i]; i++) {
        load(corpus[i], &input);
        assert_int_equal(LLVMFuzzerTestOneInput(input.data, input.bytes), 0);
    }
}

static void mutations_hold(void **state)
{
    static struct input input, other;
    uint64_t seed = 1;

    (void)state;
    for (int i = 0; corpus[i]; i++)
        for (int round = 0; round < ROUNDS; round++) {
            const int mutations = 1 + (int)draw(&seed, 4);

            load(corpus[i], &input);
            load(corpus[draw(&seed, 7)], &other);
            for (int m = 0; m < mutations; m++)
                mutate(&input, &other, &seed);
            LLVMFuzzerTestOneInput(input.data, input.bytes);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_corpus_holds),
        cmocka_unit_test(mutations_hold),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
