#include "runtime/control/wire.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/status.h"

/*
 * One walk over a message's fields serves to measure, to write and to read
 * it, so that the two directions cannot drift apart. The first failure sticks
 * in `rc`; the walk then goes on over zeros and touches no memory beyond
 * `limit`.
 */
enum mode { MEASURE, WRITE, READ };

struct codec {
    enum mode mode;
    int rc;
    unsigned char *buffer;      /* WRITE: target */
    const unsigned char *input; /* READ: source */
    size_t limit;
    size_t at;
};

static void fail(struct codec *codec, int rc)
{
    if (!codec->rc)
        codec->rc = rc;
}

static size_t left(const struct codec *codec)
{
    return codec->limit - codec->at;
}

static void walk_bytes(struct codec *codec, void *data, size_t bytes)
{
    if (codec->mode == READ) {
        if (bytes > left(codec))
            fail(codec, RG_EPROTO);
        if (codec->rc) {
            memset(data, 0, bytes);
            return;
        }
        memcpy(data, codec->input + codec->at, bytes);
    } else if (codec->mode == WRITE) {
        memcpy(codec->buffer + codec->at, data, bytes);
    }
    codec->at += bytes;
}

/* `bytes` <= 8 low-order bytes of value, least significant first. */
static uint64_t walk_integer(struct codec *codec, uint64_t value, size_t bytes)
{
    unsigned char raw[8];

    for (size_t i = 0; i < bytes; i++)
        raw[i] = (unsigned char)(value >> (8 * i));
    walk_bytes(codec, raw, bytes);
    value = 0;
    for (size_t i = 0; i < bytes; i++)
        value |= (uint64_t)raw[i] << (8 * i);
    return value;
}

static void walk_u64(struct codec *codec, uint64_t *value)
{
    *value = walk_integer(codec, *value, 8);
}

static void walk_u32(struct codec *codec, uint32_t *value)
{
    *value = (uint32_t)walk_integer(codec, *value, 4);
}

static void walk_int(struct codec *codec, int *value)
{
    *value = (int)(int32_t)(uint32_t)walk_integer(codec, (uint32_t)*value, 4);
}

/* An enumeration of `count` values, in one byte. */
static int walk_enum(struct codec *codec, int value, int count)
{
    int got = (int)walk_integer(codec, (uint64_t)value, 1);

    if (got >= count) {
        fail(codec, RG_EPROTO);
        return 0;
    }
    return got;
}

/* A terminated text in a field of `capacity` bytes. */
static void walk_field(struct codec *codec, char *text, size_t capacity)
{
    uint32_t bytes = codec->mode == READ ? 0 : (uint32_t)strlen(text);

    walk_u32(codec, &bytes);
    if (bytes >= capacity) {
        fail(codec, RG_EPROTO);
        bytes = 0;
    }
    walk_bytes(codec, text, bytes);
    if (codec->mode == READ) {
        text[bytes] = '\0';
        if (strlen(text) != bytes)
            fail(codec, RG_EPROTO);
    }
}

/* An allocated block of at most `max` bytes, kept with a terminating 0. */
static void walk_block(struct codec *codec, unsigned char **data, size_t *size,
                       size_t max)
{
    uint32_t bytes = (uint32_t)*size;

    walk_u32(codec, &bytes);
    if (codec->mode == READ) {
        if (bytes > max || bytes > left(codec))
            fail(codec, RG_EPROTO);
        if (codec->rc || !bytes)
            return;
        *data = malloc((size_t)bytes + 1);
        if (!*data) {
            fail(codec, RG_ENOMEM);
            return;
        }
        (*data)[bytes] = 0;
        *size = bytes;
    }
    if (bytes)
        walk_bytes(codec, *data, bytes);
}

/* A block that must be text: no zero byte inside. */
static void walk_text(struct codec *codec, struct rg_message *message)
{
    walk_block(codec, &message->data, &message->bytes, RG_TEXT_MAX);
    if (message->bytes && memchr(message->data, 0, message->bytes))
        fail(codec, RG_EPROTO);
}

static void walk_info(struct codec *codec, struct rg_member_info *info)
{
    walk_u32(codec, &info->capabilities);
    walk_u32(codec, &info->preference);
    walk_u32(codec, &info->device_kind);
    walk_u32(codec, &info->cores);
    walk_u64(codec, &info->region_bytes);
    walk_u64(codec, &info->layout_hash);
    walk_u64(codec, &info->region_process);
    walk_u64(codec, &info->region_base);
    walk_bytes(codec, info->card, sizeof(info->card));
    walk_field(codec, info->host_id, sizeof(info->host_id));
    walk_field(codec, info->device_uuid, sizeof(info->device_uuid));
}

