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
	runtime/policy/default/cuda.rgp
RG_POLICY_EMBED = runtime/policy/default/embed
nodist_librg_policy_a_SOURCES = runtime/policy/default_text.c
EXTRA_DIST += $(RG_POLICY_DEFAULTS) $(RG_POLICY_EMBED)
CLEANFILES += runtime/policy/default_text.c

runtime/policy/default_text.c: $(RG_POLICY_DEFAULTS) $(RG_POLICY_EMBED)
	$(AM_V_GEN)$(MKDIR_P) $(@D) && cd $(srcdir) && \
	$(RG_POLICY_EMBED) $(RG_POLICY_DEFAULTS) \
		>$(abs_top_builddir)/$@.tmp && \
	mv -f $(abs_top_builddir)/$@.tmp $(abs_top_builddir)/$@

rg_unit_tests += runtime/policy/test/test_table
runtime_policy_test_test_table_SOURCES = runtime/policy/test/test_table.c
runtime_policy_test_test_table_LDADD = librg_policy.a librg_algos.a \
	librg_core.a $(CMOCKA_LIBS)
