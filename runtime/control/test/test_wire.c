/* The codec of control messages: round trips, and what it must refuse. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "runtime/control/wire.h"
#include "runtime/status.h"

enum { VIEW_CAPACITY = 5 };

static void fill_info(struct rg_member_info *info)
{
    info->capabilities = RG_CAP_NEW_BACKEND | RG_CAP_P2P;
    info->preference = RG_BACKEND_NEW;
    info->device_kind = RG_DEVICE_CUDA;
    info->cores = 132;
    info->region_bytes = 1ull << 35;
    info->layout_hash = 0x0123456789abcdefull;
    info->region_process = 0xfedcba9876543210ull;
    info->region_base = 0x7f0000001000ull;
    for (int i = 0; i < RG_MEMBER_CARD_BYTES; i++)
        info->card[i] = (unsigned char)(i * 7 + 1);
    snprintf(info->host_id, sizeof(info->host_id), "host-a");
    snprintf(info->device_uuid, sizeof(info->device_uuid), "GPU-1");
}

static void fill_pairs(struct rg_pairs *pairs)
{
    struct rg_pair items[] = {{1, 2, 1ull << 33}, {2, 0, 1}, {2, 1, 3}};
    const struct rg_pairs filled = {.items = items, .count = 3};

    assert_int_equal(rg_pairs_copy(&filled, pairs), RG_OK);
}

static void assert_pairs_equal(const struct rg_pairs *a,
                               const struct rg_pairs *b)
{
    assert_int_equal(a->count, b->count);
    for (int i = 0; i < a->count; i++) {
        assert_int_equal(a->items[i].from, b->items[i].from);
        assert_int_equal(a->items[i].to, b->items[i].to);
        assert_true(a->items[i].count == b->items[i].count);
    }
}

static struct rg_view *sample_view(uint64_t term, uint64_t epoch)
{
    struct rg_view *view = rg_view_create(3, VIEW_CAPACITY);

    assert_non_null(view);
    for (int slot = 0; slot < 4; slot++) {
        view->members[slot].status =
            slot == 2 ? RG_MEMBER_FAILED : RG_MEMBER_ACTIVE;
        view->members[slot].world_rank = slot;
        view->members[slot].incarnation = 7;
        fill_info(&view->members[slot].info);
    }
    view->term = term;
    view->coordinator = 2;
    view->attempt = 6;
    view->plan = 9;
    view->members[2].quarantine = 3;
    assert_int_equal(rg_view_add_fault(view, 1, 3), RG_OK);
    assert_int_equal(rg_view_add_fault(view, 1, 3), RG_OK);
    fill_pairs(&view->pairs);
    view->epoch = epoch;
    view->status = RG_VIEW_ACTIVE;
    view->backend = RG_BACKEND_NEW;
    view->committed_seq = 41;
    view->first_seq = 44;
    view->workspace = 2;
    assert_int_equal(rg_view_set_policy(view, "all_reduce=ring"), RG_OK);
    rg_view_reorder(view);
    return view;
}

/* A message of this kind with every field that travels set. */
static struct rg_message *sample(enum rg_message_kind kind)
{
    struct rg_message *message = rg_message_create(kind, 3);