static void walk_endpoint(struct codec *codec, struct rg_endpoint *endpoint)
{
    walk_field(codec, endpoint->address, RG_ADDRESS_BYTES);
    walk_u32(codec, &endpoint->port);
    walk_field(codec, endpoint->unix_name, RG_UNIX_NAME_BYTES);
}

static void walk_ballot(struct codec *codec, struct rg_ballot *ballot)
{
    walk_u64(codec, &ballot->term);
    walk_int(codec, &ballot->leader);
    walk_u32(codec, &ballot->attempt);
}

static void walk_member(struct codec *codec, struct rg_member *member)
{
    member->status = (enum rg_member_status)walk_enum(
        codec, (int)member->status, RG_MEMBER_LEFT + 1);
    if (member->status == RG_MEMBER_NONE)
        return;
    walk_int(codec, &member->world_rank);
    walk_u32(codec, &member->incarnation);
    walk_u32(codec, &member->quarantine);
    walk_info(codec, &member->info);
    walk_endpoint(codec, &member->endpoint);
}

static void walk_view_head(struct codec *codec, struct rg_view *view)
{
    walk_u64(codec, &view->epoch);
    walk_u64(codec, &view->term);
    walk_int(codec, &view->coordinator);
    walk_u32(codec, &view->attempt);
    walk_u64(codec, &view->plan);
    walk_u64(codec, &view->committed_seq);
    walk_u64(codec, &view->first_seq);
    walk_u32(codec, &view->workspace);
    view->backend = (enum rg_backend)walk_enum(codec, (int)view->backend,
                                               RG_BACKEND_NEW + 1);
    view->status = (enum rg_view_status)walk_enum(codec, (int)view->status,
                                                  RG_VIEW_ISOLATED + 1);
}

static void walk_view_policy(struct codec *codec, struct rg_view *view)
{
    unsigned char *text = NULL;
    size_t bytes = 0;

    if (codec->mode != READ) {
        text = (unsigned char *)view->policy;
        bytes = strlen(view->policy);
        walk_block(codec, &text, &bytes, RG_TEXT_MAX);
        return;
    }
    walk_block(codec, &text, &bytes, RG_TEXT_MAX);
    if (text && strlen((char *)text) != bytes)
        fail(codec, RG_EPROTO);
    if (!codec->rc && text && rg_view_set_policy(view, (char *)text))
        fail(codec, RG_ENOMEM);
    free(text);
}

static void walk_faults(struct codec *codec, struct rg_view *view)
{
    enum { FAULT_BYTES = 12 };
    size_t count;

    walk_int(codec, &view->nfaults);
    count = (size_t)view->nfaults;
    if (codec->mode == READ) {
        if (view->nfaults < 0 || count > left(codec) / FAULT_BYTES) {
            fail(codec, RG_EPROTO);
            view->nfaults = 0;
            return;
        }
        view->faults = count ? calloc(count, sizeof(*view->faults)) : NULL;
        if (count && !view->faults) {
            fail(codec, RG_ENOMEM);
            view->nfaults = 0;
        }
    }
    for (int i = 0; i < view->nfaults && !codec->rc; i++) {
        walk_int(codec, &view->faults[i].from);
        walk_int(codec, &view->faults[i].to);
        walk_u32(codec, &view->faults[i].count);
    }
}

static void walk_pairs(struct codec *codec, struct rg_pairs *pairs)
{
    enum { PAIR_BYTES = 16 };
    int count = pairs->count;

    walk_int(codec, &count);
    if (codec->mode == READ) {
        if (count < 0 || (size_t)count > left(codec) / PAIR_BYTES)
            fail(codec, RG_EPROTO);
        if (codec->rc || !count)
            return;
        pairs->items = calloc((size_t)count, sizeof(*pairs->items));
        if (!pairs->items) {
            fail(codec, RG_ENOMEM);
            return;
        }
        pairs->count = count;
    }
    for (int i = 0; i < count && !codec->rc; i++) {
        walk_int(codec, &pairs->items[i].from);
        walk_int(codec, &pairs->items[i].to);
        walk_u64(codec, &pairs->items[i].count);
    }
    if (codec->mode == READ && !rg_pairs_are_sorted(pairs))
        fail(codec, RG_EPROTO);
}

