# The algorithms, each collective's in table order: the order is the index that
# rules use, and the last one serves all sizes for which nothing better is known.
# A line here is all that an algorithm needs to be in every program.
RG_ALGO_SOURCES = \
	algos/all_reduce/all_reduce_oneshot_ll.c \
	algos/all_reduce/all_reduce_oneshot_ll128.c \
	algos/all_reduce/all_reduce_twoshot_ll.c \
	algos/all_reduce/all_reduce_doubling_ll.c \
	algos/all_reduce/all_reduce_doubling.c \
	algos/all_reduce/all_reduce_oneshot.c \
	algos/all_reduce/all_reduce_twoshot.c \
	algos/all_reduce/all_reduce_hierarchical.c \
	algos/all_reduce/all_reduce_ring.c \
	algos/all_gather/all_gather_direct_ll.c \
	algos/all_gather/all_gather_direct_ll128.c \
	algos/all_gather/all_gather_ring.c \
	algos/all_gather/all_gather_hierarchical.c \
	algos/all_gather/all_gather_direct.c \
	algos/reduce_scatter/reduce_scatter_direct_ll.c \
	algos/reduce_scatter/reduce_scatter_direct_ll128.c \
	algos/reduce_scatter/reduce_scatter_ring.c \
	algos/reduce_scatter/reduce_scatter_hierarchical.c \
	algos/reduce_scatter/reduce_scatter_direct.c \
	algos/broadcast/broadcast_direct_ll.c \
	algos/broadcast/broadcast_direct_ll128.c \
	algos/broadcast/broadcast_chain.c \
	algos/broadcast/broadcast_hierarchical.c \
	algos/broadcast/broadcast_direct.c \
	algos/reduce/reduce_direct_ll.c \
	algos/reduce/reduce_direct_ll128.c \
	algos/reduce/reduce_chain.c \
	algos/reduce/reduce_direct.c \
	algos/all_to_all/all_to_all_direct_ll.c \
	algos/all_to_all/all_to_all_direct_ll128.c \
	algos/all_to_all/all_to_all_direct.c \
	algos/gather/gather_direct_ll.c \
	algos/gather/gather_direct.c \
	algos/scatter/scatter_direct_ll.c \
	algos/scatter/scatter_direct.c \
	algos/barrier/barrier_dissemination.c \
	algos/barrier/barrier_direct.c \
	algos/all_to_all_v/all_to_all_v_direct_ll.c \
	algos/all_to_all_v/all_to_all_v_direct.c \
	algos/sendrecv/sendrecv_direct.c

noinst_LIBRARIES += librg_algos.a
librg_algos_a_SOURCES = $(RG_ALGO_SOURCES) \
	algos/algos.c algos/algos.h \
	algos/all_gather/all_gather.h algos/all_gather/all_gather_entries.c \
	algos/all_reduce/all_reduce.h algos/all_reduce/all_reduce_entries.c \
	algos/all_to_all/all_to_all.h algos/all_to_all/all_to_all_entries.c \
	algos/all_to_all_v/all_to_all_v.h algos/all_to_all_v/all_to_all_v_entries.c \
	algos/barrier/barrier.h algos/barrier/barrier_entries.c \
	algos/broadcast/broadcast.h algos/broadcast/broadcast_entries.c \
	algos/gather/gather.h algos/gather/gather_entries.c \
	algos/reduce/reduce.h algos/reduce/reduce_entries.c \
	algos/reduce_scatter/reduce_scatter.h algos/reduce_scatter/reduce_scatter_entries.c \
	algos/scatter/scatter.h algos/scatter/scatter_entries.c \
	algos/sendrecv/sendrecv.h algos/sendrecv/sendrecv_entries.c \
	algos/pattern/agents.h \
	algos/pattern/blocks.h \
	algos/pattern/doubling.h \
	algos/pattern/entries.h \
	algos/pattern/exchange.h \
	algos/pattern/exchange_ll.h \
	algos/pattern/exchange_ll128.h \
	algos/pattern/flow.h \
	algos/pattern/fold.h \
	algos/pattern/fold_ll.h \
	algos/pattern/fold_ll128.h \
	algos/pattern/nodes.h \
	algos/pattern/packets.h \
	algos/pattern/ring.h \
	algos/pattern/small.h \
	algos/pattern/tree.h \
	algos/transfer/request.h \
	algos/transfer/transfer.h \
	algos/transfer/transfer_entries.c
