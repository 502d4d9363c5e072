EXTRA_DIST += \
	scripts/check-headers \
	scripts/check-layers \
	scripts/layers.txt \
	scripts/test/headers.t \
	scripts/test/layers.t \
	scripts/test/no-cmocka.t \
	scripts/test/tap.sh

TESTS += \
	scripts/test/headers.t \
	scripts/test/layers.t
