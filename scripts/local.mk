EXTRA_DIST += scripts/test/no-cmocka.t
