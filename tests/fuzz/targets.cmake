# The targets: tests/fuzz/<target>.cpp, with seeds in tests/fuzz/corpus/<target>.
set(TENURE_FUZZ_TARGETS core_batch core_snapshot grpc_connection http_request log_segment
                        peer_frames redis_reply toml url)
