add_executable(matmul_bench ${CMAKE_CURRENT_LIST_DIR}/matmul_bench.cpp ${CMAKE_CURRENT_LIST_DIR}/contenders.cpp)
target_link_libraries(matmul_bench PRIVATE assay_ops CLI11::CLI11 fmt::fmt)
assay_link_onednn(matmul_bench)