    assert_non_null(message);
    message->incarnation = 7;
    message->term = 5;
    message->epoch = 1ull << 40;
    switch (kind) {
    case RG_MSG_ADDRESS:
        message->status = RG_ESYSTEM;
        snprintf(message->info.host_id, RG_HOST_ID_BYTES, "host-b");
        snprintf(message->endpoint.address, RG_ADDRESS_BYTES, "10.1.2.3");
        message->endpoint.port = 65535;
        snprintf(message->endpoint.unix_name, RG_UNIX_NAME_BYTES, "name");
        break;
    case RG_MSG_HELLO:
        message->world_rank = 9;
        message->call = 4711;
        rg_message_set_data(message, "0123456789abcdef", 16);
        break;
    case RG_MSG_JOIN:
        message->capacity = 4096;
        message->status = 1;
        message->first_seq = UINT64_MAX;
        fill_info(&message->info);
        snprintf(message->endpoint.address, RG_ADDRESS_BYTES, "10.1.2.3");
        rg_message_set_data(message, "policy", 6);
        break;
    case RG_MSG_QUIESCED:
        message->completed = 11;
        message->claimed = 13;
        message->status = 1;
        fill_pairs(&message->pairs);
        break;
    case RG_MSG_VIEW_ACK:
        message->attempt = 8;
        message->rules = UINT64_MAX - 1;
        break;
    case RG_MSG_ACTIVATE:
        message->attempt = 8;
        break;
    case RG_MSG_POLICY:
        message->call = 2;
        rg_message_set_data(message, "all_reduce=oneshot", 18);
        break;
    case RG_MSG_CHANGE:
        message->call = 3;
        message->status = 1;
        rg_message_set_data(message, "\5", 1);
        break;
    case RG_MSG_GATHER:
        message->call = 2;
        message->status = RG_ETIMEDOUT;
        rg_message_set_data(message, "\0\1\2\3", 4);
        break;
    case RG_MSG_REPORT:
        message->status = RG_EVIDENCE_STALLED;
        message->world_rank = 3;
        message->subject = 2;
        message->claimed = 77;
        rg_message_set_data(message, "\1", 1);
        break;
    case RG_MSG_HEARTBEAT:
    case RG_MSG_BEAT:
        message->completed = 12;
        message->status = 1;
        break;
    case RG_MSG_GRANT:
        message->status = 1;
        message->ballot = (struct rg_ballot){4, 2, 1};
        message->view = sample_view(3, 7);
        break;
    case RG_MSG_REFUSE:
    case RG_MSG_LOST:
    case RG_MSG_LEADER:
        message->world_rank = 2;
        break;
    case RG_MSG_CLAIM:
    case RG_MSG_EXCLUDED:
        message->status = 1;
        break;
    case RG_MSG_GATHERED:
        message->call = 2;
        message->status = RG_EINVAL;
        rg_message_set_data(message, "\0\1\2\3\4\5\6\7", 8);
        break;
    case RG_MSG_NOTICE:
        message->status = RG_NOTICE_FAILED;
        rg_message_set_data(message, "\2", 1);
        break;
    case RG_MSG_PREPARE:
        message->workspace = 1;
        break;
    case RG_MSG_ERROR:
        message->status = RG_EPOLICY;
        message->call = 1;
        break;
    case RG_MSG_VIEW:
        message->attempt = 8;
        message->view = sample_view(message->term, message->epoch);
        break;
    default:
        break;
    }
    return message;
}

static void assert_views_equal(const struct rg_view *a, const struct rg_view *b)
{
    assert_int_equal(a->group, b->group);
    assert_int_equal(a->capacity, b->capacity);
    assert_int_equal(a->nactive, b->nactive);
    assert_true(rg_view_is_same(a, b));
    assert_true(a->plan == b->plan);
    assert_pairs_equal(&a->pairs, &b->pairs);
    assert_int_equal(a->nfaults, b->nfaults);
    assert_memory_equal(a->faults, b->faults,
                        (size_t)a->nfaults * sizeof(*a->faults));
    assert_true(a->status == b->status && a->backend == b->backend);
    assert_true(a->committed_seq == b->committed_seq);
    assert_true(a->first_seq == b->first_seq);
    assert_int_equal(a->workspace, b->workspace);
    assert_string_equal(a->policy, b->policy);
    assert_true(a->policy_hash == b->policy_hash);
    assert_memory_equal(a->order, b->order, (size_t)a->nactive * sizeof(int));
    for (int slot = 0; slot < a->capacity; slot++) {
        const struct rg_member *x = &a->members[slot];
        const struct rg_member *y = &b->members[slot];

        assert_true(x->status == y->status);
        assert_int_equal(x->world_rank, y->world_rank);
        assert_int_equal(x->incarnation, y->incarnation);
        assert_int_equal(x->quarantine, y->quarantine);
        assert_memory_equal(&x->info, &y->info, sizeof(x->info));
    }
}

