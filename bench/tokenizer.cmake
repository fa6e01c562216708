add_executable(tokenizer_bench ${CMAKE_CURRENT_LIST_DIR}/tokenizer_bench.cpp)
target_link_libraries(tokenizer_bench PRIVATE assay_text CLI11::CLI11 fmt::fmt)
target_compile_definitions(tokenizer_bench PRIVATE ASSAY_SOURCE_DIR="${CMAKE_CURRENT_LIST_DIR}/..")