static void walk_view(struct codec *codec, struct rg_message *message)
{
    int capacity = message->view ? message->view->capacity : 0;
    struct rg_view *view;

    walk_int(codec, &capacity);
    if (codec->mode == READ) {
        /* Each member takes at least a byte: no allocation from thin air. */
        if (capacity < 1 || capacity > RG_CAPACITY_MAX ||
            (size_t)capacity > left(codec))
            fail(codec, RG_EPROTO);
        if (codec->rc)
            return;
        message->view = rg_view_create(message->group, capacity);
        if (!message->view) {
            fail(codec, RG_ENOMEM);
            return;
        }
    }
    view = message->view;
    walk_view_head(codec, view);
    walk_view_policy(codec, view);
    for (int slot = 0; slot < capacity && !codec->rc; slot++)
        walk_member(codec, &view->members[slot]);
    walk_faults(codec, view);
    walk_pairs(codec, &view->pairs);
    if (codec->mode == READ)
        rg_view_reorder(view);
}

static void walk_address(struct codec *codec, struct rg_message *message)
{
    walk_int(codec, &message->status);
    walk_field(codec, message->info.host_id, sizeof(message->info.host_id));
    walk_endpoint(codec, &message->endpoint);
    walk_block(codec, &message->data, &message->bytes, RG_SECRET_BYTES);
}

static void walk_hello(struct codec *codec, struct rg_message *message)
{
    walk_int(codec, &message->world_rank);
    walk_u64(codec, &message->call);
    walk_block(codec, &message->data, &message->bytes, RG_SECRET_BYTES);
}

static void walk_join(struct codec *codec, struct rg_message *message)
{
    walk_int(codec, &message->capacity);
    walk_int(codec, &message->status);
    walk_u64(codec, &message->first_seq);
    walk_info(codec, &message->info);
    walk_endpoint(codec, &message->endpoint);
    walk_text(codec, message);
}

static void walk_quiesced(struct codec *codec, struct rg_message *message)
{
    walk_int(codec, &message->status);
    walk_u64(codec, &message->completed);
    walk_u64(codec, &message->claimed);
    walk_pairs(codec, &message->pairs);
}

static void walk_attempt(struct codec *codec, struct rg_message *message)
{
    walk_u32(codec, &message->attempt);
}

static void walk_ack(struct codec *codec, struct rg_message *message)
{
    walk_attempt(codec, message);
    walk_u64(codec, &message->rules);
}

static void walk_proposal(struct codec *codec, struct rg_message *message)
{
    walk_attempt(codec, message);
    walk_view(codec, message);
}

static void walk_policy(struct codec *codec, struct rg_message *message)
{
    walk_u64(codec, &message->call);
    walk_text(codec, message);
}

static void walk_change(struct codec *codec, struct rg_message *message)
{
    walk_int(codec, &message->status);
    walk_u64(codec, &message->call);
    walk_block(codec, &message->data, &message->bytes, RG_TEXT_MAX);
}

static void walk_gather(struct codec *codec, struct rg_message *message)
{
    walk_u64(codec, &message->call);
    walk_int(codec, &message->status);
    walk_block(codec, &message->data, &message->bytes, RG_GATHER_MAX);
}

static void walk_gathered(struct codec *codec, struct rg_message *message)
{
    walk_u64(codec, &message->call);
    walk_int(codec, &message->status);
    walk_block(codec, &message->data, &message->bytes, RG_WIRE_MAX);
}

static void walk_report(struct codec *codec, struct rg_message *message)
{
    walk_int(codec, &message->status);
    walk_int(codec, &message->world_rank);
    walk_u32(codec, &message->subject);
    walk_u64(codec, &message->claimed);
    walk_block(codec, &message->data, &message->bytes, RG_TEXT_MAX);
}

/* HEARTBEAT and BEAT. */
static void walk_beat(struct codec *codec, struct rg_message *message)
{
    walk_int(codec, &message->status);
    walk_u64(codec, &message->completed);
}

static void walk_grant(struct codec *codec, struct rg_message *message)
{
    int has_view = walk_enum(codec, message->view != NULL, 2);

    if (!has_view)
        return;
    walk_int(codec, &message->status);
    walk_ballot(codec, &message->ballot);
    walk_view(codec, message);
}

static void walk_prepare(struct codec *codec, struct rg_message *message)
{
    walk_u32(codec, &message->workspace);
}

static void walk_error(struct codec *codec, struct rg_message *message)
{
    walk_int(codec, &message->status);
    walk_u64(codec, &message->call);
}

static void walk_notice(struct codec *codec, struct rg_message *message)
{
    message->status = walk_enum(codec, message->status, RG_NOTICE_COUNT);
    walk_block(codec, &message->data, &message->bytes, RG_TEXT_MAX);
}

static void walk_status(struct codec *codec, struct rg_message *message)
{
    walk_int(codec, &message->status);
}

static void walk_rank(struct codec *codec, struct rg_message *message)
{
    walk_int(codec, &message->world_rank);
}

