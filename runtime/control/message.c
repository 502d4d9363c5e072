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

int rg_message_for_coordinator(enum rg_message_kind kind)
{
    return kind >= RG_MSG_JOIN && kind <= RG_MSG_GATHER;
}

const char *rg_message_name(enum rg_message_kind kind)
{
    static const char *const names[RG_MSG_COUNT] = {
        "NONE",  "ADDRESS",  "HELLO",    "BYE",     "OFFER",  "JOIN",
        "LEAVE", "QUIESCED", "VIEW_ACK", "POLICY",  "GATHER", "PREPARE",
        "VIEW",  "ACTIVATE", "ERROR",    "GATHERED"};

    return kind < RG_MSG_COUNT ? names[kind] : "?";
}
