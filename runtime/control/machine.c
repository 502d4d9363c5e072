#include "runtime/control/machine.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "runtime/status.h"

void rg_effects_clear(struct rg_effects *effects)
{
    for (size_t i = 0; i < effects->count; i++) {
        rg_message_unref(effects->items[i].message);
        free(effects->items[i].text);
    }
    effects->count = 0;
}

void rg_effects_fini(struct rg_effects *effects)
{
    rg_effects_clear(effects);
    free(effects->items);
    *effects = (struct rg_effects){0};
}

/* A zeroed item at the end of the list, or null with rc set. */
static struct rg_effect *append(struct rg_effects *effects)
{
    if (effects->count == effects->capacity) {
        size_t capacity = effects->capacity ? 2 * effects->capacity : 8;
        void *items =
            realloc(effects->items, capacity * sizeof(*effects->items));

        if (!items) {
            effects->rc = RG_ENOMEM;
            return NULL;
        }
        effects->items = items;
        effects->capacity = capacity;
    }
    effects->items[effects->count] = (struct rg_effect){0};
    return &effects->items[effects->count++];
}

static void append_message(struct rg_effects *effects, enum rg_effect_kind kind,
                           int peer, struct rg_message *message)
{
    struct rg_effect *effect;

    if (!message) {
        effects->rc = RG_ENOMEM;
        return;
    }
    effect = append(effects);
    if (!effect)
        return;
    effect->kind = kind;
    effect->peer = peer;
    effect->message = rg_message_ref(message);
}

void rg_effects_send(struct rg_effects *effects, int peer,
                     struct rg_message *message)
{
    append_message(effects, RG_EFFECT_SEND, peer, message);
}

void rg_effects_deliver(struct rg_effects *effects, struct rg_message *message)
{
    append_message(effects, RG_EFFECT_DELIVER, -1, message);
}

void rg_effects_timer(struct rg_effects *effects, enum rg_timer_kind kind,
                      uint32_t group, uint64_t delay_ms)
{
    struct rg_effect *effect = append(effects);

    if (!effect)
        return;
    effect->kind = RG_EFFECT_TIMER;
    effect->timer = (struct rg_timer){.kind = kind, .group = group};
    effect->delay_ms = delay_ms;
}

void rg_effects_log(struct rg_effects *effects, int level, const char *format,
                    ...)
{
    char *text = malloc(RG_EFFECT_TEXT_BYTES);
    struct rg_effect *effect = text ? append(effects) : NULL;
    va_list args;

    if (!effect) {
        free(text);
        effects->rc = RG_ENOMEM;
        return;
    }
    va_start(args, format);
    vsnprintf(text, RG_EFFECT_TEXT_BYTES, format, args);
    va_end(args);
    effect->kind = RG_EFFECT_LOG;
    effect->level = level;
    effect->text = text;
}

uint64_t rg_machine_ticks(uint64_t ms, uint64_t heartbeat_ms)
{
    return (ms + heartbeat_ms - 1) / heartbeat_ms + 1;
}
