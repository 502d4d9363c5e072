noinst_HEADERS += runtime/policy/table.h