static void walk_nothing(struct codec *codec, struct rg_message *message)
{
    (void)codec;
    (void)message;
}

/* Kinds without an entry do not travel. */
static void walk_fields(struct codec *codec, struct rg_message *message)
{
    static void (*const walks[RG_MSG_COUNT])(struct codec *,
                                             struct rg_message *) = {
        [RG_MSG_ADDRESS] = walk_address,  [RG_MSG_HELLO] = walk_hello,
        [RG_MSG_BYE] = walk_nothing,      [RG_MSG_OFFER] = walk_nothing,
        [RG_MSG_PULSE] = walk_nothing,    [RG_MSG_JOIN] = walk_join,
        [RG_MSG_LEAVE] = walk_nothing,    [RG_MSG_QUIESCED] = walk_quiesced,
        [RG_MSG_VIEW_ACK] = walk_ack,     [RG_MSG_POLICY] = walk_policy,
        [RG_MSG_CHANGE] = walk_change,    [RG_MSG_GATHER] = walk_gather,
        [RG_MSG_REPORT] = walk_report,    [RG_MSG_FENCED] = walk_nothing,
        [RG_MSG_HEARTBEAT] = walk_beat,   [RG_MSG_GRANT] = walk_grant,
        [RG_MSG_REFUSE] = walk_rank,      [RG_MSG_PREPARE] = walk_prepare,
        [RG_MSG_VIEW] = walk_proposal,    [RG_MSG_ACTIVATE] = walk_attempt,
        [RG_MSG_ERROR] = walk_error,      [RG_MSG_GATHERED] = walk_gathered,
        [RG_MSG_NOTICE] = walk_notice,    [RG_MSG_EXCLUDED] = walk_status,
        [RG_MSG_BEAT] = walk_beat,        [RG_MSG_CLAIM] = walk_status,
        [RG_MSG_HANDOVER] = walk_nothing, [RG_MSG_LOST] = walk_rank,
        [RG_MSG_SEEK] = walk_nothing,     [RG_MSG_LEADER] = walk_rank,
    };

    if (!walks[message->kind])
        fail(codec, RG_EPROTO);
    else
        walks[message->kind](codec, message);
}

static void walk_message(struct codec *codec, struct rg_message *message)
{
    if (walk_integer(codec, RG_WIRE_VERSION, 2) != RG_WIRE_VERSION)
        fail(codec, RG_EPROTO);
    message->kind =
        (enum rg_message_kind)walk_integer(codec, (uint64_t)message->kind, 2);
    if (message->kind >= RG_MSG_COUNT)
        fail(codec, RG_EPROTO);
    walk_u32(codec, &message->group);
    walk_u32(codec, &message->incarnation);
    walk_u64(codec, &message->term);
    walk_u64(codec, &message->epoch);
    if (!codec->rc)
        walk_fields(codec, message);
}

int rg_wire_encode(const struct rg_message *message, unsigned char **frame_out,
                   size_t *bytes_out)
{
    struct rg_message fields = *message; /* the walk stores what it reads */
    struct codec codec = {.mode = MEASURE};
    unsigned char *frame;

    walk_message(&codec, &fields);
    if (codec.rc)
        return codec.rc;
    frame = malloc(RG_WIRE_PREFIX + codec.at);
    if (!frame)
        return RG_ENOMEM;
    *bytes_out = RG_WIRE_PREFIX + codec.at;
    codec = (struct codec){.mode = WRITE, .buffer = frame};
    walk_integer(&codec, *bytes_out - RG_WIRE_PREFIX, RG_WIRE_PREFIX);
    walk_message(&codec, &fields);
    *frame_out = frame;
    return RG_OK;
}

int rg_wire_length(const unsigned char *frame, size_t limit, size_t *bytes_out)
{
    struct codec codec = {
        .mode = READ, .input = frame, .limit = RG_WIRE_PREFIX};
    size_t bytes = (size_t)walk_integer(&codec, 0, RG_WIRE_PREFIX);

    if (bytes > limit)
        return RG_EPROTO;
    *bytes_out = bytes;
    return RG_OK;
}

int rg_wire_decode(const unsigned char *body, size_t bytes,
                   struct rg_message **message_out)
{
    struct codec codec = {.mode = READ, .input = body, .limit = bytes};
    struct rg_message *message = rg_message_create(RG_MSG_NONE, 0);

    if (!message)
        return RG_ENOMEM;
    walk_message(&codec, message);
    if (!codec.rc && left(&codec))
        fail(&codec, RG_EPROTO);
    if (codec.rc) {
        rg_message_unref(message);
        return codec.rc;
    }
    *message_out = message;
    return RG_OK;
}
