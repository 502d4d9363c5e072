noinst_LIBRARIES += librg_algos.a
librg_algos_a_SOURCES = \
	algos/algos.c algos/algos.h \
	algos/all_reduce/all_reduce.h \
	algos/all_reduce/all_reduce_doubling.c \
	algos/all_reduce/all_reduce_doubling_ll.c \
	algos/all_reduce/all_reduce_entries.c \
	algos/all_reduce/all_reduce_hierarchical.c \
	algos/all_reduce/all_reduce_oneshot.c \
	algos/all_reduce/all_reduce_oneshot_ll.c \
	algos/all_reduce/all_reduce_ring.c \
	algos/all_reduce/all_reduce_twoshot.c \
	algos/all_reduce/all_reduce_twoshot_ll.c \
	algos/pattern/doubling.h algos/pattern/nodes.h algos/pattern/packets.h \
	algos/pattern/ring.h \
	algos/transfer/request.h \
	algos/transfer/transfer.h \
	algos/transfer/transfer_entries.c
librg_algos_a_LIBADD = $(RG_ALGO_OBJECTS)
librg_algos_a_DEPENDENCIES = $(RG_ALGO_OBJECTS)

# One object per collective, data type and device.
RG_ALL_REDUCE_CC = $(RG_DTYPES:%=algos/all_reduce/all_reduce_%.o)
RG_ALL_REDUCE_CU = $(RG_DTYPES:%=algos/all_reduce/all_reduce_%.cu.o)
EXTRA_DIST += algos/all_reduce/all_reduce.c

# Of bytes alone; the programs are parts of one source.
RG_TRANSFER_CC = algos/transfer/transfer_u8.o
RG_TRANSFER_CU = algos/transfer/transfer_u8.cu.o
EXTRA_DIST += algos/transfer/transfer.c \
	algos/transfer/transfer_exchange.c \
	algos/transfer/transfer_limits.c \
	algos/transfer/transfer_pair.c

RG_ALGO_OBJECTS = $(RG_ALL_REDUCE_CC) $(RG_TRANSFER_CC)
if HAVE_CUDA
RG_ALGO_OBJECTS += $(RG_ALL_REDUCE_CU) $(RG_TRANSFER_CU)
endif
RG_DEV_OBJECTS += $(RG_ALGO_OBJECTS)

$(RG_ALL_REDUCE_CC): algos/all_reduce/all_reduce_%.o: algos/all_reduce/all_reduce.c
	$(AM_V_CC)$(MKDIR_P) $(@D) && \
	$(RG_DEV_CC) -DRG_ENTRY_DTYPE=$* -c -o $@ $<
$(RG_ALL_REDUCE_CU): algos/all_reduce/all_reduce_%.cu.o: algos/all_reduce/all_reduce.c
	$(rg_v_nvcc)$(MKDIR_P) $(@D) && \
	$(RG_DEV_NVCC) -DRG_ENTRY_DTYPE=$* -c -o $@ $<
$(RG_TRANSFER_CC): algos/transfer/transfer_%.o: algos/transfer/transfer.c
	$(AM_V_CC)$(MKDIR_P) $(@D) && \
	$(RG_DEV_CC) -DRG_ENTRY_DTYPE=$* -c -o $@ $<
$(RG_TRANSFER_CU): algos/transfer/transfer_%.cu.o: algos/transfer/transfer.c
	$(rg_v_nvcc)$(MKDIR_P) $(@D) && \
	$(RG_DEV_NVCC) -DRG_ENTRY_DTYPE=$* -c -o $@ $<

rg_unit_tests += algos/test/test_all_reduce
algos_test_test_all_reduce_SOURCES = algos/test/test_all_reduce.c
algos_test_test_all_reduce_LDADD = $(CMOCKA_LIBS)