static void assert_messages_equal(const struct rg_message *a,
                                  const struct rg_message *b)
{
    assert_true(a->kind == b->kind);
    assert_int_equal(a->group, b->group);
    assert_int_equal(a->incarnation, b->incarnation);
    assert_true(a->term == b->term && a->epoch == b->epoch);
    assert_int_equal(a->status, b->status);
    assert_int_equal(a->world_rank, b->world_rank);
    assert_int_equal(a->attempt, b->attempt);
    assert_int_equal(a->subject, b->subject);
    assert_int_equal(rg_ballot_compare(&a->ballot, &b->ballot), 0);
    assert_pairs_equal(&a->pairs, &b->pairs);
    assert_int_equal(a->capacity, b->capacity);
    assert_int_equal(a->workspace, b->workspace);
    assert_true(a->first_seq == b->first_seq && a->call == b->call);
    assert_true(a->completed == b->completed && a->claimed == b->claimed);
    assert_true(a->rules == b->rules);
    assert_memory_equal(&a->info, &b->info, sizeof(a->info));
    assert_memory_equal(&a->endpoint, &b->endpoint, sizeof(a->endpoint));
    assert_int_equal(a->bytes, b->bytes);
    if (a->bytes)
        assert_memory_equal(a->data, b->data, a->bytes + 1);
    assert_int_equal(!a->view, !b->view);
    if (a->view)
        assert_views_equal(a->view, b->view);
}

/* The body of the sample's frame, in storage of exactly its size. */
static unsigned char *sample_body(enum rg_message_kind kind, size_t *bytes_out)
{
    struct rg_message *message = sample(kind);
    unsigned char *frame;
    unsigned char *body;
    size_t bytes;

    assert_int_equal(rg_wire_encode(message, &frame, &bytes), RG_OK);
    rg_message_unref(message);
    *bytes_out = bytes - RG_WIRE_PREFIX;
    body = malloc(*bytes_out);
    assert_non_null(body);
    memcpy(body, frame + RG_WIRE_PREFIX, *bytes_out);
    free(frame);
    return body;
}

static void every_kind_survives_a_round_trip(void **state)
{
    (void)state;
    for (int kind = RG_MSG_ADDRESS; kind < RG_MSG_COUNT; kind++) {
        if (rg_message_is_local((enum rg_message_kind)kind))
            continue;
        struct rg_message *sent = sample((enum rg_message_kind)kind);
        struct rg_message *got;
        unsigned char *frame;
        size_t bytes;
        size_t length;

        assert_int_equal(rg_wire_encode(sent, &frame, &bytes), RG_OK);
        assert_int_equal(rg_wire_length(frame, RG_WIRE_MAX, &length), RG_OK);
        assert_int_equal(length + RG_WIRE_PREFIX, bytes);
        assert_int_equal(rg_wire_decode(frame + RG_WIRE_PREFIX, length, &got),
                         RG_OK);
        assert_messages_equal(sent, got);
        rg_message_unref(sent);
        rg_message_unref(got);
        free(frame);
    }
}

static void bytes_are_little_endian_behind_a_version(void **state)
{
    static const unsigned char expected[] = {40,
                                             0,
                                             0,
                                             0,
                                             RG_WIRE_VERSION,
                                             0,
                                             RG_MSG_ERROR,
                                             0,
                                             3,
                                             0,
                                             0,
                                             0,
                                             7,
                                             0,
                                             0,
                                             0,
                                             5,
                                             0,
                                             0,
                                             0,
                                             0,
                                             0,
                                             0,
                                             0,
                                             0,
                                             0,
                                             0,
                                             0,
                                             0,
                                             1,
                                             0,
                                             0,
                                             0xf6,
                                             0xff,
                                             0xff,
                                             0xff,
                                             1,
                                             0,
                                             0,
                                             0,
                                             0,
                                             0,
                                             0,
                                             0};
    struct rg_message *message = sample(RG_MSG_ERROR);
    unsigned char *frame;
    size_t bytes;

    (void)state;
    assert_int_equal(rg_wire_encode(message, &frame, &bytes), RG_OK);
    assert_int_equal(bytes, sizeof(expected));

    assert_memory_equal(frame, expected, sizeof(expected));
    free(frame);
    rg_message_unref(message);
}

