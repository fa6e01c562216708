find_package(benchmark REQUIRED)
add_executable(attention_bench ${CMAKE_SOURCE_DIR}/bench/attention_bench.cpp ${CMAKE_SOURCE_DIR}/bench/fma_peak.cpp)
target_link_libraries(attention_bench PRIVATE assay_ops benchmark::benchmark)
