noinst_LIBRARIES += librg_policy.a
librg_policy_a_SOURCES = \
	runtime/policy/default.c runtime/policy/default.h \
	runtime/policy/lint.c \
	runtime/policy/parse.c \
	runtime/policy/rows.h \
	runtime/policy/table.c runtime/policy/table.h \
	runtime/policy/write.c

# The built-in tables, as text in the library.
RG_POLICY_DEFAULTS = \
	runtime/policy/default/emu.rgp \
	runtime/policy/default/cuda.rgp \
	runtime/policy/default/proxy.rgp \
	runtime/policy/default/proxy_emu.rgp
RG_POLICY_EMBED = runtime/policy/default/embed
nodist_librg_policy_a_SOURCES = runtime/policy/default_text.c
EXTRA_DIST += $(RG_POLICY_DEFAULTS) $(RG_POLICY_EMBED)
CLEANFILES += $(nodist_librg_policy_a_SOURCES)

$(nodist_librg_policy_a_SOURCES): $(RG_POLICY_DEFAULTS) $(RG_POLICY_EMBED)
	$(AM_V_GEN)$(MKDIR_P) $(@D) && cd $(srcdir) && \
	$(RG_POLICY_EMBED) $(RG_POLICY_DEFAULTS) \
		>$(abs_top_builddir)/$@.tmp && \
	mv -f $(abs_top_builddir)/$@.tmp $(abs_top_builddir)/$@

rg_unit_tests += runtime/policy/test/test_table
runtime_policy_test_test_table_SOURCES = runtime/policy/test/test_table.c
# The algorithms' library holds the kernels of every device that is built.
runtime_policy_test_test_table_LDADD = librg_policy.a librg_algos.a \
	librg_core.a $(CMOCKA_LIBS) $(CUDA_LIBS)

# The fuzzer's rules, on its corpus; scripts/fuzz goes on from there.
rg_unit_tests += runtime/policy/test/test_fuzz
runtime_policy_test_test_fuzz_SOURCES = runtime/policy/test/test_fuzz.c \
	runtime/policy/test/fuzz_table.c runtime/policy/test/fuzz_table.h
runtime_policy_test_test_fuzz_LDADD = librg_policy.a librg_core.a \
	$(CMOCKA_LIBS)
EXTRA_DIST += \
	runtime/policy/test/corpus/cut.rgp \
	runtime/policy/test/corpus/gap.rgp \
	runtime/policy/test/corpus/small.rgp \
	runtime/policy/test/corpus/typed.rgp \
	runtime/policy/test/corpus/version.rgp \
	runtime/policy/test/corpus/wide.rgp \
	runtime/policy/test/corpus/zero.rgp