static void every_truncation_and_any_excess_is_refused(void **state)
{
    (void)state;
    for (int kind = RG_MSG_ADDRESS; kind < RG_MSG_COUNT; kind++) {
        if (rg_message_is_local((enum rg_message_kind)kind))
            continue;
        struct rg_message *got = NULL;
        size_t bytes;
        unsigned char *body = sample_body((enum rg_message_kind)kind, &bytes);
        unsigned char *longer = calloc(1, bytes + 1);

        memcpy(longer, body, bytes);
        assert_int_equal(rg_wire_decode(longer, bytes + 1, &got), RG_EPROTO);
        for (size_t cut = 0; cut < bytes; cut++) {
            /* A copy of exactly that size shows any read beyond it. */
            unsigned char *part = malloc(cut ? cut : 1);

            memcpy(part, body, cut);
            assert_int_equal(rg_wire_decode(part, cut, &got), RG_EPROTO);
            free(part);
        }
        assert_null(got);
        free(longer);
        free(body);
    }
}

/* Each byte in turn takes values that break lengths and enumerations. */
static void damaged_bytes_never_break_the_decoder(void **state)
{
    static const unsigned char values[] = {0, 1, 0x7f, 0x80, 0xff};
    int refused = 0;

    (void)state;
    for (int kind = RG_MSG_ADDRESS; kind < RG_MSG_COUNT; kind++) {
        if (rg_message_is_local((enum rg_message_kind)kind))
            continue;
        size_t bytes;
        unsigned char *body = sample_body((enum rg_message_kind)kind, &bytes);

        for (size_t at = 0; at < bytes; at++)
            for (size_t i = 0; i < sizeof(values); i++) {
                unsigned char before = body[at];
                struct rg_message *got = NULL;

                body[at] = values[i];
                if (rg_wire_decode(body, bytes, &got))
                    refused++;
                else
                    rg_message_unref(got);
                body[at] = before;
            }
        free(body);
    }
    assert_true(refused > 100);
}

static void refuse_changed(enum rg_message_kind kind, size_t at,
                           unsigned char value)
{
    struct rg_message *got;
    size_t bytes;
    unsigned char *body = sample_body(kind, &bytes);

    body[at] = value;
    assert_int_equal(rg_wire_decode(body, bytes, &got), RG_EPROTO);
    free(body);
}

static void wrong_versions_kinds_and_texts_are_refused(void **state)
{
    enum { HEAD = 28 };

    (void)state;
    refuse_changed(RG_MSG_LEAVE, 0, RG_WIRE_VERSION + 1);
    refuse_changed(RG_MSG_LEAVE, 2, RG_MSG_NONE);
    refuse_changed(RG_MSG_LEAVE, 2, RG_MSG_COUNT);
    refuse_changed(RG_MSG_LEAVE, 3, 1);
    refuse_changed(RG_MSG_POLICY, HEAD + 8 + 4 + 2, 0); /* 0 in the text */
    refuse_changed(RG_MSG_VIEW, HEAD + 4 + 3, 0x80);    /* negative capacity */
    refuse_changed(RG_MSG_QUIESCED, HEAD + 20 + 3, 0x80); /* so many pairs */
    refuse_changed(RG_MSG_QUIESCED, HEAD + 20 + 4, 9);    /* out of order */
    refuse_changed(RG_MSG_NOTICE, HEAD, RG_NOTICE_COUNT);
    refuse_changed(RG_MSG_GRANT, HEAD, 2); /* neither a view nor none */
    for (int kind = RG_MSG_LEAVE; kind < RG_MSG_COUNT; kind++)
        if (rg_message_is_local((enum rg_message_kind)kind))
            refuse_changed(RG_MSG_LEAVE, 2, (unsigned char)kind);
}

/* The order of ballots: term, then the lower rank, then the attempt. */
static void ballots_are_totally_ordered(void **state)
{
    static const struct rg_ballot rising[] = {{1, 5, 0}, {1, 5, 9}, {1, 2, 0},
                                              {2, 9, 3}, {2, 0, 0}, {2, 0, 1}};
    enum { COUNT = sizeof(rising) / sizeof(*rising) };

    (void)state;
    for (int i = 0; i < COUNT; i++)
        for (int j = 0; j < COUNT; j++) {
            int order = rg_ballot_compare(&rising[i], &rising[j]);

            assert_true(i < j ? order < 0 : i > j ? order > 0 : order == 0);
        }
}

