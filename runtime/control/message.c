#include "runtime/control/message.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/status.h"

struct rg_message *rg_message_create(enum rg_message_kind kind, uint32_t group)
{
    struct rg_message *message = calloc(1, sizeof(*message));

    if (message) {
        message->references = 1;
        message->kind = kind;
        message->group = group;
    }
    return message;
}

struct rg_message *rg_message_ref(struct rg_message *message)
{
    message->references++;
    return message;
}

void rg_message_unref(struct rg_message *message)
{
    if (!message || --message->references > 0)
        return;
    rg_view_destroy(message->view);
    rg_pairs_fini(&message->pairs);
    free(message->data);
    free(message);
}

int rg_message_set_data(struct rg_message *message, const void *data,
                        size_t bytes)
{
    unsigned char *copy = NULL;

    if (bytes) {
        copy = malloc(bytes + 1);
        if (!copy)
            return RG_ENOMEM;
        memcpy(copy, data, bytes);
        copy[bytes] = 0;
    }
    free(message->data);
    message->data = copy;
    message->bytes = bytes;
    return RG_OK;
}

const char *rg_message_text(const struct rg_message *message)
{
    return message->data ? (const char *)message->data : "";
}

int rg_message_set_slots(struct rg_message *message,
                         const struct rg_bitset *slots)
{
    size_t bytes = ((size_t)slots->bits + 7) / 8;
    unsigned char *data = calloc(1, bytes + 1);
    int rc;

    if (!data)
        return RG_ENOMEM;
    for (int slot = rg_bitset_next(slots, 0); slot >= 0;
         slot = rg_bitset_next(slots, slot + 1))
        data[slot / 8] |= (unsigned char)(1u << (slot % 8));
    rc = rg_message_set_data(message, data, bytes);
    free(data);
    return rc;
}

int rg_message_has_slot(const struct rg_message *message, int slot)
{
    return (size_t)slot / 8 < message->bytes &&
           (message->data[slot / 8] >> (slot % 8) & 1);
}

int rg_message_for_coordinator(enum rg_message_kind kind)
{
    return kind >= RG_MSG_JOIN && kind <= RG_MSG_RESIGN;
}

int rg_message_is_local(enum rg_message_kind kind)
{
    return kind == RG_MSG_STAND || kind == RG_MSG_RESIGN ||
           kind == RG_MSG_PROGRESS;
}

const char *rg_message_name(enum rg_message_kind kind)
{
    static const char *const names[RG_MSG_COUNT] = {
        [RG_MSG_NONE] = "NONE",         [RG_MSG_ADDRESS] = "ADDRESS",
        [RG_MSG_HELLO] = "HELLO",       [RG_MSG_BYE] = "BYE",
        [RG_MSG_OFFER] = "OFFER",       [RG_MSG_PULSE] = "PULSE",
        [RG_MSG_JOIN] = "JOIN",         [RG_MSG_LEAVE] = "LEAVE",
        [RG_MSG_QUIESCED] = "QUIESCED", [RG_MSG_VIEW_ACK] = "VIEW_ACK",
        [RG_MSG_POLICY] = "POLICY",     [RG_MSG_CHANGE] = "CHANGE",
        [RG_MSG_GATHER] = "GATHER",     [RG_MSG_REPORT] = "REPORT",
        [RG_MSG_FENCED] = "FENCED",     [RG_MSG_HEARTBEAT] = "HEARTBEAT",
        [RG_MSG_GRANT] = "GRANT",       [RG_MSG_REFUSE] = "REFUSE",
        [RG_MSG_STAND] = "STAND",       [RG_MSG_RESIGN] = "RESIGN",
        [RG_MSG_PREPARE] = "PREPARE",   [RG_MSG_VIEW] = "VIEW",
        [RG_MSG_ACTIVATE] = "ACTIVATE", [RG_MSG_ERROR] = "ERROR",
        [RG_MSG_GATHERED] = "GATHERED", [RG_MSG_NOTICE] = "NOTICE",
        [RG_MSG_EXCLUDED] = "EXCLUDED", [RG_MSG_BEAT] = "BEAT",
        [RG_MSG_CLAIM] = "CLAIM",       [RG_MSG_HANDOVER] = "HANDOVER",
        [RG_MSG_LOST] = "LOST",         [RG_MSG_SEEK] = "SEEK",
        [RG_MSG_LEADER] = "LEADER",     [RG_MSG_PROGRESS] = "PROGRESS"};

    return kind < RG_MSG_COUNT ? names[kind] : "?";
}
