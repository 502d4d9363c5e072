EXTRA_DIST += \
	.ci/run \
	scripts/build \
	scripts/check \
	scripts/check-headers \
	scripts/check-layers \
	scripts/fuzz \
	scripts/gpu-report \
	scripts/hosts \
	scripts/install-deps \
	scripts/layers.txt \
	scripts/plot-common.sh \
	scripts/plot-perf \
	scripts/plot-recovery \
	scripts/plot-tune \
	scripts/plant-check \
	scripts/quickstart \
	scripts/run \
	scripts/sanitize \
	scripts/test/headers.t \
	scripts/test/hosts.t \
	scripts/test/layers.t \
	scripts/test/lists.t \
	scripts/test/no-cmocka.t \
	scripts/test/partition.t \
	scripts/test/plot.t \
	scripts/test/plot-recovery.t \
	scripts/test/plot-tune.t \
	scripts/test/run.t \
	scripts/test/tap.sh

TESTS += \
	scripts/test/headers.t \
	scripts/test/hosts.t \
	scripts/test/layers.t \
	scripts/test/lists.t \
	scripts/test/partition.t \
	scripts/test/plot.t \
	scripts/test/plot-recovery.t \
	scripts/test/plot-tune.t \
	scripts/test/run.t
