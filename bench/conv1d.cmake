add_executable(conv1d_bench ${CMAKE_CURRENT_LIST_DIR}/conv1d_bench.cpp ${CMAKE_CURRENT_LIST_DIR}/contenders.cpp)
target_link_libraries(conv1d_bench PRIVATE assay_ops CLI11::CLI11 fmt::fmt)
assay_link_onednn(conv1d_bench)