static int decides(const char *voters, const char *absent)
{
    struct rg_view *view = rg_view_create(1, 6);
    struct rg_bitset sets[2];
    int has;

    for (int slot = 0; slot < 6; slot++)
        view->members[slot].status =
            slot == 1 ? RG_MEMBER_FAILED : RG_MEMBER_ACTIVE;
    rg_view_reorder(view);
    for (int i = 0; i < 2; i++) {
        rg_bitset_init(&sets[i], 6);
        for (const char *at = i ? absent : voters; *at; at++)
            rg_bitset_set(&sets[i], *at - '0');
    }
    has = rg_view_has_quorum(view, &sets[0], &sets[1]);
    rg_bitset_fini(&sets[0]);
    rg_bitset_fini(&sets[1]);
    view->members[5].status = RG_MEMBER_LEFT;
    rg_view_destroy(view);
    return has;
}

/* Active are 0, 2, 3, 4, 5. */
static void majorities_decide(void **state)
{
    (void)state;
    assert_true(decides("023", ""));
    assert_true(decides("345", ""));
    assert_false(decides("02", ""));
    assert_false(decides("012", ""));  /* 1 is no member */
    assert_true(decides("5", "0234")); /* all who live */
    assert_false(decides("45", "02")); /* 3 may have voted with the dead */
    assert_false(decides("", "02345"));
}

static void exactly_half_decides_with_the_lowest(void **state)
{
    struct rg_view *view = rg_view_create(1, 4);
    struct rg_bitset voters;
    struct rg_bitset absent;

    (void)state;
    rg_bitset_init(&voters, 4);
    rg_bitset_init(&absent, 4);
    for (int slot = 0; slot < 4; slot++)
        view->members[slot].status = RG_MEMBER_ACTIVE;
    rg_view_reorder(view);
    rg_bitset_set(&voters, 0);
    rg_bitset_set(&voters, 3);
    assert_true(rg_view_has_quorum(view, &voters, &absent));
    rg_bitset_clear(&voters, 0);
    rg_bitset_set(&voters, 1);
    assert_false(rg_view_has_quorum(view, &voters, &absent));
    rg_bitset_fini(&voters);
    rg_bitset_fini(&absent);
    rg_view_destroy(view);
}

static void prefixes_are_bounded(void **state)
{
    static const unsigned char frame[] = {1, 1, 0, 0};
    size_t bytes = 0;

    (void)state;
    assert_int_equal(rg_wire_length(frame, RG_WIRE_STRANGER_MAX, &bytes),
                     RG_EPROTO);
    assert_int_equal(rg_wire_length(frame, 257, &bytes), RG_OK);
    assert_int_equal(bytes, 257);
}

static void views_map_slots_and_ranks(void **state)
{
    struct rg_view *view = sample_view(1, 1);
    struct rg_view *copy = rg_view_clone(view);

    (void)state;
    assert_views_equal(view, copy);
    assert_int_equal(view->nactive, 3);
    assert_int_equal(rg_view_rank_of(view, 0), 0);
    assert_int_equal(rg_view_rank_of(view, 2), -1);
    assert_int_equal(rg_view_rank_of(view, 3), 2);
    assert_int_equal(rg_view_rank_of(view, 4), -1);
    view->members[4] = view->members[1];
    view->members[4].world_rank = 12;
    assert_int_equal(rg_view_slot_of(view, 12), 4);
    assert_int_equal(rg_view_slot_of(view, 3), 3);
    assert_int_equal(rg_view_slot_of(view, 4), -1);
    assert_int_equal(rg_view_slot_of(view, -1), -1);
    rg_view_destroy(view);
    rg_view_destroy(copy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kind_survives_a_round_trip),
        cmocka_unit_test(bytes_are_little_endian_behind_a_version),
        cmocka_unit_test(every_truncation_and_any_excess_is_refused),
        cmocka_unit_test(damaged_bytes_never_break_the_decoder),
        cmocka_unit_test(wrong_versions_kinds_and_texts_are_refused),
        cmocka_unit_test(ballots_are_totally_ordered),
        cmocka_unit_test(majorities_decide),
        cmocka_unit_test(exactly_half_decides_with_the_lowest),
        cmocka_unit_test(prefixes_are_bounded),
        cmocka_unit_test(views_map_slots_and_ranks),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
