noinst_HEADERS += \
	runtime/device/call.h \
	runtime/device/choose.h \
	runtime/device/copy.h \
	runtime/device/dev.h \
	runtime/device/elem.h \
	runtime/device/entry.h \
	runtime/device/frame.h \
	runtime/device/help.h \
	runtime/device/hot.h \
	runtime/device/keeper.h \
	runtime/device/ll128.h \
	runtime/device/mailbox.h \
	runtime/device/num.h \
	runtime/device/packet.h \
	runtime/device/plan.h runtime/device/proxy.h \
	runtime/device/reduce.h \
	runtime/device/route.h \
	runtime/device/share.h \
	runtime/device/signal.h \
	runtime/device/team.h \
	runtime/device/transfer.h \
	runtime/device/word.h

rg_unit_tests += runtime/device/test/test_num
runtime_device_test_test_num_SOURCES = runtime/device/test/test_num.c
runtime_device_test_test_num_LDADD = $(CMOCKA_LIBS) -lm

rg_unit_tests += runtime/device/test/test_team
runtime_device_test_test_team_SOURCES = runtime/device/test/test_team.c
runtime_device_test_test_team_LDADD = $(CMOCKA_LIBS)

rg_unit_tests += runtime/device/test/test_entry
runtime_device_test_test_entry_SOURCES = \
	runtime/device/test/test_entry.c runtime/device/test/fake.h
runtime_device_test_test_entry_LDADD = $(CMOCKA_LIBS)

rg_unit_tests += runtime/device/test/test_keeper
runtime_device_test_test_keeper_SOURCES = \
	runtime/device/test/test_keeper.c runtime/device/test/fake.h
runtime_device_test_test_keeper_LDADD = $(CMOCKA_LIBS)

rg_unit_tests += runtime/device/test/test_transfer
runtime_device_test_test_transfer_SOURCES = \
	runtime/device/test/test_transfer.c runtime/device/test/fake.h
runtime_device_test_test_transfer_LDADD = $(CMOCKA_LIBS)
