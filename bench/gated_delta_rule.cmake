find_package(benchmark REQUIRED)
add_executable(gated_delta_rule_bench ${CMAKE_SOURCE_DIR}/bench/gated_delta_rule_bench.cpp ${CMAKE_SOURCE_DIR}/bench/fma_peak.cpp)
target_link_libraries(gated_delta_rule_bench PRIVATE assay_ops benchmark::benchmark)
