list(APPEND ASSAY_OPS_SOURCES conv1d/forms.cpp conv1d/reference.cpp conv1d/shape.cpp conv1d/taps.cpp
     conv1d/vector.cpp)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64)$")
  list(APPEND ASSAY_OPS_SOURCES conv1d/avx512_bf16.cpp conv1d/amx_bf16.cpp)
  set_source_files_properties(conv1d/avx512_bf16.cpp PROPERTIES COMPILE_OPTIONS "-mavx512f;-mavx512bf16")
  set_source_files_properties(conv1d/amx_bf16.cpp PROPERTIES COMPILE_OPTIONS "-mamx-tile;-mamx-bf16")
endif()
list(APPEND ASSAY_OPS_TESTS conv1d/tests/conv1d_test.cpp)
