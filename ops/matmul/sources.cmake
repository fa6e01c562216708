list(APPEND ASSAY_OPS_SOURCES matmul/forms.cpp matmul/reference.cpp matmul/panels.cpp matmul/layout.cpp
     matmul/words.cpp matmul/vector.cpp)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64)$")
  list(APPEND ASSAY_OPS_SOURCES matmul/avx512_bf16.cpp matmul/amx_bf16.cpp)
  set_source_files_properties(matmul/avx512_bf16.cpp PROPERTIES COMPILE_OPTIONS "-mavx512f;-mavx512bf16")
  set_source_files_properties(matmul/amx_bf16.cpp PROPERTIES COMPILE_OPTIONS "-mamx-tile;-mamx-bf16")
endif()
list(APPEND ASSAY_OPS_TESTS matmul/tests/matmul_test.cpp)