librg_algos_a_LIBADD = $(RG_ALGO_OBJECTS)
librg_algos_a_DEPENDENCIES = $(RG_ALGO_OBJECTS)

# Collectives that reduce: one object per collective, data type and device.
RG_REDUCING = all_reduce reduce reduce_scatter
# Those that only move data: one per collective and device, of bytes.
RG_MOVING = all_gather all_to_all all_to_all_v barrier broadcast gather \
	scatter sendrecv transfer
EXTRA_DIST += algos/all_gather/all_gather.c \
	algos/all_reduce/all_reduce.c \
	algos/all_to_all/all_to_all.c \
	algos/all_to_all_v/all_to_all_v.c \
	algos/barrier/barrier.c \
	algos/broadcast/broadcast.c \
	algos/gather/gather.c \
	algos/reduce/reduce.c \
	algos/reduce_scatter/reduce_scatter.c \
	algos/scatter/scatter.c \
	algos/sendrecv/sendrecv.c \
	algos/transfer/transfer.c \
	algos/transfer/transfer_exchange.c \
	algos/transfer/transfer_limits.c \
	algos/transfer/transfer_pair.c

RG_ALGO_CC = $(foreach c,$(RG_REDUCING),$(RG_DTYPES:%=algos/$(c)/$(c)_%.o)) \
	$(foreach c,$(RG_MOVING),algos/$(c)/$(c)_u8.o)
RG_ALGO_CU = \
	$(foreach c,$(RG_REDUCING),$(RG_CUDA_DTYPES:%=algos/$(c)/$(c)_%.cu.o)) \
	$(foreach c,$(RG_MOVING),algos/$(c)/$(c)_u8.cu.o)
RG_ALGO_OBJECTS = $(RG_ALGO_CC)
if HAVE_CUDA
RG_ALGO_OBJECTS += $(RG_ALGO_CU)
endif
RG_DEV_OBJECTS += $(RG_ALGO_OBJECTS)

EXTRA_DIST += algos/registry algos/README.md algos/test/all_reduce_mesh.c \
	algos/test/example.t
BUILT_SOURCES += algos/registry.h
CLEANFILES += algos/registry.h
algos/registry.h: algos/registry algos/local.mk
	$(AM_V_GEN)$(MKDIR_P) $(@D) && \
	$(top_srcdir)/algos/registry $(top_srcdir)/algos/local.mk >$@.tmp && \
	if cmp -s $@.tmp $@; then rm $@.tmp; touch $@; else mv $@.tmp $@; fi
$(RG_ALGO_OBJECTS) $(librg_algos_a_OBJECTS): algos/registry.h

# An object's name ends in its type: <collective>_<type>.
rg_dtype_of = $(lastword $(subst _, ,$(basename $(basename $(notdir $(1))))))
rg_entry_of = $(top_srcdir)/$(dir $(1))$(notdir $(patsubst %/,%,$(dir $(1)))).c
.SECONDEXPANSION:
$(RG_ALGO_CC): %.o: $$(call rg_entry_of,$$@)
	$(AM_V_CC)$(MKDIR_P) $(@D) && \
	$(RG_DEV_CC) -DRG_ENTRY_DTYPE=$(call rg_dtype_of,$@) -c -o $@ $<
$(RG_ALGO_CU): %.cu.o: $$(call rg_entry_of,$$@)
	$(rg_v_nvcc)$(MKDIR_P) $(@D) && \
	$(RG_DEV_NVCC) -DRG_ENTRY_DTYPE=$(call rg_dtype_of,$@) -c -o $@ $<

rg_unit_tests += algos/test/test_all_reduce
algos_test_test_all_reduce_SOURCES = algos/test/test_all_reduce.c
algos_test_test_all_reduce_LDADD = $(CMOCKA_LIBS)
